"""Help pages fit a terminal of 80 columns, and list the options of ``tacit fit`` under headings."""

import re
import subprocess
import sys

import pytest
import typer
from typer.main import get_command

from commands import call
from tacit.cli import app
from tacit.cli.options import at_least, whole_number

COMMANDS = sorted(get_command(app).commands)


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=lambda command: " ".join(command))
@pytest.mark.parametrize("columns", ["80", "200"])
def test_every_help_page_fits_80_columns(command, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    code = call(*command, "--help")
    page = capsys.readouterr().out
    assert code == 0
    assert max(map(len, page.splitlines())) <= 80
    assert "<list" not in page
    assert not re.search(r"[{}]|<path>|<str>", page)


def test_options_of_fit_are_under_headings(capsys):
    call("fit", "--help")
    page = capsys.readouterr().out
    sections = dict(re.findall(r"^(\w+):\n((?:  .*\n)+)", page, re.MULTILINE))
    assert list(sections) == ["Arguments", "Data", "Graph", "Assessment", "Options"]
    found = {name: heading for heading, text in sections.items() for name in re.findall(r"^  (--[\w-]+)", text, re.M)}
    assert {found[name] for name in ("--series", "--window", "--y-file")} == {"Data"}
    assert {found[name] for name in ("--edges", "--regimes")} == {"Graph"}
    assert {found[name] for name in ("--quick", "--std-errors")} == {"Assessment"}
    assert {found[name] for name in ("--config", "--seed", "--help")} == {"Options"}


# ---------------------------------------------------------------- whole numbers that are typed


@pytest.mark.parametrize("text", ["two", "1.5", "", "-3", "0", "1e3", "9" * 5000, "--3", "½"])
def test_what_is_none(text):
    with pytest.raises(typer.BadParameter, match=r"must be an integer of at least 1, got '.*'; pass for example 2"):
        at_least(1)(text)


def test_what_is_one():
    assert [at_least(1)("7"), at_least(0)(0), at_least(-5)("-5"), whole_number("0"), whole_number(10**15)] == [
        7,
        0,
        -5,
        0,
        10**15,
    ]


# ---------------------------------------------------------------- nothing heavy is imported for the help, and nothing t


HEAVY = ("torch", "matplotlib", "plotly", "pandas", "numpy", "scipy", "sklearn", "networkx", "jinja2", "pyarrow")


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    code = f"import sys; from tacit.cli import main\ntry: main({arguments})\nexcept SystemExit: pass\n"
    code += f"print('imported', *(name for name in {HEAVY} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "Usage" in result.stdout
    assert result.stdout.splitlines()[-1].strip() == "imported"


@pytest.mark.parametrize(
    ("imports", "absent"),
    [
        ("tacit", ("torch", "sklearn")),
        ("tacit, tacit.sklearn", ("matplotlib", "plotly", "jinja2", "networkx", "typer")),
    ],
)
def test_imports_load_what_they_need(imports, absent):
    code = f"import sys, {imports}; print([name for name in {absent} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.strip() == "[]"

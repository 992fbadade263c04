"""Help pages fit a terminal of 80 columns, and list the options of ``tacit fit`` under headings."""

import re

import pytest
from typer.main import get_command

from commands import call
from tacit.cli import app

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

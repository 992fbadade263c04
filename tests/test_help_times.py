"""Nothing heavy is imported for the help, and nothing that draws for the estimators."""

import subprocess
import sys

import pytest

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

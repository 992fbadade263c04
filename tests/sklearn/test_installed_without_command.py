"""The estimators need only the packages that ``pip install tacit`` installs; the rest says which extra is missing."""

import os
import subprocess
import sys
import tomllib

from doc_blocks import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HIDDEN = [
    *("jinja2", "matplotlib", "networkx", "plotly", "pyarrow", "rich", "typer"),
    *("openpyxl", "torch_geometric", "distributed", "polars", "xarray"),
]
HIDE = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HIDDEN!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Hidden())
import importlib.util
found = importlib.util.find_spec
def find_spec(name, package=None):
    return None if name.partition(".")[0] in {HIDDEN!r} else found(name, package)
importlib.util.find_spec = find_spec
"""
FIT = """
import numpy as np, pandas as pd
from tacit import LatentGraphForecaster, load
generator = np.random.default_rng(0)
x = np.zeros((300, 3))
for t in range(1, 300):
    x[t] = [.5, .5, .5] * x[t - 1] + [0, .8 * x[t - 1, 0], 0] + generator.normal(size=3)
table = pd.DataFrame(x, columns=list("abc"))
model = LatentGraphForecaster(random_state=0).fit(table)
edges = model.listed_edges()
print(*(f"{source} -> {target}" for source, target in zip(edges["source"], edges["target"])))
print(bool(np.isfinite(model.predict(table[-20:]).to_numpy()).all()))
model.save("fit.tacit")
print(type(load("fit.tacit")).__name__, len(model._repr_html_()) > 100)
for call in (lambda: model.report("page.html"), model.to_networkx, model.to_pyg):
    try:
        call()
    except ValueError as error:
        print(error)
from tacit.data import open_table
for name in ("t.parquet", "t.xlsx"):
    try:
        open_table(name)
    except ValueError as error:
        print(error)
"""


def run(code, folder):
    return subprocess.run(
        [sys.executable, "-c", HIDE + code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_at_most_eleven_packages_are_required():
    required = {words.split(">")[0] for words in PROJECT["dependencies"]}
    assert len(required) <= 11
    assert not required & set(HIDDEN)


def test_estimators_fit_predict_and_save_and_files_name_their_package(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    done = run(FIT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "a -> b",
        "True",
        "LatentGraphForecaster True",
        "report requires jinja2, which is not installed; pip install 'tacit[command]'",
        "to_networkx requires networkx, which is not installed; pip install 'tacit[command]'",
        "to_pyg requires torch_geometric, which is not installed; pip install 'tacit[pyg]'",
        "t.parquet: reading .parquet requires pyarrow, which is not installed; pip install 'tacit[command]'",
        "t.xlsx: reading .xlsx requires openpyxl, which is not installed; pip install 'tacit[excel]'",
    ]


def test_the_command_names_its_extra(tmp_path):
    done = run("import tacit.__main__\ntacit.__main__.main()", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tacit: the command tacit requires typer, which is not installed; pip install 'tacit[command]'\n"
    )

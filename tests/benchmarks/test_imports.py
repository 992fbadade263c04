"""Every benchmark can be imported: a renamed part of the package must not break one unnoticed."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.stem not in ("__init__", "__main__")
)
OPTIONAL = {"lingam", "tigramite", "torch_geometric", "sklearn"}  # installed by make peers or with an extra


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch_geometric
@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_imported(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")

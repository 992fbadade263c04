"""The scripts that draw pages from the figures of the benchmarks, as modules: they are no part of the package."""

import importlib.util
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def drawing_of(name):
    """Return the module ``benchmarks/NAME.py``."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

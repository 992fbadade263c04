"""The data sets of CausalCompass (arXiv 2602.07915, package causalcompass): a VAR and Lorenz-96, 10 nodes.

The package pins old versions of nearly everything, and importing it imports all its methods. ``make peers`` installs it
without its requirements, and :func:`generators` imports the data sets alone.
"""

import importlib
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Bool, Float

from tacit.errors import InputError

NODES, ROWS = 10, 1_000
MISSING = {"random_missing": {"missing_prob": 0.2, "missing_var": "all"}}
# Function, further arguments, and the place of the graph in what it returns; values come first.
FUNCTIONS: dict[str, tuple[str, dict[str, object], int]] = {
    "vanilla_var": ("simulate_var", {}, 2),
    "confounders_var": ("simulate_var_with_confounders", {}, 2),
    "nonstationary_var": ("simulate_nonstationary_var", {}, 3),
    "coefficients_var": ("simulate_nonstationary_var_timevarying_coef", {"T": 500}, 3),  # time grows as T cubed
    "measurement_var": ("simulate_var_with_measure_error", {}, 2),
    "missing_var": ("generate_missing_var", {"missing_config": MISSING}, 3),
    "mixed_var": ("generate_mixed_var", {"device": torch.device("cpu")}, 2),
    "trendseason_var": ("simulate_var_with_trend_season", {}, 2),
    "vanilla_lorenz": ("simulate_lorenz_96", {}, 1),
    "confounders_lorenz": ("simulate_lorenz_with_confounders", {}, 1),
    "nonstationary_lorenz": ("simulate_nonstationary_lorenz_96", {}, 1),
    "measurement_lorenz": ("simulate_lorenz_with_measure_error", {}, 1),
    "missing_lorenz": ("generate_missing_lorenz_96", {"missing_config": MISSING}, 3),
    "mixed_lorenz": ("generate_mixed_lorenz_96", {"device": torch.device("cpu")}, 2),
    "trendseason_lorenz": ("simulate_lorenz_with_trend_season", {}, 1),
}
GAPS = {"gaps_var": "missing_var", "gaps_lorenz": "missing_lorenz"}  # cells left empty, not filled with the last value
COMPASS = tuple(f"cc_{name}" for name in (*FUNCTIONS, *GAPS))


def generators() -> ModuleType:
    """Return the module of data sets without importing the methods of the package."""
    if "causalcompass" not in sys.modules:
        found = find_spec("causalcompass")
        if found is None or found.submodule_search_locations is None:
            raise InputError("kinds that begin with cc_ require the package causalcompass; install it: make peers")
        package = ModuleType("causalcompass")
        package.__path__ = list(found.submodule_search_locations)
        sys.modules["causalcompass"] = package
    return importlib.import_module("causalcompass.datasets")


def compass_values(name: str, seed: int) -> tuple[Float[np.ndarray, "time node"], Bool[np.ndarray, "node node"]]:
    """Return values and graph (rows receive) of one kind of :data:`COMPASS`, with the defaults of the package."""
    own = name.removeprefix("cc_")
    function, further, graph = FUNCTIONS[GAPS.get(own, own)]
    with unmoved_generators():
        found = getattr(generators(), function)(**{"p": NODES, "T": ROWS, "seed": seed, **further})
    if own in GAPS:  # filled values, values with zeros, mask, graph
        return np.where(found[2] == 1, found[1], np.nan), np.asarray(found[graph] != 0)
    return np.asarray(found[0], dtype=float).reshape(-1, NODES), np.asarray(found[graph] != 0)


@contextmanager
def unmoved_generators() -> Iterator[None]:
    """Restore the global generators, which the package seeds."""
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])

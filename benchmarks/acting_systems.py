r"""Series of known edges that act always or at times, each kind with one difficulty for telling which.

All are autocorrelated, $x_t = o \circ x_{t-1} + (A_t \circ W)\, x_{t-1} + \varepsilon_t$, with two thirds of the rows
for training. Every kind is a function of a seed; methods are chosen on seeds below 1,000 and scored once on seeds from
10,000 on.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from benchmarks.existence import systems
from benchmarks.existence.systems import BURN_IN, System
from benchmarks.robustness.systems import EDGES, system, weights_of
from benchmarks.robustness.systems import make as robust

NODES = 8


def growing_noise(seed: int, rows: int = 1_500, nodes: int = NODES) -> System:
    """Edges that always act, with variance .5 + .15 times the squares of the sources of a node."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, True)
    sent = (weights != 0) & ~np.eye(nodes, dtype=bool)
    series = rng.normal(size=(BURN_IN + rows, nodes))
    for now in range(1, len(series)):
        last = series[now - 1]
        series[now] = weights @ last + np.sqrt(0.5 + 0.15 * sent @ last**2) * series[now]
    return system("growing_noise", series[BURN_IN:], weights)


def saturating(seed: int, rows: int = 1_500, nodes: int = NODES) -> System:
    """Edges that always act, with an effect that saturates: tanh(1.5 x) instead of x."""
    rng = np.random.default_rng(seed)
    weights = weights_of(rng, nodes, True)
    own, others = np.diag(np.diag(weights)), weights - np.diag(np.diag(weights))
    series = rng.normal(size=(BURN_IN + rows, nodes))
    for now in range(1, len(series)):
        series[now] = own @ series[now - 1] + 1.5 * others @ np.tanh(1.5 * series[now - 1]) + 0.7 * series[now]
    return system("saturating", series[BURN_IN:], weights)


def gates(
    seed: int,
    rows: int = 1_500,
    nodes: int = NODES,
    weight: float = 1.0,
    noise: float = 0.5,
    low: float = 0.2,
    high: float = 0.8,
) -> System:
    """Half of the nodes only send; each other node reads one or two of them, through gates or always."""
    rng = np.random.default_rng(seed)
    theta, half = np.zeros((nodes, nodes)), nodes // 2
    for node in range(half, nodes):
        for source in rng.choice(half, rng.integers(1, 3), replace=False):
            theta[node, source] = rng.uniform(low, high)
    own = rng.uniform(0.2, 0.7, nodes) * np.where(np.arange(nodes) < half, 1.0, 0.5)
    deviation = np.where(np.arange(nodes) < half, np.sqrt(1 - own**2), noise)  # sources have the deviation 1
    signs = rng.choice([-1.0, 1.0], theta.shape)
    series = deviation * rng.normal(size=(BURN_IN + rows, nodes))
    for now in range(1, len(series)):
        acting = weight * signs * (rng.random(theta.shape) < theta)
        series[now] += own * series[now - 1] + acting @ series[now - 1]
    return System("gates", (series[BURN_IN:],), theta > 0, theta)


def _robust(seed: int, kind: str) -> System:
    return robust(kind, seed, EDGES)


KINDS: dict[str, Callable[..., System]] = {
    "plain": systems.var,
    "nonlinear": systems.nonlinear_var,
    "gpvar": systems.gpvar,
    "many_gates": systems.gates,
    "gates": gates,
    "growing_noise": growing_noise,
    "saturating": saturating,
    "spikes": partial(_robust, kind="outliers"),
    "volatility": partial(_robust, kind="volatility"),
    "common_volatility": partial(_robust, kind="common_volatility"),
    "unit_change": partial(_robust, kind="unit_change"),
}

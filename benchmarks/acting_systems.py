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


def _received(
    name: str,
    rng: np.random.Generator,
    rows: int,
    theta: np.ndarray,
    weight: float,
    noise: float,
    drawn: Callable[[], np.ndarray],
) -> System:
    """Return series whose edges are those of ``theta``; ``drawn`` returns which gates are open in a row."""
    nodes, half = len(theta), len(theta) // 2
    own = rng.uniform(0.2, 0.7, nodes) * np.where(np.arange(nodes) < half, 1.0, 0.5)
    deviation = np.where(np.arange(nodes) < half, np.sqrt(1 - own**2), noise)  # sources have the deviation 1
    signs = rng.choice([-1.0, 1.0], theta.shape)
    series = deviation * rng.normal(size=(BURN_IN + rows, nodes))
    for now in range(1, len(series)):
        acting = weight * signs * ((theta > 0) & drawn())
        series[now] += own * series[now - 1] + acting @ series[now - 1]
    return System(name, (series[BURN_IN:],), theta > 0, theta)


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
    return _received("gates", rng, rows, theta, weight, noise, lambda: rng.random(theta.shape) < theta)


def common_gate(
    seed: int, rows: int = 1_500, nodes: int = NODES, weight: float = 1.0, noise: float = 0.5, often: float = 0.6
) -> System:
    """Half of the nodes only send; of the others, half read two of them through one gate that all these edges share."""
    rng = np.random.default_rng(seed)
    theta, half = np.zeros((nodes, nodes)), nodes // 2
    for node in range(half, nodes):
        theta[node, rng.choice(half, 2, replace=False)] = often if node < half + nodes // 4 else 1.0
    always = theta == 1
    return _received("common_gate", rng, rows, theta, weight, noise, lambda: always | (rng.random() < often))


def gates_with_shared_noise(
    seed: int, rows: int = 1_500, nodes: int = NODES, weight: float = 1.5, noise: float = 0.5, shared: float = 0.8
) -> System:
    """Independent gates of sources that are positive; the noise of all receiving nodes has one part in common."""
    rng = np.random.default_rng(seed)
    theta, half = np.zeros((nodes, nodes)), nodes // 2
    for node in range(half, nodes):
        theta[node, rng.integers(half)] = rng.uniform(0.3, 0.7)
    series = rng.normal(size=(BURN_IN + rows, nodes))
    together = rng.normal(size=(BURN_IN + rows, 1))
    series[:, half:] = noise * (shared**0.5 * together + (1 - shared) ** 0.5 * series[:, half:])
    series[:, :half] = np.abs(series[:, :half])
    for now in range(1, len(series)):
        series[now] += weight * ((rng.random(theta.shape) < theta) @ series[now - 1])
    return System("gates_with_shared_noise", (series[BURN_IN:],), theta > 0, theta)


def _robust(seed: int, kind: str) -> System:
    return robust(kind, seed, EDGES)


KINDS: dict[str, Callable[..., System]] = {
    "plain": systems.var,
    "nonlinear": systems.nonlinear_var,
    "gpvar": systems.gpvar,
    "many_gates": systems.gates,
    "gates": gates,
    "common_gate": common_gate,
    "gates_with_shared_noise": gates_with_shared_noise,
    "growing_noise": growing_noise,
    "saturating": saturating,
    "spikes": partial(_robust, kind="outliers"),
    "volatility": partial(_robust, kind="volatility"),
    "common_volatility": partial(_robust, kind="common_volatility"),
    "unit_change": partial(_robust, kind="unit_change"),
}

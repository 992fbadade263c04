r"""Systems with a known graph: fixed graphs, random gates, panels, and series without any edge.

Every function takes a seed and returns a :class:`System`. Rows of ``truth`` receive: ``truth[i, j]`` says that node i
reads node j. The diagonal is empty, although every node reads its own past.

Methods are chosen on the seeds ``CHOOSE``; the seeds ``TEST`` are scored once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from benchmarks.studies.gpvar_system import GPVARSystem
from jaxtyping import Bool, Float, Shaped

SEEDS = {"choose": range(1_000), "test": range(10_000, 11_000)}
CHOOSE, TEST = SEEDS["choose"], SEEDS["test"]
OWN = 0.4  # weight of a node's own past
LARGEST_RADIUS = 0.9  # spectral radius of a linear system; larger ones are shrunk
BURN_IN = 100

Values = Float[np.ndarray, "time node"]
Graph = Bool[np.ndarray, "node node"]
Weights = Float[np.ndarray, "node node"]


@dataclass(frozen=True, eq=False)
class System:
    """One data set and its graph: several series of one law, or pairs (inputs and targets) where order means nothing.

    ``theta`` is how often an edge acts: 1 for every edge of a fixed graph, 0 without an edge. ``times`` are the dates
    of the rows of one series, where it has dates. ``reached`` is the number of nodes that an unseen series reaches.
    """

    kind: str
    series: tuple[Values, ...]
    truth: Graph
    theta: Weights
    inputs: Values | None = None
    targets: Values | None = None
    nodes: tuple[str, ...] = field(default=())
    times: Shaped[np.ndarray, " time"] | None = None
    reached: int = 0

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.truth)

    @property
    def num_rows(self) -> int:
        """Number of rows of all series together, or of pairs."""
        return sum(map(len, self.series)) if self.inputs is None else len(self.inputs)


def var(
    seed: int, nodes: int = 15, rows: int = 1_000, density: float = 0.12, sizes: tuple[float, float] = (0.2, 0.6)
) -> System:
    r"""$x_t = (0.4 I + W) x_{t-1} + \varepsilon_t$, the weights of either sign with $|w|$ in ``sizes``."""
    rng = np.random.default_rng(seed)
    weights = stable(random_weights(rng, nodes, density, *sizes))
    noise = rng.normal(size=(BURN_IN + rows, nodes))
    series = _linear(weights, noise)
    return _fixed("var", (series,), weights)


def nonlinear_var(
    seed: int,
    nodes: int = 15,
    rows: int = 4_000,
    density: float = 0.12,
    sizes: tuple[float, float] = (0.5, 1.5),
    shrunk: bool = True,
) -> System:
    r"""$x_t = 0.4 x_{t-1} + \tanh(W x_{t-1}) + 0.3 \varepsilon_t$; if ``shrunk``, 0 is a stable state.

    Otherwise, as in the sweep, some systems stay near another state, where tanh is flat and the data say little: with
    the sizes .5 to 1.5 ridge regression had a mean AUROC of .951 over ten of them, and three had .81 to .87.
    """
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, nodes, density, *sizes)
    weights = stable(weights) if shrunk else weights
    series = 0.3 * rng.normal(size=(BURN_IN + rows, nodes))
    for now in range(1, len(series)):
        series[now] += OWN * series[now - 1] + np.tanh(weights @ series[now - 1])
    return _fixed("nonlinear_var", (series[BURN_IN:],), weights)


def gates(seed: int, nodes: int = 10, rows: int = 2_000, density: float = 0.15) -> System:
    r"""$x_t = (0.4 I + A_t \circ W) x_{t-1} + \varepsilon_t$, where every $A_t$ is drawn anew, theta between .3 and .9.

    Weights lie between .4 and .8, so that the mean effect of an edge is about that of :func:`var`.
    """
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, nodes, density, 0.4, 0.8)
    theta = np.where(weights != 0, rng.uniform(0.3, 0.9, weights.shape), 0.0)
    weights = stable(weights, theta)
    series = rng.normal(size=(BURN_IN + rows, nodes))
    for now in range(1, len(series)):
        acting = weights * (rng.random(theta.shape) < theta)
        series[now] += OWN * series[now - 1] + acting @ series[now - 1]
    return System("gates", (series[BURN_IN:],), weights != 0, theta)


def gpvar(
    seed: int,
    nodes: int = 12,
    rows: int = 1_000,
    density: float = 0.12,
    largest_radius: float = LARGEST_RADIUS,
) -> System:
    r"""$x_t = \tanh(\sum_{l,p} \psi_{l,p} S^l x_{t-p}) + 0.4 \varepsilon_t$, $l \in \{0, 1\}$, $p \in \{1, 2\}$.

    All nodes share one filter. It reaches one hop, so that the edges of the graph are the parents. The filter is shrunk
    until it is stable without its tanh: otherwise most systems are driven to -1 and 1 and stay there for long.
    """
    rng = np.random.default_rng(seed)
    graph = random_weights(rng, nodes, density, 1.0, 1.0) != 0
    own = rng.uniform(-0.3, 0.5, 2)
    others = rng.uniform(0.3, 0.8, 2) * rng.choice([-1.0, 1.0], 2)
    coefficients = np.stack([own, others])  # (power, lag), the oldest lag first
    while _filter_radius(graph, coefficients) > largest_radius:
        coefficients = 0.95 * coefficients
    system = GPVARSystem(torch.from_numpy(graph).double(), torch.from_numpy(coefficients))
    series = system.generate(rows, seed=int(rng.integers(2**31))).numpy()
    return System("gpvar", (series,), graph, graph.astype(float))


def panels(seed: int, nodes: int = 10, rows: int = 1_000, density: float = 0.12, count: int = 5) -> System:
    """Several series of one :func:`var`, each with levels of its own; ``rows`` counts the rows of all of them."""
    rng = np.random.default_rng(seed)
    weights = stable(random_weights(rng, nodes, density, 0.2, 0.6))
    series = []
    for length in _lengths(rows, count):
        values = _linear(weights, rng.normal(size=(BURN_IN + length, nodes)))
        series.append(values + rng.normal(scale=3.0, size=nodes))
    return _fixed("panels", tuple(series), weights)


def independent(seed: int) -> System:
    """AR(1) series without any edge: 5 to 30 nodes, 200 to 2,000 rows, coefficients between .3 and .95."""
    rng = np.random.default_rng(seed)
    nodes, rows = int(rng.integers(5, 31)), int(_log_uniform(rng, 200, 2_000))
    own = rng.uniform(0.3, 0.95, nodes)
    series = rng.normal(size=(BURN_IN + rows, nodes))
    for now in range(1, len(series)):
        series[now] += own * series[now - 1]
    return _fixed("independent", (series[BURN_IN:],), np.zeros((nodes, nodes)))


def wide(seed: int) -> System:
    """60 nodes, 300 rows of a :func:`var` with density .03, its weights large enough for a lasso to find all edges."""
    found = var(seed, nodes=60, rows=300, density=0.03, sizes=(0.3, 0.6))
    return System("wide", found.series, found.truth, found.theta)


def mixed_signs(seed: int, nodes: int = 7, pairs: int = 2_000, edges: int = 5) -> System:
    r"""Pairs $y = x / 2 + (A \circ W) x + \sigma \varepsilon$ with five edges of either sign; A is drawn for each pair.

    Theta lies between .3 and .9, $|w|$ between .5 and 1, and $\sigma$ between .1 and .3.
    """
    rng = np.random.default_rng(seed)
    places = [(row, column) for row in range(nodes) for column in range(nodes) if row != column]
    chosen = tuple(np.array(places)[rng.choice(len(places), edges, replace=False)].T)
    weights, theta = np.zeros((nodes, nodes)), np.zeros((nodes, nodes))
    weights[chosen] = rng.uniform(0.5, 1.0, edges) * rng.permutation([1.0, -1.0] * edges)[:edges]
    theta[chosen] = rng.uniform(0.3, 0.9, edges)
    sigma = rng.uniform(0.1, 0.3)
    x = rng.normal(size=(pairs, nodes))
    acting = rng.random((pairs, nodes, nodes)) < theta
    y = 0.5 * x + np.einsum("pij,ij,pj->pi", acting, weights, x) + sigma * rng.normal(size=x.shape)
    return System("mixed_signs", (), weights != 0, theta, inputs=x, targets=y)


def river(seed: int = 1, hours: int = 1_600, kept: int = 1_500) -> System:
    """The table of docs/index.md: a spring feeds a creek, the creek a river through a gate, a lake is independent."""
    rng = np.random.default_rng(seed)
    levels = np.zeros((hours, 4))
    for hour in range(1, hours):
        spring, creek, stream, lake = levels[hour - 1]
        gate = rng.random() < 0.6
        levels[hour] = [0.6 * spring, 0.3 * creek + 0.6 * spring, 0.3 * stream + gate * 0.9 * creek, 0.5 * lake]
        levels[hour] += [0.5, 0.2, 0.1, 0.2] * rng.normal(size=4)
    theta = np.zeros((4, 4))
    theta[1, 0], theta[2, 1] = 1.0, 0.6
    values = (10 + levels).round(3)[:kept]
    return System("river", (values,), theta > 0, theta, nodes=("spring", "creek", "river", "lake"))


def calibration_systems(count: int, seed: int) -> list[System]:
    """Draw systems of five kinds in turn: 5 to 30 nodes, 100 to 5,000 rows, densities .02 to .3 (both log-uniform).

    System k of a seed is the same whatever ``count`` is. Use ``SWEEP_SEEDS``.
    """
    return [calibration_system(number, seed) for number in range(count)]


SWEEP_SEEDS = {"choose": 17, "test": 71}
SWEEP_KINDS = ("var", "nonlinear_var", "gates", "gpvar", "panels")


def calibration_system(number: int, seed: int) -> System:
    """Return one system of :func:`calibration_systems`."""
    rng = np.random.default_rng([seed, number])
    kind = SWEEP_KINDS[number % len(SWEEP_KINDS)]
    own_seed, nodes = int(rng.integers(2**31)), int(rng.integers(5, 31))
    rows, density = int(_log_uniform(rng, 100, 5_000)), float(_log_uniform(rng, 0.02, 0.3))
    match kind:
        case "var":
            return var(own_seed, nodes, rows, density)
        case "nonlinear_var":
            return nonlinear_var(own_seed, nodes, rows, density, sizes=(0.3, 1.2), shrunk=False)
        case "gates":
            return gates(own_seed, nodes, rows, density)
        case "gpvar":
            return gpvar(own_seed, nodes, rows, density)
        case _:
            return panels(own_seed, nodes, rows, density, count=int(rng.integers(2, min(11, rows // 30 + 1))))


def random_weights(rng: np.random.Generator, nodes: int, density: float, low: float, high: float) -> Weights:
    """Draw edges between different nodes, with sizes in [low, high] and random signs."""
    there = rng.random((nodes, nodes)) < density
    np.fill_diagonal(there, False)
    sizes = rng.uniform(low, high, there.shape) * rng.choice([-1.0, 1.0], there.shape)
    return np.where(there, sizes, 0.0)


def stable(weights: Weights, theta: Weights | None = None) -> Weights:
    """Shrink the weights until the system forgets its start: dense systems have smaller weights."""
    while radius(weights, theta) > LARGEST_RADIUS:
        weights = 0.95 * weights
    return weights


def radius(weights: Weights, theta: Weights | None = None) -> float:
    r"""Return the rate at which $x$ grows without noise: a spectral radius, of second moments if edges are random.

    With random edges the covariance follows $\Sigma' = M \Sigma M^T + \mathrm{diag}(V \mathrm{diag}\,\Sigma)$, where M
    is the mean matrix and V the variance of each of its entries; the square root of its growth is returned.
    """
    own = OWN * np.eye(len(weights))
    if theta is None:
        return float(np.abs(np.linalg.eigvals(own + weights)).max())
    mean, variance = own + theta * weights, theta * (1 - theta) * weights**2
    moments, growth = np.eye(len(weights)), 0.0
    for _ in range(200):
        moments = mean @ moments @ mean.T + np.diag(variance @ moments.diagonal())
        growth = float(np.trace(moments))
        moments /= growth
    return float(np.sqrt(growth))


def _filter_radius(graph: Graph, coefficients: Float[np.ndarray, "power lag"]) -> float:
    """Return the spectral radius of a filter of two lags on the graph with self-loops, without its tanh."""
    eye = np.eye(len(graph))
    older, newer = (own * eye + others * (graph + eye) for own, others in coefficients.T)
    companion = np.block([[newer, older], [eye, np.zeros_like(eye)]])
    return float(np.abs(np.linalg.eigvals(companion)).max())


def _linear(weights: Weights, noise: Values) -> Values:
    """Return the series that the noise drives, without its first ``BURN_IN`` rows."""
    transition, series = OWN * np.eye(len(weights)) + weights, noise.copy()
    for now in range(1, len(series)):
        series[now] += transition @ series[now - 1]
    return series[BURN_IN:]


def _fixed(kind: str, series: Sequence[Values], weights: Weights) -> System:
    return System(kind, tuple(series), weights != 0, (weights != 0).astype(float))


def _lengths(rows: int, count: int) -> list[int]:
    return [rows // count + (number < rows % count) for number in range(count)]


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))

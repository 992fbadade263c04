r"""Systems with effects within a step, and systems without any.

$$y_t = B_0\, y_t + \sum_l B_l\, y_{t-l} + e_t$$

Every function takes a seed and returns a :class:`Structural`. Rows receive: ``within[i, j]`` is the weight with which
node i reads node j at lag 0, ``lagged[l - 1]`` has the weights at lag l, with the own past on its diagonal.
:data:`KINDS` has all families by name. Methods are chosen on the seeds ``CHOOSE``; the seeds ``TEST`` are scored once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from benchmarks.existence.systems import BURN_IN, CHOOSE, LARGEST_RADIUS, OWN, SEEDS, TEST, Graph, Values, Weights
from jaxtyping import Float

__all__ = ["CHOOSE", "KINDS", "SEEDS", "TEST", "Structural", "mixed", "structural_var"]

Lagged = Float[np.ndarray, "lag node node"]
Sizes = tuple[float, float]
WITHIN_SIZES, LAGGED_SIZES = (0.3, 0.8), (0.2, 0.5)
NOISES = ("gaussian", "laplace", "uniform", "exponential", "student", "scales")


@dataclass(frozen=True, eq=False)
class Structural:
    """One series and the weights that made it; ``theta`` is how often an edge acts, 1 without random gates."""

    kind: str
    series: Values
    within: Weights
    lagged: Lagged
    theta: Weights

    @property
    def within_graph(self) -> Graph:
        """The edges that act within the step."""
        return np.asarray(self.within != 0)

    @property
    def truth(self) -> Graph:
        """The edges at any lag, between different nodes."""
        return (self.within_graph | (self.lagged != 0).any(0)) & ~np.eye(len(self.within), dtype=bool)


def structural_var(
    seed: int,
    rows: int,
    noise: str = "gaussian",
    nodes: int = 10,
    own: Sizes = (OWN, OWN),
    within_edges: int = 10,
    lagged_edges: int | None = None,
    kind: str = "svar",
) -> Structural:
    """A random acyclic graph within the step and 8 to 10 edges at lag 1; all weights are shrunk until it is stable."""
    rng = np.random.default_rng(seed)
    within = acyclic_weights(rng, nodes, within_edges, *WITHIN_SIZES)
    count = int(rng.integers(8, 11)) if lagged_edges is None else lagged_edges
    past = placed_weights(rng, nodes, count, *LAGGED_SIZES)
    within, past = stable(within, past, rng.uniform(*own, nodes))
    values = simulated(within, past, noises(rng, noise, BURN_IN + rows, nodes))
    return Structural(kind, values, within, past[None], np.ones_like(within))


def hidden_driver(seed: int, rows: int = 1_000, nodes: int = 10) -> Structural:
    """Edges at lag 1 only; an unseen white series reaches three to five nodes within the step, with loads .5 to 1."""
    rng = np.random.default_rng(seed)
    within = np.zeros((nodes, nodes))
    within, past = stable(within, placed_weights(rng, nodes, 9, *LAGGED_SIZES), np.full(nodes, OWN))
    loads = np.zeros(nodes)
    reached = rng.choice(nodes, int(rng.integers(3, 6)), replace=False)
    loads[reached] = rng.uniform(0.5, 1.0, len(reached)) * rng.choice([-1.0, 1.0], len(reached))
    noise = noises(rng, str(rng.choice(["gaussian", "laplace"])), BURN_IN + rows, nodes)
    noise += rng.normal(size=(len(noise), 1)) * loads
    return Structural("hidden driver", simulated(within, past, noise), within, past[None], np.ones_like(within))


def random_gates(seed: int, rows: int = 2_000, nodes: int = 10) -> Structural:
    """One gate for each edge, drawn anew at every step with theta between .3 and .9: all lags of the edge follow it."""
    rng = np.random.default_rng(seed)
    within = acyclic_weights(rng, nodes, 9, 0.5, 0.9)
    past = placed_weights(rng, nodes, 5, 0.4, 0.8)
    past = np.where((within != 0) & (rng.random(past.shape) < 0.3), 0.4, past)  # some edges act at both lags
    within, past = stable(within, past, np.full(nodes, OWN))
    edges = (within != 0) | (past != 0)
    theta = np.where(edges & ~np.eye(nodes, dtype=bool), rng.uniform(0.3, 0.9, past.shape), 1.0)
    values = noises(rng, str(rng.choice(["gaussian", "laplace"])), BURN_IN + rows, nodes)
    for now in range(1, len(values)):
        gates = rng.random(theta.shape) < theta
        reduced = np.eye(nodes) - gates * within
        values[now] = np.linalg.solve(reduced, values[now] + (gates * past) @ values[now - 1])
    return Structural("gates", values[BURN_IN:], within, past[None], np.where(edges, theta, 0.0))


def mixed(seed: int) -> Structural:
    """5 to 20 nodes, 200 to 3,000 rows, random densities, noise and own past; one in four has no effect at lag 0."""
    rng = np.random.default_rng([seed, 21])
    nodes, rows = int(rng.integers(5, 21)), int(np.exp(rng.uniform(np.log(200), np.log(3_000))))
    within = int(rng.binomial(nodes * (nodes - 1) // 2, np.exp(rng.uniform(np.log(0.04), np.log(0.4)))))
    past = int(rng.binomial(nodes * (nodes - 1), np.exp(rng.uniform(np.log(0.02), np.log(0.2)))))
    return structural_var(
        int(rng.integers(2**31)),
        rows,
        str(rng.choice(NOISES)),
        nodes,
        own=(0.0, 0.8),
        within_edges=0 if rng.random() < 0.25 else within,
        lagged_edges=past,
        kind="mixed",
    )


def interpolated_chain(seed: int, rows: int, gauges: int = 30) -> Structural:
    r"""Each gauge is the one upstream, late by a travel time of .2 to 1.5 steps, plus local inflow.

    $y_i(t) = (1 - f)\, y_{i-1}(t - k) + f\, y_{i-1}(t - k - 1) + q_i(t)$, with travel time $k + f$ and inflow
    $q_i(t) = \rho_i\, q_i(t - 1) + e_i(t)$, $\rho_i$ between 0 and .6.
    """
    rng = np.random.default_rng(seed)
    whole, part = np.divmod(rng.uniform(0.2, 1.5, gauges), 1.0)
    persistence = rng.uniform(0.0, 0.6, gauges)
    weights = np.zeros((4, gauges, gauges))  # (lag, node, node), lag 0 first; inflow is y less what came from upstream
    weights[1] = np.diag(persistence)
    for gauge in range(1, gauges):
        first = int(whole[gauge])
        for lag, weight in ((first, 1 - part[gauge]), (first + 1, part[gauge])):
            weights[lag, gauge, gauge - 1] += weight
            weights[lag + 1, gauge, gauge - 1] -= persistence[gauge] * weight
    values = noises(rng, "gaussian", BURN_IN + rows, gauges)
    for now in range(3, len(values)):
        for lag in (1, 2, 3):
            values[now] += weights[lag] @ values[now - lag]
        for gauge in range(1, gauges):
            values[now, gauge] += weights[0, gauge, gauge - 1] * values[now, gauge - 1]
    return Structural("chain, interpolated", values[BURN_IN:], weights[0], weights[1:], np.ones((gauges, gauges)))


def sampled_chain(seed: int, rows: int, gauges: int = 30, fine: int = 20) -> Structural:
    """The same river at a time step of 1/20, of which every 20th row is kept.

    Inflow forgets within .5 to 2 steps. The weights say which lags an edge has: none is exact after sampling.
    """
    rng = np.random.default_rng(seed)
    travel = np.maximum(np.rint(rng.uniform(0.2, 1.5, gauges) * fine).astype(int), 1)
    persistence = np.exp(-1 / (fine * rng.uniform(0.5, 2.0, gauges)))
    flow = rng.normal(size=(fine * (BURN_IN + rows), gauges)) * np.sqrt(1 - persistence**2)
    for now in range(1, len(flow)):
        flow[now] += persistence * flow[now - 1]
    for gauge in range(1, gauges):
        flow[travel[gauge] :, gauge] += flow[: -travel[gauge], gauge - 1]
    within, past = np.zeros((gauges, gauges)), np.zeros((2, gauges, gauges))
    for gauge in range(1, gauges):
        late = travel[gauge] / fine
        within[gauge, gauge - 1] = max(0.0, 1 - late)
        past[:, gauge, gauge - 1] = max(0.0, 1 - abs(late - 1)), max(0.0, late - 1)
    past[0] += np.diag(persistence**fine)
    return Structural("chain, sampled", flow[fine * BURN_IN :: fine], within, past, np.ones_like(within))


def noises(rng: np.random.Generator, noise: str, rows: int, nodes: int) -> Values:
    """Draw noise of variance 1; ``scales`` is Gaussian with a deviation of .5 to 2 for each node."""
    shape = (rows, nodes)
    match noise:
        case "gaussian":
            return rng.normal(size=shape)
        case "laplace":
            return rng.laplace(scale=0.5**0.5, size=shape)
        case "uniform":
            return rng.uniform(-(3**0.5), 3**0.5, shape)
        case "exponential":
            return rng.exponential(size=shape) - 1
        case "student":
            degrees = rng.uniform(3, 5, nodes)
            return np.asarray(rng.standard_t(degrees, shape) * np.sqrt((degrees - 2) / degrees))
        case "scales":
            return np.asarray(rng.normal(size=shape) * np.exp(rng.uniform(np.log(0.5), np.log(2.0), nodes)))
    raise ValueError(f"noise must be one of {', '.join(NOISES)}, got '{noise}'; correct it")


def acyclic_weights(rng: np.random.Generator, nodes: int, edges: int, low: float, high: float) -> Weights:
    """Draw edges that all go forward in a random order of the nodes."""
    order = rng.permutation(nodes)
    later, earlier = np.tril_indices(nodes, -1)
    chosen = rng.choice(len(later), min(edges, len(later)), replace=False)
    weights = np.zeros((nodes, nodes))
    weights[order[later[chosen]], order[earlier[chosen]]] = _signed(rng, len(chosen), low, high)
    return weights


def placed_weights(rng: np.random.Generator, nodes: int, edges: int, low: float, high: float) -> Weights:
    """Draw edges between different nodes."""
    places = np.flatnonzero(~np.eye(nodes, dtype=bool))
    chosen = rng.choice(places, edges, replace=False)
    weights = np.zeros(nodes * nodes)
    weights[chosen] = _signed(rng, edges, low, high)
    return weights.reshape(nodes, nodes)


def stable(within: Weights, past: Weights, own: Float[np.ndarray, " node"]) -> tuple[Weights, Weights]:
    """Shrink all edges until the system forgets its start, and put the own past on the diagonal of lag 1."""
    eye = np.eye(len(within))
    while np.abs(np.linalg.eigvals(np.linalg.solve(eye - within, np.diag(own) + past))).max() > LARGEST_RADIUS:
        within, past = 0.95 * within, 0.95 * past
    return within, past + np.diag(own)


def simulated(within: Weights, past: Weights, noise: Values) -> Values:
    """Return the series that the noise drives, without its first ``BURN_IN`` rows."""
    inverse = np.linalg.inv(np.eye(len(within)) - within)
    values, transition = noise @ inverse.T, inverse @ past
    for now in range(1, len(values)):
        values[now] += transition @ values[now - 1]
    return np.asarray(values[BURN_IN:])


def _signed(rng: np.random.Generator, count: int, low: float, high: float) -> Float[np.ndarray, " edge"]:
    return np.asarray(rng.uniform(low, high, count) * rng.choice([-1.0, 1.0], count))


Maker = Callable[[int], Structural]


def _kinds() -> dict[str, Maker]:
    found: dict[str, Maker] = {}
    for rows in (500, 2_000):
        for noise in NOISES:
            name = f"svar {noise} {rows}"
            found[name] = partial(structural_var, rows=rows, noise=noise, kind=name)
        for noise in ("gaussian", "laplace"):
            name = f"svar own {noise} {rows}"
            found[name] = partial(structural_var, rows=rows, noise=noise, own=(0.0, 0.8), kind=name)
            name = f"lagged {noise} {rows}"
            found[name] = partial(structural_var, rows=rows, noise=noise, within_edges=0, kind=name)
    for noise in ("gaussian", "laplace"):
        name = f"lagged {noise} 15 nodes"
        found[name] = partial(
            structural_var, rows=1_000, noise=noise, nodes=15, within_edges=0, lagged_edges=20, kind=name
        )
    for rows in (1_000, 3_000):
        found[f"chain interpolated {rows}"] = partial(interpolated_chain, rows=rows)
        found[f"chain sampled {rows}"] = partial(sampled_chain, rows=rows)
    return found | {"hidden driver": hidden_driver, "gates": random_gates, "mixed": mixed}


KINDS = _kinds()

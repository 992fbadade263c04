r"""Vector autoregressions on a graph whose edges act at every step, or at random.

$$y_t = \sum_{l=1}^{L} \big( D_l + A_t \odot W_l \big)\, y_{t-l} + e_t, \qquad e_t \sim N(0, I), \qquad
  A_{t,ij} \sim \mathrm{Bernoulli}(\theta)$$

$D_l$ are diagonal. Every node has two sources, each at one lag.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

SOURCES = 2
BURN_IN = 200
LARGEST_RADIUS = 0.9  # of the companion matrix, with all edges and with their mean


@dataclass(frozen=True, eq=False)
class VARSystem:
    """``own`` and ``edges`` are $D$ and $W$, (lag, target, source); ``gate`` is $\\theta$."""

    own: Float[np.ndarray, "lag node node"]
    edges: Float[np.ndarray, "lag node node"]
    gate: float

    @classmethod
    def random(cls, seed: int, *, num_nodes: int = 10, lags: int = 1, gate: float = 1.0) -> "VARSystem":
        """Return a stable system: weights of edges are from .3 to .6 with either sign, those of lag 1 on itself from
        .2 to .6."""
        rng = np.random.default_rng([seed, lags])
        while True:
            own, edges = np.zeros((2, lags, num_nodes, num_nodes))
            own[0] = np.diag(rng.uniform(0.2, 0.6, num_nodes))
            for lag in range(1, lags):
                own[lag] = np.diag(rng.uniform(-0.2, 0.2, num_nodes))
            for node in range(num_nodes):
                others = np.delete(np.arange(num_nodes), node)
                for source in rng.choice(others, SOURCES, replace=False):
                    edges[rng.integers(lags), node, source] = rng.choice([-1, 1]) * rng.uniform(0.3, 0.6)
            if max(_radius(own + edges), _radius(own + gate * edges)) < LARGEST_RADIUS:
                return cls(own, edges, gate)

    def generate(self, rows: int, seed: int) -> Float[np.ndarray, "time node"]:
        """Return a series; every node has a unit and a level of its own."""
        rng = np.random.default_rng([seed, 1])
        lags, nodes, _ = self.own.shape
        values = np.zeros((BURN_IN + rows, nodes))
        for row in range(lags, len(values)):
            acts = rng.random((nodes, nodes)) < self.gate
            past = values[row - lags : row][::-1]  # the newest first, as lags are
            values[row] = np.einsum("lij,lj->i", self.own + acts * self.edges, past) + rng.normal(size=nodes)
        return values[BURN_IN:] * np.logspace(-1, 2, nodes) + np.arange(nodes)


def _radius(weights: Float[np.ndarray, "lag node node"]) -> float:
    """Return the spectral radius of the companion matrix."""
    lags, nodes, _ = weights.shape
    companion = np.zeros((lags * nodes, lags * nodes))
    companion[:nodes] = np.concatenate(list(weights), axis=1)
    companion[nodes:, : (lags - 1) * nodes] = np.eye((lags - 1) * nodes)
    return float(np.abs(np.linalg.eigvals(companion)).max())

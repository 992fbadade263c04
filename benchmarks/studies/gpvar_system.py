r"""GPVAR: a series made by a polynomial filter on a fixed graph, with noise (Cini et al. 2023; Zambon et al. 2022).

$$x_t = \tanh\Big( \sum_{l,p} \psi^*_{l,p}\, S^l x_{t - P - 1 + p} \Big) + \sigma \varepsilon_t, \qquad
\varepsilon_t \sim N(0, I)$$

One graph holds at all times: every entry of $\theta^*$ is 0 or 1. The best possible mean absolute error one step ahead
is $\sigma \sqrt{2 / \pi}$.
"""

import math
from dataclasses import dataclass, field

import torch
from benchmarks.polynomial_filter import PolynomialFilter
from jaxtyping import Float
from torch import Tensor

from tacit.data import Pairs
from tacit.errors import require, require_int, require_positive
from tacit.graph import BernoulliGraph
from tacit.randomness import generator_for
from tacit.shapes import EdgeProbs
from tacit.systems.community import community_edge_probs

# The setting of Cini et al.: rows are powers of the graph, columns the lags t - 2 and t - 1.
GPVAR_COEFFICIENTS = ((5.0, 2.0), (-4.0, 6.0), (-1.0, 0.0))
GPVAR_COMMUNITIES = 5  # of six nodes each, in a line
GPVAR_SIGMA = 0.4
GPVAR_WINDOW = 12
BURN_IN = 100  # steps that are made and dropped: what the start was is long forgotten


def gpvar_graph(num_communities: int = GPVAR_COMMUNITIES) -> EdgeProbs:
    """Return the communities of :func:`community_edge_probs` with every edge certain and no self-loop.

    >>> graph = gpvar_graph()
    >>> len(graph), int(graph.sum())
    (30, 98)
    """
    return community_edge_probs(num_communities, 1.0).fill_diagonal_(0)


@dataclass(frozen=True)
class GPVARSystem:
    r"""A generating system $(\theta^*, \psi^*, \sigma)$; the default is that of Cini et al. with 30 nodes.

    >>> system = GPVARSystem()
    >>> series = system.generate(200, seed=0)
    >>> series.shape, system.cut(series, window=12).inputs.shape, round(system.optimal_mae, 4)
    (torch.Size([200, 30]), torch.Size([188, 30, 12]), 0.3192)
    """

    true_edge_probs: EdgeProbs = field(default_factory=gpvar_graph)
    coefficients: Float[Tensor, "power lag"] = field(default_factory=lambda: torch.tensor(GPVAR_COEFFICIENTS))
    noise_sigma: float = GPVAR_SIGMA

    def __post_init__(self) -> None:
        require_positive("noise_sigma", self.noise_sigma, GPVAR_SIGMA)
        self.true_graph(), self.true_predictor()  # their own checks
        values = self.true_edge_probs
        require(
            bool(((values == 0) | (values == 1)).all()) and not bool(values.diagonal().any()),
            "true_edge_probs must have 0 or 1 for each edge and 0 on the diagonal; self-loops are part of the filter",
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.true_edge_probs.shape[0]

    @property
    def optimal_mae(self) -> float:
        r"""The mean absolute error of the truth, $\sigma \sqrt{2 / \pi}$: what the noise leaves."""
        return self.noise_sigma * math.sqrt(2 / math.pi)

    def true_graph(self) -> BernoulliGraph:
        r"""Return the distribution $P_{\theta^*}$, which has one graph in it."""
        return BernoulliGraph(self.true_edge_probs.to(self.coefficients.dtype))

    def true_predictor(self) -> PolynomialFilter:
        r"""Return $f_{\psi^*}$ without noise, its coefficients known (not trainable)."""
        predictor = PolynomialFilter(self.coefficients)
        predictor.requires_grad_(False)
        return predictor

    @torch.no_grad()
    def generate(self, num_steps: int, seed: int = 0) -> Float[Tensor, "time node"]:
        """Draw a series, noise included."""
        require_int("num_steps", num_steps)
        lags, dtype = self.coefficients.shape[1], self.coefficients.dtype
        generator = generator_for(seed, "system")
        steps = lags + BURN_IN + num_steps
        series = self.noise_sigma * torch.randn(steps, self.num_nodes, generator=generator, dtype=dtype)
        impulse = self._impulse_response()
        for now, row in enumerate(series[lags:], start=lags):
            row += torch.tanh(impulse @ series[now - lags : now].flatten())
        return series[-num_steps:].clone()

    def cut(self, series: Float[Tensor, "time node"], window: int = GPVAR_WINDOW) -> Pairs:
        """Return windows of the series and the value one step after each; nothing is scaled."""
        require_int("window", window, self.coefficients.shape[1])
        require(
            len(series) > window,
            f"series requires more than window={window} steps, got {len(series)}; make a longer one",
        )
        windows = series.unfold(0, window, 1)[:-1].contiguous()  # (pair, node, lag), the oldest lag first
        return Pairs(windows, series[window:, :, None].contiguous())

    def pairs(self, num_steps: int, seed: int = 0, window: int = GPVAR_WINDOW) -> Pairs:
        """Return the pairs of a fresh series of ``num_steps`` steps, in the order of time."""
        return self.cut(self.generate(num_steps, seed), window)

    def _impulse_response(self) -> Float[Tensor, "node lag_node"]:
        """Return the filter, before its tanh, as one matrix on flattened (lag, node): its output for unit inputs."""
        lags, nodes, dtype = self.coefficients.shape[1], self.num_nodes, self.coefficients.dtype
        linear = PolynomialFilter(self.coefficients, activation="linear")
        units = torch.eye(lags * nodes, dtype=dtype).view(-1, lags, nodes).mT  # (unit, node, lag)
        response: Tensor = linear(units, self.true_edge_probs.to(dtype)[None, None])
        return response[:, 0, :, 0].T.contiguous()

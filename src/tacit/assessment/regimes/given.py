r"""Rows of a graph given the regime inferred from the other nodes.

$$P(A_i \mid x, y_{-i}) = \sum_k r_{ik} \prod_j \theta_{kij}^{A_{ij}} (1 - \theta_{kij})^{1 - A_{ij}}, \qquad
r_{ik} = P(k \mid x, y_{-i})$$

A node-scope loss of such graphs scores the forecast of each node given all other nodes, like a pseudo-likelihood (Besag
1975). It is minimal at the true probabilities of the regimes, and credit by receptive field has far less noise than a
loss of joint scope. The numbers $\log r$ are stored as the last covariates of the pairs.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.graph import BernoulliGraph, Context, GraphDistribution, MixtureGraph
from tacit.shapes import EdgeProbs, EdgeWeights, Graphs, LogProb, Scalar, Uniforms

LogWeights = Float[Tensor, "pair node regime"]


class GivenRegimes(MixtureGraph):
    """Regimes of the rows with separate weights for each pair, which are read from its covariates."""

    def __init__(self, start: BernoulliGraph, num_regimes: int) -> None:
        super().__init__(start, num_regimes, "rows")
        self.context_fields = ("covariates",)
        self.weight_logits.requires_grad_(False)

    def condition(self, context: Context) -> "RowsOfPairs":
        """Return the distribution of each pair."""
        assert context.covariates is not None
        shape = (self.num_nodes, self.num_regimes)
        logs = context.covariates[:, -shape[0] * shape[1] :].reshape(-1, *shape)
        return RowsOfPairs(self, logs.log_softmax(-1))


class RowsOfPairs(GraphDistribution):
    """Independent rows, with given weights of their regimes for each pair."""

    def __init__(self, mixture: GivenRegimes, log_weights: LogWeights) -> None:
        super().__init__()
        self._mixture = (mixture,)  # a tuple, so that it is not registered as a submodule
        self.log_weights, self.candidates = log_weights[:, None], mixture.candidates  # (pair, 1, node, regime)

    @property
    def mixture(self) -> GivenRegimes:
        """The graph whose regimes these are."""
        return self._mixture[0]

    @property
    def independent_rows(self) -> bool:
        """True: rows are independent given the pair."""
        return True

    @property
    def edge_shape(self) -> tuple[int, int]:
        """Shape of a tensor with one entry per edge."""
        return self.mixture.edge_shape

    @property
    def uniforms_shape(self) -> tuple[int, int]:
        """Shape of the uniforms of the mixture."""
        return self.mixture.uniforms_shape

    @property
    def raw(self) -> Tensor:
        """The logits."""
        return self.mixture.edge_logits

    @property
    def edge_probs(self) -> EdgeProbs:
        """The mean over the pairs."""
        weights = self.log_weights.exp().mean((0, 1))[self.mixture.block_of_row]  # (row, regime)
        return torch.einsum("rk,krs->rs", weights, self.mixture.regime_probs)

    def sample_from(self, uniforms: Uniforms) -> Graphs:
        """Return the graphs of given uniforms."""
        return self.mixture.drawn(uniforms, self.log_weights.exp())

    def log_prob(self, graphs: Graphs) -> LogProb:
        r"""Return $\log P(A \mid x, y)$."""
        return self.mixture.block_log_prob(graphs, self.log_weights).sum(-1)

    def weighted_log_prob(self, weights: EdgeWeights, graphs: Graphs) -> Scalar:
        """Return the weighted mean over graphs, with a separate weight for each row."""
        return self.mixture.weighted_log_prob(weights, graphs, self.log_weights)

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return no parameters: the learned parameters belong to the mixture."""
        del generator
        return {}


def with_log_weights(pairs: Pairs, log_weights: LogWeights) -> Pairs:
    """Return the pairs with the weights of the regimes as their last covariates."""
    numbers = log_weights.flatten(1).to(pairs.inputs)
    return replace(pairs, covariates=numbers if pairs.covariates is None else torch.cat([pairs.covariates, numbers], 1))

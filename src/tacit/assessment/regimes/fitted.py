"""The result of a fit of regimes: their number, edge probabilities and weights, with standard errors."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from tacit.graph import Blocks, MixtureGraph
from tacit.training import Difference, LatentGraphModel


class Estimate(NamedTuple):
    """Values with standard errors and 95% intervals within 0 and 1; NaN without replicas."""

    value: Float[Tensor, "*any"]
    std_error: Float[Tensor, "*any"]
    low: Float[Tensor, "*any"]
    high: Float[Tensor, "*any"]


class RegimeStep(NamedTuple):
    """The change of the validation loss from ``num_regimes - 1`` to ``num_regimes`` regimes."""

    num_regimes: int
    difference: Difference
    better: bool


@dataclass(frozen=True, eq=False)
class RegimeFit:
    """The fitted regimes; regimes of a block are sorted by weight, the largest first.

    ``model``         the fit with regimes; None if one regime is enough
    ``num_regimes``   1 if the model is None
    ``regime_probs``  (regime, row, slot): the edge probabilities of each regime
    ``weights``       (block, regime): the share of observations in each regime
    ``marginals``     (row, slot): how often each edge acts, over all regimes
    ``steps``         the comparisons by which the number of regimes was chosen; empty if it was given
    """

    model: LatentGraphModel | None
    num_regimes: int
    blocks: Blocks
    regime_probs: Estimate
    weights: Estimate
    marginals: Estimate
    steps: tuple[RegimeStep, ...] = ()

    @property
    def graph(self) -> MixtureGraph:
        """The graph of the model."""
        assert self.model is not None
        assert isinstance(self.model.graph, MixtureGraph)
        return self.model.graph

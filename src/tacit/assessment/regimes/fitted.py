"""What a fit of regimes gives: how many there are, their edge probabilities and weights, with errors."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from tacit.graph import Blocks, MixtureGraph
from tacit.training import Difference, LatentGraphModel


class Estimate(NamedTuple):
    """Values with standard errors and 95% intervals within 0 and 1; NaN where there were no replicas."""

    value: Float[Tensor, "*any"]
    std_error: Float[Tensor, "*any"]
    low: Float[Tensor, "*any"]
    high: Float[Tensor, "*any"]


class RegimeStep(NamedTuple):
    """One more regime: how much higher the validation loss is with ``num_regimes`` than with one less."""

    num_regimes: int
    difference: Difference
    better: bool


@dataclass(frozen=True, eq=False)
class RegimeFit:
    """The regimes that were found; regimes of a block are in the order of their weights, the largest first.

    ``model``         the fit with regimes; None where one regime is enough
    ``num_regimes``   1 where the model is None
    ``regime_probs``  (regime, row, slot): the edge probabilities of each regime
    ``weights``       (block, regime): how often each holds
    ``marginals``     (row, slot): how often each edge acts, over the regimes
    ``steps``         the comparisons by which the number of regimes was chosen; empty where it was given
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

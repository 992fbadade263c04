"""The result of a fit of regimes: their number, edge probabilities and weights, with standard errors."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.graph import Blocks, MixtureGraph
from tacit.shapes import EdgeMask
from tacit.training import Difference, LatentGraphModel

NOTHING_KNOWN = 0.5  # standard error of a probability that the data do not determine
MOST_WIDTH = 0.9  # of an interval; a wider one says nothing
NEVER = 0.01  # an edge that acts less often, or always but for this, does not count as one that acts at times


class Estimate(NamedTuple):
    """Values with standard errors and 95% intervals within 0 and 1; NaN if they were not computed."""

    value: Float[Tensor, "*any"]
    std_error: Float[Tensor, "*any"]
    low: Float[Tensor, "*any"]
    high: Float[Tensor, "*any"]

    @property
    def unknown(self) -> Bool[Tensor, "*any"]:
        """Mask of the numbers that the data do not determine: their interval has almost all values."""
        return self.high - self.low > MOST_WIDTH

    def bounded(self, unknown: Bool[Tensor, "*any"] | None = None) -> "Estimate":
        """Return the estimate with intervals from 0 to 1 where errors are that large, or where ``unknown`` is true."""
        wide = self.std_error >= NOTHING_KNOWN
        if unknown is not None:
            wide = wide | (unknown & ~self.std_error.isnan())
        return Estimate(
            self.value,
            torch.where(wide, NOTHING_KNOWN, self.std_error),
            torch.where(wide, 0.0, self.low),
            torch.where(wide, 1.0, self.high),
        )


def undetermined(graph: MixtureGraph) -> Bool[Tensor, " block"]:
    r"""Return which blocks have too few edges for their regimes to be identifiable.

    A mixture of $K$ products of Bernoulli distributions is identifiable for almost all parameters if it has
    $2 \lceil \log_2 K \rceil + 1$ factors (Allman, Matias and Rhodes 2009), here edges that act at times. With fewer,
    other regimes have the same distribution, except for two regimes of two edges that always act together.
    """
    marginal, probs = graph.edge_probs.detach(), graph.regime_probs.detach()
    at_times = graph.learned & (marginal > NEVER) & (marginal < 1 - NEVER)
    inside = at_times & ((probs > NEVER) & (probs < 1 - NEVER)).any(0)
    count, count_inside = (
        torch.zeros(graph.num_blocks).index_add(
            0, graph.block_of_row.cpu(), graph.upper_triangle(mask.float()).sum(1).cpu()
        )
        for mask in (at_times, inside)
    )
    needed = 2 * math.ceil(math.log2(graph.num_regimes)) + 1 if graph.num_regimes > 1 else 0
    together = (count == 2) & (count_inside == 0) & (graph.num_regimes == 2)
    return ((count > 0) & (count < needed) & ~together).to(graph.raw.device)


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
    def in_regimes(self) -> EdgeMask:
        """Mask of the edges in blocks whose regimes differ."""
        values, block_of_row = self.regime_probs.value.cpu(), self.graph.block_of_row.cpu()
        differs = (values.amax(0) > values.amin(0)).any(1)  # (row)
        of_block = differs.new_zeros(self.graph.num_blocks)
        of_block[block_of_row[differs]] = True
        return of_block[block_of_row][:, None] & self.graph.learned.cpu()

    @property
    def graph(self) -> MixtureGraph:
        """The graph of the model."""
        assert self.model is not None
        assert isinstance(self.model.graph, MixtureGraph)
        return self.model.graph

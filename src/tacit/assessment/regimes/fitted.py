"""The result of a fit of regimes: their number, edge probabilities and weights, and the choice of their number."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.graph import Blocks, MixtureGraph
from tacit.local import Difference
from tacit.shapes import EdgeMask
from tacit.training import LatentGraphModel

NOTHING_KNOWN = 0.5  # standard error of a probability that the data do not determine
MOST_WIDTH = 0.9  # of an interval; a wider one says nothing
MOST_REGIMES = 4

T = TypeVar("T")


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

    def bounded(self) -> "Estimate":
        """Return the estimate with intervals from 0 to 1 where errors are that large."""
        wide = self.std_error >= NOTHING_KNOWN
        return Estimate(
            self.value,
            torch.where(wide, NOTHING_KNOWN, self.std_error),
            torch.where(wide, 0.0, self.low),
            torch.where(wide, 1.0, self.high),
        )


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


def choose_number(
    fitted: Callable[[int], T], difference: Callable[[T, T], Difference]
) -> tuple[T, tuple[RegimeStep, ...]]:
    """Return the fit with the last regime that clearly lowers the validation loss, and the comparisons.

    ``fitted``      the fit with a number of regimes
    ``difference``  the validation loss of the first fit minus that of the second
    """
    best, steps = fitted(1), list[RegimeStep]()
    for count in range(2, MOST_REGIMES + 1):
        richer = fitted(count)
        change = difference(richer, best)
        steps.append(RegimeStep(count, change, change.clearly_lower))
        if not steps[-1].better:
            break
        best = richer
    return best, tuple(steps)


def without_errors(values: Tensor) -> Estimate:
    """Return values without standard errors."""
    return Estimate(values, *(torch.full_like(values, torch.nan) for _ in range(3)))


def constant_regime(model: LatentGraphModel, blocks: Blocks, steps: tuple[RegimeStep, ...]) -> RegimeFit:
    """Return the result for a single regime."""
    probs = model.graph.edge_probs.detach()
    weights = probs.new_ones(model.graph.num_nodes if blocks == "rows" else 1, 1)
    found = (without_errors(probs[None]), without_errors(weights), without_errors(probs))
    return RegimeFit(None, 1, blocks, *found, steps)

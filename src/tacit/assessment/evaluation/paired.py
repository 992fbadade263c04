r"""Paired comparison of two forecasts on scaled errors, with a block standard error.

$$g = 1 - \frac{\sum_t a_t}{\sum_t b_t}, \qquad
  a_t = \sum_{i} \frac{\mathrm{CRPS}_{ti}}{s_i}, \quad b_t \text{ the same of the reference},$$

$$\mathrm{se}(g) = \frac{1}{\sum_t b_t} \sqrt{\frac{K}{K - 1} \sum_{k=1}^{K} R_k^2}, \qquad
  R_k = \sum_{t \in k} \big((1 - g)\, b_t - a_t\big).$$

$s_i$ is the standard deviation of number $i$ (a node, or one of its channels) over the training pairs, so that nodes
with large units do not dominate. Errors of neighbouring pairs are correlated, so the $K$ blocks consist of neighbours,
or of whole series if there are enough. Variation in difficulty between pairs cancels in the difference.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.data import FEWEST_BLOCKS, FEWEST_SERIES, Pairs
from tacit.errors import require, require_int
from tacit.shapes import PointPrediction


@dataclass(frozen=True)
class PairedGain:
    """Relative improvement of the scaled CRPS over a reference; negative if it is worse.

    ``std_error``  over blocks; None if there are fewer than five
    ``by_node``    the improvement of each node; NaN without observations, or if the reference is perfect
    """

    gain: float
    std_error: float | None
    by_node: tuple[float, ...]
    num_blocks: int


def paired_gain(
    crps: PointPrediction,
    reference: PointPrediction,
    pairs: Pairs,
    spread: Float[Tensor, "node channel"],
    *,
    block: int = 1,
) -> PairedGain | None:
    """Compare the CRPS of every number with that of a reference; None if the reference is perfect.

    ``spread``  standard deviation of each number, in the units of the CRPS; see :func:`target_spreads`
    ``block``   number of neighbouring pairs in a block for standard errors

    >>> pairs = Pairs(torch.zeros(10, 2, 1), torch.zeros(10, 2, 1))
    >>> crps, reference = torch.ones(10, 2, 1), torch.tensor([2.0, 100.0]).view(1, 2, 1).repeat(10, 1, 1)
    >>> found = paired_gain(crps, reference, pairs, torch.tensor([[1.0], [100.0]]))
    >>> round(found.gain, 4), round(found.std_error, 4), found.by_node
    (0.6633, 0.0, (0.5, 0.99))
    """
    for name, values in (("crps", crps), ("reference", reference)):
        require(
            values.shape == pairs.targets.shape,
            f"{name} must have the shape of the targets, {tuple(pairs.targets.shape)}, got {tuple(values.shape)}; pass "
            "the score of every number",
        )
    seen = pairs.seen
    weight = seen.cpu().double() / spread.cpu().double()
    ours, theirs = ((values.cpu().double() * weight).sum(2) for values in (crps, reference))  # (pair, node)
    total = float(theirs.sum())
    if not total > 0:
        return None
    gain = 1 - float(ours.sum()) / total
    left = ((1 - gain) * theirs - ours).sum(1)  # (pair)
    sums = torch.zeros(len(pairs), dtype=torch.float64).index_add(0, blocks_of(pairs, block), left)
    count = int(blocks_of(pairs, block).max()) + 1
    error = math.sqrt(count / (count - 1) * float(sums.square().sum())) / total if count >= FEWEST_BLOCKS else None
    by_node = 1 - ours.sum(0) / theirs.sum(0)
    by_node = torch.where(theirs.sum(0) > 0, by_node, torch.nan)
    return PairedGain(gain, error, tuple(by_node.tolist()), count)


def blocks_of(pairs: Pairs, block: int = 1) -> Int[Tensor, " pair"]:
    """Return the block number of each pair: whole series if there are at least five, else neighbours within a series.

    >>> pairs = Pairs(torch.zeros(6, 1, 1), torch.zeros(6, 1, 1), series=torch.tensor([0, 0, 0, 1, 1, 1]))
    >>> blocks_of(pairs, block=2).tolist()
    [0, 0, 1, 2, 2, 3]
    """
    require_int("block", block)
    if pairs.series is None:
        return torch.arange(len(pairs)) // block
    number: Tensor
    lengths: Tensor
    number, lengths = torch.unique(pairs.series.cpu(), return_inverse=True, return_counts=True)[1:]
    if len(lengths) >= FEWEST_SERIES:
        return number
    order = number.argsort(stable=True)
    place = torch.empty_like(number)
    place[order] = torch.arange(len(number)) - (lengths.cumsum(0) - lengths)[number[order]]  # within its series
    per_series = -(-lengths // block)
    first: Tensor = per_series.cumsum(0) - per_series
    return first[number] + place // block


def target_spreads(pairs: Pairs) -> Float[Tensor, "node channel"]:
    """Return the standard deviation of every target over the pairs in which it was observed; 1 for a constant.

    >>> target_spreads(Pairs(torch.zeros(2, 2, 1), torch.tensor([[[1.0], [0.0]], [[3.0], [0.0]]]))).flatten().tolist()
    [1.0, 1.0]
    """
    seen = pairs.seen
    count = seen.sum(0).clamp_min(1)
    mean = (pairs.targets * seen).sum(0) / count
    spread = (((pairs.targets - mean).square() * seen).sum(0) / count).sqrt()
    return torch.where(spread > 0, spread, 1.0).cpu()

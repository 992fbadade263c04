r"""A chi-square test of the uniformity of ranks, and the shape of their histogram.

$$\chi^2 = \sum_k \frac{(n_k - n q_k)^2}{n q_k}$$

$n_k$ of $n$ ranks fall into bin $k$, which contains a share $q_k$ of the $S + 1$ possible ranks; the bins need not
divide them evenly. There is one test per predicted number, with Holm's correction for multiple tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from tacit.assessment.fit_tests.ranks import Ranks
from tacit.errors import require_int

NUM_BINS = 20
PER_BIN = 5  # expected count per bin, else there are fewer bins: the usual rule for the chi-square distribution
FEWEST_PAIRS = 20  # four bins; fewer pairs are not tested
CLEAR = 3.0  # standard errors from which slope or curvature are reported
LIKELY = 0.05  # above this p-value the shape is "uniform", unless slope or curvature are clear

U_SHAPED, HUMP = "U-shaped: overconfident", "hump-shaped: underconfident"
TOO_LOW, TOO_HIGH = "slanted: predictions too low", "slanted: predictions too high"
UNEVEN, UNIFORM, UNTESTED = "uneven", "uniform", "too few pairs"


@dataclass(frozen=True)
class Uniformity:
    """The histogram of the ranks of one number with its expected counts, and the test.

    ``p_value`` is for this number only, ``adjusted`` is corrected for all numbers; None if there are too few pairs.
    ``shape`` is the most likely shape of the histogram; it is meaningful only if ``adjusted`` is small.
    """

    counts: tuple[int, ...]
    expected: tuple[float, ...]
    p_value: float | None
    adjusted: float | None
    shape: str

    @property
    def above_median(self) -> float:
        """The share of targets above the predicted median; 1/2 for a right model or without observations."""
        half, seen, share = sum(self.expected) / 2, 0.0, 0.0
        for count, expected in zip(self.counts, self.expected, strict=True):
            inside = min(max(seen + expected - half, 0.0), expected)
            share += count * inside / expected if expected else 0.0
            seen += expected
        return share / seen if seen else 0.5


def uniformity(ranks: Ranks, num_bins: int = NUM_BINS) -> tuple[Uniformity, ...]:
    """Test the ranks of every predicted number.

    >>> ranks = Ranks(torch.arange(100).view(100, 1, 1) % 10, torch.ones(100, 1, 1, dtype=torch.bool), 9)
    >>> uniformity(ranks)[0].p_value, uniformity(ranks)[0].shape
    (1.0, 'uniform')
    """
    require_int("num_bins", num_bins, 2)
    each = [_test(values, ranks.num_samples + 1, num_bins) for values in ranks.by_number()]
    adjusted = iter(holm([one.p_value for one in each if one.p_value is not None]))
    return tuple(
        one if one.p_value is None else Uniformity(one.counts, one.expected, one.p_value, next(adjusted), one.shape)
        for one in each
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm-adjusted p-values, which control the family-wise error rate.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, highest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _test(values: Int[Tensor, " seen"], num_ranks: int, num_bins: int) -> Uniformity:
    from scipy.stats import chi2  # a local import, because it takes a second

    seen = len(values)
    bins = max(1, min(num_bins, num_ranks, seen // PER_BIN))
    bin_of_rank = torch.arange(num_ranks) * bins // num_ranks
    shares = np.bincount(bin_of_rank.numpy(), minlength=bins) / num_ranks
    counts = np.bincount(bin_of_rank[values].numpy(), minlength=bins)
    expected = seen * shares
    plain = tuple(int(c) for c in counts), tuple(float(e) for e in expected)
    if seen < FEWEST_PAIRS:
        return Uniformity(*plain, None, None, UNTESTED)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    p_value, shape = float(chi2.sf(statistic, bins - 1)), shape_of(counts, shares)
    return Uniformity(*plain, p_value, None, UNIFORM if shape == UNEVEN and p_value > LIKELY else shape)


def shape_of(counts: np.ndarray, shares: np.ndarray) -> str:
    r"""Return the shape of a histogram: by its slope or its curvature, whichever is more standard errors from 0.

    The slope is the mean of the bins' middles $m$, the curvature the mean of $m^2$, orthogonalised to the slope.

    >>> shape_of(np.array([40, 10, 10, 40]), np.full(4, 0.25)), shape_of(np.array([10, 20, 30, 40]), np.full(4, 0.25))
    ('U-shaped: overconfident', 'slanted: predictions too low')
    """
    middles = np.cumsum(shares) - shares / 2
    line = middles - shares @ middles
    bend = middles**2 - shares @ middles**2
    bend = bend - (shares @ (bend * line)) / (shares @ line**2) * line
    slant, curve = (float(counts @ c / np.sqrt(counts.sum() * (shares @ c**2))) for c in (line, bend))
    curve = curve if len(counts) > 2 else 0.0  # two bins have no curvature
    if max(abs(slant), abs(curve)) < CLEAR:
        return UNEVEN
    if abs(slant) > abs(curve):
        return TOO_LOW if slant > 0 else TOO_HIGH
    return U_SHAPED if curve > 0 else HUMP

r"""Ranks of targets among samples of their predictions: uniformity, and coverage of intervals.

$$r_i = \#\{s : z_{is} < y_i\} + U_i, \qquad U_i \text{ uniform on } 0 \ldots \#\{s : z_{is} = y_i\}$$

If the model is right, $y_i$ is one more sample, and $r_i$ is exactly uniform on $0 \ldots S$ for any distribution.
Without noise the distribution is discrete, and ties are common; they are broken at random. Numbers are tied if they
differ by less than 1e-3 of a node's standard deviation without noise, and 1e-5 with noise.

Uniformity is tested for each predicted number, with Holm's correction, by

$$\chi^2 = \sum_k \frac{(n_k - n q_k)^2}{n q_k},$$

where $n_k$ of $n$ ranks fall into bin $k$, which contains a share $q_k$ of the $S + 1$ possible ranks; the bins need
not divide them evenly.

The central interval of level $l$ contains a target if its rank is one of the middle $S + 1 - 2m$ of $S + 1$ ranks,
where $m = (S + 1)(1 - l) / 2$, rounded. Under the right model this has probability exactly $(S + 1 - 2m) / (S + 1)$,
also for discrete distributions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from scipy import special
from torch import Generator, Tensor

from tacit.assessment.evaluation import LEVELS
from tacit.assessment.fit_tests.kernel_test import ByNumber
from tacit.errors import InputError, require_int
from tacit.shapes import Samples, Targets

NUM_BINS = 20
PER_BIN = 5  # expected count per bin, else there are fewer bins: the usual rule for the chi-square distribution
FEWEST_PAIRS = 20  # four bins; fewer pairs are not tested
CLEAR = 3.0  # standard errors from which slope or curvature are reported
AS_LIKELY = 1e-7  # difference of logarithms of equal probabilities
LIKELY = 0.05  # above this p-value the shape is "uniform", unless slope or curvature are clear
U_SHAPED, HUMP = "U-shaped: overconfident", "hump-shaped: underconfident"
TOO_LOW, TOO_HIGH = "slanted: predictions too low", "slanted: predictions too high"
UNEVEN, UNIFORM, UNTESTED = "uneven", "uniform", "too few pairs"


@dataclass(frozen=True)
class Ranks:
    """The rank of each target among ``num_samples`` samples; undefined if ``observed`` is false.

    >>> Ranks(torch.tensor([[[0]], [[3]]]), torch.tensor([[[True]], [[False]]]), 3).by_number()
    [tensor([0])]
    """

    values: Int[Tensor, "pair node channel"]
    observed: Bool[Tensor, "pair node channel"]
    num_samples: int

    def by_number(self) -> list[Int[Tensor, " _"]]:
        """Return the ranks of the observed targets for each predicted number: by node, then by channel."""
        columns = zip(self.values.flatten(1).unbind(1), self.observed.flatten(1).unbind(1), strict=True)
        return [values[seen] for values, seen in columns]


def rank_of(
    targets: Targets, samples: Samples, same: ByNumber, *, generator: Generator
) -> Int[Tensor, "batch node channel"]:
    """Return the rank of each target among the samples of its pair, ties broken at random.

    >>> samples = torch.tensor([1.0, 2.0, 4.0]).view(1, 3, 1, 1)
    >>> rank_of(torch.tensor([[[3.0]]]), samples, torch.zeros(1, 1), generator=Generator().manual_seed(0)).item()
    2
    """
    gaps = samples - targets[:, None]
    below = (gaps < -same).sum(1)
    ties = (gaps.abs() <= same).sum(1)
    uniforms = torch.rand(targets.shape, generator=generator, device=generator.device, dtype=torch.float64)
    return below + torch.minimum((uniforms * (ties + 1)).long(), ties)


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
    p_value, shape = float(special.chdtrc(bins - 1, statistic)), shape_of(counts, shares)
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


@dataclass(frozen=True)
class Coverage:
    """Shares of targets inside the central interval; ``nominal`` is the expected share under the right model.

    ``by_number`` and ``p_by_number`` have an entry for each predicted number, None if it was never observed; these
    p-values are exact (binomial). ``overall`` pools numbers that are correlated through the hidden graph, so its
    ``p_value`` treats pairs as the independent units (a normal test); with one number it is binomial and exact.
    """

    level: float
    nominal: float
    overall: float | None
    p_value: float | None
    by_number: tuple[float | None, ...]
    p_by_number: tuple[float | None, ...]

    @property
    def gap(self) -> float:
        """The overall share minus the nominal one; 0 without observations."""
        return 0.0 if self.overall is None else self.overall - self.nominal


def coverage(ranks: Ranks, levels: Sequence[float] = LEVELS) -> tuple[Coverage, ...]:
    """Return the coverage at each level.

    >>> import torch
    >>> ranks = Ranks(torch.arange(100).view(100, 1, 1), torch.ones(100, 1, 1, dtype=torch.bool), 99)
    >>> [(c.nominal, c.overall, round(c.p_value, 6)) for c in coverage(ranks, (0.5, 0.9))]
    [(0.5, 0.5, 1.0), (0.9, 0.9, 1.0)]
    """
    for level in levels:
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
            raise InputError(f"levels must have numbers between 0 and 1, got {level!r}; pass for example {LEVELS}")
    return tuple(_at(ranks, level) for level in levels)


def binomial_p_value(count: int, trials: int, share: float) -> float:
    """Return the exact two-sided p-value of a count: the probability of all counts that are no more likely.

    >>> round(binomial_p_value(3, 15, 0.1), 4)
    0.1841
    """
    every = np.arange(trials + 1)
    ways = special.gammaln(trials + 1) - special.gammaln(every + 1) - special.gammaln(trials - every + 1)
    logs = ways + special.xlogy(every, share) + special.xlog1py(trials - every, -share)
    return min(1.0, float(np.exp(logs[logs <= logs[count] + AS_LIKELY]).sum()))


def _at(ranks: Ranks, level: float) -> Coverage:
    num_ranks = ranks.num_samples + 1
    outside = min(round(num_ranks * (1 - level) / 2), (num_ranks - 1) // 2)  # on each side
    nominal = (num_ranks - 2 * outside) / num_ranks
    held = (ranks.values >= outside) & (ranks.values < num_ranks - outside)
    seen = ranks.observed.flatten(1).double()  # (pair, number)
    inside = held.flatten(1).double() * seen
    counts = [(int(h), int(n)) for h, n in zip(inside.sum(0).tolist(), seen.sum(0).tolist(), strict=True)]
    shares = tuple(h / n if n else None for h, n in counts)
    p_values = tuple(binomial_p_value(h, n, nominal) if n and nominal < 1 else None for h, n in counts)
    total = float(seen.sum())
    overall = float(inside.sum()) / total if total else None
    pooled = None
    if total and nominal < 1:  # the sum of the excess of pairs is 0 with the variance of the sum of squares
        excess = (inside - nominal * seen).sum(1)
        size = math.sqrt(float(excess.square().sum()))
        pooled = min(1.0, 2 * float(special.ndtr(-abs(float(excess.sum())) / size))) if size else 1.0
    return Coverage(level, nominal, overall, p_values[0] if len(counts) == 1 else pooled, shares, p_values)

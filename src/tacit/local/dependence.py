r"""Sums over rows that depend on their neighbours, or on all rows of their series.

$$\mathrm{Var}\Big[\sum_t a_t\Big] \approx \sum_{|l| < b} \Big(1 - \frac{|l|}{b}\Big) \sum_t a_t\, a_{t + l}
  = \frac1b \sum_s \Big(\sum_{t = s}^{s + b - 1} a_t\Big)^2$$

with $b$ neighbours (Newey and West); $b = 1$ for independent rows. The second form is a sum over all windows of $b$
rows, so a covariance is never negative. Windows are within a series. With enough series, whole series are the
independent units: the centred sums of the series are squared instead.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from scipy import special
from torch import Tensor
from torch.nn.functional import pad

from tacit.data import FEWEST_SERIES, SeriesOfPair

Terms = Float[Tensor, "row term"]
LEVEL = 0.95  # of intervals
NEIGHBOURS = 1.3  # times the root of the number of rows
QUANTILE = 1.959964  # two-sided normal quantile of that level


@dataclass(frozen=True, eq=False)
class Dependence:
    """The dependence between rows: ``block`` neighbours, or all rows of a series if there are enough series.

    ``place``  the place of each row in time, if rows between them are left out
    ``whole``  whether whole series may be the units; not if parameters differ between series

    >>> terms = torch.tensor([[1.0], [2.0], [-1.0], [0.0]])
    >>> [round(Dependence(block).covariance(terms, terms).item(), 3) for block in (1, 2)]  # 1 + 4 + 1; + 2 - 2
    [6.0, 6.0]
    """

    block: int = 1
    series: SeriesOfPair | None = None
    place: Int[Tensor, " row"] | None = None
    whole: bool = True

    @classmethod
    def of_rows(cls, num_rows: int, block: int, series: SeriesOfPair | None, *, whole: bool = True) -> "Dependence":
        r"""Return the dependence for tests and intervals: at least $1.3 \sqrt{n}$ neighbours, unless ``block`` is 1.

        Blocks of resamples are shorter, $n^{1/3}$. A variance from so few neighbours is too small where dependence
        lasts; with more neighbours and quantiles of t a test keeps its level (Lazarus, Lewis, Stock and Watson 2018).
        """
        longer = math.ceil(NEIGHBOURS * num_rows**0.5)
        return cls(max(block, longer) if block > 1 else 1, None if series is None else series.cpu(), whole=whole)

    @property
    def by_series(self) -> bool:
        """True if whole series are the independent units."""
        return self.whole and self.series is not None and len(torch.unique(self.series)) >= FEWEST_SERIES

    def degrees(self, num_rows: int) -> float:
        """Return the degrees of freedom of a variance: the number of independent units minus one."""
        units = len(torch.unique(self.series)) if self.by_series and self.series is not None else num_rows / self.block
        return max(1.0, units - 1)

    def quantile(self, num_rows: int) -> float:
        """Return the quantile of t for two-sided intervals of 95%."""
        return float(special.stdtrit(self.degrees(num_rows), (1 + LEVEL) / 2))

    def among(self, kept: Bool[Tensor, " every"]) -> "Dependence":
        """Return the dependence of some rows; the others count as neighbours all the same."""
        places = kept.nonzero()[:, 0]
        series = None if self.series is None else self.series.to(kept.device)[kept]
        return replace(self, series=series, place=places if self.place is None else self.place.to(kept.device)[kept])

    def units(self, terms: Terms) -> Float[Tensor, "unit term"]:
        r"""Return numbers $u$ of each unit, for which $\sum u\, u^\top$ is the covariance of the sums of the terms."""
        if self.by_series and self.series is not None:
            number = torch.unique(self.series, return_inverse=True)[1].to(terms.device)
            count = int(number.max()) + 1
            sums = terms.new_zeros(count, terms.shape[1]).index_add_(0, number, terms)
            away: Tensor = (sums - sums.mean(0)) * (count / (count - 1)) ** 0.5
            return away
        if self.block == 1 or not len(terms):
            return terms
        place = torch.arange(len(terms)) if self.place is None else self.place
        place = place.to(terms.device)
        if self.series is not None:  # no window reaches from one series into another
            place = place + (self.block - 1) * pad(self.series.to(terms.device).diff() != 0, (1, 0)).cumsum(0)
        rows = terms.new_zeros(int(place[-1]) + 1, terms.shape[1]).index_add_(0, place, terms)
        total = pad(rows, (0, 0, self.block, 0)).cumsum(0)  # sums of all rows before a window ends
        total = torch.cat([total, total[-1:].expand(self.block - 1, -1)])
        windows: Tensor = total[self.block :] - pad(total, (0, 0, self.block, 0))[self.block : -self.block]
        scaled: Tensor = windows / self.block**0.5
        return scaled

    def covariance(self, one: Terms, other: Terms) -> Float[Tensor, " term"]:
        """Return the covariance of the sums of two kinds of terms, term by term."""
        return (self.units(one) * self.units(other)).sum(0)

    def covariances(self, one: Terms, other: Terms | None = None) -> Float[Tensor, "term term"]:
        """Return the covariances of the sums of all terms, or the symmetric part of those with other terms."""
        first = self.units(one)
        found = first.mT @ (first if other is None else self.units(other))
        return (found + found.mT) / 2

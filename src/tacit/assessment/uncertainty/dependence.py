r"""Variances of sums over pairs that depend on their neighbours.

$$\mathrm{Var}\Big[\sum_t a_t\Big] \approx \sum_{|l| < b} \Big(1 - \frac{|l|}{b}\Big) \sum_t a_t\, a_{t + l}$$

with blocks of $b$ neighbours (Newey and West); $b = 1$ for independent pairs. Products are only within a series. With
enough series, whole series are the independent units: the sums of the series are squared instead.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data import FEWEST_SERIES, SeriesOfPair

Terms = Float[Tensor, "pair edge"]


@dataclass(frozen=True, eq=False)
class Dependence:
    """The dependence between pairs: ``block`` neighbours, or all pairs of a series if there are enough series.

    >>> terms = torch.tensor([[1.0], [2.0], [-1.0], [0.0]])
    >>> Dependence(1).covariance(terms, terms), Dependence(2).covariance(terms, terms)  # 1 + 4 + 1; + 2 - 2
    (tensor([6.]), tensor([6.]))
    """

    block: int = 1
    series: SeriesOfPair | None = None

    @property
    def by_series(self) -> bool:
        """True if whole series are the independent units."""
        return self.series is not None and len(torch.unique(self.series)) >= FEWEST_SERIES

    def degrees(self, num_pairs: int) -> float:
        """Return the degrees of freedom of a variance: the number of independent units minus one."""
        units = len(torch.unique(self.series)) if self.by_series and self.series is not None else num_pairs / self.block
        return max(1.0, units - 1)

    def covariance(self, one: Terms, other: Terms) -> Float[Tensor, " edge"]:
        """Return the covariance of the sums of two kinds of terms, edge by edge."""
        if self.by_series and self.series is not None:
            place = torch.unique(self.series, return_inverse=True)[1].to(one.device)
            count = int(place.max()) + 1
            first, second = (one.new_zeros(count, one.shape[1]).index_add_(0, place, terms) for terms in (one, other))
            first, second = first - first.mean(0), second - second.mean(0)
            return (first * second).sum(0) * count / (count - 1)
        total = (one * other).sum(0)
        for lag in range(1, min(self.block, len(one))):
            products = one[:-lag] * other[lag:] + other[:-lag] * one[lag:]
            if self.series is not None:
                same = self.series[:-lag] == self.series[lag:]
                products = products * same.to(one.device)[:, None]
            total = total + (1 - lag / self.block) * products.sum(0)
        return total

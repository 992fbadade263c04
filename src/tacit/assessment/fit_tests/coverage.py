r"""Coverage of central intervals, from the ranks.

The interval of level $l$ contains a target if its rank is one of the middle $S + 1 - 2m$ of $S + 1$ ranks, where
$m = (S + 1)(1 - l) / 2$, rounded. Under the right model this has probability exactly $(S + 1 - 2m) / (S + 1)$, also for
discrete distributions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from tacit.assessment.evaluation import LEVELS
from tacit.assessment.fit_tests.ranks import Ranks
from tacit.errors import InputError


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
    >>> [(c.nominal, c.overall, c.p_value) for c in coverage(ranks, (0.5, 0.9))]
    [(0.5, 0.5, 1.0), (0.9, 0.9, 1.0)]
    """
    for level in levels:
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
            raise InputError(f"levels must have numbers between 0 and 1, got {level!r}; pass for example {LEVELS}")
    return tuple(_at(ranks, level) for level in levels)


def _at(ranks: Ranks, level: float) -> Coverage:
    from scipy.stats import binomtest  # a local import, because it takes a second

    num_ranks = ranks.num_samples + 1
    outside = min(round(num_ranks * (1 - level) / 2), (num_ranks - 1) // 2)  # on each side
    nominal = (num_ranks - 2 * outside) / num_ranks
    held = (ranks.values >= outside) & (ranks.values < num_ranks - outside)
    seen = ranks.observed.flatten(1).double()  # (pair, number)
    inside = held.flatten(1).double() * seen
    counts = [(int(h), int(n)) for h, n in zip(inside.sum(0).tolist(), seen.sum(0).tolist(), strict=True)]
    shares = tuple(h / n if n else None for h, n in counts)
    p_values = tuple(float(binomtest(h, n, nominal).pvalue) if n and nominal < 1 else None for h, n in counts)
    total = float(seen.sum())
    overall = float(inside.sum()) / total if total else None
    pooled = _pooled(inside - nominal * seen) if total and nominal < 1 else None
    return Coverage(level, nominal, overall, p_values[0] if len(counts) == 1 else pooled, shares, p_values)


def _pooled(excess: Float[Tensor, "pair number"]) -> float:
    r"""Return the p-value of $\sum_i e_i = 0$ with variance $\sum_i e_i^2$, where $e_i$ is the excess of pair $i$."""
    from scipy.stats import norm

    by_pair = excess.sum(1)
    size = float(by_pair.square().sum())
    return 1.0 if size == 0 else min(1.0, 2 * float(norm.sf(abs(float(by_pair.sum())) / math.sqrt(size))))

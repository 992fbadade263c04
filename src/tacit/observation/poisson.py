r"""Poisson counts: the variance equals the mean.

$$v \sim \mathrm{Poisson}(m), \qquad P(v = k) = e^{-m} m^k / k!$$
"""

from typing import ClassVar

import torch
from torch import Tensor

from tacit.observation.counts import Counts
from tacit.observation.model import Derivatives
from tacit.registry import register
from tacit.shapes import Samples, TargetParams, Targets


class PoissonCounts(Counts):
    """Poisson counts, whose variance equals their mean.

    >>> counts = PoissonCounts(num_nodes=2)
    >>> parameters = counts.describe(torch.zeros(1, 1, 2, 1), torch.zeros(1, 2, 3))
    >>> round(counts.log_prob(parameters, torch.zeros(1, 2, 1)).exp()[0, 0, 0, 0].item(), 4)  # exp(-log 2)
    0.5
    """

    words: ClassVar[str] = "counts, Poisson"
    wider: ClassVar[str] = "negative_binomial"

    def coefficients(self, counts: Tensor) -> Tensor:
        r"""Return $-\log k!$."""
        return -torch.lgamma(counts + 1)

    def ratios(self, counts: Tensor) -> Tensor:
        r"""Return $-\log k$."""
        return -counts.log()

    def natural(self, means: TargetParams) -> tuple[Samples, Samples]:
        r"""Return $\log m$ and $m$."""
        return means.log(), means

    def by_log_mean(self, means: TargetParams, targets: Targets) -> Derivatives:
        r"""Return the derivatives by $\log m$."""
        counts = self.places(targets)
        log_prob = counts[:, None] * means.log() - means + self.coefficients(counts)[:, None]
        return Derivatives(log_prob, counts[:, None] - means, -means, [], [], [])

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $(\partial m / \partial f)^2 / m$."""
        return self.slopes_of(parameters).square() / parameters

    def variance(self, parameters: TargetParams) -> Samples:
        """Return the means, in squared units of scaled targets."""
        return parameters / self.unit.square()


register("observation", "poisson", PoissonCounts)

r"""Counts with the variance of their mean.

$$v \sim \mathrm{Poisson}(m), \qquad P(v = k) = e^{-m} m^k / k!$$

Distances are sums over counts. With $F_s$ the distribution function under graph $s$ and $u$ the unit of the targets,

$$u\, E|Y_s - Y_t| = \sum_{k \ge 0} F_s(k) + F_t(k) - 2 F_s(k) F_t(k)$$

The sum stops at the largest count $K$: what it leaves out is at most $E (Y_s - K)^+ + E (Y_t - K)^+$.
"""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.observation.model import Support
from tacit.observation.positive import PositiveMean
from tacit.registry import register
from tacit.shapes import Inputs, NoiseUniforms, Outputs, Samples, TargetParams, Targets


class Counts(PositiveMean):
    """The common part of distributions of counts: a target is described by its mean in the units of the data."""

    support: Support = "counts"
    reparameterized: bool = False
    closed_forms: ClassVar[bool] = True

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the mean of every target under each graph, in the units of the data."""
        del inputs
        return self.means_of(outputs)

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the means as scaled targets."""
        return self.to_targets(parameters)

    def log_masses(self, means: TargetParams, counts: Tensor) -> Tensor:
        """Return the log probability of counts."""
        raise NotImplementedError

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        """Return the log probability of the count of each target."""
        return self.log_masses(parameters, self.to_values(targets)[:, None].round())

    def table(self, means: TargetParams) -> Float[Tensor, "batch graph node channel count"]:
        """Return the probability of a count up to k, for k = 0 ... largest."""
        counts = torch.arange(self.values.largest + 1, dtype=means.dtype, device=means.device)
        return self.log_masses(means[..., None], counts).exp().cumsum(-1)

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $E|Y_s - y| = \sum_k F_s(k) + 1[y \le k] - 2 F_s(k) 1[y \le k]$."""
        table = self.table(parameters)
        counts = torch.arange(table.shape[-1], dtype=table.dtype, device=table.device)
        up_to = (self.to_values(targets)[:, None, ..., None].round() <= counts).to(table)
        return (table + up_to - 2 * table * up_to).sum(-1) / self.unit

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        """Return the sums over counts for every two graphs."""
        table = self.table(parameters)
        sums = table.sum(-1)
        products = torch.einsum("bsnck,btnck->bstnc", table, table)
        return (sums[:, :, None] + sums[:, None] - 2 * products) / self.unit

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        """Return the probability of fewer counts, and of as many or fewer."""
        table, counts = self.table(parameters), self.to_values(targets)[:, None].round()
        places = counts.clamp(0, table.shape[-1] - 1).long().expand(table.shape[:-1])[..., None]
        up_to = table.gather(-1, places)[..., 0]
        below = up_to - self.log_masses(parameters, counts).exp()
        return below.clamp_min(0), up_to


class PoissonCounts(Counts):
    """Counts with the variance of their mean.

    >>> counts = PoissonCounts(num_nodes=2)
    >>> parameters = counts.describe(torch.zeros(1, 1, 2, 1), torch.zeros(1, 2, 3))
    >>> round(counts.log_prob(parameters, torch.zeros(1, 2, 1)).exp()[0, 0, 0, 0].item(), 4)  # exp(-log 2)
    0.5
    """

    def log_masses(self, means: TargetParams, counts: Tensor) -> Tensor:
        r"""Return $k \log m - m - \log k!$."""
        return torch.xlogy(counts, means) - means - torch.lgamma(counts + 1)

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $(\partial m / \partial f)^2 / m$."""
        return self.slopes_of(parameters).square() / parameters

    def variance(self, parameters: TargetParams) -> Samples:
        """Return the means, as squares of scaled targets."""
        return parameters / self.unit.square()

    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return the counts that given uniforms make, as scaled targets: the first k with F(k) >= u."""
        table = self.table(parameters.detach())
        return self.to_targets((table < uniforms[..., None]).sum(-1).to(parameters))

    def chosen(self, nodes: list[int]) -> "PoissonCounts":
        """Return the model of some nodes."""
        return PoissonCounts(len(nodes), self.channels or 1, self.values.chosen(nodes)).to(self.offset)


register("observation", "poisson", PoissonCounts)

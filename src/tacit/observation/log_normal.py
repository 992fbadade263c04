r"""Positive numbers with multiplicative noise.

$$v = m\, e^{\sigma e - \sigma^2 / 2}, \qquad e \sim N(0, 1)$$

$m$ is the mean of the values and $\sigma$ the standard deviation of their logarithms, one per node. With
$z = (\log (v / m) + \sigma^2 / 2) / \sigma$ and $d_{st} = (\log (m_s / m_t) + \sigma^2) / (\sqrt 2\, \sigma)$

$$E|V_s - v| = v\, \mathrm{erf}(z / \sqrt 2) - m_s\, \mathrm{erf}((z - \sigma) / \sqrt 2), \qquad
  E|V_s - V_t| = m_s\, \mathrm{erf}(d_{st} / \sqrt 2) + m_t\, \mathrm{erf}(d_{ts} / \sqrt 2)$$
"""

import math
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.observation.gaussian import SIGMA_FLOOR, log_sigma_of
from tacit.observation.model import LEAST_MEAN, Derivatives, PositiveMean, Support, TargetValues
from tacit.registry import register
from tacit.shapes import NoiseUniforms, Samples, TargetParams, Targets

INITIAL_SIGMA = 0.3


class LogNormalNoise(PositiveMean):
    r"""Positive numbers with mean $m$; ``log_sigma`` is learned, one per node and channel.

    >>> noise = LogNormalNoise(num_nodes=2)
    >>> parameters = noise.describe(torch.full((1, 1, 2, 1), 20.0), torch.zeros(1, 2, 3))
    >>> median = noise.sample(parameters, torch.full((1, 1, 2, 1), 0.5))
    >>> round(median[0, 0, 0, 0].item(), 2)  # 20 exp(-0.3^2 / 2)
    19.12
    """

    words: ClassVar[str] = "positive numbers, log-normal"
    support: Support = "positive"
    closed_forms: bool = True

    def __init__(self, num_nodes: int, channels: int = 1, values: TargetValues | None = None) -> None:
        super().__init__(num_nodes, channels, values)
        self.log_sigma = nn.Parameter(log_sigma_of(torch.full((num_nodes, channels), INITIAL_SIGMA)))

    @property
    def sigma(self) -> Float[Tensor, "node channel"]:
        r"""$\sigma$."""
        return self.log_sigma.exp() + SIGMA_FLOOR

    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        r"""Return $m \exp(\sigma\, \Phi^{-1}(u) - \sigma^2 / 2)$, as scaled targets."""
        sigma = self.sigma
        factors = (sigma * torch.special.ndtri(uniforms) - sigma.square() / 2).exp()
        return self.to_targets(parameters * factors)

    def variance(self, parameters: TargetParams) -> Samples:
        r"""Return $m^2 (e^{\sigma^2} - 1)$, in squared units of scaled targets."""
        return (parameters / self.unit).square() * torch.expm1(self.sigma.square())

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $-\tfrac12 z^2 - \log(v / u) - \log \sigma - \tfrac12 \log 2 \pi$."""
        values, standard = self._standard(parameters, targets)
        constant = self.sigma.log() + 0.5 * math.log(2 * math.pi)
        return -0.5 * standard.square() - (values / self.unit).log() - constant

    def by_log_mean(self, means: TargetParams, targets: Targets) -> Derivatives:
        r"""Return the derivatives by $\log m$ and ``log_sigma``."""
        sigma = self.sigma
        by_log = sigma - SIGMA_FLOOR  # of sigma by log_sigma
        values, standard = self._standard(means, targets)
        change = 1 - standard / sigma  # of z by sigma
        noise = -standard * change - 1 / sigma
        of_sigma = (1 - standard * (2 * standard / sigma - 1) * sigma) / sigma.square() - change.square()
        return Derivatives(
            -0.5 * standard.square() - (values / self.unit).log() - sigma.log() - 0.5 * math.log(2 * math.pi),
            standard / sigma,
            (-1 / sigma.square()).expand_as(means),
            [by_log * noise],
            [by_log / sigma * (1 - 2 * standard / sigma)],
            [by_log.square() * of_sigma + by_log * noise],
        )

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $(\partial \log m / \partial f)^2 / \sigma^2$."""
        return (self.slopes_of(parameters) / (parameters * self.sigma)).square()

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        r"""Return $\Phi(z)$ twice, because a single value has probability 0."""
        below = torch.special.ndtr(self._standard(parameters, targets)[1])
        return below, below

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $E|Y_s - y|$ of each target under each graph $s$."""
        values, standard = self._standard(parameters, targets)
        near, far = torch.erf(standard / math.sqrt(2)), torch.erf((standard - self.sigma) / math.sqrt(2))
        return (values * near - parameters * far) / self.unit

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        r"""Return $E|Y_s - Y_t|$."""
        sigma, logs = self.sigma, parameters.log()
        above = torch.erf((logs[:, :, None] - logs[:, None] + sigma.square()) / (2 * sigma)) * parameters[:, :, None]
        return (above + above.transpose(1, 2)) / self.unit

    def with_deviations(self, sigmas: Float[Tensor, "node channel"]) -> dict[str, Tensor]:
        """Return ``log_sigma`` for given standard deviations at a node's mean, which is the offset of the targets."""
        means = torch.where(self.offset > 0, self.offset, 1.0)
        fitted = log_sigma_of(torch.log1p((sigmas * self.unit / means).square()).sqrt())
        return {"log_sigma": torch.where(self.offset > 0, fitted.to(self.offset), self._start())}

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return the initial parameters of the noise."""
        return {"log_sigma": self._start().to(generator.device)}

    def _start(self) -> Tensor:
        return log_sigma_of(torch.full_like(self.log_sigma, INITIAL_SIGMA))

    def _standard(self, parameters: TargetParams, targets: Targets) -> tuple[Tensor, Samples]:
        """Return the values, bounded below, and $z$."""
        values = torch.maximum(self.to_values(targets), LEAST_MEAN * self.unit)[:, None]
        sigma = self.sigma
        return values, ((values / parameters).log() + sigma.square() / 2) / sigma


register("observation", "log_normal", LogNormalNoise)

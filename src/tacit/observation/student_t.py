r"""Noise with heavy tails.

$$y = f + \sigma\, T_\nu, \qquad \nu > 2$$

$\sigma$ and the degrees of freedom $\nu$ of a node are parameters of the model. Fewer degrees of freedom mean heavier
tails; above 30 the noise is nearly Gaussian. A sample uses two uniforms (Bailey 1994) and is differentiable in both
parameters:

$$T_\nu = \sqrt{\nu\, (u^{-2 / \nu} - 1)}\, \cos 2 \pi w$$
"""

import math
from typing import ClassVar

import torch
from jaxtyping import Float
from scipy import special
from torch import Generator, Tensor, nn
from torch.nn.functional import softplus

from tacit.errors import require_int
from tacit.observation.gaussian import INITIAL_SIGMA, SIGMA_FLOOR, log_sigma_of
from tacit.observation.model import Derivatives, ObservationModel
from tacit.registry import register
from tacit.shapes import NoiseUniforms, Outputs, Samples, TargetParams, Targets

INITIAL_DEGREES = 6.0
LEAST_ABOVE_TWO = 0.01  # degrees of freedom exceed 2 by at least this, so the variance is finite


class StudentTNoise(ObservationModel):
    r"""One $\sigma$ and one $\nu$ per node and channel: ``log_sigma`` and ``raw_degrees`` are learned.

    >>> noise = StudentTNoise(num_nodes=5)
    >>> parameters = noise.describe(torch.zeros(8, 4, 5, 1), torch.zeros(8, 5, 3))
    >>> round(noise.degrees[0, 0].item(), 4), round(noise.variance(parameters)[0, 0, 0, 0].item(), 4)
    (6.0, 0.25)
    """

    words: ClassVar[str] = "numbers with heavy tails, Student t"
    num_uniforms: int = 2

    def __init__(self, num_nodes: int, channels: int = 1) -> None:
        super().__init__(channels)
        require_int("num_nodes", num_nodes)
        degrees = torch.full((num_nodes, channels), INITIAL_DEGREES)
        self.raw_degrees = nn.Parameter((degrees - 2 - LEAST_ABOVE_TWO).expm1().log())
        self.log_sigma = nn.Parameter(log_sigma_of(_sigma_of(INITIAL_SIGMA, degrees)))

    @property
    def sigma(self) -> Float[Tensor, "node channel"]:
        r"""$\sigma$."""
        return self.log_sigma.exp() + SIGMA_FLOOR

    @property
    def degrees(self) -> Float[Tensor, "node channel"]:
        r"""$\nu$."""
        return 2 + LEAST_ABOVE_TWO + softplus(self.raw_degrees)

    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        r"""Return $f + \sigma\, T_\nu$ from two uniforms for each target."""
        radius, angle = uniforms.tensor_split(2, -1)
        degrees = self.degrees
        size = (degrees * torch.expm1(-2 / degrees * radius.log())).sqrt()
        return parameters + self.sigma * size * torch.cos(2 * math.pi * angle)

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the outputs."""
        return parameters

    def variance(self, parameters: TargetParams) -> Samples:
        r"""Return $\sigma^2 \nu / (\nu - 2)$."""
        return (self.sigma.square() * self.degrees / (self.degrees - 2)).expand_as(parameters)

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return the log density, $-\tfrac12 (\nu + 1) \log(1 + (y - f)^2 / \nu \sigma^2)$ plus a constant."""
        degrees, sigma = self.degrees, self.sigma
        half = degrees.double() / 2  # two large numbers cancel if there are many degrees of freedom
        constant = (torch.lgamma(half + 0.5) - torch.lgamma(half)).to(degrees) - 0.5 * (math.pi * degrees).log()
        standard = (targets[:, None] - parameters) / sigma
        return constant - sigma.log() - (degrees + 1) / 2 * torch.log1p(standard.square() / degrees)

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        r"""Return $F_\nu((y - f) / \sigma)$ twice, because a single value has probability 0."""
        standard = ((targets[:, None] - parameters) / self.sigma).detach().cpu()
        degrees = self.degrees.detach().cpu().expand_as(standard)
        below = torch.as_tensor(special.stdtr(degrees.double().numpy(), standard.double().numpy())).to(parameters)
        return below, below

    def derivatives(self, outputs: Outputs, targets: Targets) -> Derivatives:
        r"""Return the derivatives by the output, ``raw_degrees`` and ``log_sigma``.

        With $d = y - f$ and $\rho = d^2 / (\nu \sigma^2 + d^2)$, the score is $(\nu + 1)\, d / (\nu \sigma^2 + d^2)$.
        """
        degrees, sigma = self.degrees, self.sigma
        by_raw = torch.sigmoid(self.raw_degrees)  # of the degrees of freedom
        moved = (sigma - SIGMA_FLOOR) / sigma  # the relative change of sigma by log_sigma
        half, more = degrees / 2, degrees + 1
        constant = torch.lgamma(half + 0.5) - torch.lgamma(half) - 0.5 * (math.pi * degrees).log() - sigma.log()
        slope = (torch.digamma(half + 0.5) - torch.digamma(half) - 1 / degrees) / 2
        bend = (torch.polygamma(1, half + 0.5) - torch.polygamma(1, half)) / 4 + 0.5 / degrees.square()
        apart = targets[:, None] - outputs
        square = apart.square() / (degrees * sigma.square())
        logs, rest = torch.log1p(square), 1 / (1 + square)
        rho = square * rest
        weight = rest * (more / (degrees * sigma.square()))
        score = weight * apart
        by_sigma = moved * (more * rho - 1)
        by_degrees = slope - logs / 2 + more / (2 * degrees) * rho
        product = rho * rest
        both = (by_raw * moved) * (rho - more / degrees * product)
        of_sigma = (1 - moved) * by_sigma - (2 * more * moved.square()) * product
        of_degrees = bend + (rho - more / degrees * product) / (2 * degrees) - rho / (2 * degrees.square())
        return Derivatives(
            constant - more / 2 * logs,
            score,
            weight * (2 * rho - 1),
            [by_raw * by_degrees, by_sigma],
            [(by_raw / more) * score * (1 - more / degrees * rest), (-2 * moved) * score * rest],
            [by_raw.square() * of_degrees + (by_raw * (1 - by_raw)) * by_degrees, both, of_sigma],
        )

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $(\nu + 1) / ((\nu + 3)\, \sigma^2)$."""
        return ((self.degrees + 1) / ((self.degrees + 3) * self.sigma.square())).expand_as(parameters)

    def chosen(self, nodes: list[int]) -> "StudentTNoise":
        """Return the model of some nodes, with their current parameters."""
        part = StudentTNoise(len(nodes), self.channels or 1)
        for name, value in self.named_parameters():
            getattr(part, name).data = value.detach()[nodes].clone()
        return part

    def with_deviations(self, sigmas: Float[Tensor, "node channel"]) -> dict[str, Tensor]:
        """Return ``log_sigma`` for given standard deviations, with the current degrees of freedom."""
        return {"log_sigma": log_sigma_of(_sigma_of(sigmas, self.degrees)).to(self.log_sigma)}

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return the initial parameters of the noise."""
        start = StudentTNoise(*self.log_sigma.shape).to(self.log_sigma)
        return {name: value.detach().to(generator.device) for name, value in start.named_parameters()}


def _sigma_of(deviations: Tensor | float, degrees: Tensor) -> Tensor:
    return deviations * ((degrees - 2) / degrees).sqrt()


register("observation", "student_t", StudentTNoise)

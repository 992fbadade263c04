r"""Gaussian noise around the prediction, of each node by itself or correlated between nodes within a step.

$$y = \mu + \sigma\, e, \qquad e \sim N(0, 1), \qquad \mu = f_\psi(x, A)$$

===========================  ==============================================================
:class:`GaussianNoise`       one $\sigma$ per node and channel, independent of the input
:class:`InputGaussianNoise`  $\sigma$ from the node's own input
:class:`HeadGaussianNoise`   $\sigma$ from a second number that the predictor returns per target
===========================  ==============================================================

The energy score requires two expectations over the noise, and both have the closed form

$$E|d + \sigma e| = \sigma \sqrt{2 / \pi}\; e^{-d^2 / 2 \sigma^2} + d\, \mathrm{erf}(d / \sigma \sqrt 2)$$

Noise that is correlated between nodes within a step has

$$y = \mu + L\, z, \qquad z \sim N(0, I), \qquad L_{ik} = M_{ik}\, \sigma_k$$

$M$ comes from the predictor (:class:`~tacit.predictors.SimultaneousFilter`): the noise of node $k$ affects the nodes
that read it within the step. Each single target is Gaussian with $\sigma_i = |L_i|$.
"""

import math
from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import softplus

from tacit.errors import require, require_int, require_positive
from tacit.observation.model import Derivatives, ObservationModel
from tacit.registry import register
from tacit.shapes import Draws, Inputs, NoiseUniforms, Outputs, Samples, TargetParams, Targets

# For scaled targets: sigma starts at half their standard deviation, and a floor keeps densities bounded.
INITIAL_SIGMA = 0.5
SIGMA_FLOOR = 1e-3


def log_sigma_of(sigma: Tensor) -> Tensor:
    """Return the parameter of a standard deviation: the logarithm of what it has above the floor."""
    return (sigma - SIGMA_FLOOR).clamp_min(SIGMA_FLOOR).log().detach()


def expected_distance(difference: Tensor, sigma: Tensor) -> Tensor:
    r"""Return $E|d + \sigma e|$ for a standard normal $e$; ``sigma`` must be positive.

    >>> expected_distance(torch.tensor([0.0, 9.0]), torch.tensor([1.0, 1.0]))
    tensor([0.7979, 9.0000])
    """
    standard = difference / (sigma * math.sqrt(2))
    return sigma * math.sqrt(2 / math.pi) * torch.exp(-standard.square()) + difference * torch.erf(standard)


def positive_sigma(raw: Tensor) -> Tensor:
    r"""Return $\sigma = \log(1 + e^{\text{raw}})$ plus a floor, which is positive for any real number.

    >>> round(positive_sigma(torch.tensor(raw_sigma(0.5))).item(), 6)
    0.5
    """
    return softplus(raw) + SIGMA_FLOOR


def raw_sigma(sigma: float) -> float:
    """Return the inverse of :func:`positive_sigma`."""
    return math.log(math.expm1(sigma - SIGMA_FLOOR))


class Gaussian(ObservationModel):
    """Base class of Gaussian noise: parameters are mean and standard deviation, means first on the last axis."""

    num_parameters = 2
    wider: ClassVar[str] = "student_t"
    closed_forms: bool = True
    by_moments: bool = True

    def __init__(self, channels: int, initial_sigma: float) -> None:
        super().__init__(channels)
        require_positive("initial_sigma", initial_sigma, INITIAL_SIGMA)
        require(
            initial_sigma > SIGMA_FLOOR,
            f"initial_sigma must be above {SIGMA_FLOOR}, got {initial_sigma}; scale the targets",
        )
        self.initial_sigma = initial_sigma

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return means and sigmas of every target under each graph."""
        self._require_outputs(outputs)
        means = outputs[..., : self.channels]
        return torch.cat([means, self._sigmas(outputs, inputs).expand_as(means)], -1)

    @abstractmethod
    def _sigmas(self, outputs: Outputs, inputs: Inputs) -> Tensor:
        """Return sigmas that broadcast to (batch, graph, node, channel)."""

    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        r"""Return $\mu + \sigma\, \Phi^{-1}(u)$."""
        means, sigmas = self._mean_and_sigma(parameters)
        samples: Samples = means + sigmas * torch.special.ndtri(uniforms)
        return samples

    def draw(self, parameters: TargetParams, *, generator: Generator, draws: int = 1) -> Draws:
        """Return ``draws`` samples of each graph, concatenated along the graph axis."""
        means, sigmas = self._mean_and_sigma(parameters.repeat_interleave(draws, 1))
        normals = torch.randn(means.shape, generator=generator, device=generator.device, dtype=means.dtype)
        return means + sigmas * normals.to(means.device)

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the means."""
        return self._mean_and_sigma(parameters)[0]

    def variance(self, parameters: TargetParams) -> Samples:
        """Return the squared sigmas."""
        return self._mean_and_sigma(parameters)[1].square()

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $E|Y_s - y|$ of each target under each graph $s$."""
        means, sigmas = self._mean_and_sigma(parameters)
        return expected_distance(targets[:, None] - means, sigmas)

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        r"""Return $E|Y_s - Y_t|$, a distance with $\sigma^2 = \sigma_s^2 + \sigma_t^2$."""
        means, sigmas = self._mean_and_sigma(parameters)
        both = (sigmas[:, :, None].square() + sigmas[:, None].square()).sqrt()
        return expected_distance(means[:, :, None] - means[:, None], both)

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $-\tfrac12 (y - \mu)^2 / \sigma^2 - \log \sigma - \tfrac12 \log 2 \pi$."""
        means, sigmas = self._mean_and_sigma(parameters)
        return -0.5 * ((targets[:, None] - means) / sigmas).square() - sigmas.log() - 0.5 * math.log(2 * math.pi)

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $1 / \sigma^2$."""
        return 1 / self.variance(parameters)

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        r"""Return $\Phi((y - \mu) / \sigma)$ twice, because a single value has probability 0."""
        means, sigmas = self._mean_and_sigma(parameters)
        below = torch.special.ndtr((targets[:, None] - means) / sigmas)
        return below, below

    def _mean_and_sigma(self, parameters: TargetParams) -> tuple[Tensor, Tensor]:
        means, sigmas = parameters.tensor_split(2, -1)
        return means, sigmas


class GaussianNoise(Gaussian):
    r"""One $\sigma$ per node and channel, independent of the input; ``log_sigma`` is learned.

    >>> noise = GaussianNoise(num_nodes=5)
    >>> parameters = noise.describe(torch.zeros(8, 4, 5, 1), torch.zeros(8, 5, 3))
    >>> noise.mean(parameters).shape, round(noise.variance(parameters)[0, 0, 0, 0].item(), 4)
    (torch.Size([8, 4, 5, 1]), 0.25)
    """

    words: ClassVar[str] = "numbers with Gaussian noise, one standard deviation per node"

    def __init__(self, num_nodes: int, channels: int = 1, *, initial_sigma: float = INITIAL_SIGMA) -> None:
        super().__init__(channels, initial_sigma)
        require_int("num_nodes", num_nodes)
        self.log_sigma = nn.Parameter(torch.full((num_nodes, channels), self._start))

    @property
    def _start(self) -> float:
        return math.log(self.initial_sigma - SIGMA_FLOOR)

    def _sigmas(self, outputs: Outputs, inputs: Inputs) -> Tensor:
        del outputs, inputs
        return self.log_sigma.exp() + SIGMA_FLOOR  # (node, channel)

    def with_deviations(self, sigmas: Float[Tensor, "node channel"]) -> dict[str, Tensor]:
        """Return ``log_sigma`` for given standard deviations."""
        return {"log_sigma": log_sigma_of(sigmas).to(self.log_sigma)}

    def derivatives(self, outputs: Outputs, targets: Targets) -> Derivatives:
        r"""Return the derivatives by the mean and by ``log_sigma``."""
        sigma = self.log_sigma.exp() + SIGMA_FLOOR
        moved = (sigma - SIGMA_FLOOR) / sigma  # the relative change of sigma by log_sigma
        standard = (targets[:, None] - outputs) / sigma
        square = standard.square()
        log_prob = -0.5 * square - sigma.log() - 0.5 * math.log(2 * math.pi)
        score, curvature = standard / sigma, (-1 / sigma.square()).expand_as(outputs)
        noise, cross = (square - 1) * moved, (-2 * moved) * score
        of_noise = moved.square() * (1 - 3 * square) + moved * (square - 1)
        return Derivatives(log_prob, score, curvature, [noise], [cross], [of_noise])

    def chosen(self, nodes: list[int]) -> "GaussianNoise":
        """Return the model of some nodes, with their current parameters."""
        part = GaussianNoise(len(nodes), self.channels or 1, initial_sigma=self.initial_sigma)
        part.log_sigma.data = self.log_sigma.detach()[nodes].clone()
        return part

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return the initial parameters of the noise."""
        return {"log_sigma": torch.full_like(self.log_sigma, self._start, device=generator.device)}


class InputGaussianNoise(Gaussian):
    r"""A $\sigma$ that depends on the node's own input.

    $$\sigma_i = \log(1 + \exp(b_i + u\, x_i + v\, |x_i|))$$

    All nodes share $u$ and $v$; each node has its own $b$. The absolute values are included because noise often grows
    with the magnitude of a value or change, independent of its sign.

    >>> noise = InputGaussianNoise(num_nodes=5, in_channels=3)
    >>> noise.describe(torch.zeros(8, 4, 5, 1), torch.zeros(8, 5, 3)).shape
    torch.Size([8, 4, 5, 2])
    """

    words: ClassVar[str] = "numbers with Gaussian noise whose standard deviation follows the input of the node"
    follows_input: ClassVar[bool] = True

    def __init__(
        self, num_nodes: int, in_channels: int, channels: int = 1, *, initial_sigma: float = INITIAL_SIGMA
    ) -> None:
        super().__init__(channels, initial_sigma)
        require_int("num_nodes", num_nodes)
        require_int("in_channels", in_channels)
        self.sigma_weights = nn.Parameter(torch.zeros(2 * in_channels, channels))
        self.sigma_bias = nn.Parameter(torch.full((num_nodes, channels), raw_sigma(initial_sigma)))

    def _sigmas(self, outputs: Outputs, inputs: Inputs) -> Tensor:
        del outputs
        features = torch.cat([inputs, inputs.abs()], -1)
        return positive_sigma(features @ self.sigma_weights + self.sigma_bias)[:, None]  # (batch, 1, node, channel)

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return the initial parameters of the noise."""
        start, device = raw_sigma(self.initial_sigma), generator.device
        return {
            "sigma_weights": torch.zeros_like(self.sigma_weights, device=device),
            "sigma_bias": torch.full_like(self.sigma_bias, start, device=device),
        }


class HeadGaussianNoise(Gaussian):
    r"""A $\sigma$ from the predictor: the second of its two numbers per target determines $\sigma$ and starts at 0.

    $$\sigma = \log(1 + \exp(b + f_2(x, A)))$$

    $b$ is the constant for which an output of 0 gives ``initial_sigma``.

    >>> noise = HeadGaussianNoise()
    >>> parameters = noise.describe(torch.zeros(8, 4, 5, 2), torch.zeros(8, 5, 3))
    >>> round(noise.variance(parameters)[0, 0, 0, 0].item(), 4)
    0.25
    """

    words: ClassVar[str] = "numbers with Gaussian noise whose standard deviation is predicted"
    num_given = 2
    follows_input: ClassVar[bool] = True

    def __init__(self, channels: int = 1, *, initial_sigma: float = INITIAL_SIGMA) -> None:
        super().__init__(channels, initial_sigma)

    def _sigmas(self, outputs: Outputs, inputs: Inputs) -> Tensor:
        del inputs
        return positive_sigma(raw_sigma(self.initial_sigma) + outputs[..., self.channels :])


register("observation", "gaussian", GaussianNoise)
register("observation", "gaussian_input", InputGaussianNoise)
register("observation", "gaussian_head", HeadGaussianNoise)


class SimultaneousNoise(GaussianNoise):
    r"""One $\sigma$ per node; the distribution parameters of a target are its mean and its row of $L$.

    >>> noise, mixing = SimultaneousNoise(num_nodes=2), torch.tensor([[1.0, 0.0], [2.0, 1.0]])
    >>> parameters = noise.describe(torch.cat([torch.zeros(2, 1), mixing], 1)[None, None], torch.zeros(1, 2, 3))
    >>> [round(value, 4) for value in noise.variance(parameters).flatten().tolist()]
    [0.25, 1.25]
    """

    joint: ClassVar[bool] = True
    wider: ClassVar[str] = ""

    def __init__(self, num_nodes: int, channels: int = 1, *, initial_sigma: float = INITIAL_SIGMA) -> None:
        super().__init__(num_nodes, channels, initial_sigma=initial_sigma)
        self.num_given = self.num_parameters = 1 + num_nodes

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the mean and the loadings of every target under each graph."""
        self._require_outputs(outputs)
        means, mixing = outputs.tensor_split([1], -1)
        return torch.cat([means, mixing * self._sigmas(outputs, inputs)[:, 0]], -1)

    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        r"""Return $\mu + L\, \Phi^{-1}(u)$."""
        means, loadings = parameters.tensor_split([1], -1)
        samples: Samples = means + loadings @ torch.special.ndtri(uniforms)
        return samples

    def draw(self, parameters: TargetParams, *, generator: Generator, draws: int = 1) -> Draws:
        """Return ``draws`` samples of each graph, concatenated along the graph axis."""
        means, loadings = parameters.tensor_split([1], -1)
        shape = (*loadings.shape[:3], draws)
        normals = torch.randn(shape, generator=generator, device=generator.device, dtype=means.dtype)
        values = means + loadings @ normals.to(means.device)  # (batch, graph, node, draw)
        return values.transpose(2, 3).flatten(1, 2)[..., None]

    def _mean_and_sigma(self, parameters: TargetParams) -> tuple[Tensor, Tensor]:
        means, loadings = parameters.tensor_split([1], -1)
        return means, torch.linalg.vector_norm(loadings, dim=-1, keepdim=True)

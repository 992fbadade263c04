r"""The interface of observation models: the distribution of a target, given prediction and input.

$$y \sim p(y \mid f_\psi(x, A), x)$$

Where the graph is the only randomness of a model, its edge probabilities must explain the noise as well, and are
biased. The predictor gives ``num_given`` numbers per target, in most cases its mean; the observation model makes of
them the ``num_parameters`` numbers that describe the distribution. How these numbers are laid out along the last axis
is known to the observation model alone: all others ask it for samples, means, densities.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.errors import InputError, require, require_int
from tacit.shapes import Draws, Inputs, NoiseUniforms, Outputs, Samples, TargetParams, Targets


class ObservationModel(nn.Module, ABC):
    """The interface; capabilities are attributes of the class.

    ``num_parameters``  numbers that describe the distribution of one target
    ``num_given``       how many of them the predictor gives
    ``random``          False where a target equals its mean, so that nothing has to be drawn
    ``follows_input``   the size of the noise changes with the input
    ``closed_forms``    :meth:`expected_distance`, :meth:`pair_distance` and :meth:`cdf` are there
    ``joint``           nodes share their noise within a step: scores of each node alone cannot fit it, regressions do
    ``channels``        target channels per node; None where it does not matter
    """

    num_parameters: int = 1
    num_given: int = 1
    random: ClassVar[bool] = True
    follows_input: ClassVar[bool] = False
    closed_forms: ClassVar[bool] = False
    joint: ClassVar[bool] = False

    def __init__(self, channels: int | None = None) -> None:
        super().__init__()
        if channels is not None:
            require_int("channels", channels)
        require(
            channels is not None or not self.random,
            f"channels must be the number of target channels for {type(self).__name__}, got None; pass for example 1",
        )
        self.channels = channels

    @classmethod
    def for_sizes(cls, *, num_nodes: int, in_channels: int, channels: int) -> "ObservationModel":
        """Return the model for data of these sizes: what a name in a config stands for."""
        del num_nodes, in_channels
        return cls(channels)

    @abstractmethod
    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the numbers that describe each target, of the predictor's outputs: num_parameters per channel."""

    @abstractmethod
    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return what given uniforms make, one per target; differentiable in the parameters."""

    @abstractmethod
    def mean(self, parameters: TargetParams) -> Samples:
        """Return the mean of each target."""

    @abstractmethod
    def variance(self, parameters: TargetParams) -> Samples:
        """Return the variance of each target."""

    def draw(self, parameters: TargetParams, *, generator: Generator, draws: int = 1) -> Draws:
        """Return ``draws`` samples of each graph, side by side on the axis of the graphs.

        Under a graph only the noise differs from draw to draw, so that several make quantiles smooth at little cost.
        Without randomness one draw is enough.
        """
        if not self.random:
            return self.mean(parameters)
        repeated = parameters.repeat_interleave(draws, 1)
        shape = self.mean(repeated).shape
        uniforms = torch.rand(shape, generator=generator, device=generator.device, dtype=parameters.dtype)
        smallest = torch.finfo(parameters.dtype).eps
        return self.sample(repeated, uniforms.clamp(smallest, 1 - smallest).to(parameters.device))

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return where a fit starts; the present values unless a model says otherwise."""
        return {name: value.detach().to(generator.device) for name, value in self.named_parameters()}

    def with_deviations(self, sigmas: Float[Tensor, "node channel"]) -> dict[str, Tensor]:
        """Return the parameters with which the noise has these deviations; none where it has no such parameters."""
        del sigmas
        return {}

    def scales(self, spread: Float[Tensor, "node channel"]) -> Float[Tensor, "node number"]:
        """Return what a change of each parameter is measured against, from the spread of the targets.

        Parameters in the units of the targets, as means and deviations are, share their spread.
        """
        return spread.repeat(1, self.num_parameters)

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $E|Y_s - y|$ of each target under each graph $s$."""
        del parameters, targets
        raise self._without_closed_forms()

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        r"""Return $E|Y_s - Y_t|$ for every two graphs, noise independent, the diagonal included."""
        del parameters
        raise self._without_closed_forms()

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        """Return the probability of a value below each target, and of one up to it."""
        del parameters, targets
        raise self._without_closed_forms()

    def _without_closed_forms(self) -> InputError:
        return InputError(f"{type(self).__name__} has no closed forms (closed_forms=False); draw samples of it")

    def _require_outputs(self, outputs: Outputs) -> None:
        given = self.num_given * (self.channels or 0)
        require(
            outputs.shape[-1] == given,
            f"outputs must have num_given * channels = {given} numbers per node for {type(self).__name__}, "
            f"got {outputs.shape[-1]}; correct channels, or the predictor",
        )

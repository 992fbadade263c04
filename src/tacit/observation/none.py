"""No noise: the target equals the prediction under a graph, and the graph is the only source of randomness."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.observation.model import ObservationModel, TargetValues
from tacit.registry import register
from tacit.shapes import Inputs, NoiseUniforms, Outputs, Samples, TargetParams, Targets


class NoNoise(ObservationModel):
    """An observation model without noise: a target equals its prediction.

    >>> NoNoise().mean(torch.ones(1, 2, 3, 1)).shape
    torch.Size([1, 2, 3, 1])
    """

    words: ClassVar[str] = "numbers without noise"
    random: ClassVar[bool] = False
    closed_forms: bool = True

    @classmethod
    def for_sizes(
        cls, *, num_nodes: int, in_channels: int, channels: int, values: TargetValues | None = None
    ) -> "ObservationModel":
        """Return the model, which does not depend on the sizes."""
        del num_nodes, in_channels, channels, values
        return cls()

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the outputs."""
        del inputs
        return outputs

    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return the means."""
        del uniforms
        return parameters

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the means."""
        return parameters

    def variance(self, parameters: TargetParams) -> Samples:
        """Return 0."""
        return torch.zeros_like(parameters)

    def chosen(self, nodes: list[int]) -> "NoNoise":
        """Return the model, which does not depend on the nodes."""
        del nodes
        return NoNoise()

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $|y_s - y|$."""
        return (parameters - targets[:, None]).abs()

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        r"""Return $|y_s - y_t|$."""
        return (parameters[:, :, None] - parameters[:, None]).abs()

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        """Return 1 where the prediction is below the target, and where it is at most the target."""
        below, up_to = parameters < targets[:, None], parameters <= targets[:, None]
        return below.to(parameters), up_to.to(parameters)


register("observation", "none", NoNoise)

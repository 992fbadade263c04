r"""Positive means: the link between the output of a predictor and the mean of counts and of positive numbers.

$$m = u \log(1 + e^{f + o / u})$$

$f$ is the output, $o$ and $u$ are offset and unit of the targets (:class:`~tacit.observation.TargetValues`). Where the
mean is large $m \approx o + u f$, the mean of a Gaussian model: effects add up. Near 0 the link bends, so that no mean
is negative. Targets that are not scaled have $m = \log(1 + e^f)$.
"""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from tacit.observation.model import ObservationModel, TargetValues
from tacit.shapes import Outputs

LEAST_MEAN = 1e-6  # of a unit: a mean of 0 would make any event impossible


class PositiveMean(ObservationModel):
    """The common part: values in the units of the data, and their mean."""

    offset: Tensor
    unit: Tensor

    def __init__(self, num_nodes: int, channels: int = 1, values: TargetValues | None = None) -> None:
        super().__init__(channels)
        self.values = TargetValues.plain(num_nodes, channels) if values is None else values
        self.register_buffer("offset", self.values.offset.clone(), persistent=False)
        self.register_buffer("unit", self.values.unit.clone(), persistent=False)

    @classmethod
    def for_sizes(
        cls, *, num_nodes: int, in_channels: int, channels: int, values: TargetValues | None = None
    ) -> "ObservationModel":
        """Return the model for data of these sizes."""
        del in_channels
        return cls(num_nodes, channels, values)

    def means_of(self, outputs: Outputs) -> Tensor:
        """Return the means in the units of the data, of the predictor's outputs."""
        self._require_outputs(outputs)
        return self.unit * (softplus(outputs + self.offset / self.unit) + LEAST_MEAN)

    def slopes_of(self, means: Tensor) -> Tensor:
        r"""Return $\partial m / \partial f$ of means in the units of the data: $u\,(1 - e^{-m / u})$."""
        return -self.unit * torch.expm1(-means / self.unit)

    def to_values(self, targets: Tensor) -> Tensor:
        """Return scaled targets in the units of the data."""
        return self.offset + self.unit * targets

    def to_targets(self, values: Tensor) -> Tensor:
        """Return values in the units of the data as scaled targets."""
        return (values - self.offset) / self.unit

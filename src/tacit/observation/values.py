"""Conversion between scaled targets and values in the units of the data."""

import torch
from torch import Tensor

from tacit.errors import require_int
from tacit.observation.model import ObservationModel, TargetValues


class InUnits(ObservationModel):
    r"""Base class of models for values in the units of the data, $v = \text{offset} + \text{unit} \cdot y$."""

    offset: Tensor
    unit: Tensor

    def __init__(self, num_nodes: int, channels: int = 1, values: TargetValues | None = None) -> None:
        super().__init__(channels)
        require_int("num_nodes", num_nodes)
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

    def to_values(self, targets: Tensor) -> Tensor:
        """Return scaled targets in the units of the data."""
        return self.offset + self.unit * targets

    def to_targets(self, values: Tensor) -> Tensor:
        """Return values in the units of the data as scaled targets."""
        return (values - self.offset) / self.unit

    def chosen(self, nodes: list[int]) -> "ObservationModel":
        """Return the model of some nodes, with their current parameters."""
        part = type(self)(len(nodes), self.channels or 1, self.values.chosen(nodes)).to(self.offset)
        for name, value in self.named_parameters(recurse=False):
            getattr(part, name).data = value.detach()[nodes].clone()
        return part

    def stacked(self, parts: list[ObservationModel]) -> ObservationModel:
        """Return one model of the nodes of ``parts``, each with its own units."""
        known = [part.values for part in parts if isinstance(part, InUnits)]
        offset, unit = torch.cat([one.offset for one in known]), torch.cat([one.unit for one in known])
        values = TargetValues(offset, unit, self.values.categories, self.values.largest)
        model = type(self)(len(parts), self.channels or 1, values).to(self.offset)
        for name, value in self.joined(parts).items():
            model.get_parameter(name).data = value
        return model

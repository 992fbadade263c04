r"""Units of pairs that are no series: numbers around 0 of size 1 to train on, and back.

$$\tilde x = (x - m) / s$$

with one mean $m$ and one deviation $s$ per channel, over all pairs and nodes of the training part: nodes share the
weights of a predictor, so their sizes relative to each other must stay as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

TINY = 1e-6  # a deviation below this part of the mean is what rounding leaves of a constant


@dataclass(frozen=True)
class ChannelUnits:
    """Mean and deviation of each channel.

    >>> values = torch.tensor([[[0.0]], [[10.0]]])
    >>> units = ChannelUnits.of(values)
    >>> units.mean, units.deviation, units.scaled(values).flatten().tolist()
    ((5.0,), (5.0,), [-1.0, 1.0])
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def of(cls, values: Tensor, observed: Tensor | None = None) -> "ChannelUnits":
        """Return the units of values (pair, node, channel); a channel that never changes keeps its size."""
        seen = torch.ones_like(values) if observed is None else observed
        count = seen.sum((0, 1)).clamp_min(1).double()
        mean = (values * seen).double().sum((0, 1)) / count
        deviation = (((values - mean) * seen).double().square().sum((0, 1)) / count).sqrt()
        whole = torch.where(deviation > TINY * mean.abs().clamp_min(TINY), deviation, 1.0)
        return cls(tuple(mean.tolist()), tuple(whole.tolist()))

    def scaled(self, values: Tensor) -> Tensor:
        """Return values in these units."""
        return (values - values.new_tensor(self.mean)) / values.new_tensor(self.deviation)

    def restored(self, values: Tensor) -> Tensor:
        """Return scaled values in the units of the data."""
        return values * values.new_tensor(self.deviation) + values.new_tensor(self.mean)

    @classmethod
    def from_dict(cls, stored: Mapping[str, list[float]]) -> "ChannelUnits":
        """Return what was stored by ``vars``."""
        return cls(tuple(stored["mean"]), tuple(stored["deviation"]))

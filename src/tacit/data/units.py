r"""Units of pairs without time: values are scaled to mean 0 and deviation 1 for training, and back.

$$\tilde x = (x - m) / s$$

with one mean $m$ and one deviation $s$ per channel, over all pairs and nodes of the training part: nodes share the
weights of a predictor, so their sizes relative to each other must stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from tacit.data.series import LARGEST
from tacit.errors import InputError

Channels = Float64[np.ndarray, " channel"]
Values = Float64[np.ndarray, "pair node channel"]
TINY = 1e-12  # a constant has a deviation below this fraction of its mean, from rounding


@dataclass(frozen=True, eq=False)
class ChannelUnits:
    """Mean and deviation of each channel.

    >>> units = ChannelUnits.of(np.array([[[1.0], [3.0]], [[np.nan], [5.0]]]))
    >>> units.mean.item(), round(units.deviation.item(), 3)
    (3.0, 1.633)
    """

    mean: Channels
    deviation: Channels

    @classmethod
    def of(cls, values: Values) -> "ChannelUnits":
        """Return the units of some values; NaN is left out, and a constant channel is not scaled."""
        there = ~np.isnan(values)
        counts = np.maximum(there.sum((0, 1)), 1)
        mean = np.where(there, values, 0.0).sum((0, 1)) / counts
        deviation = np.sqrt(np.where(there, (values - mean) ** 2, 0.0).sum((0, 1)) / counts)
        return cls(mean, np.where(deviation > TINY * np.maximum(np.abs(mean), TINY), deviation, 1.0))

    @classmethod
    def unchanged(cls, num_channels: int) -> "ChannelUnits":
        """Return units with mean 0 and deviation 1."""
        return cls(np.zeros(num_channels), np.ones(num_channels))

    def scaled(self, values: Values) -> Values:
        """Return values in these units; a value whose square does not fit in single precision is refused."""
        scaled: Values = (values - self.mean) / self.deviation
        for pair, node, channel in np.argwhere(np.abs(scaled) > LARGEST)[:1]:
            raise InputError(
                f"pair {pair} must have numbers like those of the training part, mean {self.mean[channel]:.3g} and "
                f"deviation {self.deviation[channel]:.3g}, got {values[pair, node, channel]:.3g}; correct it"
            )
        return scaled

    def restored(self, values: Float64[np.ndarray, "*any channel"]) -> Float64[np.ndarray, "*any channel"]:
        """Return scaled values in the units of the data; the last axis is the channels."""
        restored: np.ndarray = values * self.deviation + self.mean
        return restored

    def to_dict(self) -> dict[str, list[float]]:
        """Return the units as lists of numbers."""
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Sequence[float]]) -> "ChannelUnits":
        """Return the units from the result of :meth:`to_dict`."""
        return cls(*(np.array(stored[name], dtype=np.float64) for name in ("mean", "deviation")))

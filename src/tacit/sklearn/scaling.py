r"""Units: models train on numbers around 0 of size 1, and predictions go back to the units of the targets.

$$\tilde x = (x - m) / s$$

with one mean $m$ and one deviation $s$ per channel, over all pairs and nodes of the training part: nodes share the
weights of a predictor, so their sizes relative to each other must stay as they are.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

Channels = Float64[np.ndarray, " channel"]
Values = Float64[np.ndarray, "pair node channel"]


@dataclass(frozen=True)
class Units:
    """Mean and deviation of each channel.

    >>> units = Units.of(np.array([[[1.0], [3.0]], [[np.nan], [5.0]]]))
    >>> units.mean.item(), round(units.deviation.item(), 3)
    (3.0, 1.633)
    """

    mean: Channels
    deviation: Channels

    @classmethod
    def of(cls, values: Values) -> "Units":
        """Return the units of some values; NaN is left out, and a channel that never changes keeps its size."""
        there = ~np.isnan(values)
        counts = np.maximum(there.sum((0, 1)), 1)
        mean = np.where(there, values, 0.0).sum((0, 1)) / counts
        deviation = np.sqrt(np.where(there, (values - mean) ** 2, 0.0).sum((0, 1)) / counts)
        smallest = 1e-12 * np.maximum(np.abs(mean), 1e-12)  # what rounding leaves of a constant
        return cls(mean, np.where(deviation > smallest, deviation, 1.0))

    @classmethod
    def unchanged(cls, num_channels: int) -> "Units":
        """Return units that change nothing."""
        return cls(np.zeros(num_channels), np.ones(num_channels))

    def scaled(self, values: Values) -> Values:
        """Return values in these units."""
        scaled: Values = (values - self.mean) / self.deviation
        return scaled

r"""Units of several series that differ in level: mean and deviation per series, node and variable.

$$\tilde v_{sti} = (v_{sti} - m_{si}) / d_{si}$$

for series $s$, time $t$ and node $i$. Subjects, sites and recordings often differ in level. With one mean for all
series, this difference makes nodes correlated, which looks like an edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from tacit.data.series import LARGEST, Series

ScaleBy = Literal["all", "level", "series"]
Table = Float64[np.ndarray, "series node channel"]
DIFFERENT = 3.0  # deviations of series that differ by a larger factor are scaled separately
FAR_APART = 10.0  # times the deviation within series: levels that differ by more would dominate
FEWEST_ROWS = 20  # of a series with its own deviation


@dataclass(frozen=True, eq=False)
class SeriesUnits:
    """Mean and deviation of each series, node and channel.

    >>> units = SeriesUnits(np.array([[[1.0]], [[5.0]]]), np.array([[[2.0]], [[4.0]]]))
    >>> units.restored(torch.ones(3, 7, 1, 1), torch.tensor([0, 0, 1]))[:, 0].flatten().tolist()
    [3.0, 3.0, 9.0]
    """

    mean: Table
    deviation: Table

    def restored(
        self, values: Float[Tensor, "pair *any node channel"], series: Int[Tensor, " pair"]
    ) -> Float[Tensor, "pair *any node channel"]:
        """Return scaled values in the units of the data; ``series`` is the number of the series of each pair."""
        axes = (len(series),) + (1,) * (values.ndim - 3) + values.shape[-2:]
        mean, deviation = (self._of(table, series).view(axes).to(values) for table in (self.mean, self.deviation))
        return values * deviation + mean

    def spread(self, series: Int[Tensor, " pair"]) -> Float[Tensor, "pair node channel"]:
        """Return the deviation by which values were scaled, per pair, node and channel."""
        return self._of(self.deviation, series)

    def channels(self, count: int) -> "SeriesUnits":
        """Return the units of the first channels."""
        return SeriesUnits(self.mean[..., :count], self.deviation[..., :count])

    @staticmethod
    def _of(table: Table, series: Int[Tensor, " pair"]) -> Tensor:
        return torch.from_numpy(table).to(series.device)[series]

    @classmethod
    def measured(
        cls, parts: Sequence[Float64[np.ndarray, "_ node channel"]], by: ScaleBy
    ) -> "tuple[SeriesUnits, Float64[np.ndarray, 'node channel']]":
        """Return the units of the rows of each series, and the deviation within series over all of them.

        The level of a node that is never observed in a series is NaN. With ``by = "level"`` all series share the
        deviation; with ``"series"`` each has its own, if it has enough rows and is not constant.
        """
        counts = np.stack([(~np.isnan(rows)).sum(0) for rows in parts])  # (series, node, channel)
        sums = np.stack([np.nansum(rows, 0) for rows in parts])
        levels = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        squares = np.stack([np.nansum((rows - level) ** 2, 0) for rows, level in zip(parts, levels, strict=True)])
        lost = np.minimum(counts, 1)  # each estimated level uses one degree of freedom
        pooled = np.sqrt(squares.sum(0) / np.maximum((counts - lost).sum(0), 1))
        own = np.sqrt(squares / np.maximum(counts, 1))
        still = (counts < FEWEST_ROWS) | (own <= np.maximum(1e-12 * np.abs(levels), 1 / LARGEST))
        deviations = np.broadcast_to(pooled, levels.shape) if by == "level" else np.where(still, pooled, own)
        return cls(levels, deviations.copy()), pooled


def levels_apart(series: Series, fraction: float) -> bool:
    """Return whether, for some node, the deviation of levels is above ``FAR_APART`` times that within series.

    Levels are those of the first ``fraction`` of each series.
    """
    units, within = SeriesUnits.measured([part.values[: round(len(part) * fraction)] for part in series.parts], "level")
    known = ~np.isnan(units.mean)
    count = np.maximum(known.sum(0), 1)
    centre = np.where(known, units.mean, 0.0).sum(0) / count
    between = np.sqrt((np.where(known, units.mean - centre, 0.0) ** 2).sum(0) / count)
    return bool((between > FAR_APART * within).any())


def deviations_differ(series: Series, fraction: float) -> bool:
    """Return whether the deviations of most nodes differ between series by a factor of ``DIFFERENT``.

    The 10th and the 90th percentile over series are compared.

    The deviations are those of changes from step to step, in the first ``fraction`` of each series.
    """
    long = [part.values[: round(len(part) * fraction)] for part in series.parts]
    changes = [np.diff(rows, axis=0) for rows in long if len(rows) > FEWEST_ROWS]
    if len(changes) < 2:
        return False
    sizes = np.stack([np.sqrt(np.nansum(rows**2, 0) / np.maximum((~np.isnan(rows)).sum(0), 1)) for rows in changes])
    sizes = np.where(sizes > 0, sizes, np.nan)  # a node that a series lacks
    sizes[:, np.isnan(sizes).all(axis=0)] = 1.0  # a constant node
    few, many = (np.nanpercentile(sizes, level, axis=0) for level in (10, 90))
    return bool(np.median(many / few) > DIFFERENT)

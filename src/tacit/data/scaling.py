r"""Standardisation: mean and deviation per channel of pairs, per node and variable of a series, or per series.

Pairs without time are scaled to mean 0 and deviation 1 for training, and back,

$$\tilde x = (x - m) / s,$$

with one mean $m$ and one deviation $s$ per channel, over all pairs and nodes of the training part: nodes share the
weights of a predictor, so their sizes relative to each other must stay as they are.

Several series that differ in level have a mean and a deviation per series $s$, node $i$ and variable,

$$\tilde v_{sti} = (v_{sti} - m_{si}) / d_{si}.$$

Subjects, sites and recordings often differ in level. With one mean for all series, this difference makes nodes
correlated, which looks like an edge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from tacit.data.background import calendar_columns
from tacit.data.gaps import Gaps
from tacit.data.series import LARGEST, MOST_NAMED, RESCALE, Series, Values
from tacit.errors import InputError, require

Channels = Float64[np.ndarray, " channel"]
PairValues = Float64[np.ndarray, "pair node channel"]
ScaleBy = Literal["all", "level", "series"]
Table = Float64[np.ndarray, "series node channel"]
Features = Float[np.ndarray, "time node feature"]
ROUNDING = 1e-12  # a constant has a deviation below this fraction of its mean, from rounding
DIFFERENT = 3.0  # deviations of series that differ by a larger factor are scaled separately
FAR_APART = 10.0  # times the deviation within series: levels that differ by more would dominate
FEWEST_ROWS = 20  # of a series with its own deviation
COLLINEAR = 1e-3  # a column follows from others if they leave less than this share of its deviation


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
    def of(cls, values: PairValues) -> "ChannelUnits":
        """Return the units of some values; NaN is left out, and a constant channel is not scaled."""
        there = ~np.isnan(values)
        counts = np.maximum(there.sum((0, 1)), 1)
        mean = np.where(there, values, 0.0).sum((0, 1)) / counts
        deviation = np.sqrt(np.where(there, (values - mean) ** 2, 0.0).sum((0, 1)) / counts)
        return cls(mean, np.where(deviation > ROUNDING * np.maximum(np.abs(mean), ROUNDING), deviation, 1.0))

    @classmethod
    def unchanged(cls, num_channels: int) -> "ChannelUnits":
        """Return units with mean 0 and deviation 1."""
        return cls(np.zeros(num_channels), np.ones(num_channels))

    def scaled(self, values: PairValues) -> PairValues:
        """Return values in these units; a value whose square does not fit in single precision is refused."""
        scaled: PairValues = (values - self.mean) / self.deviation
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
        mean, deviation = (
            torch.from_numpy(table).to(series.device)[series].view(axes).to(values)
            for table in (self.mean, self.deviation)
        )
        return values * deviation + mean

    def spread(self, series: Int[Tensor, " pair"]) -> Float[Tensor, "pair node channel"]:
        """Return the deviation by which values were scaled, per pair, node and channel."""
        return torch.from_numpy(self.deviation).to(series.device)[series]

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
        still = (counts < FEWEST_ROWS) | (own <= np.maximum(ROUNDING * np.abs(levels), 1 / LARGEST))
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


@dataclass(frozen=True, eq=False)
class Scaling:
    r"""The scaling that turns rows of a series into features, and predictions back into the units of the data.

    $$ \tilde v_{tic} = (v_{tic} - m_{ic}) / s_{ic} $$

    for node $i$ and variable $c$, with mean $m$ and deviation $s$ of the observed values of the training part. The
    variables to be predicted come first, ``out_channels`` of them. With ``flagged`` the features contain a flag per
    variable, 1 where it was observed. Covariates are scaled too, the same for all nodes. They are inputs at the time of
    the target, and those in ``lagged_covariates`` one step earlier as well; see :mod:`tacit.data.windows`.

    Each of several series can have its own mean (``by = "level"``), or its own mean and deviation (``"series"``); see
    :mod:`tacit.data.scaling`. ``series_mean`` and ``series_deviation`` belong to ``series_names``.

    >>> scaling = Scaling(("a", "b"), ("level",), 1, np.array([[1.0], [5.0]]), np.array([[2.0], [4.0]]))
    >>> scaling.to_units(torch.ones(3, 2, 1))[0].flatten().tolist()
    [3.0, 9.0]
    >>> Scaling.from_dict(scaling.to_dict()).deviation.tolist()
    [[2.0], [4.0]]
    """

    nodes: tuple[str, ...]
    variables: tuple[str, ...]
    out_channels: int
    mean: Float[np.ndarray, "node variable"]
    deviation: Float[np.ndarray, "node variable"]
    flagged: bool = False
    covariate_names: tuple[str, ...] = ()
    covariate_mean: Float[np.ndarray, " covariate"] = field(default_factory=lambda: np.zeros(0))
    covariate_deviation: Float[np.ndarray, " covariate"] = field(default_factory=lambda: np.zeros(0))
    lagged_covariates: tuple[str, ...] = ()
    by: ScaleBy = "all"
    series_names: tuple[str, ...] = ()
    series_mean: Float[np.ndarray, "series _ _"] = field(default_factory=lambda: np.zeros((0, 0, 0)))
    series_deviation: Float[np.ndarray, "series _ _"] = field(default_factory=lambda: np.zeros((0, 0, 0)))
    gaps: Gaps | None = None

    @classmethod
    def measured(
        cls,
        series: Series,
        rows: Bool[np.ndarray, " time"],
        targets: tuple[str, ...],
        by: ScaleBy = "all",
        from_zero: Sequence[str] = (),
    ) -> "Scaling":
        """Return the scaling of the training ``rows``; ``targets`` are the variables to be predicted.

        The targets of the nodes in ``from_zero`` are not centred.
        """
        by = by if series.num_series > 1 else "all"
        variables = targets + tuple(name for name in series.channels if name not in targets)
        values = series.values[rows][:, :, [series.channels.index(name) for name in variables]]
        mean, deviation = _mean_and_deviation(series, values, variables)
        mean[[node in from_zero for node in series.nodes], : len(targets)] = 0.0
        own = dict[str, Any]()
        if by != "all":
            counts = np.bincount(series.series_of_row[rows], minlength=series.num_series)
            parts = np.split(values, np.cumsum(counts)[:-1])
            units, deviation = SeriesUnits.measured(parts, by)
            for node, variable in np.argwhere(deviation <= np.maximum(ROUNDING * np.abs(mean), 1 / LARGEST))[:1]:
                raise InputError(
                    f"node '{series.nodes[node]}' (variable '{variables[variable]}') is constant within every series "
                    'of the training part, so it has no scale; leave it out, or set scale_by = "all" in [data]'
                )
            own = {"by": by, "series_mean": units.mean, "series_deviation": units.deviation}
        known = np.zeros((len(values), 0)) if series.covariates is None else series.covariates[rows]
        centre, spread = known.mean(axis=0), known.std(axis=0)
        still = spread <= np.maximum(ROUNDING * np.abs(centre), 1 / LARGEST)
        return cls(
            series.nodes,
            variables,
            len(targets),
            mean,
            deviation,
            flagged=bool(np.isnan(series.values).any()),
            covariate_names=series.covariate_names,
            covariate_mean=centre,
            covariate_deviation=np.where(still, 1.0, spread),  # a constant becomes 0, up to rounding
            lagged_covariates=_lagged_covariates(series, rows),
            series_names=_names(series) if series.lengths else (),
            **own,
        )

    def with_gaps(self, series: Series, rows: Bool[np.ndarray, " time"]) -> "Scaling":
        """Return the scaling with the forecasts that fill missing values, from the training ``rows``."""
        if not self.flagged:
            return self
        values = [self.scaled(part, number).reshape(len(part), -1) for number, part in enumerate(series.parts)]
        return replace(self, gaps=Gaps.learned(values, np.split(rows, series.starts[1:])))

    def with_levels_of(self, series: Series) -> "Scaling":
        """Return the scaling with the level of each series over all its rows."""
        whole = Scaling.measured(series, np.ones(len(series), dtype=bool), self.variables[: self.out_channels], self.by)
        return replace(self, series_mean=whole.series_mean)

    @property
    def units(self) -> SeriesUnits | None:
        """The units of the targets of each series, if they differ."""
        if self.by == "all":
            return None
        return SeriesUnits(*(table[..., : self.out_channels] for table in (self.series_mean, self.series_deviation)))

    def of_series(self, series: Series) -> "Scaling":
        """Return the scaling for other series: known ones keep their units, new ones are measured on all their rows."""
        if self.by == "all":
            return self
        names = _names(series)
        number = {name: place for place, name in enumerate(self.series_names) if name}
        nodes, variables = self._places(series)
        parts = [part.values[:, nodes][:, :, variables] for part in series.parts]
        new = SeriesUnits.measured(parts, self.by)[0]
        deviation = np.broadcast_to(self.deviation, new.mean.shape) if self.by == "level" else new.deviation
        tables = new.mean.copy(), deviation.copy()
        for place, name in enumerate(names):
            if name in number:
                tables[0][place], tables[1][place] = (
                    table[number[name]] for table in (self.series_mean, self.series_deviation)
                )
        return replace(self, series_names=names, series_mean=tables[0], series_deviation=tables[1])

    def new_series_note(self, series: Series) -> tuple[str, ...]:
        """Return a note on how the level of series was found that were not in the training data, if there are any."""
        new = sum(not name or name not in self.series_names for name in _names(series)) if self.by != "all" else 0
        if not new:
            return ()
        whose = f"{new} series that were" if new > 1 else "one series that was"
        return (f"{whose} not in the training data: the level is the mean of the observed rows",)

    def no_level_note(self, series: Series) -> tuple[str, ...]:
        """Return a note on the nodes without a known level, if there are any."""
        unknown = np.argwhere(np.isnan(self.series_mean[..., : self.out_channels]).all(axis=2) & (self.by != "all"))
        if not len(unknown):
            return ()
        where = [f" in {name}" for name in series.series_names] or [""]
        some = ", ".join(self.nodes[node] + where[number] for number, node in unknown[:MOST_NAMED])
        rest = f" and {len(unknown) - MOST_NAMED} more" if len(unknown) > MOST_NAMED else ""
        return (f"nodes without a known level are not forecast: {some}{rest}",)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features of one step, in their order."""
        flags = tuple(f"{name} observed" for name in self.variables) if self.flagged else ()
        return self.variables + flags

    @property
    def num_features(self) -> int:
        """Number of features of a node at one step."""
        return len(self.feature_names)

    def to_units(self, values: Float[Tensor, "*leading node channel"]) -> Float[Tensor, "*leading node channel"]:
        """Return scaled targets or predictions in the units of the data."""
        return values * self._like(self.deviation, values) + self._like(self.mean, values)

    def ordered(self, series: Series) -> Values:
        """Return the values of a series in the units of the data, nodes and variables in the order of this scaling."""
        nodes, variables = self._places(series)
        return series.values[:, nodes][:, :, variables]

    def scaled(self, series: Series, number: int = 0) -> Values:
        """Return the scaled values of one series, nodes and variables in the order of this scaling.

        ``number`` is the number of the series, if each has its own units.
        """
        mean, deviation = self.mean, self.deviation
        if self.by != "all":
            mean, deviation = self.series_mean[number], self.series_deviation[number]
        values: Values = (self.ordered(series) - mean) / deviation
        for row, node, variable in np.argwhere(np.abs(values) > LARGEST)[:1]:
            raise InputError(
                f"node '{self.nodes[node]}' (variable '{self.variables[variable]}') must have numbers like those of "
                f"the training part, mean {mean[node, variable]:.3g} and deviation {deviation[node, variable]:.3g}, "
                f"got one {abs(values[row, node, variable]):.1g} deviations away at {series.row_times[row]}; correct it"
            )
        return values

    def features(self, series: Series, number: int = 0) -> Features:
        """Return the features of every row; a missing value is its forecast from the values before it.

        Without ``gaps``, because no value was missing in training, it is the last value, or 0 (the mean).
        """
        values = self.scaled(series, number)
        if self.gaps is None:
            parts = [np.nan_to_num(forward_filled(values))]
        else:
            parts = [self.gaps.filled(values.reshape(len(values), -1)).reshape(values.shape)]
        if self.flagged:
            parts.append((~np.isnan(values)).astype(np.float64))
        return np.concatenate(parts, axis=-1)

    def covariates(self, series: Series) -> Float[np.ndarray, "time covariate"]:
        """Return the scaled covariates of every row, in the order of this scaling."""
        places = _places("covariates", series.covariate_names, self.covariate_names)
        if series.covariates is None:
            return np.zeros((len(series), 0))
        known: np.ndarray = (series.covariates[:, places] - self.covariate_mean) / self.covariate_deviation
        for row, column in np.argwhere(np.abs(known) > LARGEST)[:1]:
            raise InputError(
                f"covariate '{self.covariate_names[column]}' must have numbers like those of the training part, "
                f"got one {abs(known[row, column]):.1g} deviations away at {series.row_times[row]}; correct it"
            )
        return known

    def to_dict(self) -> dict[str, Any]:
        """Return the scaling as numbers, strings and lists."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        for name, value in plain.items():
            if isinstance(value, np.ndarray):
                cells = value.astype(object)
                cells[np.isnan(value)] = None
                plain[name] = cells.tolist()
        return {**plain, "gaps": None if self.gaps is None else self.gaps.to_dict()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Scaling":
        """Return the scaling from the result of :meth:`to_dict`."""
        known = {entry.name for entry in fields(cls)}
        old: dict[str, Any] = {"by": "all", "series_names": (), "series_mean": (), "series_deviation": ()}
        old |= {"lagged_covariates": (), "gaps": None}
        require(
            "lagged_covariates" in stored or not stored.get("covariate_names"),
            "the run was fitted by an earlier version, in which covariates acted a row before the target; fit again",
        )
        stored = {**old, **stored}
        require(
            set(stored) == known,
            f"a stored scaling must have exactly {', '.join(sorted(known))}, got "
            f"{', '.join(sorted(stored)) or 'nothing'}; pass what to_dict returned",
        )
        lists = ("nodes", "variables", "covariate_names", "lagged_covariates", "series_names")
        words = {name: tuple(stored[name]) for name in lists}
        shape = len(words["nodes"]), len(words["variables"])
        shapes = {
            "": shape,
            "covariate_": (-1,),
            "series_": (len(words["series_names"]), *shape) if stored["by"] != "all" else (0, 0, 0),
        }
        tables = {
            part + name: np.array(stored[part + name], dtype=np.float64).reshape(axes)
            for part, axes in shapes.items()
            for name in ("mean", "deviation")
        }
        gaps = None if stored["gaps"] is None else Gaps.from_dict(stored["gaps"])
        return cls(**{**stored, **words, **tables, "gaps": gaps})

    def _places(self, series: Series) -> tuple[list[int], list[int]]:
        """Return the positions of the nodes and variables of this scaling in a series."""
        nodes = _places("nodes", series.nodes, self.nodes)
        return nodes, _places("variables", series.channels, self.variables)

    def _like(self, table: np.ndarray, values: Tensor) -> Tensor:
        require(
            values.shape[-2:] == (len(self.nodes), self.out_channels),
            f"values must end in {len(self.nodes)} nodes and {self.out_channels} channels, "
            f"got shape {tuple(values.shape)}",
        )
        return torch.as_tensor(table[:, : self.out_channels], dtype=values.dtype, device=values.device)


def _names(series: Series) -> tuple[str, ...]:
    """Return the names of series; "" for a series without a name."""
    return ("",) * series.num_series if series.counted or not series.lengths else series.series_names


def _mean_and_deviation(
    series: Series, rows: Values, variables: tuple[str, ...]
) -> tuple[Float[np.ndarray, "node variable"], Float[np.ndarray, "node variable"]]:
    """Return mean and deviation of the observed values; refuse missing or constant ones."""
    nodes, there = series.nodes, ~np.isnan(rows)
    which = f"{len(rows)} rows of {series.num_series} series" if series.lengths else f"the first {len(rows)} rows"
    which = which if series.where is None else f"{len(rows)} rows where {series.where.text} and before"
    for what, bad in (
        ("missing", ~there.any(axis=0)),
        ("constant", np.where(there, rows, -np.inf).max(axis=0) == np.where(there, rows, np.inf).min(axis=0)),
    ):
        for node, variable in np.argwhere(bad):
            raise InputError(
                f"node '{nodes[node]}' (variable '{variables[variable]}') is {what} throughout the training part, "
                f"{which}, so it has no scale; leave it out, or train on a larger fraction"
            )
    mean, deviation = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    for node, variable in np.argwhere(deviation < np.maximum(ROUNDING * np.abs(mean), 1 / LARGEST)):
        raise InputError(
            f"node '{nodes[node]}' (variable '{variables[variable]}') hardly varies in the training part: by "
            f"{deviation[node, variable]:.3g} around {mean[node, variable]:.6g}; leave it out, or {RESCALE}"
        )
    return mean, deviation


def _lagged_covariates(series: Series, rows: Bool[np.ndarray, " time"]) -> tuple[str, ...]:
    """Return the covariates that say more with their previous value: no parts of the date, no column twice."""
    if series.covariates is None:
        return ()
    later = np.flatnonzero(rows[1:] & rows[:-1] & (np.diff(series.series_of_row) == 0)) + 1
    dates = calendar_columns(series.row_times[:1], series.covariate_names)
    columns, found = [np.ones(len(later)), *series.covariates[later].T], list[str]()
    for place, name in enumerate(series.covariate_names):
        before = series.covariates[later - 1, place]
        if name in dates or len(later) <= len(columns) + 1:
            continue
        design = np.stack([one / max(np.abs(one).max(), 1 / LARGEST) for one in columns], axis=1)
        left = before - design @ np.linalg.lstsq(design, before, rcond=None)[0]
        if left.std() > max(COLLINEAR * before.std(), ROUNDING * np.abs(before).max(initial=0.0)):
            columns.append(before)
            found.append(name)
    return tuple(found)


def forward_filled(values: Values) -> Values:
    """Replace missing values by the last observed one; values before the first stay NaN.

    >>> forward_filled(np.array([np.nan, 1.0, np.nan, 2.0]).reshape(4, 1, 1)).flatten().tolist()
    [nan, 1.0, 1.0, 2.0]
    """
    rows = np.arange(len(values))[:, None, None]
    last = np.maximum.accumulate(np.where(np.isnan(values), 0, rows), axis=0)
    return np.take_along_axis(values, last, axis=0)


def _places(what: str, have: tuple[str, ...], need: tuple[str, ...]) -> list[int]:
    """Return the position of each needed name; both must have the same names, in any order."""
    place, wanted = {word: number for number, word in enumerate(have)}, set(need)
    for word in (*(word for word in need if word not in place), *(word for word in have if word not in wanted)):
        got = f"none called '{word}'; add it" if word in wanted else f"'{word}', which is not one of them; leave it out"
        raise InputError(f"{what} must be those of the training data, got {got}")
    return [place[word] for word in need]

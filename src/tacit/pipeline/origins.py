"""Origins of forecast paths: the rows up to each origin, and the known and actual values after it."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from tacit.data import (
    NO_BACKGROUND,
    NUMERIC_DATE,
    Background,
    Level,
    Series,
    SeriesUnits,
    columns_at_targets,
    covariates_ahead,
    extended_times,
    level_places,
    level_values,
    time_numbers,
    unknown_ahead,
)
from tacit.errors import InputError, require, require_int
from tacit.pipeline.forecast_frame import require_memory_for_table
from tacit.pipeline.preparation import Preparation, SeriesPreparation
from tacit.pipeline.sources import Source, about

Rows = Int[np.ndarray, " origin"]
NO_ROWS: Rows = np.zeros(0, dtype=np.int64)
OUTSIDE = "the model was fitted only to targets that meet where; steps of a path that do not are forecast too"
PerStep = Shaped[np.ndarray, "origin step"]


@dataclass(frozen=True, eq=False)
class Origins:
    """The last observed rows of forecast paths, one entry per origin, and the steps that follow.

    ``window``        number of steps of an input; ``history`` has ``horizon - 1`` rows more, all scaled as in training
    ``covariates``    scaled covariates in the newest input row of each step; empty if the run has none
    ``known``         columns of each step after its window, with 0 in place of levels; see :mod:`tacit.data.windows`
    ``levels``        the levels in the last ``horizon`` rows; ``background`` and ``level_places`` say how they go on
    ``time_numbers``  times of the targets, as in :class:`~tacit.data.Pairs`
    ``actual``        actual values in the units of the data; NaN if they are not known
    ``series``        the number of the series of each origin, and ``series_names`` its name, if there are several
    ``units``         units of each series, if they differ; see :class:`~tacit.data.Pairs`
    """

    window: int
    history: Float[Tensor, "origin row node feature"]
    covariates: Float[Tensor, "origin step covariate"]
    known: Float[Tensor, "origin step node known"]
    levels: Float[Tensor, "origin seen node level"]
    time_numbers: Float[Tensor, "origin step"]
    series: Int[Tensor, " origin"] | None
    origin_times: Shaped[np.ndarray, " origin"]
    times: PerStep
    actual: Float[np.ndarray, "origin step node channel"]
    series_names: Shaped[np.ndarray, " origin"] | None = None
    units: SeriesUnits | None = None
    notes: tuple[str, ...] = ()
    background: Background = NO_BACKGROUND
    level_places: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.history)

    @property
    def horizon(self) -> int:
        """Number of steps from the end of a window to its target."""
        return self.history.shape[1] - self.window + 1

    @property
    def rates(self) -> Float[Tensor, "node level"]:
        """How fast each level follows the samples; 0 for nodes that do not use it."""
        background = self.background
        found = [
            torch.from_numpy(background.used[:, number]) * term.rate
            for number, term in enumerate(background.terms)
            if isinstance(term, Level)
        ]
        return torch.stack(found, -1) if found else torch.zeros(self.history.shape[2], 0)

    @property
    def steps(self) -> int:
        """Number of steps of a path."""
        return int(self.times.shape[1])

    def __getitem__(self, chosen: slice) -> "Origins":
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        cut: Any = {name: part[chosen] for name, part in parts.items() if isinstance(part, Tensor | np.ndarray)}
        return replace(self, **cut)


def find_origins(
    preparation: Preparation, source: Source, steps: int, origin: Any = None, every: int | None = None
) -> Origins:
    """Return the origins of paths of ``steps`` steps in each series of the source.

    ``origin``  the time of the last row that a path uses; None: the last row with an observed value
    ``every``   further origins every ``every`` rows, up to the last observed row; without ``origin``, from the first
                row with a window
    """
    if not isinstance(preparation, SeriesPreparation):
        raise InputError("steps requires a run of a series, got a run of pairs, which have no order; leave steps out")
    require_int("steps", steps)
    if every is not None:
        require_int("every", every)
    _require_all_targets(preparation, steps)
    content, channels = source.content, preparation.scaling.out_channels
    if not isinstance(content, Series):
        raise InputError(f"{source.name}: this run learned from a series; pass a table with the same nodes")
    with about(source.name):
        rows, reasons = [], list[tuple[str, str]]()
        for part in content.parts:
            found, reason = _origin_rows(preparation, part, origin, every)
            rows.append(found)
            reasons += [] if len(found) else [reason]
        used = [number for number, found in enumerate(rows) if len(found)]
        if not used:
            raise InputError(_none_left(content, reasons))
        require_memory_for_table(sum(map(len, rows)) * steps * preparation.scaling.mean[:, :channels].size, 0)
        left_out = [f"{count} of {content.num_series} series were left out: {why}" for why, count in _counts(reasons)]
        known = _until(content, {number: int(rows[number][-1]) for number in used})
        scaling, new = preparation.scaling.of_series(known), preparation.scaling.new_series_note(known)
        several = bool(content.lengths) or scaling.by != "all"
        parts = [
            _cut(replace(preparation, scaling=scaling), content.parts[one], rows[one], steps, number, several)
            for number, one in enumerate(used)
        ]
        names = np.array(known.series_names).repeat([len(rows[one]) for one in used]) if content.lengths else None
        new += scaling.no_level_note(known)
        notes = (*content.notes, *left_out, *new, *([] if content.where is None else [OUTSIDE]))
        return replace(_joined(parts), series_names=names, units=scaling.units, notes=notes)


def _until(content: Series, last: dict[int, int]) -> Series:
    """Return the chosen series without the observations after their last origins."""
    values = content.values.copy()
    starts, lengths = content.starts.tolist(), content.lengths or (len(content),)
    for number, row in last.items():
        values[starts[number] + row + 1 : starts[number] + lengths[number]] = np.nan
    known = replace(content, values=values, piece=True)
    return known.selected(list(last)) if content.lengths else known


def _counts(reasons: Sequence[tuple[str, str]]) -> list[tuple[str, int]]:
    return list(Counter(why for why, _ in reasons).items())


def _require_all_targets(preparation: SeriesPreparation, steps: int) -> None:
    """Refuse paths for which a part of the inputs is not predicted."""
    scaling = preparation.scaling
    others = scaling.variables[scaling.out_channels :]
    require(
        not others or steps <= preparation.horizon,
        f"paths of more than {preparation.horizon} steps require that all variables are predicted, but this run does "
        f"not predict {', '.join(others)}, whose future values are inputs; fit again without targets",
    )


def _origin_rows(
    preparation: SeriesPreparation, part: Series, origin: Any, every: int | None
) -> tuple[Rows, tuple[str, str]]:
    """Return the origins of one series, or the reasons why there are none: for a note and for an error."""
    need = preparation.reach - 1
    seen = np.flatnonzero(~np.isnan(part.values).all(axis=(1, 2)))
    times, last = part.row_times, int(seen[-1]) if len(seen) else -1
    first = last if every is None else need - 1
    if origin is not None:
        moment = _time_like(times, origin)
        if last < 0 or not times[0] <= moment <= times[last]:
            ends = f"{times[0]} and {times[last]}" if last >= 0 else "observed rows"
            return NO_ROWS, (
                "they have no row at the origin",
                f"origin must be between {ends}, got {origin}; pass another time",
            )
        first = int(np.searchsorted(times, moment, side="right")) - 1
    if min(first, last) < need - 1:
        wish = f"a window of {preparation.windows.window}"
        wish += f" and a horizon of {preparation.horizon}" if preparation.horizon > 1 else ""
        return NO_ROWS, (
            f"they are shorter up to the origin than the {need} rows of {wish}",
            f"the series must have at least {need} rows up to the origin for {wish}, got {min(first, last) + 1}; pass "
            "more rows, or a later origin",
        )
    return np.arange(first, last + 1, every or last + 1), ("", "")


def _none_left(content: Series, reasons: Sequence[tuple[str, str]]) -> str:
    if not content.lengths:
        return reasons[0][1]
    counts = ", ".join(f"{count} because {why}" for why, count in _counts(reasons))
    return (
        f"a path must start in a series, but all {content.num_series} were left out, {counts}; pass longer ones, or "
        "another origin"
    )


def _time_like(times: np.ndarray, origin: Any) -> Any:
    """Parse a time in the type of the times of the data."""
    import pandas as pd

    kind, example = times.dtype.kind, times[-1]
    try:
        if kind == "M":
            require(not re.match(NUMERIC_DATE, str(origin)), "")  # 03/04/2021 has two readings
            stamp = pd.Timestamp(origin)
            return (stamp if stamp.tzinfo is None else stamp.tz_convert("UTC").tz_localize(None)).to_datetime64()
        return pd.Timedelta(origin).to_timedelta64() if kind == "m" else float(origin)
    except (TypeError, ValueError):
        raise InputError(f"origin must be a time like {example}, got {origin!r}; pass one of the table") from None


def _cut(preparation: SeriesPreparation, part: Series, rows: Rows, steps: int, number: int, several: bool) -> Origins:
    """Return the origins of one of ``several`` series."""
    scaling, horizon, background = preparation.scaling, preparation.horizon, preparation.background
    ahead = rows[:, None] + np.arange(1, steps + 1)  # (origin, step)
    missing = max(0, int(ahead.max()) + 1 - len(part))
    times = extended_times(part.row_times, missing)
    if missing:
        for name in unknown_ahead(scaling, part):
            raise InputError(
                f"covariate '{name}' must be known until {times[int(ahead.max())]} for these steps, got it until "
                f"{part.row_times[-1]}; add rows with the covariates and empty cells for the nodes"
            )
    features, channels = scaling.features(part, number), scaling.out_channels
    values = scaling.ordered(part)[:, :, :channels]
    values = np.concatenate([values, np.full((missing, *values.shape[1:]), np.nan)])
    covariates = covariates_ahead(scaling, part, missing)
    known = columns_at_targets(scaling, background, covariates, time_numbers(times).numpy())
    history = features[rows[:, None] + np.arange(2 - preparation.reach, 1)]
    seen = rows[:, None] + np.arange(1 - horizon, 1)  # (origin, row)
    return Origins(
        preparation.windows.window,
        torch.from_numpy(history).float(),
        torch.from_numpy(covariates[ahead - horizon]).float(),
        torch.from_numpy(known[ahead]).float(),
        torch.from_numpy(level_values(background, scaling.scaled(part, number))[seen]).float(),
        time_numbers(times[ahead]),
        torch.full((len(rows),), number) if several else None,
        times[rows],
        times[ahead],
        values[ahead],
        background=background,
        level_places=tuple(level_places(scaling, background)),
    )


def _joined(parts: Sequence[Origins]) -> Origins:
    """Return the origins of all series as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    joined: dict[str, Any] = {}
    for field in fields(first):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], Tensor):
            joined[field.name] = torch.cat(values)
        elif isinstance(values[0], np.ndarray):
            joined[field.name] = np.concatenate(values)
    return replace(first, **joined)

"""Seasons and regimes: the rows of a series whose targets count, chosen by a condition."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from tacit.data.calendar_features import NUMBERS, calendar_number
from tacit.data.coming_times import coming_times
from tacit.data.conditions import Condition
from tacit.data.series import Series, Times
from tacit.errors import InputError, did_you_mean

UNKNOWN_AHEAD = "where names a column, so it is not known after the last row: targets there count as in season"
MOST_WORDS = 8  # of a column that a message names
Chosen = Bool[np.ndarray, " time"]


def in_season(series: Series, where: str | None) -> Series:
    """Return a series of which only the targets in rows where the condition holds count.

    >>> times = np.arange("2026-01", "2027-01", dtype="datetime64[M]").astype("datetime64[s]")
    >>> series = in_season(Series(np.random.rand(12, 1, 1), nodes=("a",), times=times), "month in (6, 7, 8)")
    >>> series.times[chosen_rows(series)].astype("datetime64[M]").astype(str).tolist()
    ['2026-06', '2026-07', '2026-08']
    """
    return series if where is None else replace(series, where=Condition.read(where))


def require_names(condition: Condition, columns: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the columns of a table that a condition names; an unknown name is refused."""
    for name in condition.names:
        if name not in (*columns, *NUMBERS, "time", "series"):
            near = did_you_mean(name, (*NUMBERS, "time", *columns))
            raise InputError(f"{path}: where names '{name}', which is no column and no part of a date{near}")
    return tuple(name for name in condition.names if name in columns)


def chosen_rows(series: Series) -> Chosen:
    """Say for each row whether the condition holds; always, where there is none."""
    if series.where is None:
        return np.ones(len(series), dtype=bool)
    return series.where.holds(lambda name: _column(series, name))


def chosen_targets(series: Series, horizon: int) -> Chosen:
    """Say for each row whether the condition holds ``horizon`` steps later; where that is unknown, it does."""
    later = []
    for part in series.parts:
        beyond = _chosen_after(part, coming_times(part.row_times, horizon))
        later.append(np.concatenate([chosen_rows(part), beyond])[horizon:])
    return np.concatenate(later)


def _chosen_after(series: Series, times: Times) -> Chosen:
    """Say whether the condition holds at times after the end of one series."""
    if series.where is None or not known_ahead(series):
        return np.ones(len(times), dtype=bool)
    whose = np.repeat(series.labels.get("series", np.zeros(0, dtype=object))[-1:], len(times))
    return series.where.holds(lambda name: whose if name == "series" else _of_times(name, times))


def require_some(series: Series, chosen: Bool[np.ndarray, " any"], what: str) -> None:
    """Refuse a condition that never holds, with the words that its columns have."""
    if series.where is None or chosen.any():
        return
    words = {name: sorted({*column} - {None}) for name, column in series.labels.items() if column.dtype == object}
    have = [f"{name} is {', '.join(some[:MOST_WORDS])}" for name, some in words.items() if name in series.where.names]
    hint = f" ({'; '.join(have)})" if have else ""
    raise InputError(
        f"where must hold for some {what}, but '{series.where.text}' holds for none of {len(chosen):,}{hint}; "
        "correct it, or pass other rows"
    )


def known_ahead(series: Series) -> bool:
    """Is the condition known for times to come: is it on the date (and the series) alone?"""
    names = () if series.where is None else series.where.names
    return all(name == "series" or not _is_column(series, name) for name in names)


def _is_column(series: Series, name: str) -> bool:
    return name in series.labels or name in series.covariate_names or name in series.nodes


def _column(series: Series, name: str) -> np.ndarray:
    """Return what a name of a condition stands for: a column first, then a part of the date."""
    if name in series.labels:
        return series.labels[name]
    if name in series.covariate_names and series.covariates is not None:
        return series.covariates[:, series.covariate_names.index(name)]
    if name in series.nodes and len(series.channels) == 1:
        return series.values[:, series.nodes.index(name), 0]
    known = (*NUMBERS, "time", *series.covariate_names, *series.nodes)
    if name == "series":
        raise InputError("where names 'series', but there is one series without a name; leave it out")
    if name not in (*NUMBERS, "time"):
        raise InputError(f"where names '{name}', which is no column and no part of a date{did_you_mean(name, known)}")
    return _of_times(name, series.row_times)


def _of_times(name: str, times: Times) -> np.ndarray:
    if name == "time":
        return times if times.dtype.kind == "M" else times.astype(np.float64)
    if times.dtype.kind != "M":
        raise InputError(
            f"where names '{name}', a part of a date, but the times are numbers; write times as YYYY-MM-DD HH:MM:SS, "
            "or name a column"
        )
    return calendar_number(times, name)

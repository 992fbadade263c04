"""Selection of targets by a condition on the rows of a series, such as a season."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from tacit.data.calendar_features import NUMBERS, calendar_number
from tacit.data.coming_times import coming_times
from tacit.data.conditions import Condition
from tacit.data.series import Series, Times
from tacit.errors import InputError, did_you_mean

UNKNOWN_AHEAD = "where uses a column, which is not known after the last row: targets after it are included"
MOST_WORDS = 8  # values of a column that a message lists
Chosen = Bool[np.ndarray, " time"]


def in_season(series: Series, where: str | None) -> Series:
    """Return a series in which only targets in rows that meet the condition are used.

    >>> times = np.arange("2026-01", "2027-01", dtype="datetime64[M]").astype("datetime64[s]")
    >>> series = in_season(Series(np.random.rand(12, 1, 1), nodes=("a",), times=times), "month in (6, 7, 8)")
    >>> series.times[chosen_rows(series)].astype("datetime64[M]").astype(str).tolist()
    ['2026-06', '2026-07', '2026-08']
    """
    return series if where is None else replace(series, where=Condition.read(where))


def require_names(condition: Condition, columns: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the columns of a table that a condition uses; an unknown name is refused."""
    for name in condition.names:
        if name not in (*columns, *NUMBERS, "time", "series"):
            near = did_you_mean(name, (*NUMBERS, "time", *columns))
            raise InputError(f"{path}: where must name columns or parts of a date, got '{name}'{near}")
    return tuple(name for name in condition.names if name in columns)


def chosen_rows(series: Series) -> Chosen:
    """Return whether the condition is true, for each row; true everywhere without a condition."""
    if series.where is None:
        return np.ones(len(series), dtype=bool)
    return series.where.holds(lambda name: _column(series, name))


def chosen_targets(series: Series, horizon: int) -> Chosen:
    """Return whether the condition is true ``horizon`` steps after each row; true if this is unknown."""
    later = []
    for part in series.parts:
        beyond = _chosen_after(part, coming_times(part.row_times, horizon))
        later.append(np.concatenate([chosen_rows(part), beyond])[horizon:])
    return np.concatenate(later)


def _chosen_after(series: Series, times: Times) -> Chosen:
    """Return whether the condition is true at times after the end of one series."""
    if series.where is None or not known_ahead(series):
        return np.ones(len(times), dtype=bool)
    whose = np.repeat(series.labels.get("series", np.zeros(0, dtype=object))[-1:], len(times))
    return series.where.holds(lambda name: whose if name == "series" else _of_times(name, times))


def require_some(series: Series, chosen: Bool[np.ndarray, " any"], what: str) -> None:
    """Refuse a condition that is never true; the message lists the values of its columns."""
    if series.where is None or chosen.any():
        return
    words = {name: sorted({*column} - {None}) for name, column in series.labels.items() if column.dtype == object}
    have = [f"{name} is {', '.join(some[:MOST_WORDS])}" for name, some in words.items() if name in series.where.names]
    hint = f" ({'; '.join(have)})" if have else ""
    raise InputError(
        f"where must be true for some {what}, but '{series.where.text}' is true for none of {len(chosen):,}{hint}; "
        "correct it, or pass other rows"
    )


def known_ahead(series: Series) -> bool:
    """Return whether the condition is known for future times: it uses only the date (and the series)."""
    names = () if series.where is None else series.where.names
    return all(name == "series" or not _is_column(series, name) for name in names)


def _is_column(series: Series, name: str) -> bool:
    return name in series.labels or name in series.covariate_names or name in series.nodes


def _column(series: Series, name: str) -> np.ndarray:
    """Return the values of a name in a condition: a column if there is one, otherwise a part of the date."""
    if name in series.labels:
        return series.labels[name]
    if name in series.covariate_names and series.covariates is not None:
        return series.covariates[:, series.covariate_names.index(name)]
    if name in series.nodes and len(series.channels) == 1:
        return series.values[:, series.nodes.index(name), 0]
    known = (*NUMBERS, "time", *series.covariate_names, *series.nodes)
    if name == "series":
        raise InputError("where uses 'series', but there is one series without a name; leave it out")
    if name not in (*NUMBERS, "time"):
        raise InputError(f"where must name columns or parts of a date, got '{name}'{did_you_mean(name, known)}")
    return _of_times(name, series.row_times)


def _of_times(name: str, times: Times) -> np.ndarray:
    if name == "time":
        return times if times.dtype.kind == "M" else times.astype(np.float64)
    if times.dtype.kind != "M":
        raise InputError(
            f"where uses '{name}', a part of a date, but the times are numbers; write times as YYYY-MM-DD HH:MM:SS, "
            "or name a column"
        )
    return calendar_number(times, name)

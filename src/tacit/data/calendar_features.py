r"""Calendar features of times: numbers for conditions, and sines and cosines for a model.

$$\sin(2 \pi \phi), \quad \cos(2 \pi \phi)$$

with the phase $\phi \in [0, 1)$ of a time within its hour, day, week, month or year. Midnight is next to 23:59, and
December next to January.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from tacit.data.series import Series, Times
from tacit.errors import InputError, did_you_mean, require

Numbers = Float[np.ndarray, " time"]


def _days(times: Times) -> Times:
    return times.astype("datetime64[D]")


def _since(times: Times, unit: str, step: str) -> Numbers:
    """Return the whole steps since the last full unit."""
    whole: Numbers = (times.astype(f"datetime64[{step}]") - times.astype(f"datetime64[{unit}]")).astype(np.float64)
    return whole


def _length(times: Times, unit: str) -> Numbers:
    """Return the number of days of the month or year of each time."""
    first = times.astype(f"datetime64[{unit}]")
    days: Numbers = (_days(first + 1) - _days(first)).astype(np.float64)
    return days


def _weekday(times: Times) -> Numbers:
    return (_days(times).astype(np.int64) + 3.0) % 7  # 1970-01-01 was a Thursday


def _week(times: Times) -> Numbers:
    """Return the ISO week of each time, defined by the Thursday of the week."""
    thursday = _days(times) + (3 - _weekday(times)).astype(np.int64)
    return _since(thursday, "Y", "D") // 7 + 1


NUMBERS: dict[str, tuple[Callable[[Times], Numbers], str]] = {
    "year": (lambda times: times.astype("datetime64[Y]").astype(np.float64) + 1970, "such as 2026"),
    "month": (lambda times: _since(times, "Y", "M") + 1, "1 to 12"),
    "week": (_week, "1 to 53"),
    "day": (lambda times: _since(times, "M", "D") + 1, "1 to 31"),
    "dayofyear": (lambda times: _since(times, "Y", "D") + 1, "1 to 366"),
    "weekday": (_weekday, "0 for Monday to 6 for Sunday"),
    "hour": (lambda times: _since(times, "D", "h"), "0 to 23"),
    "minute": (lambda times: _since(times, "h", "m"), "0 to 59"),
}
PHASES: dict[str, Callable[[Times], Numbers]] = {
    "minute": lambda times: _since(times, "h", "s") / 3600,
    "hour": lambda times: _since(times, "D", "s") / 86400,
    "weekday": lambda times: _weekday(times) / 7,
    "day": lambda times: _since(times, "M", "D") / _length(times, "M"),
    "dayofyear": lambda times: _since(times, "Y", "D") / _length(times, "Y"),
    "month": lambda times: _since(times, "Y", "M") / 12,
}


def calendar_number(times: Times, name: str) -> Numbers:
    """Return the month, hour, weekday ... of each time.

    >>> times = np.array(["2026-03-01T06:30", "2027-01-01T18:00"], dtype="datetime64[s]")
    >>> {name: calendar_number(times, name).astype(int).tolist() for name in ("month", "weekday", "hour", "week")}
    {'month': [3, 1], 'weekday': [6, 4], 'hour': [6, 18], 'week': [9, 53]}
    """
    return NUMBERS[name][0](times)


def calendar_features(times: Times, names: Sequence[str]) -> tuple[Float[np.ndarray, "time feature"], tuple[str, ...]]:
    """Return a sine and a cosine for each of ``names``, and the names of the columns; times may be in the future.

    >>> times = np.array(["2026-03-01T06:00", "2026-03-01T12:00"], dtype="datetime64[s]")
    >>> columns, names = calendar_features(times, ["hour"])
    >>> names, columns.round(3).tolist()
    (('hour sin', 'hour cos'), [[1.0, 0.0], [0.0, -1.0]])
    """
    for position, name in enumerate(names):
        if name not in PHASES:
            raise InputError(f"calendar must name parts of a date, got '{name}'{did_you_mean(name, PHASES)}")
        require(name not in names[:position], f"calendar names '{name}' twice; name it once")
    require(
        not names or times.dtype.kind == "M",
        f"calendar names '{next(iter(names), '')}', but the times are numbers, not dates; write times as YYYY-MM-DD "
        "HH:MM:SS, or leave it out",
    )
    angles = [2 * np.pi * PHASES[name](times) for name in names]
    columns = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    labels = tuple(f"{name} {wave}" for name in names for wave in ("sin", "cos"))
    return np.stack(columns, axis=-1) if columns else np.zeros((len(times), 0)), labels


def calendar_columns(times: Times, columns: Sequence[str]) -> dict[str, Numbers]:
    """Return the covariates that follow from the date, by name; times may be in the future.

    >>> times = np.array(["2026-03-01T06:00"], dtype="datetime64[s]")
    >>> {name: column.round(3).tolist() for name, column in calendar_columns(times, ["hour cos", "rain"]).items()}
    {'hour cos': [0.0]}
    """
    if times.dtype.kind != "M":
        return {}
    features, labels = calendar_features(times, tuple(PHASES))
    return {name: features[:, labels.index(name)] for name in columns if name in labels}


def with_calendar(series: Series, names: Sequence[str]) -> Series:
    """Return a series with sines and cosines of the date before its covariates."""
    if not names:
        return series
    columns, labels = calendar_features(series.row_times, names)
    for place, name in enumerate(names):
        require(
            series.piece or bool((np.ptp(columns[:, 2 * place : 2 * place + 2], axis=0) > 1e-9).any()),
            f"calendar names '{name}', which is the same in all rows; leave it out",
        )
    known = columns if series.covariates is None else np.concatenate([columns, series.covariates], axis=1)
    return replace(series, covariates=known, covariate_names=labels + series.covariate_names)

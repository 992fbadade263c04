r"""The background of a node, which moves it apart from the graph, and calendar features of times.

The background has columns that are always in, beside the node's own past.

$$y_{i,t} = \text{own past} + \sum_k \beta_{ik}\, b_{ik}(t) + \text{edges} + \text{noise}$$

A :class:`Wave` is a cycle with its harmonics, a :class:`Category` a part of the date with a mean for each value, and a
:class:`Level` the exponentially weighted mean of the node's own past, which follows trends and shifts. Waves and
categories depend on the time of the target alone, so they are known for future times. The level is computed from the
values up to the newest input:

$$m_t = m_{t-1} + \alpha (x_t - m_{t-1}), \qquad \alpha = 1 - 2^{-1 / h}$$

for a half-life of $h$ rows. In a forecast path the level moves with the sampled values, so a trend continues as a
random walk and intervals grow.

A node uses some of the terms (``used``); the columns of the others are 0 for it.

Calendar features of times are numbers for conditions, and $\sin 2 \pi \phi$ and $\cos 2 \pi \phi$ for a model, with the
phase $\phi \in [0, 1)$ of a time within its hour, day, week, month or year. Midnight is next to 23:59, and December
next to January.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from tacit.data.series import Series, Times
from tacit.errors import InputError, did_you_mean, require

if TYPE_CHECKING:
    import pandas as pd

Numbers = Float[np.ndarray, " row"]
TimeColumns = Float[np.ndarray, "row column"]

DAY = 86400.0  # seconds
WEEK = 7 * DAY
YEAR = 365.2425 * DAY
# Parts of a date, and their numbers of values; "weekend hour" is the hour, on weekdays and at weekends.
CATEGORIES = {"weekend": 2, "weekday": 7, "hour": 24, "weekend hour": 48}

# Parts of a date as numbers, with their values for messages, and as phases of a DatetimeIndex.
NUMBERS = {
    "year": "such as 2026",
    "month": "1 to 12",
    "week": "1 to 53",
    "day": "1 to 31",
    "dayofyear": "1 to 366",
    "weekday": "0 for Monday to 6 for Sunday",
    "hour": "0 to 23",
    "minute": "0 to 59",
}
PHASES: dict[str, Callable[["pd.DatetimeIndex"], Any]] = {
    "minute": lambda at: (at.minute * 60 + at.second) / 3600,
    "hour": lambda at: (at.hour * 3600 + at.minute * 60 + at.second) / DAY,
    "weekday": lambda at: at.day_of_week / 7,
    "day": lambda at: (at.day - 1) / at.days_in_month,
    "dayofyear": lambda at: (at.day_of_year - 1) / (365 + at.is_leap_year),
    "month": lambda at: (at.month - 1) / 12,
}


def calendar_number(times: Times, name: str) -> Numbers:
    """Return the month, hour, weekday ... of each time.

    >>> times = np.array(["2026-03-01T06:30", "2027-01-01T18:00"], dtype="datetime64[s]")
    >>> {name: calendar_number(times, name).astype(int).tolist() for name in ("month", "weekday", "hour", "week")}
    {'month': [3, 1], 'weekday': [6, 4], 'hour': [6, 18], 'week': [9, 53]}
    """
    import pandas as pd

    index = pd.DatetimeIndex(times)
    attribute = {"dayofyear": "day_of_year", "weekday": "day_of_week"}.get(name, name)
    numbers = index.isocalendar().week if name == "week" else getattr(index, attribute)
    return np.asarray(numbers, dtype=np.float64)


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
    if not names:
        return np.zeros((len(times), 0)), ()
    import pandas as pd

    index = pd.DatetimeIndex(times)
    angles = [2 * np.pi * np.asarray(PHASES[name](index)) for name in names]
    columns = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    labels = tuple(f"{name} {wave}" for name in names for wave in ("sin", "cos"))
    return np.stack(columns, axis=-1), labels


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


@dataclass(frozen=True)
class Wave:
    """Sines and cosines with a ``period``, in seconds for dates and in the units of the time otherwise.

    >>> Wave(24.0).columns(np.array([0.0, 6.0, 12.0])).round(3).tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, -1.0]]
    """

    period: float
    harmonics: int = 1

    @property
    def size(self) -> int:
        """Number of columns."""
        return 2 * self.harmonics

    def columns(self, times: Numbers) -> TimeColumns:
        """Return a sine and a cosine of each harmonic."""
        angles = 2 * np.pi / self.period * times[:, None] * np.arange(1, self.harmonics + 1)
        return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(times), -1)


@dataclass(frozen=True)
class Category:
    """A mean for each value of a part of the date, relative to the first value.

    >>> saturday, monday = 2 * DAY, 4 * DAY  # 1970-01-01 was a Thursday
    >>> Category("weekend").columns(np.array([saturday, monday])).tolist()
    [[1.0], [0.0]]
    """

    part: str
    earlier: float = 0.0  # seconds before the time of the target

    @property
    def size(self) -> int:
        """Number of columns."""
        return CATEGORIES[self.part] - 1

    def columns(self, times: Numbers) -> TimeColumns:
        """Return an indicator of each value but the first."""
        times = times - self.earlier
        weekday = (np.floor(times / DAY) + 3) % 7
        weekend, hour = weekday >= 5, np.floor(times % DAY / 3600)
        values = {"weekday": weekday, "weekend": weekend, "hour": hour, "weekend hour": 24 * weekend + hour}
        value: Numbers = values[self.part]
        columns: TimeColumns = (value[:, None] == np.arange(1, self.size + 1)).astype(np.float64)
        return columns


@dataclass(frozen=True)
class Level:
    """The exponentially weighted mean of a node's own past, with a half-life in rows.

    >>> Level(1.0).rate
    0.5
    """

    half_life: float
    size = 1

    @property
    def rate(self) -> float:
        r"""Weight $\alpha$ of a new value."""
        return float(1 - 2 ** (-1 / self.half_life))


Term = Wave | Category | Level


@dataclass(frozen=True, eq=False)
class Background:
    """The terms of all nodes; ``used`` says which of them each node has."""

    terms: tuple[Term, ...] = ()
    used: Bool[np.ndarray, "node term"] = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))

    @property
    def size(self) -> int:
        """Number of columns of a node."""
        return sum(term.size for term in self.terms)

    @property
    def num_levels(self) -> int:
        """Number of levels, which are the last terms; edges read deviations from the level that a node uses."""
        return sum(isinstance(term, Level) for term in self.terms)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        terms = [{"kind": type(term).__name__.lower(), **asdict(term)} for term in self.terms]
        return {"terms": terms, "used": self.used.tolist()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Background":
        """Return the background from the result of :meth:`to_dict`."""
        kinds = {"wave": Wave, "category": Category, "level": Level}
        terms = [dict(term) for term in stored["terms"]]
        built = tuple(kinds[term.pop("kind")](**term) for term in terms)
        return cls(built, np.array(stored["used"], dtype=bool).reshape(-1, len(built)))


NO_BACKGROUND = Background()

r"""The background: columns of a node that are always in, beside its own past: what moves it apart from the graph.

$$y_{i,t} = \text{own past} + \sum_k \beta_{ik}\, b_{ik}(t) + \text{edges} + \text{noise}$$

A :class:`Wave` is a cycle with its harmonics, a :class:`Category` a part of the date with a mean for each value, and a
:class:`Level` the exponentially weighted mean of the node's own past, which follows trends and shifts. Waves and
categories depend on the time of the target alone, so they are known for future times. The level is computed from the
values up to the newest input:

$$m_t = m_{t-1} + \alpha (x_t - m_{t-1}), \qquad \alpha = 1 - 2^{-1 / h}$$

for a half-life of $h$ rows. In a forecast path the level moves with the sampled values, so a trend continues as a
random walk and intervals grow.

A node uses some of the terms (``used``); the columns of the others are 0 for it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

DAY = 86400.0  # seconds
WEEK, YEAR = 7 * DAY, 365.2425 * DAY
CATEGORIES = {"weekend": 2, "weekday": 7, "hour": 24}  # parts of a date, and their numbers of values
Numbers = Float[np.ndarray, " row"]
TimeColumns = Float[np.ndarray, "row column"]


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
        value: Numbers = {"weekday": weekday, "weekend": weekday >= 5, "hour": np.floor(times % DAY / 3600)}[self.part]
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

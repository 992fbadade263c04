r"""Backgrounds: how a target moves if no edge acts, besides its own past.

A background is a set of terms, whose columns are always in:

- ``trend``: a piecewise linear function of time with $m$ segments
- ``shift``: a level from some row on; the row is found by likelihood
- ``wave``: a sine and a cosine of one period; the period follows from the calendar, or is found by likelihood
- ``category``: a mean for each value of a part of the date: the weekend, or each hour of weekdays and of weekends

:mod:`tacit.assessment.evidence.background_search` chooses the terms of each target.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.assessment.evidence.candidates import DOUBLE
from tacit.data import CATEGORIES, DAY, WEEK, YEAR, Category, Pairs, Wave
from tacit.predictors import SeriesLayout

SEGMENTS = (1, 3, 6, 12, 24)  # of a trend
FEWEST_ROWS = 50  # of a segment of a trend or between two shifts: fewer bias the weights of the own past
FEWEST_CYCLES = 2.5  # of a calendar period within the table
SHORTEST = 2.2  # steps of a period: shorter ones cannot be seen
MOST_SERIES = 20  # with trends and shifts
KINDS = ("trend", "shift", "wave", "category")
CALENDAR = {"hour": DAY / 24, "day": DAY, "week": WEEK, "year": YEAR}


class Term(NamedTuple):
    """One term of a background.

    ``kind``      trend, shift, wave or category
    ``size``      number of segments of a trend, or of values of a category
    ``place``     the period of a wave; the first time of a shift, in series number ``series``
    ``harmonic``  multiplies the frequency of a wave
    ``searched``  number of places among which the term was found
    """

    kind: str
    size: int = 1
    place: float = 0.0
    harmonic: int = 1
    series: int = 0
    searched: float = 1.0


WEEKEND, HOURS = (Term("category", CATEGORIES[part]) for part in ("weekend", "weekend hour"))


class TargetBackground(NamedTuple):
    """A background of one target, and its weight among those of the target."""

    terms: tuple[Term, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class Clock:
    """The times of the rows of all series, as numbers; rows are ordered by series and time.

    ``parts``  the rows of each series; ``numbers`` are the numbers of these series
    ``step``   the usual difference of neighbouring times
    ``dated``  whether times are dates, in seconds
    """

    times: Float[Tensor, " row"]
    parts: tuple[slice, ...]
    numbers: tuple[int, ...]
    step: float
    dated: bool

    @classmethod
    def of(cls, pairs: Pairs, *, dated: bool) -> "Clock | None":
        """Return the clock of pairs; None for pairs without time, or with too few rows to tell anything."""
        if pairs.times is None or len(pairs) < FEWEST_ROWS:
            return None
        series = torch.zeros(len(pairs), dtype=torch.long) if pairs.series is None else pairs.series
        starts = [0, *((series[1:] != series[:-1]).nonzero()[:, 0] + 1).tolist(), len(pairs)]
        parts = tuple(slice(first, last) for first, last in itertools.pairwise(starts))
        steps = torch.cat([pairs.times[part].diff() for part in parts])
        if not bool((steps > 0).any()) or bool((steps <= 0).any()):
            return None
        numbers = tuple(int(series[part.start]) for part in parts)
        return cls(pairs.times.to(DOUBLE), parts, numbers, float(steps.median()), dated)

    @property
    def shortest(self) -> int:
        """Number of rows of the shortest series."""
        return min(int(part.stop - part.start) for part in self.parts)

    @property
    def has_trends(self) -> bool:
        """Whether each series is long enough for a trend or a shift of its own."""
        fewest = 2 * FEWEST_ROWS if len(self.parts) == 1 else 4 * FEWEST_ROWS
        return self.shortest >= fewest and len(self.parts) <= MOST_SERIES

    @property
    def has_search(self) -> bool:
        """Whether each series is long enough for periods that are found in the data."""
        return self.shortest >= 2 * FEWEST_ROWS

    def cycles(self, period: float) -> float:
        """Return the number of cycles between the first and the last time of the longest series."""
        return max(float(self.times[part.stop - 1] - self.times[part.start]) for part in self.parts) / period

    def fixed_terms(self) -> list[Term]:
        """Return the terms that need no search: trends, periods of the calendar, parts of the date."""
        found = []
        if self.has_trends:
            found += [Term("trend", size) for size in SEGMENTS if self.shortest >= FEWEST_ROWS * size]
        for period in CALENDAR.values() if self.dated else ():
            if period >= SHORTEST * self.step and self.cycles(period) >= FEWEST_CYCLES:
                found.append(Term("wave", place=period))
        if self.dated and self.step <= DAY and self.cycles(WEEK) >= FEWEST_CYCLES:
            found += [WEEKEND, HOURS] if self.step <= DAY / 24 else [WEEKEND]
        return found

    def contains(self, term: Term, other: Term) -> bool:
        """Return whether a term makes another one superfluous: the hours a weekend, and the waves of a day."""
        hourly = other.kind == "wave" and self.step == DAY / 24 and (DAY * other.harmonic / other.place) % 1 == 0
        return term == HOURS and (other == WEEKEND or hourly)

    def columns(
        self, term: Term, times: Float[Tensor, " row"], series: Int[Tensor, " row"] | None
    ) -> Float[Tensor, "row column"]:
        """Return the columns of a term at any times."""
        times = times.to(DOUBLE)
        if term.kind == "wave":
            return torch.from_numpy(Wave(term.place / term.harmonic).columns(times.numpy()))
        if term == HOURS:
            return torch.from_numpy(Category("weekend hour").columns(times.numpy()))
        if term.kind == "category":
            both = [Category("weekend", earlier).columns(times.numpy()) for earlier in (0.0, self.step)]
            return torch.from_numpy(np.concatenate(both, 1))
        whose = torch.zeros_like(times) if series is None else series
        if term.kind == "shift":
            return ((times >= term.place) & (whose == term.series)).to(DOUBLE)[:, None]
        found = []
        for part, number in zip(self.parts, self.numbers, strict=True):  # ramps that start at each knot
            first, last = self.times[part.start], self.times[part.stop - 1]
            place = ((times - first) / (last - first) * term.size)[:, None]
            found.append((place - torch.arange(term.size)).clamp(0, None) * (whose == number).to(DOUBLE)[:, None])
        return torch.cat(found, 1)


@dataclass(frozen=True, eq=False)
class Backgrounds:
    """The backgrounds of each target, the likeliest first."""

    clock: Clock
    of_target: list[list[TargetBackground]]

    def added_to(self, pairs: Pairs, layout: SeriesLayout, rank: int = 0) -> tuple[Pairs, SeriesLayout]:
        """Return pairs with the columns of one background of each target, and their layout.

        A target with fewer backgrounds than ``rank`` gets its likeliest.
        """
        chosen = [of_one[rank if rank < len(of_one) else 0].terms for of_one in self.of_target]
        if pairs.times is None or not any(chosen):
            return pairs, layout
        columns = {term: self.clock.columns(term, pairs.times, pairs.series) for terms in chosen for term in terms}
        known = padded([[columns[term] for term in terms] for terms in chosen], len(pairs)).to(pairs.inputs)
        return (
            replace(pairs, inputs=torch.cat([pairs.inputs, known], 2)),
            replace(layout, known=layout.known + known.shape[2]),
        )

    def weights(self, rank: int) -> Float[Tensor, " target"]:
        """Return the weight of one background of each target; 0 for targets with fewer."""
        return torch.tensor([one[rank].weight if rank < len(one) else 0.0 for one in self.of_target], dtype=DOUBLE)

    @property
    def most(self) -> int:
        """The largest number of backgrounds of a target."""
        return max(map(len, self.of_target))


def padded(parts: Sequence[Sequence[Tensor]], rows: int) -> Float[Tensor, "row target column"]:
    """Return the columns of each target side by side, padded with 0."""
    joined = [torch.cat([torch.zeros(rows, 0, dtype=DOUBLE), *one], 1) for one in parts]
    found = torch.zeros(rows, len(joined), max(one.shape[1] for one in joined), dtype=DOUBLE)
    for number, one in enumerate(joined):
        found[:, number, : one.shape[1]] = one
    return found

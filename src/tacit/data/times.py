"""Times of rows: dates as text, calendar frequencies, a regular grid, and times after the end of a series.

Calendar frequencies: steps without a fixed duration, because months differ in length or weekends are left out.

These are recognised from three times on, if all have the same time of day:

- a day of every month, quarter or year: the first, the last, or any other (in a shorter month, its last day)
- the first or the last weekday (Monday to Friday) of every month, quarter or year
- every business day (Monday to Friday), or every second, third, ... one

Some steps may be missing, such as a month without a row or a holiday. Times are business days if none of them is on a
weekend, a weekend lies between two of them, and at least half of all business days are present.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped

from tacit.data.series import Times
from tacit.errors import InputError

NUMERIC_DATE = r"^\s*(\d{1,2})[/.\-](\d{1,2})[/.\-](\d{4}|\d{2})(?!\d)(.*)$"  # day and month in either order, then year
ISO = "write YYYY-MM-DD"


@dataclass(frozen=True)
class Dates:
    """Parsed dates (NaT if a cell is not a date), and whether the day is first; None if that has no meaning."""

    parsed: Any  # pandas.Series of datetimes in UTC
    dayfirst: bool | None = None
    notes: tuple[str, ...] = ()


def parse_dates(text: Any, dayfirst: bool | None, column: str) -> Dates:
    """Return the dates of a column of text.

    With ``dayfirst`` None, dates such as 03/04/2021 are read only if the column is unambiguous.

    >>> import pandas as pd
    >>> found = parse_dates(pd.Series(["11/04/2021", "12/04/2021", "13/04/2021"]), None, "day")
    >>> found.dayfirst, found.parsed.dt.strftime("%Y-%m-%d").tolist()
    (True, ['2021-04-11', '2021-04-12', '2021-04-13'])
    >>> found.notes
    ("dates of column 'day' were read with the day first, as in '13/04/2021'",)
    """
    import pandas as pd
    from pandas.tseries.api import guess_datetime_format

    first = str(text.iloc[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a format that pandas has to guess cell by cell
        one_format = guess_datetime_format(first) is not None
        if one_format and not re.match(NUMERIC_DATE, first):
            return Dates(pd.to_datetime(text, utc=True, errors="coerce"))
        parts = text.str.extract(NUMERIC_DATE)
        numeric = parts[0].notna()
        if not numeric.any():
            return Dates(pd.to_datetime(text, utc=True, errors="coerce"))
        others = np.flatnonzero(~numeric)
        if len(others):
            row, like = int(others[0]), int(np.flatnonzero(numeric)[0])
            raise InputError(
                f"column '{column}' must have dates of one form, got '{text.iloc[like]}' in row {like + 1} and "
                f"'{text.iloc[row]}' in row {row + 1}; {ISO}"
            )
        dayfirst, notes = _reading(text, parts, dayfirst, column)
        day, month = (parts[0], parts[1]) if dayfirst else (parts[1], parts[0])
        iso = parts[2] + "-" + month.str.zfill(2) + "-" + day.str.zfill(2) + parts[3]
        return Dates(pd.to_datetime(iso, utc=True, errors="coerce"), dayfirst, notes)


def _reading(text: Any, parts: Any, dayfirst: bool | None, column: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether the day comes first, with a note if this was found from the column."""
    short = np.flatnonzero(parts[2].str.len() == 2)
    if len(short):
        raise InputError(
            f"column '{column}' must have years of four digits, got '{text.iloc[short[0]]}' in row {short[0] + 1}; "
            f"{ISO}"
        )
    leading, second = (parts[part].astype(int).to_numpy() for part in (0, 1))
    wrong = {True: np.flatnonzero(second > 12), False: np.flatnonzero(leading > 12)}
    words = {True: "day", False: "month"}
    if dayfirst is None and (leading == second).all():
        return False, ()
    if dayfirst is None and not any(len(rows) for rows in wrong.values()):
        raise InputError(
            f"column '{column}' must have unambiguous dates, got '{text.iloc[int((leading != second).argmax())]}', in "
            "which day and month cannot be distinguished; use --dayfirst, or --set data.dayfirst=false for month first"
        )
    reading = bool(len(wrong[False])) if dayfirst is None else dayfirst
    if len(wrong[reading]):
        row = int(wrong[reading][0])
        other = "--set data.dayfirst=false" if reading else "use --dayfirst"
        raise InputError(
            f"column '{column}' must have dates with the {words[reading]} first, got '{text.iloc[row]}' in row "
            f"{row + 1}; " + (other if not len(wrong[not reading]) else f"correct it, or {ISO}")
        )
    if dayfirst is not None:
        return reading, ()
    shown = text.iloc[int(wrong[not reading][0])]
    return reading, (f"dates of column '{column}' were read with the {words[reading]} first, as in '{shown}'",)


def looks_like_dates(text: Any) -> bool:
    """Return whether every cell of a column of text is a date.

    >>> import pandas as pd
    >>> looks_like_dates(pd.Series(["2020-01-05", "2020-01-06"])), looks_like_dates(pd.Series(["north", "May"]))
    (True, False)
    """
    import pandas as pd
    from pandas.tseries.api import guess_datetime_format

    if bool(text.str.match(NUMERIC_DATE).all()):
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        guess = guess_datetime_format(str(text.iloc[0]))
        return guess is not None and bool(pd.to_datetime(text, errors="coerce", format=guess, utc=True).notna().all())


Days = Shaped[np.ndarray, " date"]  # as datetime64[D]
OneOf = Shaped[np.ndarray, " _"]  # times or dates of one of several series
Months = Shaped[np.ndarray, " date"]  # as datetime64[M]
Steps = Int[np.ndarray, " step"]

FEWEST_TIMES = 3
FEWEST_THERE = 0.5  # of the business days between the first and the last
DAYS_OF_A_WEEK = 5
LAST_DAY = 30  # counted from 0


@dataclass(frozen=True)
class Frequency:
    """Every ``stride`` months on the day of ``rule``, or every ``stride`` business days if there is no rule.

    >>> days = np.array(["2020-01-31", "2020-02-29", "2020-04-30"], dtype="datetime64[D]")
    >>> monthly = Frequency.of([days])
    >>> monthly.words, monthly.steps(days).tolist()
    ('every month, on the last day', [1, 2])
    >>> monthly.after(days[-1], np.array([1, 2]))
    array(['2020-05-31', '2020-06-30'], dtype='datetime64[D]')
    """

    stride: int
    rule: Callable[[Months], Days] | None
    words: str

    @classmethod
    def of(cls, parts: Sequence[OneOf]) -> "Frequency | None":
        """Return the frequency of the ascending times of one or several series, or None."""
        times = np.concatenate(parts)
        if times.dtype.kind != "M" or len(times) < FEWEST_TIMES:
            return None
        of_day = times - times.astype("datetime64[D]")
        if (of_day != of_day[0]).any():
            return None
        days = [part.astype("datetime64[D]") for part in parts]
        return cls._of_months(days) or cls._of_business_days(days)

    @classmethod
    def _of_months(cls, parts: Sequence[OneOf]) -> "Frequency | None":
        days = np.concatenate(parts)
        months = days.astype("datetime64[M]")
        stride = _stride([np.diff(part.astype("datetime64[M]")).astype(np.int64) for part in parts])
        if stride is None:
            return None
        day = int((days - months.astype("datetime64[D]")).max().astype(np.int64))
        rules: tuple[tuple[str, Callable[[Months], Days]], ...] = (
            ("the last day", partial(_day_of_month, day=LAST_DAY)),
            ("the first day" if day == 0 else f"day {day + 1}", partial(_day_of_month, day=day)),
            ("the first weekday", _first_weekday),
            ("the last weekday", _last_weekday),
        )
        often = {1: "month", 12: "year"}.get(stride, f"{stride} months")
        for words, rule in rules:
            if (rule(months) == days).all():
                return cls(stride, rule, f"every {often}, on {words}")
        return None

    @classmethod
    def _of_business_days(cls, parts: Sequence[OneOf]) -> "Frequency | None":
        if not all(np.is_busday(part).all() for part in parts):
            return None
        steps = [np.busday_count(part[:-1], part[1:]) for part in parts]
        stride = _stride(steps)
        if stride is None or stride % DAYS_OF_A_WEEK == 0:  # full weeks have a fixed duration
            return None
        weekends = any((np.diff(part).astype(np.int64) > one).any() for part, one in zip(parts, steps, strict=True))
        there, all_days = sum(map(len, parts)), sum(1 + int(one.sum()) // stride for one in steps)
        if not weekends or there < FEWEST_THERE * all_days:
            return None
        often = "business day (Monday to Friday)" if stride == 1 else f"{stride} business days (Monday to Friday)"
        return cls(stride, None, f"every {often}")

    def steps(self, times: Times) -> Steps:
        """Return the number of steps between neighbouring times."""
        days = times.astype("datetime64[D]")
        if self.rule is None:
            counts: Steps = np.busday_count(days[:-1], days[1:])
        else:
            counts = np.diff(days.astype("datetime64[M]")).astype(np.int64)
        return counts // self.stride

    def after(self, time: np.datetime64, steps: Steps) -> Times:
        """Return the times that are ``steps`` steps after ``time``."""
        day = time.astype("datetime64[D]")
        if self.rule is None:
            days = np.busday_offset(day, self.stride * steps)
        else:
            days = self.rule(day.astype("datetime64[M]") + self.stride * steps)
        later: Times = (days + (time - day)).astype(time.dtype)
        return later


def _stride(steps: Sequence[Int[np.ndarray, " _"]]) -> int | None:
    """Return the lower median of the steps if all are positive multiples of it."""
    joined = np.sort(np.concatenate(steps))
    if not len(joined) or joined[0] < 1:
        return None
    stride = int(joined[(len(joined) - 1) // 2])
    return stride if (joined % stride == 0).all() else None


def _day_of_month(months: Months, day: int) -> Days:
    """Return a day of each month, counted from 0, or the last day of a shorter month."""
    first = months.astype("datetime64[D]")
    found: Days = np.minimum(first + day, (months + 1).astype("datetime64[D]") - 1)
    return found


def _first_weekday(months: Months) -> Days:
    return np.busday_offset(months.astype("datetime64[D]"), 0, roll="forward")


def _last_weekday(months: Months) -> Days:
    return np.busday_offset((months + 1).astype("datetime64[D]"), -1, roll="forward")


MOST_ROWS_ADDED = 9  # times the number of rows: beyond it a wrong time is more likely than a gap


@dataclass(frozen=True)
class Grid:
    """Times of all rows of the grid, the position of every given row, and notes."""

    times: Times
    places: Int[np.ndarray, " row"]
    notes: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    uneven: bool = False

    @classmethod
    def around_each(cls, times: Times, lengths: tuple[int, ...], names: tuple[str, ...], what: str = "times") -> "Grid":
        """Return the grids of several series, one after another, all with the median step.

        >>> grid = Grid.around_each(np.array([0, 1, 3, 0, 1, 2]), (3, 3), ("a", "b"))
        >>> grid.times.tolist(), grid.lengths
        ([0, 1, 2, 3, 0, 1, 2], (4, 3))
        >>> grid.notes
        ('1 steps without a row were added as missing values, in 1 of 2 series, one every 1',)
        """
        parts = np.split(times, np.cumsum(lengths)[:-1])
        step = Frequency.of(parts) or _median(np.concatenate([np.diff(part) for part in parts]))
        grids = [cls.around(part, f"{what} of series '{name}'", step) for part, name in zip(parts, names, strict=True)]
        added = [len(grid.times) - length for grid, length in zip(grids, lengths, strict=True)]
        uneven = sum(grid.uneven for grid in grids)
        gaps, notes = sum(new > 0 for new in added), []
        often = _often(step)
        if gaps:
            where = f"in {gaps} of {len(grids)} series, one {often}"
            notes.append(f"{sum(added)} steps without a row were added as missing values, {where}")
        elif isinstance(step, Frequency):
            notes.append(f"times are {often}")
        if uneven:
            notes.append(f"times are not evenly spaced in {uneven} of {len(grids)} series; each row counts as one step")
        new_lengths = tuple(len(grid.times) for grid in grids)
        starts = np.cumsum([0, *new_lengths[:-1]])
        places = np.concatenate([start + grid.places for start, grid in zip(starts, grids, strict=True)])
        return cls(np.concatenate([grid.times for grid in grids]), places, tuple(notes), new_lengths)

    @classmethod
    def around(cls, times: Times, what: str = "times", step: Any = None) -> "Grid":
        r"""Return the grid that contains ``times``, which are strictly ascending.

        Times that follow a calendar (:class:`Frequency`) are on the grid of that calendar. Otherwise the step $s$ is
        the (lower) median of the differences $d_k$. If every $d_k$ is a multiple of the step, the grid is
        $t_0, t_0 + s, \dots$; otherwise the times are kept, and a note says that they are not evenly spaced. ``step``
        is the frequency or the duration, if it is known.

        >>> grid = Grid.around(np.array([0, 1, 2, 5]))
        >>> grid.times.tolist(), grid.places.tolist()
        ([0, 1, 2, 3, 4, 5], [0, 1, 2, 5])
        >>> grid.notes
        ('2 steps without a row were added as missing values: 6 rows from 0 to 5, one every 1',)
        >>> days = np.array(["2026-01-01", "2026-01-02", "2026-01-05", "2026-01-07"], dtype="datetime64[D]")
        >>> Grid.around(days).places.tolist()  # business days
        [0, 1, 2, 4]
        """
        rows = np.arange(len(times))
        if len(times) < (3 if step is None else 2):
            return cls(times, rows)
        if step is None:
            step = Frequency.of([times]) or _median(np.diff(times))
        steps = _whole_steps(times, step)
        if steps is None:
            differences = np.diff(times)
            note = (
                f"times are not evenly spaced (steps from {differences.min()} to {differences.max()}); each row counts"
            )
            return cls(times, rows, (f"{note} as one step",), uneven=True)
        places, calendar = np.concatenate([[0], steps.cumsum()]), isinstance(step, Frequency)
        missing = int(places[-1]) + 1 - len(times)
        if missing == 0:
            return cls(times, rows, (f"times are {_often(step)}",) if calendar else ())
        if missing > MOST_ROWS_ADDED * len(times):
            widest, size = int(steps.argmax()), f"({_often(step)})" if calendar else f"of {step}"
            raise InputError(
                f"{what} must form a regular grid with few gaps, got {steps[widest]} steps {size} between "
                f"{times[widest]} and {times[widest + 1]}; correct that time, or cut the table there"
            )
        ahead = np.arange(places[-1] + 1)
        even = step.after(times[0], ahead) if isinstance(step, Frequency) else times[0] + ahead * step
        even[places] = times  # given times are not changed
        note = (
            f"{missing} steps without a row were added as missing values: {len(even)} rows from {even[0]} to {even[-1]}"
        )
        return cls(even, places, (f"{note}, one {_often(step)}",))


def _whole_steps(times: Times, step: Any) -> Int[np.ndarray, " step"] | None:
    """Return the number of steps between neighbours, or None if one is not an integer.

    Steps of days may be an hour longer or shorter, as in local times when clocks change.
    """
    if isinstance(step, Frequency):
        return step.steps(times)
    ratios = np.diff(times) / step
    steps = np.rint(ratios).astype(np.int64)
    allowed = 1e-6 * np.maximum(steps, 1)
    if times.dtype.kind == "M" and step % np.timedelta64(1, "D") == np.timedelta64(0, "s"):
        allowed = np.maximum(allowed, np.timedelta64(1, "h") / step)
    return None if (np.abs(ratios - steps) > allowed).any() or steps.min() < 1 else steps


def _often(step: Any) -> str:
    return step.words if isinstance(step, Frequency) else f"every {step}"


def _median(differences: Times) -> Any:
    """Return the lower median, or None."""
    return np.sort(differences)[(len(differences) - 1) // 2] if len(differences) else None


Coming = Shaped[np.ndarray, " coming"]

LATEST_TIMES = 12  # times that must follow the calendar if older ones do not


def coming_times(times: Times, count: int) -> Coming:
    """Return the ``count`` times that follow the given ones.

    >>> coming_times(np.array(["2019-10-01", "2019-11-01", "2019-12-01"], dtype="datetime64[D]"), 2)
    array(['2020-01-01', '2020-02-01'], dtype='datetime64[D]')
    >>> coming_times(np.array([3, 5, 9]), 2).tolist()
    [13, 17]
    """
    ahead = np.arange(1, count + 1)
    calendar = Frequency.of([times]) or Frequency.of([times[-LATEST_TIMES:]])
    if calendar is not None:
        return calendar.after(times[-1], ahead)
    step = times[-1] - times[-2] if len(times) > 1 else (times[-1] - times[-1]) + 1
    even: Coming = times[-1] + step * ahead
    return even


def extended_times(times: Times, count: int) -> Shaped[np.ndarray, " longer"]:
    """Return the times of a series, followed by those of the next ``count`` rows."""
    return np.concatenate([times, coming_times(times, count)]) if count else times

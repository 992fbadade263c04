"""Times of rows: dates as text, calendar frequencies, a regular grid, and times after the end of a series.

A calendar frequency has steps without a fixed duration, because months differ in length or weekends are left out. These
are recognised from three times on, if all have the same time of day:

- a day of every month, quarter or year: the first, the last, or any other (in a shorter month, its last day)
- the first or the last weekday (Monday to Friday) of every month, quarter or year
- every business day (Monday to Friday), or every second, third, ... one

Some steps may be missing, such as a month without a row or a holiday (``pandas.infer_freq`` accepts no gaps). Times are
business days if none of them is on a weekend, a weekend lies between two of them, and at least half of all business
days are present.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int, Shaped

from tacit.data.series import Times
from tacit.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

OneOf = Shaped[np.ndarray, " _"]  # times or dates of one of several series
Days = Shaped[np.ndarray, " date"]  # as datetime64[D]
Months = Shaped[np.ndarray, " date"]  # as datetime64[M]
Steps = Int[np.ndarray, " step"]

NUMERIC_DATE = r"^\s*(\d{1,2})[/.\-](\d{1,2})[/.\-](\d{4}|\d{2})(?!\d)(.*)$"  # day and month in either order, then year
ISO = "write YYYY-MM-DD"
FEWEST_TIMES = 3
FEWEST_THERE = 0.5  # of the business days between the first and the last
DAYS_OF_A_WEEK = 5
MOST_ROWS_ADDED = 9  # times the number of rows: beyond it a wrong time is more likely than a gap
LATEST_TIMES = 12  # times that must follow the calendar if older ones do not


def parse_dates(
    text: "pd.Series", dayfirst: bool | None, column: str
) -> "tuple[pd.Series, bool | None, tuple[str, ...]]":
    """Return the dates of a column of text in UTC (NaT for other cells), whether the day is first, and notes.

    With ``dayfirst`` None, dates such as 03/04/2021 are read only if the column is unambiguous. The returned order is
    None if there are no such dates.

    >>> import pandas as pd
    >>> dates, dayfirst, notes = parse_dates(pd.Series(["11/04/2021", "12/04/2021", "13/04/2021"]), None, "day")
    >>> dayfirst, dates.dt.strftime("%Y-%m-%d").tolist()
    (True, ['2021-04-11', '2021-04-12', '2021-04-13'])
    >>> notes
    ("dates of column 'day' were read with the day first, as in '13/04/2021'",)
    """
    import pandas as pd
    from pandas.tseries.api import guess_datetime_format

    def parsed(cells: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a format that pandas has to guess cell by cell
            return pd.to_datetime(cells, utc=True, errors="coerce")

    first = str(text.iloc[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one_format = guess_datetime_format(first) is not None
    if one_format and not re.match(NUMERIC_DATE, first):
        return parsed(text), None, ()
    parts = text.str.extract(NUMERIC_DATE)
    numeric = parts[0].notna().to_numpy()
    if not numeric.any():
        return parsed(text), None, ()

    def refused(need: str, row: Any, more: str = "", remedy: str = ISO) -> InputError:
        return InputError(
            f"column '{column}' must have {need}, got '{text.iloc[row]}'{more or f' in row {row + 1}'}; {remedy}"
        )

    for row in np.flatnonzero(~numeric)[:1]:
        like = int(numeric.argmax())
        more = f" in row {like + 1} and '{text.iloc[row]}' in row {row + 1}"
        raise refused("dates of one form", like, more)
    for row in np.flatnonzero(parts[2].str.len() == 2)[:1]:
        raise refused("years of four digits", row)

    # A number above 12 is a day, and says which of the two is first.
    leading, second = (parts[part].astype(int).to_numpy() for part in (0, 1))
    wrong = {True: np.flatnonzero(second > 12), False: np.flatnonzero(leading > 12)}
    words, reading, notes = {True: "day", False: "month"}, dayfirst, tuple[str, ...]()
    if reading is None and not any(len(rows) for rows in wrong.values()):
        for row in np.flatnonzero(leading != second)[:1]:
            more = ", in which day and month cannot be distinguished"
            remedy = "use --dayfirst, or --set data.dayfirst=false for month first"
            raise refused("unambiguous dates", row, more, remedy)
        reading = False
    elif reading is None:
        reading = bool(len(wrong[False]))
        shown = text.iloc[wrong[not reading][:1]].tolist()
        notes = tuple(
            f"dates of column '{column}' were read with the {words[reading]} first, as in '{one}'" for one in shown
        )
    for row in wrong[reading][:1]:
        other = "--set data.dayfirst=false" if reading else "use --dayfirst"
        remedy = f"correct it, or {ISO}" if len(wrong[not reading]) else other
        raise refused(f"dates with the {words[reading]} first", row, remedy=remedy)
    day, month = (parts[0], parts[1]) if reading else (parts[1], parts[0])
    return parsed(parts[2] + "-" + month.str.zfill(2) + "-" + day.str.zfill(2) + parts[3]), reading, notes


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
        from pandas import DatetimeIndex
        from pandas.tseries.offsets import BMonthBegin, BMonthEnd, MonthEnd

        times = np.concatenate(parts)
        if times.dtype.kind != "M" or len(times) < FEWEST_TIMES:
            return None
        days = times.astype("datetime64[D]")
        if (times - days != times[0] - days[0]).any():
            return None

        # A day of every month.
        def following(offset: Any) -> Callable[[Months], Days]:
            return lambda months: (DatetimeIndex(months) + offset).to_numpy().astype("datetime64[D]")

        months, last = days.astype("datetime64[M]"), following(MonthEnd(0))
        stride = _stride([np.diff(part.astype("datetime64[M]")).astype(np.int64) for part in parts])
        day = (days - months.astype("datetime64[D]")).max()
        rules: dict[str, Callable[[Months], Days]] = {
            "the last day": last,
            f"day {day.astype(int) + 1}" if day else "the first day": lambda some: np.minimum(some + day, last(some)),
            "the first weekday": following(BMonthBegin(0)),
            "the last weekday": following(BMonthEnd(0)),
        }
        for words, rule in rules.items():
            if stride is not None and (rule(months) == days).all():
                often = {1: "month", 12: "year"}.get(stride, f"{stride} months")
                return cls(stride, rule, f"every {often}, on {words}")

        # Business days.
        dates = [part.astype("datetime64[D]") for part in parts]
        steps = [np.busday_count(part[:-1], part[1:]) for part in dates]
        stride = _stride(steps) if np.is_busday(days).all() else None
        if stride is None or stride % DAYS_OF_A_WEEK == 0:  # full weeks have a fixed duration
            return None
        weekends = any((np.diff(part).astype(np.int64) > one).any() for part, one in zip(dates, steps, strict=True))
        if not weekends or len(days) < FEWEST_THERE * sum(1 + int(one.sum()) // stride for one in steps):
            return None
        often = "business day" if stride == 1 else f"{stride} business days"
        return cls(stride, None, f"every {often} (Monday to Friday)")

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


@dataclass(frozen=True)
class Grid:
    """Times of all rows of the grid, the position of every given row, notes, and the lengths of several series."""

    times: Times
    places: Int[np.ndarray, " row"]
    notes: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()

    @classmethod
    def around(
        cls, times: Times, lengths: tuple[int, ...] = (), names: tuple[str, ...] = (), what: str = "times"
    ) -> "Grid":
        r"""Return the grid that contains ``times``, which are strictly ascending in each of several series.

        Times that follow a calendar (:class:`Frequency`) are on the grid of that calendar. Otherwise the step $s$ is
        the (lower) median of the differences $d_k$ of all series. If every $d_k$ of a series is a multiple of the step,
        its grid is $t_0, t_0 + s, \dots$; otherwise its times are kept, and a note says that they are not evenly
        spaced.

        >>> grid = Grid.around(np.array([0, 1, 2, 5]))
        >>> grid.times.tolist(), grid.places.tolist()
        ([0, 1, 2, 3, 4, 5], [0, 1, 2, 5])
        >>> grid.notes
        ('2 steps without a row were added as missing values: 6 rows from 0 to 5, one every 1',)
        >>> days = np.array(["2026-01-01", "2026-01-02", "2026-01-05", "2026-01-07"], dtype="datetime64[D]")
        >>> Grid.around(days).places.tolist()  # business days
        [0, 1, 2, 4]
        >>> grid = Grid.around(np.array([0, 1, 3, 0, 1, 2]), (3, 3), ("a", "b"))
        >>> grid.times.tolist(), grid.lengths
        ([0, 1, 2, 3, 0, 1, 2], (4, 3))
        >>> grid.notes
        ('1 steps without a row were added as missing values, in 1 of 2 series, one every 1',)
        """
        parts = np.split(times, np.cumsum(lengths)[:-1]) if lengths else [times]
        differences = np.sort(np.concatenate([np.diff(part) for part in parts]))
        step = Frequency.of(parts)
        duration = differences[(len(differences) - 1) // 2] if len(differences) else 1
        often = f"every {duration}" if step is None else step.words
        grids, places, added, uneven, start = list[Times](), list[Steps](), list[int](), 0, 0
        for number, part in enumerate(parts):
            steps = _whole_steps(part, step or duration)
            if steps is None:  # each row counts as one step
                uneven, steps = uneven + 1, np.ones(len(part) - 1, dtype=np.int64)
            own = np.concatenate([np.zeros(1, dtype=np.int64), steps.cumsum()])
            missing = int(own[-1]) + 1 - len(part)
            if missing > MOST_ROWS_ADDED * len(part):
                row, size = int(steps.argmax()), f"of {duration}" if step is None else f"({step.words})"
                whose = f"{what} of series '{names[number]}'" if lengths else what
                raise InputError(
                    f"{whose} must form a regular grid with few "
                    f"gaps, got {steps[row]} steps {size} between {part[row]} and {part[row + 1]}; correct that time, "
                    "or cut the table there"
                )
            even = part
            if missing:
                ahead = np.arange(own[-1] + 1)
                even = part[0] + ahead * duration if step is None else step.after(part[0], ahead)
                even[own] = part  # given times are not changed
            grids.append(even)
            places.append(start + own)
            added.append(missing)
            start += len(even)
        whole, notes = np.concatenate(grids), list[str]()
        if any(added):
            some = sum(new > 0 for new in added)
            where = (
                f", in {some} of {len(parts)} series" if lengths else f": {start} rows from {whole[0]} to {whole[-1]}"
            )
            notes.append(f"{sum(added)} steps without a row were added as missing values{where}, one {often}")
        elif step is not None:
            notes.append(f"times are {often}")
        if uneven:
            where = (
                f"in {uneven} of {len(parts)} series"
                if lengths
                else f"(steps from {differences[0]} to {differences[-1]})"
            )
            notes.append(f"times are not evenly spaced {where}; each row counts as one step")
        return cls(whole, np.concatenate(places), tuple(notes), tuple(map(len, grids)) if lengths else ())


def _whole_steps(times: Times, step: Any) -> Int[np.ndarray, " step"] | None:
    """Return the number of steps between neighbours, or None if one is not an integer.

    Steps of days may be an hour longer or shorter, as in local times when clocks change.
    """
    if isinstance(step, Frequency):
        return step.steps(times)
    if len(times) < 2:
        return np.zeros(0, dtype=np.int64)
    ratios = np.diff(times) / step
    steps = np.rint(ratios).astype(np.int64)
    allowed = 1e-6 * np.maximum(steps, 1)
    if times.dtype.kind == "M" and step % np.timedelta64(1, "D") == np.timedelta64(0, "s"):
        allowed = np.maximum(allowed, np.timedelta64(1, "h") / step)
    return None if (np.abs(ratios - steps) > allowed).any() or steps.min() < 1 else steps


def coming_times(times: Times, count: int) -> Shaped[np.ndarray, " coming"]:
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
    return times[-1] + step * ahead  # type: ignore[no-any-return]


def extended_times(times: Times, count: int) -> Shaped[np.ndarray, " longer"]:
    """Return the times of a series, followed by those of the next ``count`` rows."""
    return np.concatenate([times, coming_times(times, count)]) if count else times

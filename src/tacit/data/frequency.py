"""Calendar frequencies: steps without a fixed duration, because months differ in length or weekends are left out.

These are recognised from three times on, if all have the same time of day:

- a day of every month, quarter or year: the first, the last, or any other (in a shorter month, its last day)
- the first or the last weekday (Monday to Friday) of every month, quarter or year
- every business day (Monday to Friday), or every second, third, ... one

Some steps may be missing, such as a month without a row or a holiday. Times are business days if none of them is on a
weekend, a weekend lies between two of them, and at least half of all business days are present.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Int, Shaped

from tacit.data.series import Times

Dates = Shaped[np.ndarray, " date"]  # as datetime64[D]
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
    rule: Callable[[Months], Dates] | None
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
        rules: tuple[tuple[str, Callable[[Months], Dates]], ...] = (
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


def _day_of_month(months: Months, day: int) -> Dates:
    """Return a day of each month, counted from 0, or the last day of a shorter month."""
    first = months.astype("datetime64[D]")
    found: Dates = np.minimum(first + day, (months + 1).astype("datetime64[D]") - 1)
    return found


def _first_weekday(months: Months) -> Dates:
    return np.busday_offset(months.astype("datetime64[D]"), 0, roll="forward")


def _last_weekday(months: Months) -> Dates:
    return np.busday_offset((months + 1).astype("datetime64[D]"), -1, roll="forward")

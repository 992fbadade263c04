"""Times beyond the end of a series: by the calendar where its times follow one, else in steps of the last one.

Months differ in length, so the step from one first of a month to the next is no fixed duration. From three times on
these are recognised, at the same time of day each:

- a day of every month, quarter or year: the first, the last, any other; in a shorter month its last day stands for it
- the first or the last weekday (Monday to Friday) of every month, quarter or year
- every weekday, or every second, third, ... one
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Int, Shaped

from tacit.data.series import Times

Coming = Shaped[np.ndarray, " coming"]
Dates = Shaped[np.ndarray, " date"]  # as datetime64[D]
Months = Shaped[np.ndarray, " date"]  # as datetime64[M]

FEWEST_TIMES = 3
LATEST_TIMES = 12  # that need to follow the calendar where older ones do not: a gap long ago does not matter
LAST_DAY = 30  # counted from 0


def coming_times(times: Times, count: int) -> Coming:
    """Return the ``count`` times that follow the given ones.

    >>> coming_times(np.array(["2019-10-01", "2019-11-01", "2019-12-01"], dtype="datetime64[D]"), 2)
    array(['2020-01-01', '2020-02-01'], dtype='datetime64[D]')
    >>> coming_times(np.array([3, 5, 9]), 2).tolist()
    [13, 17]
    """
    ahead = np.arange(1, count + 1)
    if times.dtype.kind == "M" and len(times) >= FEWEST_TIMES:
        for latest in (times, times[-LATEST_TIMES:]):
            days = latest.astype("datetime64[D]")
            time_of_day = latest - days
            coming = _coming_days(days, ahead) if (time_of_day == time_of_day[-1]).all() else None
            if coming is not None:
                found: Coming = (coming + time_of_day[-1]).astype(times.dtype)
                return found
    step = times[-1] - times[-2] if len(times) > 1 else (times[-1] - times[-1]) + 1
    even: Coming = times[-1] + step * ahead
    return even


def _coming_days(days: Dates, ahead: Int[np.ndarray, " coming"]) -> Coming | None:
    """Return the days to come, or None where days follow no calendar or have even steps anyway."""
    months = days.astype("datetime64[M]")
    stride = np.diff(months).astype(np.int64)
    if stride[0] >= 1 and (stride == stride[0]).all():
        day = int((days - months.astype("datetime64[D]")).max().astype(np.int64))
        rules: tuple[Callable[[Months], Dates], ...] = (
            partial(_day_of_month, day=LAST_DAY),
            partial(_day_of_month, day=day),
            _first_weekday,
            _last_weekday,
        )
        for rule in rules:
            if (rule(months) == days).all():
                return rule(months[-1] + stride[0] * ahead)
    steps = np.diff(days)
    if (steps == steps[0]).all() or not np.is_busday(days).all():
        return None
    weekdays = np.busday_count(days[:-1], days[1:])
    regular = weekdays[0] >= 1 and (weekdays == weekdays[0]).all()
    return np.busday_offset(days[-1], weekdays[0] * ahead) if regular else None


def _day_of_month(months: Months, day: int) -> Dates:
    """Return a day of each month, counted from 0, or its last where it is shorter."""
    first = months.astype("datetime64[D]")
    found: Dates = np.minimum(first + day, (months + 1).astype("datetime64[D]") - 1)
    return found


def _first_weekday(months: Months) -> Dates:
    return np.busday_offset(months.astype("datetime64[D]"), 0, roll="forward")


def _last_weekday(months: Months) -> Dates:
    return np.busday_offset((months + 1).astype("datetime64[D]"), -1, roll="forward")

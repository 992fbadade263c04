"""Times beyond the end: those that pandas counts for every calendar, and the last step where there is none."""

import numpy as np
import pandas as pd
import pytest

from tacit.data.times import coming_times

MONTHS = ("MS", "ME", "BMS", "BME", "2MS", "QS-JAN", "QS-FEB", "QE-DEC", "QE-NOV", "2QS-JAN", "BQE-DEC", "BQS-JAN")
YEARS = ("YS-JAN", "YE-DEC", "YS-JUL", "YE-FEB", "BYE-DEC")
DAYS = ("B", "2B", "3B", "W-WED", "D", "h", "30min")


def dates(*words, unit="D"):
    return np.array(words, dtype=f"datetime64[{unit}]")


@pytest.mark.parametrize("calendar", MONTHS + YEARS + DAYS)
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_times_are_those_of_the_calendar(calendar, unit):
    """24 times are known, from several starts, and the 7 that follow are those of pandas."""
    for start in ("1999-11-03", "2003-02-26", "2018-12-30T00:00"):
        every = pd.date_range(start, periods=31, freq=calendar).to_numpy().astype(f"datetime64[{unit}]")
        found = coming_times(every[:24], 7)
        assert found.dtype == every.dtype
        assert np.array_equal(found, every[24:])


@pytest.mark.parametrize(
    ("known", "coming"),
    [
        (("2019-07-01", "2019-08-01", "2019-09-01"), ("2019-10-01", "2019-11-01")),  # steps of 31 days, by chance
        (("2019-10-01", "2019-11-01", "2019-12-01"), ("2020-01-01", "2020-02-01")),
        (("2019-12-15", "2020-01-15", "2020-02-15"), ("2020-03-15", "2020-04-15")),
        (("2019-10-30", "2019-11-30", "2019-12-30"), ("2020-01-30", "2020-02-29")),
        (("2020-01-30", "2020-02-29", "2020-03-30"), ("2020-04-30", "2020-05-30")),
        (("2019-06-30", "2019-09-30", "2019-12-31"), ("2020-03-31", "2020-06-30")),
        (("2017-02-28", "2018-02-28", "2019-02-28"), ("2020-02-29", "2021-02-28")),
        (("2020-01-02", "2020-01-03", "2020-01-06"), ("2020-01-07", "2020-01-08")),
        (("2020-01-01", "2020-01-02", "2020-01-03"), ("2020-01-04", "2020-01-05")),  # days, for all one can see
        (("2019-11-01", "2019-12-01"), ("2019-12-31", "2020-01-30")),  # two times are no calendar
        (("2020-01-01", "2020-02-01", "2020-04-01"), ("2020-05-01", "2020-06-01")),  # a gap
        (("2020-01-01", "2020-03-01", "2020-04-01"), ("2020-05-01", "2020-06-01")),
        (("2020-01-03", "2020-01-04", "2020-01-07"), ("2020-01-10", "2020-01-13")),  # a Saturday
        (("2020-01-08", "2020-01-06", "2020-01-03"), ("2019-12-31", "2019-12-28")),  # backwards
        (("2020-03-01", "2020-02-01", "2020-01-01"), ("2019-12-01", "2019-10-31")),
    ],
)
def test_three_times_are_enough_and_two_are_not(known, coming):
    assert coming_times(dates(*known), 2).tolist() == dates(*coming).tolist()


def test_other_times_long_ago_do_not_matter():
    months = np.arange("2010-01", "2020-01", dtype="datetime64[M]").astype("datetime64[D]")
    for other in (50, -13):
        months[other] += 3
        assert coming_times(months, 1) == np.datetime64("2020-01-01")
    months[-12] += 3
    assert coming_times(months, 1) == np.datetime64("2019-12-31")


def test_the_time_of_day_stays():
    months = np.arange("2018-01", "2020-01", dtype="datetime64[M]").astype("datetime64[m]") + 90
    assert coming_times(months, 2).tolist() == dates("2020-01-01T01:30", "2020-02-01T01:30", unit="m").tolist()
    months[-5] += 1  # not a calendar any more
    assert coming_times(months, 1) == np.datetime64("2020-01-01T01:30") - np.timedelta64(1, "D")


@pytest.mark.parametrize("unit", ["M", "Y"])
def test_months_and_years_as_such(unit):
    times = np.arange(0, 40, 4).astype(f"datetime64[{unit}]")
    assert coming_times(times, 2).tolist() == np.array([40, 44]).astype(f"datetime64[{unit}]").tolist()


def test_numbers_durations_and_a_single_time():
    assert coming_times(np.array([0.0, 1.0, 1.5]), 2).tolist() == [2.0, 2.5]
    assert coming_times(np.array([4]), 2).tolist() == [5, 6]
    steps = np.array([0, 31, 59], dtype="timedelta64[D]")
    assert coming_times(steps, 1).tolist() == np.array([87], dtype="timedelta64[D]").tolist()

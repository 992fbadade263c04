"""Grids by the calendar: months and business days with gaps, against the dates of pandas."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import read_frame
from tacit.data.times import Frequency, Grid, coming_times

WORDS = {
    "B": "every business day (Monday to Friday)",
    "2B": "every 2 business days (Monday to Friday)",
    "MS": "every month, on the first day",
    "ME": "every month, on the last day",
    "BMS": "every month, on the first weekday",
    "BME": "every month, on the last weekday",
    "QS-FEB": "every 3 months, on the first day",
    "QE-DEC": "every 3 months, on the last day",
    "YS-JUL": "every year, on the first day",
    "YE-DEC": "every year, on the last day",
}


@pytest.mark.parametrize("freq", WORDS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_gaps_on_a_calendar_are_rows_of_its_own(freq, share):
    rng = np.random.default_rng(0)
    whole = pd.date_range("2003-02-26T06:00", periods=60, freq=freq).to_numpy()
    there = rng.random(60) >= share
    there[[0, 1, 2, -1]] = True
    grid = Grid.around(whole[there])
    assert np.array_equal(grid.times, whole)
    assert np.array_equal(grid.places, np.flatnonzero(there))
    missing = 60 - there.sum()
    added = f"{missing} steps without a row were added as missing values: 60 rows from {whole[0]} to {whole[-1]}, one "
    assert grid.notes == ((added if missing else "times are ") + WORDS[freq],)


@pytest.mark.parametrize("freq", ["D", "W-WED", "2W-FRI", "h", "30min", "14D", "36h"])
def test_even_steps_are_no_calendar(freq):
    times = pd.date_range("2003-02-26", periods=60, freq=freq).to_numpy()
    assert Frequency.of([times]) is None
    grid = Grid.around(np.delete(times, [7, 8, 30]))
    assert np.array_equal(grid.times, times)


def test_a_day_that_some_months_lack():
    times = np.array(["2020-01-30", "2020-02-29", "2020-03-30", "2020-05-30"], dtype="datetime64[D]")
    grid = Grid.around(times)
    assert grid.times[3] == np.datetime64("2020-04-30")
    assert "one every month, on day 30" in grid.notes[0]


def test_days_that_are_not_business_days():
    days = pd.date_range("2026-01-05", periods=28, freq="D").to_numpy()
    assert len(Grid.around(days[days != np.datetime64("2026-01-10")]).times) == 28  # one Saturday without a row
    one_week = days[[0, 1, 3, 4]]
    assert Frequency.of([one_week]) is None  # no weekend lies between
    rare = np.array(["2026-01-05", "2026-01-06", "2026-01-20", "2026-02-10", "2026-03-03"], dtype="datetime64[D]")
    assert Frequency.of([rare]) is None  # most business days have no row
    christmas = days[np.is_busday(days.astype("datetime64[D]"))][[0, 1, 2, 3, 4, 6, 7, 8, 9, 10]]
    assert len(Grid.around(christmas).times) == 11


def test_several_series_share_a_calendar():
    months = pd.date_range("2020-01-31", periods=12, freq="ME")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 2)), index=months, columns=list("ab"))
    short = frame.iloc[[4, 5]]  # two rows are no calendar of their own
    both = pd.concat([frame.drop(months[3]), short], keys=["x", "y"], names=["who", "time"])
    series = read_frame(both)
    assert series.lengths == (12, 2)
    assert np.isnan(series.values[3]).all()
    words = "1 steps without a row were added as missing values, in 1 of 2 series, one every month, on the last day"
    assert series.notes == (words,)
    assert read_frame(both.drop(index=("x", months[4]))).lengths == (12, 2)
    whole = pd.concat([frame, short], keys=["x", "y"], names=["who", "time"])
    assert read_frame(whole).notes == ("times are every month, on the last day",)


def test_a_time_that_is_far_off_is_refused(refused):
    months = np.array(["2020-01-01", "2020-02-01", "2020-03-01", "2990-04-01"], dtype="datetime64[D]")
    refused(Grid.around, months)


def test_local_days_where_clocks_change():
    local = pd.date_range("2026-03-25", periods=9, freq="D", tz="Europe/Berlin")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), index=local, columns=list("ab"))
    series = read_frame(frame.drop(local[6]))
    assert len(series) == 9
    assert np.isnan(series.values[6]).all()
    assert series.times[4:6].astype(str).tolist() == ["2026-03-28T23:00:00", "2026-03-29T22:00:00"]


@pytest.mark.parametrize("freq", ["h", "30min"])
def test_an_hour_that_comes_twice(freq, refused):
    utc = pd.date_range("2026-10-24", periods=100, freq=freq, tz="UTC")
    local = utc.tz_convert("Europe/Berlin").tz_localize(None)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), index=local, columns=list("ab"))
    refused(read_frame, frame)
    twice = frame.set_axis(local - pd.Timedelta(days=1))
    refused(read_frame, twice)


# ---------------------------------------------------------------- times beyond the end


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

"""Grids by the calendar: months and business days with gaps, against the dates of pandas."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import read_frame
from tacit.data.times import Frequency, Grid
from tacit.errors import InputError

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


def test_a_time_that_is_far_off_is_refused():
    months = np.array(["2020-01-01", "2020-02-01", "2020-03-01", "2990-04-01"], dtype="datetime64[D]")
    words = r"got 11641 steps \(every month, on the first day\) between 2020-03-01 and 2990-04-01; correct that time"
    with pytest.raises(InputError, match=words):
        Grid.around(months)


def test_local_days_where_clocks_change():
    local = pd.date_range("2026-03-25", periods=9, freq="D", tz="Europe/Berlin")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), index=local, columns=list("ab"))
    series = read_frame(frame.drop(local[6]))
    assert len(series) == 9
    assert np.isnan(series.values[6]).all()
    assert series.times[4:6].astype(str).tolist() == ["2026-03-28T23:00:00", "2026-03-29T22:00:00"]


@pytest.mark.parametrize("freq", ["h", "30min"])
def test_an_hour_that_comes_twice(freq):
    utc = pd.date_range("2026-10-24", periods=100, freq=freq, tz="UTC")
    local = utc.tz_convert("Europe/Berlin").tz_localize(None)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), index=local, columns=list("ab"))
    with pytest.raises(InputError, match="clocks were set back: write times in UTC, or with an offset as in"):
        read_frame(frame)
    twice = frame.set_axis(local - pd.Timedelta(days=1))
    with pytest.raises(InputError, match=r"correct one of the times|sort the rows by time"):
        read_frame(twice)

"""Parts of dates, against the datetime module."""

from calendar import monthrange
from datetime import date, datetime

import numpy as np
import pytest

from tacit.data import PHASES, Series, calendar_features, with_calendar
from tacit.data.background import NUMBERS, calendar_number


@pytest.fixture(scope="module")
def times():
    rng = np.random.default_rng(0)
    seconds = rng.integers(-(10**9), 4 * 10**9, size=2000)  # 1938 to 2096
    return np.unique(seconds).astype("datetime64[s]")


def test_numbers_are_those_of_datetime(times):
    others = {
        "week": lambda moment: moment.isocalendar().week,
        "dayofyear": lambda moment: moment.timetuple().tm_yday,
        "weekday": datetime.weekday,
    }
    for name in NUMBERS:
        expected = [others[name](moment) if name in others else getattr(moment, name) for moment in times.tolist()]
        assert calendar_number(times, name).tolist() == expected


def test_features_are_waves_of_the_phase(times):
    moments, numbers = times.tolist(), range(len(times))
    midnight = [moment.replace(hour=0, minute=0, second=0) for moment in moments]
    today = np.array([(moment - day).total_seconds() for moment, day in zip(moments, midnight, strict=True)])
    first = [date(moment.year, 1, 1) for moment in moments]
    days = np.array([(date(one.year + 1, 1, 1) - one).days for one in first])  # of the year
    phases = {
        "minute": today % 3600 / 3600,
        "hour": today / 86400,
        "weekday": np.array([moment.weekday() for moment in moments]) / 7,
        "day": np.array([(moment.day - 1) / monthrange(moment.year, moment.month)[1] for moment in moments]),
        "dayofyear": np.array([(moments[row].date() - first[row]).days for row in numbers]) / days,
        "month": np.array([moment.month - 1 for moment in moments]) / 12,
    }
    assert set(phases) == set(PHASES)
    columns, names = calendar_features(times, list(phases))
    assert names[:3] == ("minute sin", "minute cos", "hour sin")
    for place, phase in enumerate(phases.values()):
        np.testing.assert_allclose(columns[:, 2 * place], np.sin(2 * np.pi * phase), atol=1e-12)
        np.testing.assert_allclose(columns[:, 2 * place + 1], np.cos(2 * np.pi * phase), atol=1e-12)


def test_features_are_covariates_of_a_series(refused):
    times = np.arange("2026-01-01", "2026-01-03", np.timedelta64(6, "h"), dtype="datetime64[s]")
    hour = np.arange(8.0)[:, None]
    series = Series(np.arange(8.0).reshape(8, 1, 1), ("a",), times=times, covariates=hour, covariate_names=("given",))
    made = with_calendar(series, ["hour"])
    assert made.covariate_names == ("hour sin", "hour cos", "given")
    np.testing.assert_allclose(made.covariates[:5, 0], [0, 1, 0, -1, 0], atol=1e-12)
    assert with_calendar(series, ()) is series
    refused(with_calendar, series, ["hour", "minute"])


def test_what_is_no_part_of_a_date(refused):
    days = np.arange("2026-01-01", "2026-01-05", dtype="datetime64[D]")
    refused(calendar_features, days, ["our"])
    refused(calendar_features, days, ["hour", "hour"])
    refused(calendar_features, np.arange(4), ["hour"])

"""Fan charts: forecasts of a table or of pairs, of an estimator or of a run directory."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from made_runs import make_run, write_directory
from tacit import ForecastDisplay
from tacit.pipeline import kept_fan
from tiny_fits import random_pairs, regressor


def axes():
    return Figure().subplots()


def test_the_chart_has_the_forecasts_of_the_estimator(fitted, table):
    display = ForecastDisplay.from_estimator(fitted, table[200:], node="b", ax=axes())
    fan, frame = display.fan, fitted.forecast(table[200:])
    frame = frame[frame["node"] == "b"]
    for level, name in ((0.025, "q2.5"), (0.1, "q10"), (0.5, "median"), (0.9, "q90"), (0.975, "q97.5")):
        np.testing.assert_allclose(fan.quantile(level), frame[name])
    np.testing.assert_array_equal(fan.times, frame["time"])
    np.testing.assert_array_equal(fan.observed, frame["actual"])
    assert np.isnan(fan.observed[-1])  # the step after the end
    assert (np.diff(fan.quantiles, axis=1) >= 0).all()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "observed", "median", "95% interval", "80% interval", "50% interval",
    ]  # fmt: skip
    assert display.ax_.get_title("right") == "b"


def test_only_the_last_forecasts_are_computed(fitted, table):
    whole = ForecastDisplay.from_estimator(fitted, table, ax=axes()).fan
    last = ForecastDisplay.from_estimator(fitted, table, last=10, ax=axes()).fan
    assert len(last.times) == 10
    np.testing.assert_allclose(last.quantiles, whole.quantiles[-10:])


def test_a_path_continues_the_observed_values(fitted, table):
    fan = ForecastDisplay.from_estimator(fitted, table, steps=5, last=20, ax=axes()).fan
    paths = fitted.forecast(table, steps=5)
    np.testing.assert_allclose(fan.quantile(0.5), paths.loc[paths["node"] == "a", "median"])
    assert fan.times[0] == table.index[-1] + pd.Timedelta("1h")
    assert len(fan.observed) == 20 + 5
    np.testing.assert_allclose(fan.observed[:20], table["a"][-20:])
    origin = table.index[-11]
    past = ForecastDisplay.from_estimator(fitted, table, steps=5, origin=origin, last=3, ax=axes()).fan
    np.testing.assert_allclose(past.observed, table["a"][-13:-5])  # three before, and what happened


def test_a_run_takes_files_and_tables(fitted, run_directory, table, tmp_path):
    expected = ForecastDisplay.from_estimator(fitted, table[200:], ax=axes()).fan
    table[200:].to_csv(tmp_path / "new.csv")
    for data in (table[200:], tmp_path / "new.csv", [str(tmp_path / "new.csv")]):
        fan = ForecastDisplay.from_run(run_directory, data, ax=axes()).fan
        np.testing.assert_allclose(fan.quantiles, expected.quantiles, rtol=1e-6)


def test_forecasts_that_a_run_keeps_need_no_data(tmp_path, refused):
    rng = np.random.default_rng(0)
    numbers = np.concatenate([np.sort(rng.normal(size=(4, 2, 1, 7)), -1), rng.normal(size=(4, 2, 1, 1))], -1)
    rows, series = [f"2026-01-01T0{hour}:00:00" for hour in (0, 1, 0, 1)], ["x", "x", "y", "y"]
    kept = SimpleNamespace(
        row_name="time", rows=rows, series=series, nodes=[0, 2], variables=["level"], numbers=numbers
    )
    fan = kept_fan(kept, ["a", "b", "c"], node="c", series="y")
    np.testing.assert_array_equal(fan.quantiles, numbers[2:, 1, 0, :7])
    np.testing.assert_array_equal(fan.observed, numbers[2:, 1, 0, 7])
    assert fan.times[1] - fan.times[0] == np.timedelta64(1, "h")
    assert (fan.title, fan.has_times) == ("c, series y", True)
    ForecastDisplay(fan).plot(axes())
    refused(kept_fan, kept, ["a", "b", "c"], node="b")
    refused(kept_fan, kept, ["a", "b", "c"], steps=3)
    refused(ForecastDisplay.from_run, write_directory(make_run(3), tmp_path / "run"))


def test_wrong_names_are_said(fitted, table, refused):
    for options in ({"node": "A"}, {"variable": "x"}, {"series": "s"}, {"origin": "2026-01-02"}):
        refused(ForecastDisplay.from_estimator, fitted, table, **options)


def test_a_series_is_chosen_by_its_name(fitted, table, refused):
    both = pd.concat({"north": table[:40], "south": table[40:90]}, names=["series", "time"])
    fan = ForecastDisplay.from_estimator(fitted, both, series="south", ax=axes()).fan
    assert (fan.title, len(fan.times)) == ("a, series south", 50)
    refused(ForecastDisplay.from_estimator, fitted, both, series="nowhere")


def test_pairs_are_sorted_by_their_median(refused):
    x, y = random_pairs(60)
    model = regressor().fit(x, y)
    display = ForecastDisplay.from_estimator(model, x, y, node="1", ax=axes())
    observed, median = display.ax_.lines
    assert (np.diff(median.get_ydata()) >= 0).all()
    np.testing.assert_allclose(np.sort(observed.get_ydata()), np.sort(y[:, 1]))
    assert display.ax_.get_xlabel() == "pairs, by the median of their forecast"
    refused(ForecastDisplay.from_estimator, model, x, y, steps=3)

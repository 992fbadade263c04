"""Runs on a season, with regimes and the calendar: the edges of the season, and the same on new data."""

import numpy as np
import pandas as pd
import pytest
import torch

from own_files import learn
from tacit import LatentGraphForecaster
from tacit.config import AssessmentOptions, DataOptions
from tacit.pipeline import Fitted, evaluate, forecast_table, read_new

CPU = torch.device("cpu")
OFF = AssessmentOptions(enabled=False)


@pytest.fixture(scope="module")
def frame():
    """In summer b reads a, otherwise d reads c."""
    rng, rows = np.random.default_rng(0), 1200
    times = pd.date_range("2023-01-01", periods=rows, freq="D", name="time")
    values, summer = np.zeros((rows, 4)), np.isin(times.month, (6, 7, 8))
    for row in range(1, rows):
        values[row] = 0.4 * values[row - 1] + rng.normal(size=4)
        values[row, 1 if summer[row] else 3] += 0.8 * values[row - 1, 0 if summer[row] else 2]
    regime = np.where(summer, "wet", np.where(times.month == 3, "mud", "dry"))
    return pd.DataFrame(values, index=times, columns=list("abcd")).assign(regime=regime)


def edges(model):
    return sorted(map(tuple, model.listed_edges()[["source", "target"]].values.tolist()))


def test_edges_of_a_season_are_those_that_act_in_it(frame):
    plain = frame.drop(columns="regime")
    everywhere = LatentGraphForecaster(window=1, assessment=OFF).fit(plain)
    assert edges(everywhere) == [("a", "b"), ("c", "d")]
    summer = LatentGraphForecaster(window=1, assessment=OFF, data=DataOptions(where="month in (6, 7, 8)")).fit(plain)
    assert edges(summer) == [("a", "b")]
    assert "where month in (6, 7, 8): 276 of 1,199 targets are used" in summer.record_.warnings
    dry = LatentGraphForecaster(window=1, assessment=OFF, data=DataOptions(where="regime != 'wet'")).fit(frame)
    assert edges(dry) == [("c", "d")]
    assert set(dry.predict(frame).index.month) == {1, 2, 3, 4, 5, 9, 10, 11, 12}


def test_a_stored_run_reads_new_data_the_same_way(frame, tmp_path, refused):
    frame.to_csv(tmp_path / "table.csv")
    data = {"covariates": ["regime"], "calendar": ["month"], "where": "month in (2, 3, 4, 5)", "window": 2}
    job, _ = learn(tmp_path / "table.csv", tmp_path / "run", data=data)
    fitted = Fitted.read(job.directory, CPU)
    assert fitted.config.data.levels == {"regime": ("dry", "mud", "wet")}
    assert fitted.preparation.scaling.covariate_names == ("month sin", "month cos", "regime=mud", "regime=wet")
    days = frame[frame.index >= "2026-02-20"]  # mud and dry only
    days.to_csv(tmp_path / "new.csv")
    found = forecast_table(fitted, read_new(fitted, [str(tmp_path / "new.csv")]))
    everything = forecast_table(fitted, read_new(fitted, [str(tmp_path / "table.csv")]))
    assert len(found) == 4 * (len(days) - 2)  # without the step after the end, 15 April: its regime is not known
    pd.testing.assert_frame_equal(found, everything.tail(len(found)).reset_index(drop=True), rtol=1e-4)
    scores = evaluate(fitted, read_new(fitted, [str(tmp_path / "new.csv")]))
    assert scores["pairs"] == len(days) - 2
    days.replace({"regime": {"dry": "snow"}}).to_csv(tmp_path / "snow.csv")
    refused(read_new, fitted, [str(tmp_path / "snow.csv")])


def test_one_level_is_no_covariate(frame, refused):
    model = LatentGraphForecaster(window=1, assessment=OFF, covariates=["regime"])
    refused(model.fit, frame.assign(regime="dry"))


def test_pairs_have_no_season(tmp_path, refused):
    x = np.random.default_rng(0).normal(size=(50, 2, 1))
    np.savez(tmp_path / "pairs.npz", x=x, y=x)
    refused(learn, tmp_path / "pairs.npz", tmp_path / "run", data={"where": "month == 3"})


def test_paths_know_the_calendar_of_coming_times(frame, refused):
    plain = frame.drop(columns="regime")
    data = DataOptions(calendar=("month", "weekday"), where="month in (3, 4, 5)")
    model = LatentGraphForecaster(window=2, assessment=OFF, data=data).fit(plain)
    cut = plain[plain.index < "2026-03-20"]
    ahead, known = model.predict(cut, steps=4), model.predict(plain, steps=4, origin="2026-03-19")
    assert [str(time.date()) for time in ahead.index] == ["2026-03-20", "2026-03-21", "2026-03-22", "2026-03-23"]
    np.testing.assert_allclose(ahead, known, rtol=1e-5)  # there the covariates are those of rows of the table
    assert any("that do not are forecast too" in note for note in ahead.attrs["notes"])
    regimes = LatentGraphForecaster(window=2, assessment=OFF, covariates="regime").fit(frame)
    refused(regimes.predict, frame, steps=4)

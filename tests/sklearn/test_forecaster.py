"""The estimator for series: tables of every form in, forecasts by time out, and all that the pairs' one has as well."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score

from own_files import NODES, series
from tacit import LatentGraphForecaster
from tacit.config import DataOptions, PredictorOptions
from tiny_fits import forecaster

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own deprecations
    pytest.importorskip("torch_geometric.nn")

TIMES = pd.date_range("2024-01-01", periods=120, freq="h", name="time")


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(series(), columns=NODES, index=TIMES)


@pytest.fixture(scope="module")
def fitted(table):
    return forecaster().fit(table)


@pytest.fixture(scope="module")
def panel():
    """Six series over the same nodes."""
    frames = {f"s{seed}": pd.DataFrame(series(40, seed), columns=NODES) for seed in range(6)}
    return pd.concat(frames, names=["place", "time"])


def test_forecasts_are_by_the_time_of_the_target(fitted, table):
    forecast = fitted.predict(table)
    assert forecast.columns.tolist() == list(NODES)
    assert forecast.index[0] == TIMES[2]
    assert forecast.index[-1] == TIMES[-1] + pd.Timedelta("1h")
    assert len(forecast) == 119
    tail = fitted.predict(table.iloc[-5:])
    pd.testing.assert_frame_equal(tail, forecast.iloc[-4:], rtol=1e-4, check_freq=False)  # no row depends on others
    np.testing.assert_allclose(
        fitted.predict(table, "median").iloc[-4:], fitted.predict(table.iloc[-5:], 0.5), rtol=1e-4
    )
    ahead = forecaster(horizon=3).fit(table).predict(table)
    assert ahead.index[-1] == TIMES[-1] + pd.Timedelta("3h")


def test_samples_quantiles_and_the_table_of_the_command(fitted, table):
    samples = fitted.sample(table, num_samples=7)
    assert samples.shape == (119, 7, 4)
    np.testing.assert_array_equal(samples, fitted.sample(table, num_samples=7, random_state=0))
    assert not np.array_equal(samples, fitted.sample(table, num_samples=7, random_state=1))
    found = fitted.forecast(table, num_samples=2)
    assert {"time", "node", "variable", "mean", "median", "q2.5", "q97.5", "sample_0", "sample_1"} <= set(found)
    assert len(found) == 4 * 119
    many = clone(fitted).set_params(point_graphs=1000).fit(table)
    by_node = many.forecast(table).pivot(index="time", columns="node", values="mean")[list(NODES)]
    np.testing.assert_allclose(many.predict(table), by_node, rtol=1e-5, atol=1e-4)


def test_score_leaves_out_what_is_not_known(fitted, table):
    predictions = fitted.predict(table).iloc[:-1]
    assert fitted.score(table) == pytest.approx(r2_score(table.iloc[2:], predictions), rel=1e-4)
    gaps = table.copy()
    gaps.iloc[100:, 0] = np.nan
    assert np.isfinite(fitted.score(gaps))
    with pytest.warns(UserWarning, match=r"R\^2 requires a column with at least two targets"):
        assert np.isnan(fitted.score(table.iloc[:2]))  # the only window ends before any target


def test_evaluation_is_that_of_the_test_part_or_of_new_data(fitted, table):
    own, new = fitted.evaluate(), fitted.evaluate(table)
    assert own["data"] == "the test part"
    assert own["metrics"] == fitted.record_.metrics
    assert set(own["references"]) == {"the last value", "ridge regression"}
    assert new["pairs"] == 118
    assert set(new["by_node"]["crps"]) == set(NODES)
    assert new["findings"]


def test_columns_of_two_levels_are_nodes_and_variables(table):
    both = pd.concat({"a": table, "b": 2 * table}, axis=1).swaplevel(axis=1).sort_index(axis=1)
    model = forecaster().fit(both)
    assert model.nodes_ == sorted(NODES)
    forecast = model.predict(both)
    assert forecast.columns.names == ["node", "variable"]
    assert forecast.shape == (119, 8)
    assert model.sample(both, 3).shape == (119, 3, 4, 2)
    one = forecaster(targets="b").fit(both)
    assert one.predict(both).columns.tolist() == [(node, "b") for node in sorted(NODES)]
    assert one.record_.preparation["scaling"]["variables"][0] == "b"


def test_several_series(panel):
    model = forecaster().fit(panel)
    forecast = model.predict(panel)
    assert forecast.index.nlevels == 2
    assert len(forecast) == 6 * 39  # every window of two rows, the last included
    column = forecaster(series="place").fit(panel.reset_index())
    np.testing.assert_array_equal(column.edge_probs_, model.edge_probs_)
    listed = forecaster().fit([part.droplevel(0) for _, part in panel.groupby(level=0)])
    np.testing.assert_array_equal(listed.edge_probs_, model.edge_probs_)
    assert any("split by whole series" in note for note in model.notes_)


def test_covariates_are_known_and_shared(table, refused):
    with_hour = table.assign(hour=TIMES.hour)
    model = forecaster(covariates=["hour"]).fit(with_hour)
    assert model.nodes_ == list(NODES)
    assert model._fitted.preparation.sizes.known == 2  # the hour of the target and the one before
    refused(model.predict, table)


def test_parameters_of_data_may_stand_in_the_options(table):
    data = DataOptions(window=3, horizon=2)
    model = LatentGraphForecaster(
        data=data, **{k: v for k, v in forecaster().get_params().items() if k not in ("data", "window")}
    ).fit(table)
    assert (model.record_.config["data"]["window"], model.record_.config["data"]["horizon"]) == (3, 2)
    assert model.predict(table).index[-1] == TIMES[-1] + pd.Timedelta("2h")


def test_a_warm_start_is_chosen_and_can_be_refused(table, fitted):
    assert fitted.record_.config["predictor"]["warm_start"] is True
    cold = forecaster(predictor=PredictorOptions(kind="filter", warm_start=False)).fit(table)
    assert not np.array_equal(cold.edge_probs_, fitted.edge_probs_)


def test_further_questions(fitted, table, refused):
    model = pickle.loads(pickle.dumps(fitted))
    assert model.identify(table).num_pairs == 83
    assert model.edge_identifiable_.shape == (4, 4)
    assert model.goodness_of_fit(table).num_pairs == 118
    model.estimate_std_errors(table, num_resamples=4)
    assert (model.edge_std_errors_[~np.eye(4, dtype=bool)] >= 0).all()
    other = table.copy()
    other["north"] *= 3
    refused(model.identify, other)


def test_what_is_wrong_is_one_line(table, fitted, tmp_path, unchecked, refused):
    refused(forecaster().fit, series())
    refused(forecaster().fit, None)
    refused(forecaster().fit, [])
    refused(forecaster().fit, table[["north"]])
    refused(forecaster(window=200).fit, table)
    refused(forecaster(window=0).fit, table)
    refused(forecaster(horizon="far").fit, table)
    refused(forecaster(targets="z").fit, table)
    refused(forecaster(series="z").fit, table)
    refused(forecaster(covariates=3).fit, table)
    refused(forecaster(data={"shuffle": False}).fit, table)
    refused(forecaster(random_state="x").fit, table)
    refused(fitted.predict, table[["north", "east"]])
    refused(fitted.predict, table.iloc[:1])
    refused(fitted.predict, table, point="mode")
    refused(fitted.sample, table, num_samples=0)
    refused(fitted.forecast, table, num_samples=-1)
    refused(fitted.save, tmp_path / "no" / "place")
    refused(LatentGraphForecaster.load, tmp_path / "nothing")

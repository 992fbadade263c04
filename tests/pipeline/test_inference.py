"""Predictions and scores of a finished run: against a computation by hand, on longer and shorter data."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from own_files import NODES, learn, series
from tacit.cli import runs
from tacit.pipeline import Fitted, evaluate, forecast_table, read_new, write_table

CPU = torch.device("cpu")
COLUMNS = ["mean", "q2.5", "q10", "median", "q90", "q97.5", "actual"]


def predict_file(fitted, path, **options):
    return forecast_table(fitted, read_new(fitted, [str(path)]), **options)


def evaluate_file(fitted, path):
    return evaluate(fitted, read_new(fitted, [str(path)]))


@pytest.fixture(scope="module")
def stored(certain):
    return Fitted.read(certain[0].directory, CPU)


@pytest.fixture(scope="module")
def predicted(stored, folder):
    return predict_file(stored, folder / "wide.csv")


def by_hand(stored):
    """The mean for every window of the series, and sigma of every node, in units: two lags, certain edges."""
    values = series()
    rows = values[: round(0.7 * (len(values) - 2)) + 2]
    mean, deviation = rows.mean(0), rows.std(0)
    scaled = (values - mean) / deviation
    tensors = {name: value.double().numpy() for name, value in stored.model.state_dict().items()}
    own, edges = tensors["predictor.own"][:, :, 0], tensors["predictor.edge_weights"][..., 0]
    bias = tensors["predictor.bias"][:, 0]
    means = []
    for last in range(1, len(values)):
        lags = scaled[last - 1 : last + 1]
        change = [own[i] @ lags[:, i] + bias[i] for i in range(4)]
        change[1] += edges[1, 0] @ lags[:, 0]
        change[2] += edges[2, 1] @ lags[:, 1]
        means.append((scaled[last] + change) * deviation + mean)
    sigma = np.exp(tensors["observation.log_sigma"][:, 0]) + 1e-3
    return np.array(means), sigma * deviation


def test_the_table(predicted, folder):
    times = pd.read_csv(folder / "wide.csv", parse_dates=["time"])["time"]
    assert list(predicted.columns) == ["time", "node", "variable", *COLUMNS]
    assert predicted["node"].tolist()[:5] == [*NODES, NODES[0]]
    assert set(predicted["variable"]) == {"value"}
    assert len(predicted) == 4 * (120 - 1)
    assert predicted["time"].iloc[0] == times[2]
    assert predicted["time"].iloc[-1] == times.iloc[-1] + pd.Timedelta("1h")  # the step after the end


def test_numbers_equal_those_made_by_hand(stored, predicted):
    """Quantiles of 1,000 normal draws that all rows share, 4 nodes x 4 levels: within 5 standard errors each."""
    means, sigmas = by_hand(stored)
    assert predicted["mean"].to_numpy().reshape(-1, 4) == pytest.approx(means, rel=1e-4, abs=1e-4)
    for column, level in (("q2.5", 0.025), ("q10", 0.1), ("median", 0.5), ("q97.5", 0.975)):
        place = norm.ppf(level)
        error = np.sqrt(level * (1 - level) / 1000) / norm.pdf(place)
        found = (predicted[column].to_numpy().reshape(-1, 4) - means) / sigmas
        assert np.abs(found - place).max() < 5 * error + 1e-3


def test_actual_values_are_those_of_the_table(stored, predicted, folder, tmp_path):
    """Exactly as they were given, whatever the order of the columns; empty where a target is missing or to come."""
    known = pd.read_csv(folder / "wide.csv")[list(NODES)].to_numpy()
    actual = predicted["actual"].to_numpy().reshape(-1, 4)
    assert (actual[:-1] == known[2:]).all()
    assert np.isnan(actual[-1]).all()
    turned = pd.read_csv(folder / "wide.csv")[["time", *reversed(NODES)]]
    turned.loc[50, "east"] = np.nan
    turned.to_csv(tmp_path / "turned.csv", index=False)
    found = predict_file(stored, tmp_path / "turned.csv")["actual"].to_numpy().reshape(-1, 4)
    assert np.isnan(found[48]).tolist() == [False, True, False, False]
    assert np.array_equal(np.delete(found, 48, 0), np.delete(actual, 48, 0), equal_nan=True)


def test_quantiles_are_ordered(predicted):
    quantiles = predicted[[column for column in COLUMNS if column not in ("mean", "actual")]].to_numpy()
    assert (np.diff(quantiles, axis=1) > 0).all()


def test_a_few_rows_are_enough(stored, predicted, folder, tmp_path):
    """A window's worth of rows, in which a node even stands still, gives the step after; more rows give more."""
    table = pd.read_csv(folder / "wide.csv")
    for rows in (2, 9):
        table.iloc[-rows:].to_csv(tmp_path / f"{rows}.csv", index=False)
        found = predict_file(stored, tmp_path / f"{rows}.csv")
        assert len(found) == 4 * (rows - 1)
        assert found["time"].iloc[-1] == predicted["time"].iloc[-1]
        assert found["mean"].to_numpy() == pytest.approx(predicted["mean"].to_numpy()[-len(found) :], rel=1e-5)
    still = table.iloc[-2:].assign(west=3.0)
    still.to_csv(tmp_path / "still.csv", index=False)
    assert len(predict_file(stored, tmp_path / "still.csv")) == 4


def test_more_rows_than_in_training_and_columns_in_another_order(stored, predicted, tmp_path):
    longer = pd.DataFrame(np.concatenate([series(), series(seed=5)]), columns=NODES)[list(reversed(NODES))]
    times = pd.date_range("2024-01-01", periods=240, freq="h")
    longer.assign(time=times).to_csv(tmp_path / "longer.csv", index=False)
    found = predict_file(stored, tmp_path / "longer.csv")
    assert len(found) == 4 * 239
    assert found["mean"].to_numpy()[: len(predicted)] == pytest.approx(predicted["mean"].to_numpy(), rel=1e-5)


def test_samples_are_columns_with_the_noise_of_the_node(stored, folder):
    found = predict_file(stored, folder / "wide.csv", num_samples=3)
    assert list(found.columns[-3:]) == ["sample_0", "sample_1", "sample_2"]
    _, sigmas = by_hand(stored)
    for node, sigma in zip(NODES, sigmas, strict=True):
        own = found[found["node"] == node]
        spread = (own[["sample_0", "sample_1", "sample_2"]].sub(own["mean"], axis=0)).to_numpy().std()
        assert spread == pytest.approx(sigma, rel=5 / np.sqrt(2 * 3 * len(own)))  # 5 standard errors


def test_scores_are_those_of_the_predictions(stored, predicted, folder):
    """The mean has no chance in it, so its squared error can be made from the table."""
    found = evaluate_file(stored, folder / "wide.csv")
    truth = series()[2:].flatten()
    error = predicted["mean"].to_numpy()[: len(truth)] - truth
    assert found["pairs"] == 118
    assert found["metrics"]["point_mse"] == pytest.approx((error**2).mean(), rel=1e-4)
    assert found["metrics"]["point_mae"] == pytest.approx(np.abs(error).mean(), rel=0.02)  # the median is sampled
    by_node = np.abs(error).reshape(-1, 4).mean(0)
    assert list(found["by_node"]["point_mae"]) == list(NODES)
    assert list(found["by_node"]["point_mae"].values()) == pytest.approx(by_node, rel=0.05)


def test_without_data_the_scores_of_the_record(stored):
    found = evaluate(stored, None)
    assert found["metrics"] == stored.record.metrics
    assert list(found["by_node"]["scaled_crps"]) == list(NODES)
    assert np.mean(list(found["by_node"]["crps"].values())) == pytest.approx(found["metrics"]["crps"])
    assert found["by_series"] == {}
    assert set(found["references"]) == {"the last value", "ridge regression"}


def test_only_what_is_known_is_scored(stored, folder, tmp_path, refused):
    table = pd.read_csv(folder / "wide.csv")
    table.loc[60:, "north"] = np.nan
    table.loc[100:, list(NODES)] = np.nan
    table.to_csv(tmp_path / "holes.csv", index=False)
    found = evaluate_file(stored, tmp_path / "holes.csv")
    assert found["pairs"] == 98
    table.loc[:, "north"] = np.nan
    table.to_csv(tmp_path / "never.csv", index=False)
    found = evaluate_file(stored, tmp_path / "never.csv")
    assert np.isnan(found["by_node"]["crps"]["north"])
    assert runs._finite(found)["by_node"]["crps"]["north"] is None  # null in JSON
    table.iloc[:2].to_csv(tmp_path / "two.csv", index=False)
    refused(evaluate_file, stored, tmp_path / "two.csv")


def test_scores_of_each_series(folder, tmp_path):
    """Of the test part in the record: here the last series alone. Of new data all that have a window."""
    parts = [pd.DataFrame(series(30, seed), columns=NODES).assign(day=f"day {seed}") for seed in range(6)]
    table = pd.concat(parts)
    table.insert(0, "time", np.tile(np.arange(30), 6))
    table.to_csv(tmp_path / "days.csv", index=False)
    rules = {"edges": str(folder / "certain.csv")}  # the mean has no chance in it
    made, _ = learn(tmp_path / "days.csv", tmp_path / "run", data={"series": "day"}, graph=rules)
    fitted = Fitted.read(made.directory, CPU)
    assert list(fitted.record.by_series["crps"]) == ["day 5"]
    assert fitted.record.by_series["crps"]["day 5"] == pytest.approx(fitted.record.metrics["crps"])
    assert evaluate(fitted, None)["by_series"] == fitted.record.by_series
    table[(table["day"] != "day 1") | (table["time"] < 1)].to_csv(tmp_path / "some.csv", index=False)
    found = evaluate_file(fitted, tmp_path / "some.csv")
    assert list(found["by_series"]["crps"]) == ["day 0", "day 2", "day 3", "day 4", "day 5"]
    alone = evaluate_file(fitted, _written(table[table["day"] == "day 3"], tmp_path / "alone.csv"))
    assert found["by_series"]["point_mse"]["day 3"] == pytest.approx(alone["metrics"]["point_mse"], rel=1e-5)


def _written(table, path):
    table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("horizon", [1, 4])
def test_several_variables_and_horizons(horizon, folder, tmp_path, refused):
    data = {"separator": ":", "covariates": "hour", "horizon": horizon}
    made, _ = learn(folder / "two.csv", tmp_path / "run", data=data)
    stored = Fitted.read(made.directory, CPU)
    found = predict_file(stored, folder / "two.csv")
    assert found["variable"].tolist()[:3] == ["a", "b", "a"]
    assert len(found) == 8 * (119 - horizon)
    assert found["time"].iloc[-1] == pd.Timestamp("2024-01-05 23:00")  # the hour after it is not known
    assert any("covariate 'hour' is not known" in note for note in found.attrs["notes"])
    table = pd.read_csv(folder / "two.csv")
    table.drop(columns="hour").to_csv(tmp_path / "no_hour.csv", index=False)
    refused(predict_file, stored, tmp_path / "no_hour.csv")
    table.rename(columns=lambda name: name.replace(":b", ":c")).to_csv(tmp_path / "c.csv", index=False)
    refused(predict_file, stored, tmp_path / "c.csv")


def test_pairs_are_predicted_with_and_without_y(folder, tmp_path, refused):
    made, _ = learn(folder / "pairs.npz", tmp_path / "run")
    stored = Fitted.read(made.directory, CPU)
    found = predict_file(stored, folder / "x_only.npz")
    assert list(found.columns) == ["pair", "node", "variable", *COLUMNS]
    assert found["pair"].tolist() == np.repeat(np.arange(7), 4).tolist()
    assert set(found["variable"]) == {"y"}
    assert found["actual"].isna().all()
    known = predict_file(stored, folder / "pairs.npz")["actual"].to_numpy().reshape(-1, 4)
    assert known == pytest.approx(np.load(folder / "pairs.npz")["y"], rel=1e-6)
    assert evaluate_file(stored, folder / "pairs.npz")["pairs"] == 120
    refused(evaluate_file, stored, folder / "x_only.npz")
    refused(predict_file, stored, folder / "wide.csv")
    for name, arrays in (
        ("nodes", {"x": np.ones((2, 3, 2))}),
        ("x", {"x": np.ones((2, 4, 3)), "nodes": NODES}),
        ("y", {"x": np.ones((2, 4, 2)), "y": np.ones((2, 4, 2)), "nodes": NODES}),
    ):
        np.savez(tmp_path / f"{name}.npz", **arrays)
        refused(predict_file, stored, tmp_path / f"{name}.npz")


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.rename(columns={"west": "up"}),
        lambda table: table.assign(up=1.0),
        lambda table: table.iloc[:1],
        lambda table: table.assign(west="x"),
    ],
)
def test_data_of_another_kind(change, stored, folder, tmp_path, refused):
    change(pd.read_csv(folder / "wide.csv")).to_csv(tmp_path / "new.csv", index=False)
    refused(predict_file, stored, tmp_path / "new.csv")


def test_a_series_is_not_pairs(stored, folder, refused):
    refused(predict_file, stored, folder / "pairs.npz")


def test_tables_are_written_once(predicted, tmp_path, refused):
    write_table(predicted, tmp_path / "new" / "a.csv")
    back = pd.read_csv(tmp_path / "new" / "a.csv", parse_dates=["time"])
    assert back["mean"].to_numpy() == pytest.approx(predicted["mean"].to_numpy(), rel=1e-9)
    write_table(predicted, tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), predicted, check_dtype=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "new"]
    for name in ("a.parquet", "a.xlsx", "a.parquet/b.csv"):
        refused(write_table, predicted, tmp_path / name)

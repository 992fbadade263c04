import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from torch import nn

from tacit import LatentGraphForecaster, LatentGraphRegressor
from tacit.config import AssessmentOptions, DataOptions, GraphOptions, PredictorOptions, TrainingOptions
from tiny_fits import regressor


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), rng.normal(size=(60, 3))


@pytest.fixture(scope="module")
def fitted(pairs):
    return regressor().fit(*pairs)


def test_tables_bring_names(pairs, refused):
    x, y = (pd.DataFrame(part, columns=["a", "b", "c"]) for part in pairs)
    model = regressor().fit(x, y)
    assert model.nodes_ == model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    np.testing.assert_array_equal(model.predict(x), clone(model).fit(*pairs).predict(pairs[0]))
    edges = model.edges_
    assert edges.columns.tolist() == ["source", "target", "probability"]
    for edge in edges.itertuples():  # target row, source column
        place = "abc".index(edge.target), "abc".index(edge.source)
        assert edge.probability == model.edge_probs_[place]
    assert model.to_networkx().edges["a", "b"]["probability"] == pytest.approx(model.edge_probs_[1, 0])
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.predict(x[["b", "a", "c"]])
    refused(clone(model).fit, x, y[["b", "a", "c"]])
    assert regressor().fit(pairs[0], y).nodes_ == ["a", "b", "c"]


def test_a_table_with_channels_is_the_array_with_channels(pairs, refused):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3, 2))
    columns = pd.MultiIndex.from_product([["a", "b", "c"], ["pm25", "wind"]])
    table = pd.DataFrame(x.reshape(60, 6), columns=columns)
    model = regressor().fit(table, pairs[1])
    assert (model.nodes_, model.channels_) == (["a", "b", "c"], ["pm25", "wind"])
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    array = regressor().fit(x, pairs[1])
    np.testing.assert_array_equal(model.predict(table), array.predict(x))
    shuffled = table[[("a", "wind"), ("b", "wind"), ("c", "wind"), ("a", "pm25"), ("b", "pm25"), ("c", "pm25")]]
    refused(model.predict, shuffled)
    refused(model.predict, table.drop(columns=[("b", "wind")]))


def test_tensors_and_targets_with_channels(pairs):
    x, y = (torch.tensor(part) for part in pairs)
    model = regressor().fit(x, y)
    np.testing.assert_array_equal(model.predict(pairs[0]), clone(model).fit(*pairs).predict(x))
    with_channel = clone(model).fit(x[..., None], y[..., None])
    assert with_channel.predict(x).shape == (60, 3, 1)
    assert with_channel.sample(x, 5).shape == (60, 5, 3, 1)
    two = clone(model).fit(x, np.stack([pairs[1], -pairs[1]], -1))
    assert two.predict(x).shape == (60, 3, 2)
    assert isinstance(two.score(x, np.stack([pairs[1], -pairs[1]], -1)), float)


BAD_PARAMETERS = {
    "predictor": "convolutions",
    "observation": "Gaussian",
    "loss": "enrgy",
    "training": {"epochs": 3},
    "data": TrainingOptions(),
    "density": 1.5,
    "random_state": -1,
    "device": "gpu",
    "candidates": 3,
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_bad_parameters_are_refused_at_fit(name, pairs, unchecked, refused):
    value = BAD_PARAMETERS[name]
    model = regressor().set_params(**{name: value})
    refused(model.fit, *pairs)


def test_bad_data(fitted, pairs, refused):
    x, y = pairs
    gap = x.copy()
    gap[0, 0] = np.inf
    for bad_x, bad_y, message in (
        (gap, y, "Input X contains infinity"),
        (x, y[:, 0], "y must have shape \\(pairs, nodes\\) or \\(pairs, nodes, channels\\), got \\(60,\\)"),
        (x, y[:, :2], "y must have a value for each of the 3 nodes of X, got 2"),
        (x, y[:50], "inconsistent numbers of samples"),
        (x, y * np.nan, "y must have at least one value, got NaN everywhere"),
        (x[..., None, None], y, "X must have shape \\(pairs, nodes\\) or"),
    ):
        with pytest.raises(ValueError, match=message):
            regressor().fit(bad_x, bad_y)
    with pytest.raises(ValueError, match="X has 2 features, but LatentGraphRegressor is expecting 3"):
        fitted.predict(x[:, :2])
    refused(fitted.predict, np.stack([x, x], -1))
    with pytest.raises(TypeError, match="sample_weight"):
        LatentGraphRegressor().fit(x, y, sample_weight=np.ones(60))
    for name in ("edge_probs_", "history_", "nodes_"):
        assert not hasattr(LatentGraphRegressor(), name)


def test_options_are_checked_where_they_are_made(refused):
    """In one line: the estimators take options that are right already."""
    refused(TrainingOptions, epochs=0)
    refused(TrainingOptions, batch_size=2.5)
    refused(TrainingOptions, replicas=0)
    refused(DataOptions, validation_fraction=1.0)
    refused(DataOptions, scale="perhaps")
    refused(PredictorOptions, hidden=(0,))
    refused(GraphOptions, forbidden=3)
    refused(GraphOptions, layout="tabel")
    refused(AssessmentOptions, bootstrap_replica=3)


# ---------------------------------------------------------------- missing values in X


QUICK = {
    "training": TrainingOptions(epochs=2, replicas=1, compile=False),
    "assessment": AssessmentOptions(enabled=False),
}


@pytest.fixture(scope="module")
def pairs_missing_inputs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = x + 2 * x[:, [1, 1, 1]] * [1, 0, 0] + 0.1 * rng.normal(size=x.shape)  # node 0 reads node 1
    return np.where(rng.random(x.shape) < 0.1, np.nan, x), y


def test_fit_predict_and_save(pairs_missing_inputs, tmp_path):
    x, y = pairs_missing_inputs
    model = LatentGraphRegressor(**QUICK).fit(x, y)
    assert model.listed_edges()[["source", "target"]].values.tolist() == [["1", "0"]]
    assert any(
        "missing inputs were replaced by the mean of node and channel and flagged" in note for note in model.notes_
    )
    found = model.predict(x)
    assert np.isfinite(found).all()
    there = ~np.isnan(x).any(axis=1)
    assert np.abs(found - y)[there].mean() < np.abs(found - y)[~there].mean()
    np.testing.assert_array_equal(model.predict(x[:5]), model.predict(x)[:5])
    model.save(tmp_path / "model.tacit")
    np.testing.assert_array_equal(LatentGraphRegressor.load(tmp_path / "model.tacit").predict(x), found)
    assert model.score(x, y) > 0.5
    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.predict(np.where(np.isnan(x), np.inf, x))


def test_tables_with_gaps(pairs_missing_inputs):
    x, y = pairs_missing_inputs
    nodes = ["a", "b", "c"]
    model = LatentGraphRegressor(**QUICK).fit(pd.DataFrame(x, columns=nodes), pd.DataFrame(y, columns=nodes))
    np.testing.assert_allclose(
        model.predict(pd.DataFrame(x, columns=nodes)), LatentGraphRegressor(**QUICK).fit(x, y).predict(x)
    )


class Mean(nn.Module):
    """Predict from the input of the node alone."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x, graphs):
        return (self.weight * x).unsqueeze(1) + 0 * (graphs @ x.unsqueeze(1))


@pytest.mark.parametrize("predictor", ["hops", Mean()])
def test_predictors_that_see_the_numbers_as_they_are(predictor, pairs_missing_inputs, refused):
    x, y = pairs_missing_inputs
    refused(LatentGraphRegressor(predictor=predictor, **QUICK).fit, x, y)
    model = LatentGraphRegressor(predictor=predictor, **QUICK).fit(np.nan_to_num(x), y)
    refused(model.predict, x)


def test_choices_of_columns_are_for_tables(pairs_missing_inputs, refused):
    x, y = pairs_missing_inputs
    for options in (
        DataOptions(columns="0"),
        DataOptions(drop="0"),
        DataOptions(y_file="y.csv"),
        DataOptions(dayfirst=True),
    ):
        refused(LatentGraphRegressor(data=options, **QUICK).fit, x, y)


def test_a_forecaster_chooses_columns(refused):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd")).assign(city="Lugano", id=3)
    table.insert(0, "day", pd.date_range("2021-03-01", periods=80).strftime("%d/%m/%Y"))
    model = LatentGraphForecaster(window=1, data=DataOptions(drop=("d",)), **QUICK).fit(table)
    assert model.nodes_ == ["a", "b", "c"]
    assert "left out: 'city' (text), 'id' (constant)" in model.notes_
    forecast = model.predict(table.head(3).assign(id=[1, 2, 3]))  # these dates alone have two readings
    assert forecast.index[-1] == np.datetime64("2021-03-04")
    refused(model.predict, table.assign(b="low"))

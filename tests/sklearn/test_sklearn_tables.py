import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from tacit import LatentGraphRegressor
from tacit.config import AssessmentOptions, DataOptions, GraphOptions, PredictorOptions, TrainingOptions
from tacit.errors import InputError
from tiny_fits import regressor


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), rng.normal(size=(60, 3))


@pytest.fixture(scope="module")
def fitted(pairs):
    return regressor().fit(*pairs)


def test_tables_bring_names(pairs):
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
    with pytest.raises(InputError, match="y must have the nodes of X in their order, got 'b' where X has 'a'"):
        clone(model).fit(x, y[["b", "a", "c"]])
    assert regressor().fit(pairs[0], y).nodes_ == ["a", "b", "c"]


def test_a_table_with_channels_is_the_array_with_channels(pairs):
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
    with pytest.raises(InputError, match="X must have the channels of the fit in order"):
        model.predict(shuffled)
    with pytest.raises(InputError, match="same channels for all nodes, but 'b' has no column 'wind'"):
        model.predict(table.drop(columns=[("b", "wind")]))


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
    "predictor": ("convolutions", "predictor must be a registered name .*did you mean 'convolution'?"),
    "observation": ("Gaussian", "observation must be a registered name .*, got 'Gaussian'; did you mean 'gaussian'?"),
    "loss": ("enrgy", "loss must be a registered name .*, got 'enrgy'; did you mean 'energy'?"),
    "training": ({"epochs": 3}, r"training must be TrainingOptions\(...\), got .*; pass for example TrainingOptions"),
    "data": (TrainingOptions(), r"data must be DataOptions\(...\), got .*; pass for example DataOptions"),
    "density": (1.5, "density in .graph. is not usable: .*less than 1, got 1.5"),
    "random_state": (-1, "random_state must be an integer of at least 0, a generator or None, got -1"),
    "device": ("gpu", "device must be one of auto, cpu, cuda, cuda:N, got 'gpu'"),
    "candidates": (3, "candidates must be edges as \\(source, target\\), got 3"),
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_bad_parameters_are_refused_at_fit(name, pairs, unchecked):
    value, message = BAD_PARAMETERS[name]
    model = regressor().set_params(**{name: value})
    with pytest.raises(InputError, match=message):
        model.fit(*pairs)


def test_bad_data(fitted, pairs):
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
    with pytest.raises(InputError, match="X must have 1 channels per node as in fit, got 2"):
        fitted.predict(np.stack([x, x], -1))
    with pytest.raises(TypeError, match="sample_weight"):
        LatentGraphRegressor().fit(x, y, sample_weight=np.ones(60))
    for name in ("edge_probs_", "history_", "nodes_"):
        assert not hasattr(LatentGraphRegressor(), name)


def test_options_are_checked_where_they_are_made():
    """In one line: the estimators take options that are right already."""
    for make in (
        lambda: TrainingOptions(epochs=0),
        lambda: TrainingOptions(batch_size=2.5),
        lambda: TrainingOptions(replicas=0),
        lambda: DataOptions(validation_fraction=1.0),
        lambda: DataOptions(scale="perhaps"),
        lambda: PredictorOptions(hidden=(0,)),
        lambda: GraphOptions(forbidden=3),
        lambda: GraphOptions(layout="tabel"),
        lambda: AssessmentOptions(bootstrap_replica=3),
    ):
        with pytest.raises(InputError, match=r"is not usable: |has no 'bootstrap_replica'; did you mean"):
            make()


@pytest.mark.parametrize("package", ["polars", "pyarrow", "xarray"])
def test_tables_of_other_packages(pairs, package):
    pytest.importorskip(package)
    x, y = (pd.DataFrame(part, columns=["a", "b", "c"]) for part in pairs)
    if package == "polars":
        import polars as pl

        make = pl.from_pandas
    elif package == "pyarrow":
        import pyarrow as pa

        make = pa.Table.from_pandas
    else:
        import xarray as xr

        def make(frame):
            return xr.DataArray(frame.to_numpy(), dims=("pair", "node"), coords={"node": list(frame.columns)})

    model, plain = regressor().fit(make(x), make(y)), regressor().fit(x, y)
    assert model.nodes_ == model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(make(x)), plain.predict(x))

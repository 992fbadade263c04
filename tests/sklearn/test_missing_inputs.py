"""Missing values in X: filled with means and flagged, the same in fit, predict and a saved model."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from tacit import LatentGraphForecaster, LatentGraphRegressor
from tacit.config import AssessmentOptions, DataOptions, TrainingOptions
from tacit.errors import InputError

QUICK = {
    "training": TrainingOptions(epochs=2, replicas=1, compile=False),
    "assessment": AssessmentOptions(enabled=False),
}


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = x + 2 * x[:, [1, 1, 1]] * [1, 0, 0] + 0.1 * rng.normal(size=x.shape)  # node 0 reads node 1
    return np.where(rng.random(x.shape) < 0.1, np.nan, x), y


def test_fit_predict_and_save(pairs, tmp_path):
    x, y = pairs
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


def test_tables_with_gaps(pairs):
    x, y = pairs
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
def test_predictors_that_see_the_numbers_as_they_are(predictor, pairs):
    x, y = pairs
    message = "x must be a number everywhere for 'hops' and for custom modules"
    with pytest.raises(InputError, match=message):
        LatentGraphRegressor(predictor=predictor, **QUICK).fit(x, y)
    model = LatentGraphRegressor(predictor=predictor, **QUICK).fit(np.nan_to_num(x), y)
    with pytest.raises(InputError, match=message):
        model.predict(x)


def test_choices_of_columns_are_for_tables(pairs):
    x, y = pairs
    for options in (
        DataOptions(columns="0"),
        DataOptions(drop="0"),
        DataOptions(y_file="y.csv"),
        DataOptions(dayfirst=True),
    ):
        with pytest.raises(InputError, match=r"in \[data\] has no meaning for X and y, which has pairs x and y"):
            LatentGraphRegressor(data=options, **QUICK).fit(x, y)


def test_a_forecaster_chooses_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd")).assign(city="Lugano", id=3)
    table.insert(0, "day", pd.date_range("2021-03-01", periods=80).strftime("%d/%m/%Y"))
    model = LatentGraphForecaster(window=1, data=DataOptions(drop=("d",)), **QUICK).fit(table)
    assert model.nodes_ == ["a", "b", "c"]
    assert "left out: 'city' (text), 'id' (constant)" in model.notes_
    forecast = model.predict(table.head(3).assign(id=[1, 2, 3]))  # these dates alone have two readings
    assert forecast.index[-1] == np.datetime64("2021-03-04")
    with pytest.raises(InputError, match="column 'b' must have numbers, got 'low' in row 1"):
        model.predict(table.assign(b="low"))

"""Estimators whose edges depend on the situation: attributes, saving, covariates of pairs."""

import numpy as np
import pandas as pd
import pytest

from gated_tables import gated
from tacit import LatentGraphForecaster, LatentGraphRegressor
from tacit.config import AssessmentOptions, GraphOptions

QUICK = {"predictor": "filter", "assessment": AssessmentOptions(enabled=False)}


@pytest.fixture(scope="module")
def table():
    return gated(by="season").drop(columns="level").set_index("time")


@pytest.fixture(scope="module")
def forecaster(table):
    return LatentGraphForecaster(window=1, graph=GraphOptions(depends_on=["season"]), **QUICK).fit(table)


def test_the_table_of_situations_is_an_attribute(forecaster):
    edges = forecaster.edges_
    assert edges[edges["varies"] == "yes"][["source", "target"]].values.tolist() == [["river", "lake"]]
    by = forecaster.edges_by_
    assert by.columns.tolist() == ["source", "target", "by", "value", "probability", "std_error", "low", "high"]
    assert by.value.tolist() == ["dry", "wet"]
    assert by.probability[1] > by.probability[0]


def test_it_must_be_asked(table):
    model = LatentGraphForecaster(window=1, **QUICK).fit(table.drop(columns="season"))
    with pytest.raises(AttributeError, match="set depends_on or regimes in GraphOptions"):
        _ = model.edges_by_
    assert "varies" not in model.edges_


def test_pairs_take_covariates(refused):
    rng = np.random.default_rng(0)
    x, gate = rng.normal(size=(900, 2)), pd.DataFrame({"gate": rng.choice(["open", "shut"], size=900)})
    acts = rng.random(900) < np.where(gate.gate == "open", 0.9, 0.1)
    y = 0.2 * rng.normal(size=(900, 2)) + np.stack([0.9 * acts * x[:, 1], np.zeros(900)], 1)
    model = LatentGraphRegressor(graph=GraphOptions(depends_on=["gate"]), **QUICK).fit(x, y, covariates=gate)
    by = model.edges_by_.set_index("value").probability
    assert by["open"] > 0.8 > 0.2 > by["shut"]
    one = np.array([[0.0, 1.0]])
    open_, shut = (model.predict(one, covariates={"gate": [word]})[0, 0] for word in ("open", "shut"))
    assert open_ > shut + 0.5
    refused(model.predict, one)
    refused(model.predict, one, covariates={"gate": ["ajar"]})
    assert model.score(x, y, covariates=gate) > 0

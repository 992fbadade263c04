"""What holds for both estimators: large offsets, objects, refused fits, stored losses, notes."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from tacit import LatentGraphForecaster, LatentGraphRegressor
from tacit.assessment.uncertainty import acting
from tacit.config import AssessmentOptions, DataOptions, GraphOptions, ModelConfig, TrainingOptions
from tacit.errors import InputError
from tacit.losses import ExpectedError
from tacit.observation import GaussianNoise
from tacit.pipeline import std_errors
from tiny_fits import random_pairs

QUICK = {
    "training": TrainingOptions(epochs=3, replicas=1, compile=False),
    "assessment": AssessmentOptions(enabled=False),
    "point_graphs": 50,
}


def table(rows=120, seed=0):
    rng, values = np.random.default_rng(seed), np.zeros((rows, 3))
    for row in range(1, rows):
        values[row] = 0.6 * values[row - 1] + 0.5 * values[row - 1, [1, 2, 0]] + 0.3 * rng.normal(size=3)
    return pd.DataFrame(values, columns=["a", "b", "c"])


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_a_large_offset_changes_nothing(offset):
    x, y = random_pairs(200)
    plain, moved = (LatentGraphRegressor(**QUICK).fit(x + by, y + by) for by in (0, offset))
    np.testing.assert_allclose(moved.edge_probs_, plain.edge_probs_, atol=1e-5)
    assert moved.score(x + offset, y + offset) == pytest.approx(plain.score(x, y), abs=1e-4)
    plain, moved = (LatentGraphForecaster(window=1, **QUICK).fit(table() + by) for by in (0, offset))
    np.testing.assert_allclose(moved.edge_probs_, plain.edge_probs_, atol=1e-5)
    assert moved.score(table() + offset) == pytest.approx(plain.score(table()), abs=1e-4)


@pytest.mark.parametrize("observation", [GaussianNoise(3), print, 3])
def test_an_observation_model_is_named_not_passed(observation):
    with pytest.raises(InputError, match=r"observation must be ObservationOptions\(...\) or a name, got"):
        LatentGraphRegressor(observation=observation, **QUICK).fit(*random_pairs(60))


@pytest.mark.parametrize("mask", [np.ones((2, 2), bool), np.ones((3, 2), bool)])
def test_a_mask_of_another_shape_is_refused(mask):
    with pytest.raises(InputError, match=r"candidates must be a mask of booleans of shape \(3, 3\), got"):
        LatentGraphRegressor(candidates=mask, **QUICK).fit(*random_pairs(60))


@pytest.mark.parametrize("of", [np.asarray, torch.tensor])
def test_forbidden_and_required_edges_may_be_masks(of):
    forbidden, required = of([[0, 1, 0], [0, 0, 0], [0, 0, 0]]) > 0, of([[0, 0, 0], [0, 0, 0], [1, 0, 0]]) > 0
    graph = GraphOptions(forbidden=forbidden, required=required)
    probs = LatentGraphRegressor(graph=graph, **QUICK).fit(*random_pairs(60)).edge_probs_
    assert probs[0, 1] == 0
    assert probs[2, 0] == 1


def test_a_loss_that_needs_fewer_graphs_is_read_back():
    x, y = random_pairs(60)
    options = {"loss": ExpectedError(baseline="none"), "observation": "none", "model": ModelConfig(num_graphs=1)}
    model = LatentGraphRegressor(**options, **QUICK).fit(x, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x))


def test_a_refused_fit_leaves_the_earlier_one_as_it_was():
    x, y = random_pairs(60)
    model = LatentGraphRegressor(**QUICK).fit(x, y)
    with pytest.raises(InputError):
        model.fit(x[:4], y[:4, :, None])
    assert model.predict(x).shape == y.shape


def test_a_second_fit_takes_no_names_of_the_first():
    x, y = random_pairs(60)
    names = ["a", "b", "c"]
    model = LatentGraphRegressor(**QUICK).fit(pd.DataFrame(x, columns=names), pd.DataFrame(y, columns=names))
    assert model.fit(x, y).nodes_ == ["0", "1", "2"]


def test_a_device_object_and_an_index_of_covariates_are_taken():
    model = LatentGraphRegressor(device=torch.device("cpu"), **QUICK).fit(*random_pairs(60))
    assert pickle.loads(pickle.dumps(model)).nodes_ == model.nodes_
    hours = table().assign(hour=np.arange(120) % 24)
    made = LatentGraphForecaster(window=1, covariates=pd.Index(["hour"]), **QUICK).fit(hours)
    assert made.nodes_ == ["a", "b", "c"]
    assert made.n_features_in_ == 3


def test_later_standard_errors_choose_the_edges_of_each_resample_as_the_fit_does(monkeypatch):
    x, y = random_pairs(60)
    seen = []
    monkeypatch.setattr(
        std_errors, "estimate_acting", lambda *args, **given: seen.append(given["kept"]) or acting(*args, **given)
    )
    options = {**QUICK, "assessment": AssessmentOptions(bootstrap_replicas=4, controls=False)}
    LatentGraphRegressor(**options).fit(x, y).estimate_std_errors(x, y, num_resamples=4)
    rows = torch.randint(42, (1, 42), generator=torch.Generator().manual_seed(0))
    of_fit, later = (kept(rows) for kept in seen)
    assert torch.equal(later, of_fit)
    assert 0 < int(of_fit.sum()) < 6


def test_later_standard_errors_leave_the_answer_and_its_record_as_they_were():
    x, y = random_pairs(120)
    options = {**QUICK, "assessment": AssessmentOptions(bootstrap_replicas=4, controls=True)}
    model = LatentGraphRegressor(**options).fit(x, y)
    probs, errors, metrics = model.edge_probs_.copy(), model.edge_std_errors_.copy(), dict(model.record_.metrics)
    model.estimate_std_errors(x, y, num_resamples=4)
    np.testing.assert_allclose(model.edge_std_errors_, errors, rtol=1e-4)  # of the fit, edges chosen as there
    np.testing.assert_array_equal(model.edge_probs_, probs)
    assert model.record_.metrics == metrics
    assert sum(line.startswith("Standard errors from") for line in model.findings_) == 1
    assert not any(line.startswith("Intervals are widened") for line in model.findings_)


def test_intervals_and_tests_are_about_the_reported_probability():
    x, y = random_pairs(600)
    options = {**QUICK, "assessment": AssessmentOptions(bootstrap_replicas=4, controls=False)}
    model = LatentGraphRegressor(**options).fit(x, y)
    assert "always" in model.record_.uncertainty
    between = (model.edge_probs_ > 0) & (model.edge_probs_ < 0.9)
    narrow = model.edge_intervals(0.01).pivot(index="target", columns="source", values=["low", "high"]).to_numpy()
    middle = (narrow[:, :3] + narrow[:, 3:]) / 2
    assert between.any()
    np.testing.assert_allclose(middle[between], model.edge_probs_[between], atol=1e-6)
    assert np.abs(model.edge_probs_bagged_ - model.edge_probs_)[between].max() > 1e-3  # another number
    significant = model.significant_edges(above=0.3)
    low = model.edge_intervals(0.05).set_index(["source", "target"])["low"]  # undecided edges have wide intervals
    assert len(significant) >= 1
    assert (low[list(zip(significant.source, significant.target, strict=True))] > 0.3).all()


def test_series_that_are_too_short_to_predict_are_named():
    series = pd.concat({name: table(40, seed) for seed, name in enumerate("uvwxy")}, names=["place", "time"])
    model = LatentGraphForecaster(data=DataOptions(window=2), **QUICK).fit(series)
    short = pd.concat([series.loc[["u"]], series.loc[["v"]].iloc[:1]])
    forecast = model.predict(short)
    assert set(forecast.index.get_level_values(0)) == {"u"}
    assert any("left out" in note for note in forecast.attrs["notes"])
    assert any("left out" in note for note in model.evaluate(short)["notes"])

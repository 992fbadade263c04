"""What holds for both estimators: large offsets, objects, refused fits, stored losses, notes."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from own_files import NODES, series
from tacit import LatentGraphForecaster, LatentGraphRegressor
from tacit.assessment.uncertainty import acting
from tacit.config import AssessmentOptions, DataOptions, GraphOptions, ModelConfig, TrainingOptions
from tacit.errors import InputError
from tacit.losses import ExpectedError
from tacit.observation import GaussianNoise
from tacit.pipeline import std_errors
from tiny_fits import OneLayer, forecaster, one_layer, random_pairs, regressor

QUICK = {
    "training": TrainingOptions(epochs=3, replicas=1, compile=False),
    "assessment": AssessmentOptions(enabled=False),
    "point_graphs": 50,
}


TIMES = pd.date_range("2024-01-01", periods=120, freq="h", name="time")


@pytest.fixture(scope="module", params=["pairs", "series"])
def case(request):
    """Return a function that makes the estimator, and its data: X and y, or the table of a series."""
    if request.param == "pairs":
        return regressor, random_pairs(60)
    return forecaster, (pd.DataFrame(series(), columns=NODES, index=TIMES),)


@pytest.fixture(scope="module")
def fitted(case):
    make, data = case
    return make().fit(*data)


def same(one, other):
    np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_same_state_same_result_and_a_refit_starts_afresh(case, fitted):
    _, data = case
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()
    assert not hasattr(again, "edge_probs_")
    for _ in range(2):
        same(again.fit(*data).edge_probs_, fitted.edge_probs_)
        same(again.predict(data[0]), fitted.predict(data[0]))
    other = clone(fitted).set_params(random_state=1).fit(*data)
    assert not np.array_equal(other.edge_probs_, fitted.edge_probs_)


def test_random_states_are_those_of_scikit_learn(case, fitted):
    make, data = case
    drawn = [clone(fitted).set_params(random_state=None).fit(*data).edge_probs_ for _ in range(2)]
    assert not np.array_equal(*drawn)
    first, second = (make(random_state=np.random.RandomState(3)).fit(*data) for _ in range(2))
    same(first.edge_probs_, second.edge_probs_)
    assert not np.array_equal(second.fit(*data).edge_probs_, first.edge_probs_)  # the state has moved on
    x = data[0][:4]
    same(fitted.sample(x, 5), fitted.sample(x, 5, random_state=0))
    assert not np.array_equal(fitted.sample(x, 50), fitted.sample(x, 50, random_state=np.random.default_rng(1)))


def test_pickles_and_files(case, fitted, tmp_path):
    x = case[1][0]
    fitted.save(tmp_path / "model")
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    for restored in (pickle.loads(pickle.dumps(fitted)), type(fitted).load(tmp_path / "model")):
        same(restored.predict(x), fitted.predict(x))
        same(restored.sample(x, 5), fitted.sample(x, 5))
        pd.testing.assert_frame_equal(restored.edges_, fitted.edges_)
        assert restored.get_params() == fitted.get_params()
        assert restored.evaluate() == fitted.evaluate()
        for name in ("history_", "replicas_", "best_replica_"):
            assert getattr(restored, name) == getattr(fitted, name)


@pytest.mark.parametrize("own", [OneLayer, one_layer])
def test_a_predictor_of_ones_own_is_used_and_not_changed(own, case):
    """A module, or a function that makes it; nothing that was passed changes, no global generator is used."""
    make, data = case
    channels = 1 if len(data) == 2 else 2
    predictor = OneLayer(channels) if own is OneLayer else one_layer
    before, given = np.random.get_state()[1].copy(), [np.array(part) for part in data]
    model = make(predictor=predictor).fit(*data)
    assert np.isfinite(np.asarray(model.predict(data[0]))).all()
    assert isinstance(model.predictor_, OneLayer)
    same(before, np.random.get_state()[1])
    assert all(np.array_equal(part, old) for part, old in zip(data, given, strict=True))
    kept = pickle.loads(pickle.dumps(make(predictor=predictor))).predictor
    if own is OneLayer:
        assert torch.equal(predictor.weight, OneLayer(channels).weight)
        assert isinstance(kept, OneLayer)
    else:
        assert kept is one_layer


def test_the_assessment_and_the_page_are_part_of_fit(case, tmp_path, refused):
    make, data = case
    assessed = {"enabled": True, "bootstrap_replicas": 4, "controls": True}
    model = make(predictor="filter", observation="auto", assessment=assessed).fit(*data)
    assert model.record_.config["predictor"]["warm_start"] is True
    nodes = len(model.nodes_)
    assert model.edge_std_errors_.shape == model.edge_identifiable_.shape == (nodes, nodes)
    assert {"ridge regression", "no graph", "full graph"} <= set(model.record_.references)
    assert model.record_.goodness["fits"] in (True, False)
    assert any(line.startswith("Standard errors from") for line in model.findings_)
    assert model.evaluate()["findings"] == model.findings_
    assert {"low", "high", "bagged", "std_error", "identifiable"} <= set(model.edges_)
    assert len(model.edge_intervals(0.9)) == nodes**2
    text = model.report(tmp_path / "page.html").read_text()
    assert text.startswith("<!doctype html>")
    assert "Standard errors from" in text
    assert ("X and y" if len(data) == 2 else "the table, value, 1 step ahead") in text
    refused(model.report, tmp_path / "no" / "page.html")


def test_what_is_not_fitted_says_so(case, tmp_path):
    make, data = case
    for ask in ("predict", "sample", "score", "identify", "estimate_std_errors", "goodness_of_fit", "report"):
        arguments = [tmp_path / "other.html"] if ask == "report" else data[:1] if ask in ("predict", "sample") else data
        with pytest.raises(NotFittedError, match="instance is not fitted yet; call fit"):
            getattr(make(), ask)(*arguments)
    assert not hasattr(make(), "edges_")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["polars", "pyarrow", "xarray"])
def test_tables_of_other_packages(package, case):
    module = pytest.importorskip(package)
    make, data = case
    rows = "pair" if len(data) == 2 else "time"
    frames = [pd.DataFrame(part).rename(columns=str).rename_axis(rows) for part in data]

    def of(frame):
        if package == "xarray":
            return module.DataArray(frame, dims=(rows, "node"))
        frame = frame.reset_index(drop=rows == "pair")
        return module.from_pandas(frame) if package == "polars" else module.Table.from_pandas(frame)

    model, plain = make().fit(*map(of, frames)), make().fit(*frames)
    assert model.nodes_ == list(frames[0].columns)
    same(model.edge_probs_, plain.edge_probs_)
    same(model.predict(of(frames[0])), plain.predict(frames[0]))
    if len(data) == 1:  # several tables are several series
        both = make().fit([of(frames[0]), frames[0]])
        assert both.predict([of(frames[0])]).shape == (119, 4)


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


def test_an_observation_model_is_named_and_a_mask_has_the_shape_of_the_graph(refused):
    for observation in (GaussianNoise(3), print, 3):
        refused(LatentGraphRegressor(observation=observation, **QUICK).fit, *random_pairs(60))
    for mask in (np.ones((2, 2), bool), np.ones((3, 2), bool)):
        refused(LatentGraphRegressor(candidates=mask, **QUICK).fit, *random_pairs(60))


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


def test_later_standard_errors_are_those_of_the_fit_and_leave_its_answer_and_record_as_they_were(monkeypatch):
    """They choose the edges of each resample as the fit does."""
    x, y = random_pairs(60, noise=0.3)
    seen = []
    monkeypatch.setattr(
        std_errors, "estimate_acting", lambda *args, **given: seen.append(given["kept"]) or acting(*args, **given)
    )
    options = {**QUICK, "assessment": AssessmentOptions(bootstrap_replicas=4, controls=False)}
    model = LatentGraphRegressor(**options).fit(x, y)
    probs, errors, metrics = model.edge_probs_.copy(), model.edge_std_errors_.copy(), dict(model.record_.metrics)
    model.estimate_std_errors(x, y, num_resamples=4)
    rows = torch.randint(42, (1, 42), generator=torch.Generator().manual_seed(0))
    of_fit, later = (kept(rows) for kept in seen)
    assert torch.equal(later, of_fit)
    assert 0 < int(of_fit.sum()) < 6
    np.testing.assert_allclose(model.edge_std_errors_, errors, rtol=1e-4)
    np.testing.assert_array_equal(model.edge_probs_, probs)
    assert model.record_.metrics == metrics
    assert sum(line.startswith("Standard errors from") for line in model.findings_) == 1
    assert not any(line.startswith("Intervals are widened") for line in model.findings_)


def test_intervals_and_tests_are_about_the_reported_probability():
    x, y = random_pairs(600, noise=0.3)
    options = {**QUICK, "assessment": AssessmentOptions(bootstrap_replicas=4, controls=False)}
    model = LatentGraphRegressor(**options).fit(x, y)
    assert model.record_.uncertainty["method"] in ("regressions", "likelihood")
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

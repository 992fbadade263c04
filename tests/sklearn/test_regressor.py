"""The estimator for pairs: what it learns, predicts, samples and scores, and every choice of its parts."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tacit import LatentGraphRegressor
from tacit.config import AssessmentOptions, ModelConfig, PredictorOptions, TrainingOptions
from tacit.losses import EnergyScore
from tacit.registry import PREDICTORS
from tacit.sklearn.tables import r_squared
from tiny_fits import LINEAR, TRUTH, OneLayer, one_layer, parts_of, random_pairs, regressor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own deprecations
    pytest.importorskip("torch_geometric.nn")

LEARNING = {
    "predictor": LINEAR,
    "training": TrainingOptions(replicas=1, epochs=25, batch_size=64, learning_rate=0.2, predictor_learning_rate=0.04),
    "model": ModelConfig(num_graphs=16),
    "assessment": AssessmentOptions(enabled=False),
}


@pytest.fixture(scope="module")
def pairs():
    return random_pairs(60)


@pytest.fixture(scope="module")
def fitted(pairs):
    return regressor().fit(*pairs)


@pytest.fixture(scope="module")
def learned():
    return LatentGraphRegressor(**LEARNING, observation="none").fit(*random_pairs(770))


def test_it_learns_the_probabilities_and_predicts_the_mean(learned):
    # 539 training pairs: an oracle that saw every graph would have a standard error of 0.02 for an edge
    assert np.abs(learned.edge_probs_ - TRUTH).max() < 0.1
    x, y = random_pairs(500, seed=1)
    best = 10 + 3 * (0.5 * x + x @ TRUTH.T)
    assert learned.score(x, y) > r2_score(y, best) - 0.02


def test_predictions_are_the_mean_and_the_median_of_the_samples(learned, pairs):
    x = pairs[0]
    samples = learned.sample(x, learned.point_graphs).astype(float)
    assert samples.shape == (60, 1000, 3)
    np.testing.assert_allclose(learned.predict(x), samples.mean(1), atol=1e-4)
    np.testing.assert_allclose(learned.predict(x, point="median"), np.median(samples, 1), atol=1e-4)
    np.testing.assert_allclose(learned.predict(x, point=0.9), np.quantile(samples, 0.9, axis=1), atol=1e-4)
    assert np.abs(learned.predict(x) - learned.predict(x, point="median")).max() > 0.1


def test_a_certain_graph_makes_the_predictor_s_own_output_in_the_units_of_the_targets(pairs):
    x, y = pairs
    everything = [(i, j) for i in range(3) for j in range(3) if i != j]
    model = regressor(graph={"required": everything}).fit(x, y)
    train = parts_of(60)[0]
    mean, sd, y_mean, y_sd = x[train].mean(), x[train].std(), y[train].mean(), y[train].std()
    graph = torch.ones(1, 1, 3, 3) - torch.eye(3)
    output = model.predictor_(torch.tensor((x - mean) / sd)[..., None].float(), graph)[:, 0, :, 0]
    np.testing.assert_allclose(model.predict(x), output.detach().numpy() * y_sd + y_mean, rtol=1e-5)


def test_score_is_that_of_sklearn_where_nothing_is_missing_and_leaves_out_what_is(fitted, pairs):
    x, y = pairs
    predictions = fitted.predict(x)
    assert fitted.score(x, y) == pytest.approx(r2_score(y, predictions))
    gaps = y.copy()
    gaps[::3, 0], gaps[5:, 2] = np.nan, np.nan
    seen = ~np.isnan(gaps)
    by_column = [r2_score(y[seen[:, i], i], predictions[seen[:, i], i]) for i in range(3)]
    assert fitted.score(x, gaps) == pytest.approx(np.mean(by_column))


def test_score_of_constant_columns_and_of_too_few_targets():
    constant = np.full((4, 1, 1), 2.0)
    assert r_squared(constant, constant) == r2_score(constant[:, 0], constant[:, 0]) == 1
    assert r_squared(constant, constant + 1) == r2_score(constant[:, 0], constant[:, 0] + 1) == 0
    with pytest.warns(UserWarning, match="R\\^2 requires a column with at least two targets"):
        assert np.isnan(r_squared(constant[:1], constant[:1]))
    alone = np.concatenate([constant, np.where([[[True]], [[False]], [[False]], [[False]]], constant, np.nan)], 1)
    assert r_squared(alone, np.stack([constant[:, 0], constant[:, 0] + 1], 1)) == 1  # one target says nothing


def test_units_do_not_change_what_is_learned(fitted, pairs):
    x, y = pairs
    other = clone(fitted).fit(1000 * x - 7, y / 50 + 3)
    np.testing.assert_allclose(other.edge_probs_, fitted.edge_probs_, atol=1e-4)
    np.testing.assert_allclose(other.predict(1000 * x - 7), fitted.predict(x) / 50 + 3, atol=1e-3)


def test_missing_targets_are_not_looked_at(pairs, refused):
    x, y = pairs
    gaps = y.copy()
    gaps[::4, 1] = np.nan
    model = regressor().fit(x, gaps)
    assert np.isfinite(model.predict(x)).all()
    gaps[:, 1] = np.nan
    refused(regressor().fit, x, gaps)


def test_what_is_known_of_the_edges_is_kept_exactly(pairs, refused):
    x, y = (pd.DataFrame(part, columns=["a", "b", "c"]) for part in pairs)
    rules = {"forbidden": [("a", "b")], "required": [("b", "a")], "self_loops": True}
    model = regressor(graph=rules).fit(x, y)
    assert (model.edge_probs_[1, 0], model.edge_probs_[0, 1]) == (0, 1)
    assert (np.diag(model.edge_probs_) > 0).all()
    assert ("a", "b") not in model.to_networkx().edges
    by_position = regressor(graph={**rules, "forbidden": [(0, 1)], "required": [(1, 0)]}).fit(x, y)
    np.testing.assert_array_equal(by_position.edge_probs_, model.edge_probs_)
    undirected = regressor(graph={"symmetric": True}).fit(x, y)
    np.testing.assert_array_equal(undirected.edge_probs_, undirected.edge_probs_.T)
    assert not undirected.to_networkx().is_directed()
    assert (np.diag(undirected.edge_probs_) == 0).all()
    refused(regressor(graph={"forbidden": [("a", "b")], "required": [("a", "b")]}).fit, x, y)
    refused(regressor(graph={"forbidden": [("z", "b")]}).fit, x, y)


@pytest.mark.parametrize("wish", ["density", "one"])
def test_a_strong_prior_pulls_the_edges_it_is_about(pairs, wish):
    training = {"epochs": 60, "batch_size": 42, "learning_rate": 0.4}
    about_one = {} if wish == "density" else {"priors": [("0", "1", 0.9)]}
    density = 0.9 if wish == "density" else None
    model = regressor(training=training, graph={"prior_weight": 100.0, **about_one}, density=density).fit(*pairs)
    assert model.edge_probs_[1, 0] > 0.8  # source 0, target 1
    assert (model.edge_probs_[0, 2] > 0.8) == (wish == "density")


@pytest.mark.parametrize("kind", list(PREDICTORS))
def test_every_kind_of_predictor(kind, pairs):
    narrow = {"hidden": 3} if "hidden" in PREDICTORS[kind].uses else {}
    model = regressor(predictor=PredictorOptions(kind=kind, **narrow), observation="auto").fit(*pairs)
    assert np.isfinite(model.predict(pairs[0], point="median")).all()
    assert model.record_.config["predictor"]["kind"] == kind
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(pairs[0]), model.predict(pairs[0]))


@pytest.mark.parametrize(
    "options",
    [
        {"observation": "gaussian"},
        {"observation": "gaussian_input", "model": {"scope": "joint"}},
        {"loss": EnergyScore(scope="joint")},
        {"loss": "mmd"},
        {"model": {"loss": "mmd", "kernel": "gaussian", "kernel_scale": "median"}},
        {"predictor": PredictorOptions(kind="convolution", hidden=4)},
    ],
)
def test_every_choice_trains_and_predicts(pairs, options):
    model = regressor(**options).fit(*pairs)
    assert np.isfinite(model.predict(pairs[0], point="median")).all()
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(pairs[0]), model.predict(pairs[0]))


def test_the_lower_bound_of_the_likelihood_has_its_own_prior(pairs, refused):
    refused(regressor(loss="elbo").fit, *pairs)
    low, high = (regressor(loss="elbo", model={"prior": prior}).fit(*pairs).edge_probs_.mean() for prior in (0.01, 0.9))
    assert low < high


def test_numbers_of_numpy_are_numbers(fitted, pairs, unchecked):
    model = regressor(random_state=np.int64(0), point_graphs=np.int64(8)).fit(*pairs)
    np.testing.assert_array_equal(model.edge_probs_, fitted.edge_probs_)
    np.testing.assert_array_equal(model.sample(pairs[0], np.int64(3)), fitted.sample(pairs[0], 3))
    dense = regressor(density=np.float64(0.1)).fit(*pairs)
    assert dense.record_.config["graph"]["density"] == 0.1


def test_samples_hold_the_noise_and_the_mean_does_not(pairs):
    x, _ = pairs
    y = np.random.default_rng(0).normal(size=(60, 3))
    model = regressor(training={"epochs": 10}, observation="gaussian", candidates=[]).fit(x, y)
    assert not model.edge_probs_.any()  # no edge was named, so that none can be
    samples = model.sample(x, 400)
    observation = model._fitted.model.observation
    sigma = observation.log_sigma.exp().detach().numpy()[:, 0] * y[parts_of(60)[0]].std()
    np.testing.assert_allclose(samples.std(1).mean(0), sigma, rtol=0.05)
    assert np.abs(np.corrcoef(samples[0, :, 0], samples[1, :, 0])[0, 1]) < 0.2  # each pair has noise of its own
    preparation = model._fitted.preparation
    means = model.predictor_(
        torch.tensor(preparation.input_units.scaled(x[..., None])).float(), torch.zeros(1, 1, 3, 3)
    )
    restored = preparation.target_units.restored(means[:, 0].detach().double().numpy())
    np.testing.assert_allclose(model.predict(x), restored[..., 0], atol=1e-5)
    parts = np.concatenate([model.predict(x[:7]), model.predict(x[7:])])
    np.testing.assert_allclose(parts, model.predict(x), atol=1e-6)
    medians = np.concatenate([model.predict(x[:7], "median"), model.predict(x[7:], "median")])
    np.testing.assert_allclose(medians, model.predict(x, "median"), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "noise"),
    [
        ({}, True),
        ({"predictor": "filter", "loss": EnergyScore()}, True),
        ({"loss": "point_mse"}, False),
        ({"predictor": "hops"}, False),
    ],
)
def test_noise_is_learned_where_it_can_be(pairs, options, noise):
    model = regressor(observation="auto", **options).fit(*pairs)
    assert model._fitted.model.observation.random == noise
    assert model._fitted.model.loss.integrates == noise


def test_noise_that_is_not_modelled_bends_the_probabilities():
    x, y = random_pairs(860)
    y = y + 2 * np.random.default_rng(1).normal(size=y.shape)
    errors = {
        noise: np.abs(LatentGraphRegressor(**LEARNING, observation=noise).fit(x, y).edge_probs_ - TRUTH).max()
        for noise in ("none", "auto")
    }
    assert errors["auto"] < 0.15
    assert errors["none"] > 2 * errors["auto"]


def test_in_a_pipeline_and_a_grid(pairs):
    x, y = pairs
    two_channels = FunctionTransformer(lambda x: np.stack([x, x**2], -1))
    pipeline = make_pipeline(two_channels, regressor())
    assert pipeline.fit(x, y).predict(x).shape == y.shape
    assert pipeline[-1].predictor_.widths[0] == 2
    grid = GridSearchCV(regressor(), {"density": np.linspace(0.1, 0.2, 2)}, cv=KFold(2), error_score="raise")
    grid.fit(x, y)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert grid.predict(x).shape == y.shape


@pytest.mark.slow  # two processes that import everything
@pytest.mark.parametrize("predictor", [OneLayer(1), one_layer])
def test_own_predictors_in_other_processes(pairs, predictor):
    model = regressor(predictor=predictor)
    grid = GridSearchCV(model, {"density": [0.2, 0.4]}, cv=KFold(2), n_jobs=2, error_score="raise").fit(*pairs)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert grid.predict(pairs[0]).shape == pairs[1].shape


def test_the_graphs_of_other_libraries(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG's own deprecations
        graph = fitted.to_pyg(threshold=0.0)
    source, target = graph.edge_index
    np.testing.assert_array_equal(graph.edge_prob.numpy(), fitted.edge_probs_[target, source])
    assert fitted.to_networkx(threshold=1.0).number_of_edges() == 0


def test_verbose_shows_progress_as_the_command_does(pairs, capsys):
    regressor(training={"epochs": 3}, verbose=True).fit(*pairs)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("    0 s  ")  # no terminal: a stage at once, then a line every ten seconds
    regressor().fit(*pairs)
    assert capsys.readouterr() == ("", "")


def test_more_than_memory_holds(pairs, refused):
    x = pairs[0]
    model = regressor(point_graphs=2**62).fit(x, x)
    refused(model.predict, x)
    refused(regressor(model={"num_graphs": 4_000_000}).fit, x, x)
    refused(regressor().fit, x, x * 1e300 / np.abs(x).max())


def test_a_run_directory_holds_what_has_a_name(fitted, pairs, tmp_path, refused):
    """The same files that ``tacit fit`` writes; a module of a person's own has no place in them."""
    from tacit.pipeline import Fitted

    fitted._fitted.write(tmp_path / "run")
    restored = Fitted.read(tmp_path / "run", torch.device("cpu"))
    assert torch.equal(restored.graph.edge_probs, fitted.graph_.edge_probs)
    refused(regressor(predictor=OneLayer(1)).fit(*pairs)._fitted.write, tmp_path / "own")
    assert not (tmp_path / "own").exists()

import copy
import pickle
import subprocess
import sys
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
from torch import nn

from tacit import LatentGraphRegressor
from tacit.errors import InputError
from tacit.losses import EnergyScore
from tacit.sklearn.building import build_config
from tacit.sklearn.score import r_squared

TINY = {"noise": "none", "replicas": 1, "epochs": 1, "batch_size": 16, "num_graphs": 4, "point_graphs": 8}
TRUTH = np.array([[0.0, 0.8, 0.0], [0.0, 0.0, 0.3], [1.0, 0.0, 0.0]])


def random_pairs(num_pairs, seed=0):
    """Three nodes; each shows half of itself and what it reads at the moment, times 3, plus 10."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_pairs, 3))
    graphs = rng.random((num_pairs, 3, 3)) < TRUTH
    return x, 10 + 3 * (0.5 * x + np.einsum("pij,pj->pi", graphs, x))


class OneLayer(nn.Module):
    """A module of the user's own."""

    def __init__(self, in_channels):
        super().__init__()
        self.weight = nn.Parameter(torch.full((in_channels, 1), 0.5))

    def forward(self, inputs, graphs):
        return inputs[:, None] @ self.weight + graphs @ (inputs[:, None] @ self.weight)


@pytest.fixture(scope="module")
def pairs():
    return random_pairs(60)


@pytest.fixture(scope="module")
def fitted(pairs):
    return LatentGraphRegressor(**TINY).fit(*pairs)


@pytest.fixture(scope="module")
def learned():
    options = {"replicas": 1, "epochs": 25, "batch_size": 64, "learning_rate": 0.2, "hidden": (), "noise": "none"}
    return LatentGraphRegressor(**options).fit(*random_pairs(600))


def test_it_learns_the_probabilities_and_predicts_the_mean(learned):
    # 540 training pairs: an oracle that saw every graph would have a standard error of 0.02 for an edge
    assert np.abs(learned.edge_probs_ - TRUTH).max() < 0.1
    x, y = random_pairs(500, seed=1)
    best = 10 + 3 * (0.5 * x + x @ TRUTH.T)
    assert learned.score(x, y) > r2_score(y, best) - 0.02


def test_predictions_are_the_mean_and_the_median_of_the_samples(learned, pairs):
    x = pairs[0]
    samples = learned.sample(x, learned.point_graphs)
    assert samples.shape == (60, 1000, 3)
    np.testing.assert_allclose(learned.predict(x), samples.mean(1), atol=1e-4)
    np.testing.assert_allclose(learned.predict(x, point="median"), np.median(samples, 1), atol=1e-4)
    np.testing.assert_allclose(learned.predict(x, point=0.9), np.quantile(samples, 0.9, axis=1), atol=1e-4)
    assert np.abs(learned.predict(x) - learned.predict(x, point="median")).max() > 0.1


def test_a_certain_graph_makes_the_predictor_s_own_output_in_the_units_of_the_targets(pairs):
    x, y = pairs
    everything = [(i, j) for i in range(3) for j in range(3) if i != j]
    model = LatentGraphRegressor(**TINY, required=everything).fit(x, y)
    train = np.sort(_train_rows(60))
    mean, sd, y_mean, y_sd = x[train].mean(), x[train].std(), y[train].mean(), y[train].std()
    graph = torch.ones(1, 1, 3, 3) - torch.eye(3)
    output = model.predictor_(torch.tensor((x - mean) / sd)[..., None].float(), graph)[:, 0, :, 0]
    np.testing.assert_allclose(model.predict(x), output.detach().numpy() * y_sd + y_mean, rtol=1e-5)


def _train_rows(num_pairs):
    from tacit.randomness import generator_for

    return torch.randperm(num_pairs, generator=generator_for(0, "validation rows")).numpy()[: -num_pairs // 10]


def test_same_seed_same_result_and_a_refit_starts_afresh(fitted, pairs):
    again = clone(fitted).fit(*pairs)
    np.testing.assert_array_equal(again.edge_probs_, fitted.edge_probs_)
    np.testing.assert_array_equal(again.predict(pairs[0]), fitted.predict(pairs[0]))
    before = again.edge_probs_.copy()
    np.testing.assert_array_equal(again.fit(*pairs).edge_probs_, before)
    other = clone(fitted).set_params(seed=1).fit(*pairs)
    assert not np.array_equal(other.edge_probs_, fitted.edge_probs_)


def test_no_global_generator_is_used_and_nothing_given_is_changed(pairs):
    x, y = (part.copy() for part in pairs)
    before, module = np.random.get_state()[1].copy(), OneLayer(1)
    weights = copy.deepcopy(module.state_dict())
    LatentGraphRegressor(**TINY, predictor=module).fit(x, y).predict(x)
    np.testing.assert_array_equal(before, np.random.get_state()[1])
    np.testing.assert_array_equal(x, pairs[0])
    np.testing.assert_array_equal(y, pairs[1])
    assert all(torch.equal(module.state_dict()[name], value) for name, value in weights.items())


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
    with pytest.warns(UserWarning, match="R\\^2 needs a column with at least two targets"):
        assert np.isnan(r_squared(constant[:1], constant[:1]))
    alone = np.concatenate([constant, np.where([[[True]], [[False]], [[False]], [[False]]], constant, np.nan)], 1)
    assert r_squared(alone, np.stack([constant[:, 0], constant[:, 0] + 1], 1)) == 1  # one target says nothing


def test_units_do_not_change_what_is_learned(fitted, pairs):
    x, y = pairs
    other = clone(fitted).fit(1000 * x - 7, y / 50 + 3)
    np.testing.assert_allclose(other.edge_probs_, fitted.edge_probs_, atol=1e-4)
    np.testing.assert_allclose(other.predict(1000 * x - 7), fitted.predict(x) / 50 + 3, atol=1e-3)


def test_missing_targets_are_not_looked_at(pairs):
    x, y = pairs
    gaps = y.copy()
    gaps[::4, 1] = np.nan
    model = LatentGraphRegressor(**TINY).fit(x, gaps)
    assert np.isfinite(model.predict(x)).all()
    gaps[:, 1] = np.nan
    with pytest.warns(UserWarning, match="y has no value for node '1' among the training pairs"):
        LatentGraphRegressor(**TINY).fit(x, gaps)


def test_what_is_known_of_the_edges_is_kept_exactly(pairs):
    x, y = (pd.DataFrame(part, columns=["a", "b", "c"]) for part in pairs)
    model = LatentGraphRegressor(**TINY, forbidden=[("a", "b")], required=[("b", "a")], self_loops=True).fit(x, y)
    assert (model.edge_probs_[1, 0], model.edge_probs_[0, 1]) == (0, 1)
    assert (np.diag(model.edge_probs_) > 0).all()
    assert ("a", "b") not in model.to_networkx().edges
    undirected = LatentGraphRegressor(**TINY, symmetric=True).fit(x, y)
    np.testing.assert_array_equal(undirected.edge_probs_, undirected.edge_probs_.T)
    assert not undirected.to_networkx().is_directed()
    assert (np.diag(undirected.edge_probs_) == 0).all()
    with pytest.raises(InputError, match="required and forbidden both name edge 'a -> b'"):
        LatentGraphRegressor(forbidden=[("a", "b")], required=[("a", "b")]).fit(x, y)
    with pytest.raises(InputError, match="forbidden names unknown node 'z'"):
        LatentGraphRegressor(forbidden=[("z", "b")]).fit(x, y)


@pytest.mark.parametrize("prior", [0.9, {("0", "1"): 0.9}, np.full((3, 3), 0.9)])
def test_a_strong_prior_pulls_the_edges_it_is_about(pairs, prior):
    options = {**TINY, "epochs": 60, "batch_size": 54, "learning_rate": 0.4}
    model = LatentGraphRegressor(**options, prior=prior, prior_weight=100.0).fit(*pairs)
    assert model.edge_probs_[1, 0] > 0.8  # source 0, target 1
    assert (model.edge_probs_[0, 2] > 0.8) == (not isinstance(prior, dict))


@pytest.mark.parametrize(
    "options",
    [
        {"predictor": "filter"},
        {"predictor": "hops"},
        {"noise": "node"},
        {"noise": "input", "scope": "joint"},
        {"loss": EnergyScore(scope="joint")},
        {"loss": "mmd"},
        {"loss": "elbo", "prior": 0.5},
        {"hidden": 4},
    ],
)
def test_every_choice_trains_and_predicts(pairs, options):
    model = LatentGraphRegressor(**{**TINY, **options}).fit(*pairs)
    assert np.isfinite(model.predict(pairs[0], point="median")).all()
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(pairs[0]), model.predict(pairs[0]))


def test_numbers_of_numpy_are_numbers(fitted, pairs, unchecked):
    ours = {"epochs": np.int64(1), "batch_size": np.int64(16), "num_graphs": np.int64(4), "seed": np.int64(0)}
    model = LatentGraphRegressor(**{**TINY, **ours, "learning_rate": np.float64(0.05)}).fit(*pairs)
    np.testing.assert_array_equal(model.edge_probs_, fitted.edge_probs_)


def test_samples_hold_the_noise_and_the_mean_does_not(pairs):
    x, _ = pairs
    y = np.random.default_rng(0).normal(size=(60, 3))
    model = LatentGraphRegressor(**{**TINY, "epochs": 10, "noise": "node"}, candidates=[]).fit(x, y)
    samples = model.sample(x, 400)
    sigma = model._fitted.observation.log_sigma.exp().detach().numpy()[:, 0] * y[_train_rows(60)].std()
    np.testing.assert_allclose(samples.std(1).mean(0), sigma, rtol=0.05)
    assert np.abs(np.corrcoef(samples[0, :, 0], samples[1, :, 0])[0, 1]) < 0.2  # each pair has noise of its own
    means = model.predictor_(
        torch.tensor(model._fitted.input_units.scaled(x[..., None])).float(), torch.zeros(1, 1, 3, 3)
    )
    np.testing.assert_allclose(
        model.predict(x), model._fitted.in_units_of_targets(means[:, 0, :, :1].detach()), rtol=1e-5
    )
    parts = np.concatenate([model.predict(x[:7]), model.predict(x[7:])])
    np.testing.assert_allclose(parts, model.predict(x), atol=1e-6)


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
    model = LatentGraphRegressor(**{**TINY, "noise": "auto", **options}).fit(*pairs)
    built = model._problem(*pairs).build()
    assert built.observation.random == built.loss.integrates == noise


def test_noise_that_is_not_modelled_bends_the_probabilities():
    x, y = random_pairs(600)
    y = y + 2 * np.random.default_rng(1).normal(size=y.shape)
    options = {"replicas": 1, "epochs": 25, "batch_size": 64, "learning_rate": 0.2, "hidden": ()}
    errors = {
        noise: np.abs(LatentGraphRegressor(**options, noise=noise).fit(x, y).edge_probs_ - TRUTH).max()
        for noise in ("none", "auto")
    }
    assert errors["auto"] < 0.15
    assert errors["none"] > 2 * errors["auto"]


def test_epochs_follow_from_the_number_of_pairs():
    model, training = {}, {"epochs": None, "batch_size": 128, "compile": "auto"}
    few, many = (build_config(model, training, pairs).training for pairs in (1280, 1_280_000))
    assert (few.epochs, many.epochs) == (200, 10)
    assert (few.halve_after, many.halve_after) == ((20, 40, 60), (1, 2, 3))
    assert few.compile
    assert not build_config(model, {**training, "epochs": 10}, 1280).training.compile


def test_in_a_pipeline_and_a_grid(pairs):
    x, y = pairs
    two_channels = FunctionTransformer(lambda x: np.stack([x, x**2], -1))
    pipeline = make_pipeline(two_channels, LatentGraphRegressor(**TINY))
    assert pipeline.fit(x, y).predict(x).shape == y.shape
    assert pipeline[-1].predictor_.widths[0] == 2
    grid = GridSearchCV(
        LatentGraphRegressor(**TINY), {"learning_rate": np.logspace(-2, -1, 2)}, cv=KFold(2), error_score="raise"
    )
    grid.fit(x, y)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert grid.predict(x).shape == y.shape


def test_the_graphs_of_other_libraries(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG's own deprecations
        graph = fitted.to_pyg(threshold=0.0)
    source, target = graph.edge_index
    np.testing.assert_array_equal(graph.edge_prob.numpy(), fitted.edge_probs_[target, source])
    assert fitted.to_networkx(threshold=1.0).number_of_edges() == 0


def test_verbose_prints_a_line_for_every_epoch(pairs, capsys):
    LatentGraphRegressor(**{**TINY, "epochs": 3}, verbose=True).fit(*pairs)
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"epoch {i} of 3" for i in (1, 2, 3)
    ]


def test_importing_tacit_does_not_import_sklearn():
    code = "import sys, tacit; print('sklearn' in sys.modules, 'torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]


def test_more_graphs_than_memory_holds():
    x = np.random.default_rng(0).normal(size=(40, 3))
    model = LatentGraphRegressor(epochs=1, replicas=1, compile=False, point_graphs=2**62).fit(x, x)
    with pytest.raises(InputError, match=r"a prediction under 4,.* graphs needs about 10\^.* GB .*lower point_graphs"):
        model.predict(x)
    with pytest.raises(InputError, match=r"lower .*num_graphs"):
        LatentGraphRegressor(epochs=1, replicas=1, compile=False, num_graphs=400_000).fit(x, x)
    with pytest.raises(InputError, match=r"y needs numbers of at most 1e\+15, got one of size 1e\+300"):
        LatentGraphRegressor(epochs=1, replicas=1, compile=False).fit(x, x * 1e300 / np.abs(x).max())

"""Fits with ranges of lags: weights of other lags are exactly 0, through fit, resamples, files and forecasts."""

import numpy as np
import pandas as pd
import pytest
import torch

import tacit
from commands import call
from tacit.config import AssessmentOptions, DataOptions, FitConfig, GraphOptions, PredictorOptions, TrainingOptions
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, CandidateEdges
from tacit.local import local_ridge, start_at_regression
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.pipeline import Fitted
from tacit.predictors import GraphFilter
from tacit.sklearn import LatentGraphForecaster
from tacit.training import LatentGraphModel, densify

NODES = ("a", "b", "c")
RULES = "source,target,kind,probability,min_lag,max_lag\na,b,allowed,,2,3\nc,b,allowed,,,1\n"
OFF = AssessmentOptions(enabled=False)


def series(rows=400, seed=0):
    """Values of a, b and c: a -> b at lags 1 and 3, b -> c at lag 1."""
    rng = np.random.default_rng(seed)
    values = np.zeros((rows, 3))
    for step in range(3, rows):
        values[step] = 0.5 * values[step - 1] + rng.normal(size=3)
        values[step, 1] += 0.5 * values[step - 3, 0] + 0.5 * values[step - 1, 0]
        values[step, 2] -= 0.6 * values[step - 1, 1]
    return pd.DataFrame(values, columns=NODES)


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.csv"
    path.write_text(RULES)
    return str(path)


def fitted(rules, **options):
    given = {"data": DataOptions(window=3), "graph": GraphOptions(edges=rules), "assessment": OFF} | options
    return LatentGraphForecaster(**given, random_state=0).fit(series())


def weights_of(model):
    return model._fitted.model.predictor.edge_weights.detach()[..., 0]  # (target, source, lag), the oldest first


def assert_limited(model):
    """Only lags 2 and 3 of a reach b; only lag 1 of c."""
    weights = weights_of(model)
    assert weights[1, 0, 2] == 0
    assert (weights[1, 0, :2] != 0).all()
    assert (weights[1, 2, :2] == 0).all()
    assert (weights[2, 1] != 0).all()


SHORT = TrainingOptions(epochs=2, replicas=2, compile=False)


@pytest.mark.parametrize(
    "options",
    [
        {},  # in closed form
        {"training": SHORT},  # from regressions, by gradients
        {"training": SHORT, "predictor": PredictorOptions(kind="filter", activation="tanh")},
        {"training": SHORT, "evidence": "none"},  # from a ridge regression on all nodes
        {"training": SHORT, "layout": "table", "candidates": tuple((j, i) for j in NODES for i in NODES if i != j)},
    ],
    ids=["closed form", "trained", "tanh", "no evidence", "table"],
)
def test_weights_of_other_lags_are_exactly_zero(rules, options):
    graph = {key: options.pop(key) for key in ("evidence", "layout", "candidates") if key in options}
    assert_limited(fitted(rules, graph=GraphOptions(edges=rules, **graph), **options))


def test_changed_inputs_of_other_lags_leave_predictions_as_they_are(rules):
    """The newest value of a has no influence on b, and all else of it has."""
    model = fitted(rules)
    predictor = model._fitted.model.predictor
    graphs = torch.ones(1, 1, 3, 3)
    inputs = torch.randn(5, 3, 3, generator=torch.Generator().manual_seed(0))
    before = predictor(inputs, graphs)[:, 0, :, 0]
    newest = inputs.clone()
    newest[:, 0, 2] += 1.0
    after = predictor(newest, graphs)[:, 0, :, 0]
    assert torch.equal(after[:, 1], before[:, 1])
    assert (after[:, 0] != before[:, 0]).all()  # the own past is not restricted
    older = inputs.clone()
    older[:, 0, 1] += 1.0
    assert (predictor(older, graphs)[:, 0, 1, 0] != before[:, 1]).all()


def test_a_saved_model_keeps_its_limits_and_standard_errors_do_too(rules, tmp_path):
    table, model = series(), fitted(rules, training=SHORT)
    model.save(tmp_path / "model")
    again = tacit.load(tmp_path / "model")
    assert_limited(again)
    pd.testing.assert_frame_equal(again.predict(table), model.predict(table))
    again.estimate_std_errors(table, num_resamples=8)
    assert torch.equal(again._fitted.model.predictor.allowed, model._fitted.model.predictor.allowed)
    assert again._fitted.model.predictor.allowed[1, 0].tolist() == [1, 1, 0]


def test_a_run_directory_keeps_its_limits(rules, tmp_path):
    series().rename_axis("step").to_csv(tmp_path / "table.csv")
    assert call("fit", tmp_path / "table.csv", "--edges", rules, "--quick", "--out", tmp_path / "run", "--quiet") == 0
    stored = Fitted.read(tmp_path / "run", torch.device("cpu"))
    assert stored.model.predictor.allowed[1, 2].tolist()[:-1] == [0] * (stored.preparation.sizes.window - 1)
    lags = pd.read_csv(tmp_path / "run" / "lags.csv")
    assert set(lags[(lags.source == "a") & (lags.target == "b")].lag) == {2, 3}


def test_the_window_is_as_long_as_the_largest_lag():
    found = fitted(None, data=DataOptions(), graph=GraphOptions(max_lag=15))
    assert found.record_.config["data"]["window"] == 15
    assert any(note == "window = 15: it contains all lags that edges may have" for note in found.notes_)
    ahead = fitted(None, data=DataOptions(horizon=3), graph=GraphOptions(min_lag=3, max_lag=15))
    assert ahead.record_.config["data"]["window"] == 13


def test_regressions_read_the_allowed_inputs_alone():
    """The weights are those of least squares on these columns, as the penalty is next to nothing."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(300, 2, 2, generator=generator, dtype=torch.double)
    targets = inputs[:, [1, 0]].sum(2, keepdim=True) + 0.1 * torch.randn(300, 2, 1, generator=generator).double()
    table, allowed = CandidateEdges.from_mask(~torch.eye(2, dtype=torch.bool)), torch.ones(2, 1, 2)
    allowed[0, 0, 1] = 0
    pairs = Pairs(inputs, targets)
    found = local_ridge(pairs, pairs, table, penalties=[1e-9], allowed=allowed)
    assert found.edges[0, 0, 1, 0].abs() < 1e-9
    for node, read in ((0, inputs[:, 1, :1]), (1, inputs[:, 0])):
        design = torch.cat([inputs[:, node], read, torch.ones(300, 1)], 1)
        wanted = torch.linalg.lstsq(design, targets[:, node]).solution[:-1, 0]
        weights = torch.cat([found.own[node, :, 0], found.edges[node, 0, : read.shape[1], 0]])
        torch.testing.assert_close(weights, wanted, atol=1e-6, rtol=0)


def test_a_warm_start_reads_the_allowed_lags_of_the_kept_edges():
    """Of three nodes 1 reads 0 and 2; of 2 only the older lag. Weights of all else are 0, and those are not."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(300, 3, 2, generator=generator)
    targets = inputs[:, [0, 2, 0]].sum(2, keepdim=True) + torch.randn(300, 3, 1, generator=generator)
    predictor, allowed = GraphFilter(3, 2, 1, residual=False), torch.ones(3, 3, 2)
    allowed[1, 2, 1] = 0
    predictor.restrict_lags(allowed)
    present = torch.tensor([[0.0, 0, 0], [0.5, 0, 0.5], [0, 0, 0]])
    model = LatentGraphModel(
        BernoulliGraph(present, present == 0), predictor, EnergyScore(), observation=GaussianNoise(3, 1)
    )
    assert start_at_regression(model, Pairs(inputs, targets))
    weights = model.predictor.edge_weights[1, :, :, 0].detach()
    assert (weights != 0).tolist() == [[True, True], [False, False], [True, False]]


def test_a_filter_over_a_table_keeps_its_limits_over_all_pairs():
    table = CandidateEdges.from_edges(torch.tensor([1, 2, 0]), torch.tensor([0, 0, 1]), 3)
    predictor = GraphFilter(3, 2, 1, candidates=table)
    allowed = torch.ones(*table.sources.shape, 2)
    allowed[table.used] = torch.tensor([[0.0, 1], [1, 0], [1, 1]])
    predictor.restrict_lags(allowed)
    graph = BernoulliGraph(torch.full(table.sources.shape, 0.5), candidates=table)
    full = densify(LatentGraphModel(graph, predictor, EnergyScore()))
    assert full.predictor.allowed[0, 1].tolist() == [0, 1]
    assert full.predictor.allowed[0, 2].tolist() == [1, 0]
    assert full.predictor.allowed[1, 0].tolist() == [1, 1]


@pytest.mark.parametrize(
    "settings",
    [
        ["graph.max_lag=0"],
        ["graph.min_lag=5", "data.window=3"],
        ["graph.max_lag=2", "predictor.kind=recurrent"],
    ],
)  # fmt: skip
def test_bad_ranges_are_one_line(tmp_path, wrong_call, settings):
    series(60).rename_axis("step").to_csv(tmp_path / "table.csv")
    wrong_call("fit", tmp_path / "table.csv", *(part for one in settings for part in ("--set", one)))


def test_pairs_without_time_have_no_lags_to_limit(folder, wrong_call, rules, tmp_path):
    wrong_call("fit", folder / "pairs.npz", "--set", "graph.max_lag=2")
    path = tmp_path / "four.csv"
    path.write_text(RULES.replace("a,b", "north,east").replace("c,b", "west,east"))
    wrong_call("fit", folder / "pairs.npz", "--edges", path)


def test_the_options_have_lags():
    assert FitConfig(graph={"min_lag": 2, "max_lag": 2}).graph.max_lag == 2

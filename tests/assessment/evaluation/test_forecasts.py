"""Scores of forecasts: against scoringrules, against a plain loop, and where the answer is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

from tacit.assessment.evaluation import LEVELS, forecast_scores
from tacit.assessment.evaluation.forecasts import CRPS_GRAPHS
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel

NODES, CHANNELS, GRAPHS = 3, 2, 60


def build(rng, *, noisy, probs=0.5):
    graph = BernoulliGraph(torch.full((NODES, NODES), probs))
    predictor = HopPredictor(torch.randn(2, 1, CHANNELS, generator=rng))
    observation = None
    if noisy:
        observation = GaussianNoise(NODES, CHANNELS)
        observation.log_sigma.data = torch.randn(NODES, CHANNELS, generator=rng)
    return LatentGraphModel(graph, predictor, EnergyScore(), observation=observation).double()


@pytest.fixture
def pairs(rng):
    inputs = torch.randn(20, NODES, 1, generator=rng).double()
    observed = (torch.rand(20, NODES, CHANNELS, generator=rng) < 0.7).double()
    return Pairs(inputs, torch.randn(20, NODES, CHANNELS, generator=rng).double(), observed)


def score(model, pairs, **options):
    return forecast_scores(model, pairs, generator=torch.Generator().manual_seed(1), num_graphs=GRAPHS, **options)


def outputs_of(model, pairs):
    """What the model gives under the very graphs that it is scored with."""
    return model.outputs(pairs.inputs, GRAPHS, generator=torch.Generator().manual_seed(1)).numpy()


def crps_by_loop(outputs, target, noisy):
    """E|Y - y| - E|Y - Y'| / 2 for one number, over pairs of different graphs."""

    def distance(mean, sigma):
        if sigma == 0:
            return abs(mean)
        return mean * (2 * norm.cdf(mean / sigma) - 1) + 2 * sigma * norm.pdf(mean / sigma)

    means, sigmas = np.split(outputs, 2, -1) if noisy else (outputs, np.zeros_like(outputs))
    means, sigmas, number = means.ravel(), sigmas.ravel(), len(outputs)
    first = sum(distance(m - target, s) for m, s in zip(means, sigmas, strict=True)) / number
    between = [
        distance(means[a] - means[b], math.hypot(sigmas[a], sigmas[b]))
        for a in range(number) for b in range(number) if a != b
    ]  # fmt: skip
    return first - sum(between) / len(between) / 2


@pytest.mark.parametrize("noisy", [False, True])
def test_crps_equals_a_loop(rng, noisy):
    model = build(rng, noisy=noisy)
    pairs = Pairs(
        torch.randn(2, NODES, 1, generator=rng).double(), torch.randn(2, NODES, CHANNELS, generator=rng).double()
    )
    outputs = outputs_of(model, pairs)[:, :CRPS_GRAPHS]
    columns = [[c, c + CHANNELS] if noisy else [c] for c in range(CHANNELS)]
    every = [
        crps_by_loop(outputs[b, :, i][:, columns[c]], pairs.targets[b, i, c].item(), noisy)
        for b in range(2) for i in range(NODES) for c in range(CHANNELS)
    ]  # fmt: skip
    assert score(model, pairs).crps == pytest.approx(np.mean(every), abs=1e-10)


def test_crps_equals_scoringrules_without_noise(rng, pairs):
    scoringrules = pytest.importorskip("scoringrules")
    model = build(rng, noisy=False)
    outputs = np.moveaxis(outputs_of(model, pairs)[:, :CRPS_GRAPHS], 1, -1)
    theirs = scoringrules.crps_ensemble(pairs.targets.numpy(), outputs, estimator="fair")
    seen = pairs.observed.numpy()
    assert score(model, pairs).crps == pytest.approx((theirs * seen).sum() / seen.sum(), abs=1e-10)


def test_crps_equals_scoringrules_with_noise(rng, pairs):
    """Theirs is for the mixture as it is; ours leaves out a graph beside itself, so that few graphs have no bias."""
    scoringrules = pytest.importorskip("scoringrules")
    model = build(rng, noisy=True)
    means, sigmas = np.split(np.moveaxis(outputs_of(model, pairs)[:, :CRPS_GRAPHS], 1, -1), 2, axis=2)
    theirs = scoringrules.crps_mixnorm(pairs.targets.numpy(), means, sigmas)
    z = (pairs.targets.numpy()[..., None] - means) / sigmas
    to_target = (sigmas * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z))).mean(-1)
    same = 2 * sigmas.mean(-1) / math.sqrt(math.pi)  # E|Y - Y'| of one graph with itself
    between = (2 * (to_target - theirs) - same / CRPS_GRAPHS) * CRPS_GRAPHS / (CRPS_GRAPHS - 1)
    seen = pairs.observed.numpy()
    expected = ((to_target - between / 2) * seen).sum() / seen.sum()
    assert score(model, pairs).crps == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("noisy", [False, True])
def test_point_errors_equal_a_loop(rng, pairs, noisy):
    """Mean for squares; median for sizes, which with noise is that of draws, here compared without noise alone."""
    model = build(rng, noisy=noisy)
    outputs = outputs_of(model, pairs)[..., :CHANNELS]
    spread = torch.tensor([[1.0, 2.0], [10.0, 3.0], [0.5, 1.0]]).double()
    found = score(model, pairs, spread=spread)
    squares, sizes, count = 0.0, np.zeros(NODES), np.zeros(NODES)
    for b, i, c in np.argwhere(pairs.observed.numpy()):
        target = pairs.targets[b, i, c].item()
        squares += ((outputs[b, :, i, c].mean() - target) * spread[i, c].item()) ** 2
        sizes[i] += abs(np.median(outputs[b, :, i, c]) - target) * spread[i, c].item()
        count[i] += 1
    assert found.point_mse == pytest.approx(squares / count.sum(), rel=1e-10)
    if not noisy:
        assert found.point_mae == pytest.approx(sizes.sum() / count.sum(), rel=1e-10)
        assert found.by_node["point_mae"] == pytest.approx(sizes / count, rel=1e-10)


def test_a_model_without_chance_has_its_absolute_error_as_crps(rng, pairs):
    found = score(build(rng, noisy=False, probs=1.0), pairs)
    assert found.crps == pytest.approx(found.point_mae, rel=1e-12)
    assert found.by_node["crps"] == pytest.approx(found.by_node["point_mae"], rel=1e-12)
    assert found.coverage == {"0.5": 0.0, "0.8": 0.0, "0.95": 0.0}


def test_coverage_of_a_known_normal(rng):
    """Targets at the quantiles (k + 1/2) / n of the very prediction: each interval holds exactly its share."""
    number = 1000
    model = build(rng, noisy=True, probs=1.0)
    inputs = torch.randn(1, NODES, 1, generator=rng).double().expand(number, -1, -1)
    means, sigmas = model.outputs(inputs[:1], 1, generator=rng)[0, 0].chunk(2, -1)
    places = torch.special.ndtri((torch.arange(number).double() + 0.5) / number)
    found = score(model, Pairs(inputs.contiguous(), means + sigmas * places[:, None, None]))
    assert [found.coverage[f"{level:g}"] for level in LEVELS] == pytest.approx(LEVELS, abs=1e-12)
    crps = sigmas.mean().item() / math.sqrt(math.pi)  # of a normal about itself
    assert found.crps == pytest.approx(crps, rel=1e-2)
    assert found.point_mse == pytest.approx(sigmas.square().mean().item(), rel=1e-2)


def test_coverage_of_a_coin():
    """One edge that is there or not, half of the time: 0 or 1. Both are inside every interval, nothing else is."""
    graph = BernoulliGraph(torch.tensor([[0.0, 0.5], [0.0, 0.0]]))
    predictor = HopPredictor(torch.full((1, 1, 1), 50.0))  # tanh makes it 1
    model = LatentGraphModel(graph, predictor, EnergyScore())
    targets = torch.tensor([0.0, 1.0, -0.1, 1.1]).view(4, 1, 1).expand(4, 2, 1).contiguous()
    observed = torch.tensor([1.0, 0.0]).view(1, 2, 1).expand(4, 2, 1).contiguous()
    found = score(model, Pairs(torch.ones(4, 2, 1), targets, observed))
    assert found.coverage == {"0.5": 0.5, "0.8": 0.5, "0.95": 0.5}


def test_a_node_that_was_never_observed_has_no_score(rng, pairs):
    observed = pairs.observed.clone()
    observed[:, 1] = 0
    found = score(build(rng, noisy=True), Pairs(pairs.inputs, pairs.targets, observed))
    assert [math.isnan(value) for value in found.by_node["crps"]] == [False, True, False]
    assert math.isfinite(found.crps)
    known = {"point_mae", "point_mse", "crps", "log_score", *(f"coverage_{level:g}" for level in LEVELS)}
    assert set(found.numbers()) == known


def test_many_pairs_are_the_sum_of_their_parts(rng):
    """More pairs than are taken at once, in a model without chance."""
    model = build(rng, noisy=False, probs=1.0)
    pairs = Pairs(
        torch.randn(150, NODES, 1, generator=rng).double(), torch.randn(150, NODES, CHANNELS, generator=rng).double()
    )
    errors = pairs.targets - model.outputs(pairs.inputs, 1, generator=rng)[:, 0]
    found = score(model, pairs)
    assert found.point_mae == pytest.approx(errors.abs().mean().item(), rel=1e-12)
    assert found.point_mse == pytest.approx(errors.square().mean().item(), rel=1e-12)


def test_scores_of_nodes_and_series_are_those_of_their_pairs_alone(rng, pairs):
    """All graphs are certain: each node and each series has the scores of the pairs without the others."""
    model, series = build(rng, noisy=True, probs=1.0), torch.arange(20) // 7
    series[series == 1] = 3  # numbers 1 and 2 have no pair
    spread = torch.tensor([[1.0, 2.0], [10.0, 3.0], [0.5, 1.0]]).double()
    found = score(model, replace(pairs, series=series), spread=spread)
    assert set(found.by_node) == set(found.by_series) == {*found.numbers(), "scaled_crps"}
    names = [name for name in found.numbers() if name != "point_mae"]  # its median is sampled
    for number in (0, 2, 3):
        alone = score(model, pairs[series == number], spread=spread).numbers()
        assert [found.by_series[name][number] for name in names] == pytest.approx([alone[name] for name in names])
    assert math.isnan(found.by_series["crps"][1])
    for node in range(NODES):
        other = torch.zeros_like(pairs.observed)
        other[:, node] = pairs.observed[:, node]
        alone = score(model, replace(pairs, observed=other), spread=spread).numbers()
        assert [found.by_node[name][node] for name in names] == pytest.approx([alone[name] for name in names])
    assert score(model, pairs).by_series == {}
    assert found.by_node["scaled_crps"] == pytest.approx(score(model, pairs).by_node["crps"])

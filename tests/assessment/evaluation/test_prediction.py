"""Predictions over shared graphs and noise, of models where every number has a formula."""

import math
from statistics import NormalDist

import pytest
import scoringrules
import torch

from tacit.assessment.evaluation import SharedDraws, point_prediction, predictive_metrics
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise, NoNoise
from tacit.predictors import GraphFilter
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel

PROB, SIGMA = 0.3, 0.5


def model_of(*, noisy=True):
    """y_0 = 2 x_1 with probability 0.3, else 0; y_1 = 0; and noise of deviation 0.5 on both."""
    weights = torch.zeros(2, 2, 1, 1)
    weights[0, 1] = 2.0
    predictor = GraphFilter(2, 1, 1, residual=False).with_weights(torch.zeros(2, 1, 1), weights)
    graph = BernoulliGraph(torch.tensor([[0.0, PROB], [0.0, 0.0]]))
    observation = GaussianNoise(2, initial_sigma=SIGMA) if noisy else NoNoise()
    return LatentGraphModel(graph, predictor, EnergyScore(), observation=observation, num_graphs=4)


def ones(rows):
    return Pairs(torch.ones(rows, 2, 1), torch.zeros(rows, 2, 1))


def mixture_quantile(level):
    """Of 0.7 N(0, sigma^2) + 0.3 N(2, sigma^2), by bisection."""
    low, high = -5.0, 7.0
    for _ in range(60):
        middle = (low + high) / 2
        below = (1 - PROB) * NormalDist(0, SIGMA).cdf(middle) + PROB * NormalDist(2, SIGMA).cdf(middle)
        low, high = (middle, high) if below < level else (low, middle)
    return low


def test_mean_median_and_quantiles_of_a_mixture(rng):
    draws, pairs = SharedDraws(model_of(), 8000, rng), ones(3)
    mean, values = draws.mean(pairs), draws.values(pairs)
    assert mean.shape == (3, 2, 1)
    assert values.shape == (3, 8000, 2, 1)
    assert mean[0, 0, 0].item() == pytest.approx(2 * PROB, abs=5 * 2 * math.sqrt(PROB * (1 - PROB) / 8000))
    assert mean[0, 1, 0] == 0  # noise has no mean, and is not drawn for it
    for level in (0.1, 0.5, 0.9):
        found = point_prediction(values, level)
        assert found[:, 0, 0].tolist() == pytest.approx([mixture_quantile(level)] * 3, abs=0.06)
        assert found[:, 1, 0].tolist() == pytest.approx([NormalDist(0, SIGMA).inv_cdf(level)] * 3, abs=0.03)
    assert torch.equal(point_prediction(values, "median"), point_prediction(values, 0.5))


def test_all_rows_share_their_graphs_and_for_quantiles_their_noise(rng):
    """Equal rows are predicted equally: no row has chance of its own."""
    draws = SharedDraws(model_of(), 50, rng)
    described = draws.described(ones(5))
    assert described.shape == (5, 50, 2, 2)  # means and deviations
    assert all(torch.equal(row, described[0]) for row in described)
    values = draws.values(ones(5))
    assert all(torch.equal(row, values[0]) for row in values)
    assert torch.equal(draws.values(ones(5)), values)  # and nothing is drawn anew
    assert values[0, :, 0].unique().numel() == 50


def test_a_row_does_not_depend_on_those_beside_it(rng):
    draws = SharedDraws(model_of(), 200, rng)
    inputs = torch.randn(9, 2, 1, generator=torch.Generator().manual_seed(1))
    pairs = Pairs(inputs, torch.zeros(9, 2, 1))
    whole = draws.mean(pairs), draws.values(pairs)
    for rows in (slice(0, 1), slice(4, 9)):
        assert torch.equal(draws.mean(pairs[rows]), whole[0][rows])
        assert torch.equal(draws.values(pairs[rows]), whole[1][rows])


def test_samples_share_graphs_and_have_noise_of_their_own(rng):
    draws = SharedDraws(model_of(), 400, rng)
    samples = draws.own_values(ones(6))
    assert samples.shape == (6, 400, 2, 1)
    assert (samples[0] != samples[1]).all()
    means = draws.described(ones(6))[..., :1]
    noise = (samples - means)[..., 0]
    assert noise.std().item() == pytest.approx(SIGMA, rel=5 / math.sqrt(2 * noise.numel()))
    rows = noise.flatten(1)
    assert torch.corrcoef(rows).fill_diagonal_(0).abs().max() < 5 / math.sqrt(rows.shape[1])


def test_the_same_generator_gives_the_same_draws():
    first, second, other = (
        SharedDraws(model_of(), 20, generator_for(seed, "predict")).values(ones(2)) for seed in (0, 0, 1)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_without_noise_there_are_two_values(rng):
    draws = SharedDraws(model_of(noisy=False), 300, rng)
    values = draws.values(ones(100))
    assert set(values.flatten().tolist()) == {0.0, 2.0}
    assert torch.equal(values, draws.own_values(ones(100)))
    assert (point_prediction(values, "median") == 0).all()
    assert draws.mean(ones(100)).shape == (100, 2, 1)
    assert draws.pairs_at_once >= 1


def test_metrics_of_a_mixture_with_noise():
    """Every value has a formula: the CRPS that of a normal mixture, the squared error that of its mean."""
    pairs = Pairs(torch.ones(500, 2, 1), torch.full((500, 2, 1), 0.4))
    model = model_of()
    scores = predictive_metrics(model, pairs, model.loss, generator=generator_for(0, "t"), point_graphs=4000)
    crps = [
        scoringrules.crps_mixnorm(0.4, [0.0, 2.0], [SIGMA, SIGMA], [1 - PROB, PROB]),
        scoringrules.crps_normal(0.4, 0.0, SIGMA),
    ]
    assert scores["distribution_loss"] == pytest.approx(sum(crps) / 2, abs=0.02)
    assert scores["point_mse"] == pytest.approx(((0.4 - 2 * PROB) ** 2 + 0.4**2) / 2, abs=0.005)
    assert scores["point_mae"] == pytest.approx((abs(0.4 - mixture_quantile(0.5)) + 0.4) / 2, abs=0.02)
    sampled = predictive_metrics(
        model, pairs, EnergyScore(scope="node"), generator=generator_for(0, "t"), point_graphs=4000
    )
    assert sampled["distribution_loss"] == pytest.approx(sum(crps) / 2, abs=0.02)
    assert sampled["energy_score"] == scores["energy_score"]

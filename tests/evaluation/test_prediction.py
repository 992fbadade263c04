"""Predictions of models with and without noise, where every number has a formula."""

import math
from statistics import NormalDist

import pytest
import scoringrules
import torch

from tacit.data import Pairs
from tacit.errors import InputError
from tacit.evaluation import predict, predictive_metrics
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import GraphFilter
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel

PROB, SIGMA = 0.3, 0.5


def model_of(loss, noisy=True):
    """y_0 = 2 x_1 with probability 0.3, else 0; y_1 = 0; and noise of deviation 0.5 on both."""
    weights = torch.zeros(2, 2, 1, 1)
    weights[0, 1] = 2.0
    predictor = GraphFilter(2, 1, 1, residual=False).with_weights(torch.zeros(2, 1, 1), weights)
    graph, observation = BernoulliGraph(torch.tensor([[0.0, PROB], [0.0, 0.0]])), None
    if noisy:
        observation = GaussianNoise(2, initial_sigma=SIGMA)
    return LatentGraphModel(graph, predictor, loss, observation=observation, num_graphs=4)


def mixture_quantile(level):
    """Of 0.7 N(0, sigma^2) + 0.3 N(2, sigma^2), by bisection."""
    low, high = -5.0, 7.0
    for _ in range(60):
        middle = (low + high) / 2
        below = (1 - PROB) * NormalDist(0, SIGMA).cdf(middle) + PROB * NormalDist(2, SIGMA).cdf(middle)
        low, high = (middle, high) if below < level else (low, middle)
    return low


def test_mean_median_and_quantiles_of_a_mixture(rng):
    inputs, levels = torch.ones(3, 2, 1), (0.1, 0.5, 0.9)
    answer = predict(model_of(EnergyScore()), inputs, generator=rng, levels=levels, num_graphs=8000, num_samples=7)
    assert answer.mean.shape == answer.median.shape == (3, 2, 1)
    assert answer.quantiles.shape == (3, 3, 2, 1)
    assert answer.samples.shape == (3, 7, 2, 1)
    assert torch.equal(answer.median, answer.quantiles[1])
    assert answer.mean[0, 0, 0].item() == pytest.approx(2 * PROB, abs=5 * 2 * math.sqrt(PROB * (1 - PROB) / 8000))
    assert answer.mean[0, 1, 0] == 0  # noise is not drawn for a mean
    for level, found in zip(levels, answer.quantiles, strict=True):
        assert found[:, 0, 0].tolist() == pytest.approx([mixture_quantile(level)] * 3, abs=0.06)
        assert found[:, 1, 0].tolist() == pytest.approx([NormalDist(0, SIGMA).inv_cdf(level)] * 3, abs=0.03)
    assert answer.samples.std() > 0.2
    assert (answer.samples[0] != answer.samples[1]).all(), "each pair has noise of its own"


def test_without_noise_there_are_two_values(rng):
    answer = predict(model_of(EnergyScore(), noisy=False), torch.ones(100, 2, 1), generator=rng, num_graphs=300)
    assert answer.samples is None
    assert set(answer.quantiles.flatten().tolist()) == {0.0, 2.0}
    assert (answer.median == 0).all()
    assert answer.mean.shape == (100, 2, 1)  # of two chunks


def test_metrics_of_a_mixture_with_noise():
    """Every value has a formula: the CRPS that of a normal mixture, the squared error that of its mean."""
    pairs = Pairs(torch.ones(500, 2, 1), torch.full((500, 2, 1), 0.4))
    model = model_of(EnergyScore(), noisy=True)
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


@pytest.mark.usefixtures("unchecked")
def test_errors(rng):
    model, inputs = model_of(EnergyScore()), torch.ones(1, 2, 1)
    with pytest.raises(InputError, match=r"levels needs numbers in \[0, 1\], got 1.5; pass for example \(0.05, 0.25"):
        predict(model, inputs, generator=rng, levels=(0.5, 1.5))
    with pytest.raises(InputError, match="inputs needs at least one row, got none; pass some"):
        predict(model, inputs[:0], generator=rng)
    with pytest.raises(InputError, match="num_graphs needs to be a whole number of at least 1, got 0"):
        predict(model, inputs, generator=rng, num_graphs=0)
    with pytest.raises(InputError, match="num_samples needs to be a whole number of at least 0, got -1"):
        predict(model, inputs, generator=rng, num_samples=-1)

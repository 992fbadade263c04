"""Gaussian noise: sigmas by the loop, moments and densities against scipy, starts, refusals."""

import pytest
import torch
from scipy.stats import norm

from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise, HeadGaussianNoise, InputGaussianNoise, NoNoise
from tacit.observation.gaussian import raw_sigma
from tacit.predictors import GraphFilter, HopPredictor, initial_parameters
from tacit.registry import OBSERVATIONS
from tacit.training import LatentGraphModel
from toys import even_graph


def test_sigma_of_each_node(rng):
    noise = GaussianNoise(4, 2)
    noise.log_sigma.data = torch.randn(4, 2, generator=rng)
    means = torch.randn(3, 5, 4, 2, generator=rng)
    described = noise.describe(means, torch.randn(3, 4, 3, generator=rng))
    assert torch.equal(noise.mean(described), means)
    for i in range(4):
        for c in range(2):
            expected = (noise.log_sigma[i, c].exp().item() + 1e-3) ** 2
            assert noise.variance(described)[:, :, i, c].flatten().tolist() == pytest.approx([expected] * 15, rel=1e-6)


def test_sigma_follows_the_nodes_own_input(rng):
    noise = InputGaussianNoise(4, 3)
    for value in (noise.sigma_weights, noise.sigma_bias):
        value.data = torch.randn(value.shape, generator=rng)
    inputs = torch.randn(2, 4, 3, generator=rng)
    sigmas = noise.variance(noise.describe(torch.zeros(2, 5, 4, 1), inputs)).sqrt()[..., 0]
    up, size = noise.sigma_weights[:3, 0], noise.sigma_weights[3:, 0]
    for b in range(2):
        for i in range(4):
            raw = inputs[b, i] @ up + inputs[b, i].abs() @ size + noise.sigma_bias[i, 0]
            expected = torch.log1p(raw.exp()).item() + 1e-3
            assert sigmas[b, :, i].tolist() == pytest.approx([expected] * 5, rel=1e-5)


def test_sigma_of_the_predictors_second_number(rng):
    noise, outputs = HeadGaussianNoise(2), torch.randn(2, 5, 3, 4, generator=rng)
    described = noise.describe(outputs, torch.zeros(2, 3, 1))
    assert torch.equal(noise.mean(described), outputs[..., :2])
    expected = torch.log1p((outputs[..., 2:] + raw_sigma(0.5)).exp()) + 1e-3
    assert torch.allclose(noise.variance(described), expected.square(), rtol=1e-5)


def test_samples_are_those_of_a_normal(rng):
    """The sample at rank u is the u-quantile, for any u; distribution functions are scipy's."""
    noise = GaussianNoise(2).double()
    means, targets = torch.randn(3, 4, 2, 1, generator=rng).double(), torch.randn(3, 2, 1, generator=rng).double()
    described = noise.describe(means, torch.zeros(3, 2, 1).double())
    uniforms = torch.rand(3, 4, 2, 1, generator=rng).double()
    sigma = noise.variance(described).sqrt()
    expected = norm(means.numpy(), sigma.detach().numpy())
    with torch.no_grad():
        assert torch.allclose(noise.sample(described, uniforms), torch.tensor(expected.ppf(uniforms.numpy())))
        values = targets[:, None].expand(-1, 4, -1, -1).numpy()
        below, up_to = noise.cdf(described, targets)
        assert torch.allclose(below, torch.tensor(expected.cdf(values)))
        assert torch.equal(below, up_to)


def test_draws_of_a_graph_stand_side_by_side(rng):
    """60,000 draws of two graphs: their means and deviations within five standard errors."""
    noise = GaussianNoise(1, initial_sigma=0.3)
    described = noise.describe(torch.tensor([1.0, 2.0]).view(1, 2, 1, 1), torch.zeros(1, 1, 1)).detach()
    drawn = noise.draw(described, generator=rng, draws=60_000).view(2, 60_000)
    assert (drawn.mean(1) - torch.tensor([1.0, 2.0])).abs().max() < 5 * 0.3 / 60_000**0.5
    assert (drawn.std(1) - 0.3).abs().max() < 5 * 0.3 / 120_000**0.5


@pytest.mark.parametrize("noise", [GaussianNoise(5), InputGaussianNoise(5, 3)])
def test_noise_starts_the_same_everywhere_and_the_predictor_as_it_would_alone(rng, noise):
    predictor = HopPredictor.random(2, 3, generator=rng)
    model = LatentGraphModel(even_graph(5), predictor, EnergyScore(), observation=noise)
    fresh = model.initial_parameters(torch.Generator().manual_seed(7))
    alone = initial_parameters(predictor, torch.Generator().manual_seed(7))
    assert torch.equal(fresh["predictor.hop_weights"], alone["hop_weights"])
    model.load_state_dict(fresh, strict=False)
    described = model.describe(torch.randn(2, 5, 3, generator=rng), torch.ones(1, 3, 5, 5))
    variance = noise.variance(described)
    assert torch.allclose(variance, torch.full_like(variance, 0.25), atol=1e-6)


def test_a_warm_start_survives_the_noise(rng):
    own, edges = torch.randn(3, 2, 1, generator=rng), torch.randn(3, 3, 2, 1, generator=rng)
    predictor = GraphFilter(3, 2, 1).with_weights(own, edges)
    model = LatentGraphModel(even_graph(3), predictor, EnergyScore(), observation=GaussianNoise(3))
    assert torch.equal(model.initial_parameters(rng)["predictor.edge_weights"], edges)


def test_names():
    sizes = {"num_nodes": 4, "in_channels": 3, "channels": 2}
    made = {name: OBSERVATIONS[name].for_sizes(**sizes) for name in ("none", "gaussian", "gaussian_input")}
    assert {name: type(one) for name, one in made.items()} == {
        "none": NoNoise,
        "gaussian": GaussianNoise,
        "gaussian_input": InputGaussianNoise,
    }
    assert made["gaussian"].log_sigma.shape == (4, 2)
    assert made["gaussian_input"].sigma_weights.shape == (6, 2)
    assert OBSERVATIONS["gaussian_head"].for_sizes(**sizes).channels == 2


def test_no_noise(rng):
    none, means = NoNoise(), torch.tensor([0.0, 1.0]).view(1, 2, 1, 1)
    assert none.draw(means, generator=rng, draws=5) is means
    assert none.expected_distance(means, torch.ones(1, 1, 1)).flatten().tolist() == [1.0, 0.0]
    assert none.pair_distance(means).flatten().tolist() == [0.0, 1.0, 1.0, 0.0]
    assert [part.flatten().tolist() for part in none.cdf(means, torch.ones(1, 1, 1))] == [[1.0, 0.0], [1.0, 1.0]]


def test_errors(unchecked, refused):
    refused(GaussianNoise, 3, initial_sigma=1e-4)
    refused(GaussianNoise(3, 2).describe, torch.zeros(1, 1, 3, 1), torch.zeros(1, 3, 2))
    refused(GaussianNoise, 3, 0)
    refused(GaussianNoise, 0)

"""Noise that nodes share within a step: samples and draws have its covariance, each target alone is Gaussian."""

import torch
from torch import Generator

from tacit.observation import GaussianNoise, SimultaneousNoise

MIXING = torch.tensor([[1.0, 0.0, 0.0], [0.8, 1.0, 0.0], [-0.5, 0.6, 1.0]])
MANY = 40_000


def described(noise):
    outputs = torch.cat([torch.tensor([[1.0], [2.0], [3.0]]), MIXING], 1)
    return noise.describe(outputs[None, None], torch.zeros(1, 3, 2))


@torch.no_grad()
def test_samples_and_draws_have_the_covariance_of_the_loadings():
    noise = SimultaneousNoise(3)
    noise.log_sigma.data = torch.tensor([[0.0], [-1.0], [-0.3]])
    parameters, rng = described(noise), Generator().manual_seed(0)
    loadings = parameters[0, 0, :, 1:]
    uniforms = torch.rand(1, MANY, 3, 1, generator=rng).clamp(1e-6, 1 - 1e-6)
    sampled = noise.sample(parameters.expand(1, MANY, 3, 4), uniforms)
    drawn = noise.draw(parameters, generator=rng, draws=MANY)
    errors = 5 * loadings.square().sum(1).max() * (2 / MANY) ** 0.5  # five standard errors
    for values in (sampled[0, :, :, 0], drawn[0, :, :, 0]):
        assert values.shape == (MANY, 3)
        assert (values.T.cov() - loadings @ loadings.T).abs().max() < errors
        assert (values.mean(0) - torch.tensor([1.0, 2.0, 3.0])).abs().max() < errors


@torch.no_grad()
def test_each_target_alone_is_that_of_plain_noise_of_its_size():
    noise = SimultaneousNoise(3)
    parameters = described(noise)
    sigmas = noise.variance(parameters).sqrt()
    plain, alone = GaussianNoise(3), torch.cat([noise.mean(parameters), sigmas], -1)
    targets = torch.tensor([[[0.5], [2.5], [1.0]]])
    torch.testing.assert_close(sigmas[0, 0, :, 0], 0.5 * MIXING.square().sum(1).sqrt())
    torch.testing.assert_close(noise.cdf(parameters, targets)[0], plain.cdf(alone, targets)[0])
    torch.testing.assert_close(noise.expected_distance(parameters, targets), plain.expected_distance(alone, targets))
    torch.testing.assert_close(noise.pair_distance(parameters), plain.pair_distance(alone))
    assert noise.scales(torch.ones(3, 1)).shape == (3, 4)


@torch.no_grad()
def test_draws_of_a_graph_stand_side_by_side():
    noise = SimultaneousNoise(3)
    two = torch.cat([described(noise), described(noise) + torch.tensor([100.0, 0.0, 0.0, 0.0])], 1)
    drawn = noise.draw(two, generator=Generator().manual_seed(0), draws=4)
    assert drawn.shape == (1, 8, 3, 1)
    assert (drawn[0, :4] < 50).all()
    assert (drawn[0, 4:] > 50).all()

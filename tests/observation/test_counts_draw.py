"""Draws of counts have the moments that the model says."""

import pytest
import torch

from tacit.observation import GaussianNoise, MixedObservation, NegativeBinomialCounts, PoissonCounts, TargetValues


@pytest.mark.parametrize("kind", [PoissonCounts, NegativeBinomialCounts])
def test_draws_are_whole_and_have_mean_and_variance(kind, rng):
    values = TargetValues(torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0], [3.0]]))
    model = kind(2, 1, values)
    parameters = model.describe(torch.tensor([1.5, 0.5]).view(1, 1, 2, 1), torch.zeros(1, 2, 1))
    drawn = model.draw(parameters, generator=rng, draws=40_000)  # (1, draw, 2, 1)
    counts = model.to_values(drawn)
    assert torch.allclose(counts, counts.round(), atol=1e-5)
    mean, variance = model.mean(parameters)[0, 0], model.variance(parameters)[0, 0]
    errors = (drawn.mean(1)[0] - mean).abs() / (variance / 40_000).sqrt()
    assert errors.max() < 4.5  # standard errors
    assert torch.allclose(drawn.var(1)[0], variance, rtol=0.1)


def test_a_mix_draws_by_each_model(rng):
    mixed = MixedObservation([(PoissonCounts(1), [1]), (GaussianNoise(1), [0])])
    parameters = mixed.describe(torch.full((3, 2, 2, 1), 2.0), torch.zeros(3, 2, 1))
    drawn = mixed.draw(parameters, generator=rng, draws=5)
    assert drawn.shape == (3, 10, 2, 1)
    assert torch.equal(drawn[:, :, 1], drawn[:, :, 1].round())
    assert not torch.equal(drawn[:, :, 0], drawn[:, :, 0].round())

"""The likelihood of two regimes of two edges: derivatives by differences, and the profile on a grid."""

import torch

from tacit.assessment.regimes.two_edges import CRITICAL, _Profile, profile_intervals


def drawn(rng, rows=200):
    """Log-probabilities of two edges whose states are nearly known, which act together in 60% of the rows."""
    both = torch.rand(rows, generator=rng) < 0.6
    place = torch.where(both, 3, 0)
    return torch.randn(rows, 4, generator=rng).double() + 3 * torch.nn.functional.one_hot(place, 4)


def test_gradient_and_curvature_are_those_of_differences(rng):
    profile, none = _Profile(drawn(rng), CRITICAL), torch.zeros(0)
    numbers = torch.randn(3, 5, generator=rng).double()
    _, gradient, curvature = profile.evaluate(numbers, none)
    for place in range(5):
        step = torch.zeros_like(numbers)
        step[:, place] = 1e-5
        higher, lower = profile.evaluate(numbers + step, none), profile.evaluate(numbers - step, none)
        assert torch.allclose((higher[0] - lower[0]) / 2e-5, gradient[:, place], atol=1e-6)
        assert torch.allclose((lower[1] - higher[1]) / 2e-5, curvature[:, :, place], atol=1e-5)


def test_the_log_likelihood_is_that_of_the_mixture(rng):
    given = drawn(rng, rows=6)
    numbers = torch.tensor([[0.3, -1.0, 0.7, 2.0, 0.4]]).double()
    profile = _Profile(given, CRITICAL)
    found = profile.evaluate(numbers, torch.zeros(0))[0] + profile.constant
    probs, first = torch.sigmoid(numbers[0, :4]).view(2, 2), 0.5 + 0.5 * torch.sigmoid(numbers[0, 4])
    states = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    in_regime = torch.where(states[:, None] == 1, probs, 1 - probs).prod(2)  # (state, regime)
    mixed = in_regime @ torch.stack([first, 1 - first])
    assert torch.allclose(found, (given.exp() @ mixed).log().sum(), rtol=0, atol=1e-10)


def test_intervals_contain_the_estimate(rng):
    probs = torch.tensor([[0.95, 0.95], [0.05, 0.05]]).double()
    low, high = profile_intervals(drawn(rng), probs, 0.6)
    assert (low <= high).all()
    assert low[:2].min() > 0.5
    assert high[2:4].max() < 0.5
    assert low[4] >= 0.5
    assert high[4] <= 1

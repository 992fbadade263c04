import pytest
import torch

from tacit.assessment.evaluation import gaussian_crps, gaussian_scores, residual_sigmas
from tacit.data import Pairs


def test_crps_is_the_integral_it_stands_for():
    """Integral of (F(t) - 1[t >= y])^2 dt, by a fine sum."""
    grid = torch.linspace(-30, 30, 600_001, dtype=torch.float64)
    for mean, sigma, target in ((0.0, 1.0, 0.0), (1.0, 0.4, 0.2), (-2.0, 2.0, 3.0)):
        below = torch.distributions.Normal(mean, sigma).cdf(grid)
        integral = ((below - (grid >= target).double()) ** 2).sum() * (grid[1] - grid[0])
        one = torch.ones(1, 1, 1, dtype=torch.float64)
        assert gaussian_crps(mean * one, sigma * one[0], target * one).item() == pytest.approx(
            integral.item(), abs=1e-4
        )


def test_crps_equals_scoringrules(rng):
    scoringrules = pytest.importorskip("scoringrules")
    means, targets = (torch.randn(4, 3, 2, generator=rng, dtype=torch.float64) for _ in range(2))
    sigmas = torch.rand(3, 2, generator=rng, dtype=torch.float64) + 0.1
    theirs = scoringrules.crps_normal(targets.numpy(), means.numpy(), sigmas.expand(4, 3, 2).numpy())
    assert gaussian_crps(means, sigmas, targets).numpy() == pytest.approx(theirs)


def test_scores_leave_missing_targets_out():
    targets = torch.tensor([1.0, 3.0, 9.0]).view(3, 1, 1)
    observed = torch.tensor([1.0, 1.0, 0.0]).view(3, 1, 1)
    pairs, means = Pairs(torch.zeros(3, 1, 1), targets, observed), torch.zeros(3, 1, 1)
    assert residual_sigmas(means, pairs).item() == pytest.approx(5**0.5)
    scores = gaussian_scores(means, torch.zeros(1, 1), pairs)
    assert scores == {"point_mae": 2.0, "point_mse": 5.0, "crps": 2.0}
    assert gaussian_scores(means, torch.ones(1, 1), pairs)["crps"] < 2.0


def test_errors(unchecked, refused):
    pairs = Pairs(torch.zeros(2, 2, 1), torch.zeros(2, 2, 1), torch.tensor([1.0, 0.0]).view(1, 2, 1).expand(2, 2, 1))
    refused(residual_sigmas, torch.zeros(2, 2, 1), pairs)

"""The energy score with noise integrated: closed form, expectation, propriety, and what happens to theta without it."""

import itertools
import math

import numpy as np
import pytest
import scoringrules
import torch
from scipy.integrate import quad

from tacit.losses import ELBO, MMD, EnergyScore, ExpectedError, NodewiseExpectedError, NoisyEnergyScore, PointMSE
from tacit.observation import GaussianNoise, HeadGaussianNoise
from tacit.observation.gaussian import expected_distance

NOISE = HeadGaussianNoise()


@pytest.fixture
def batch(rng):
    means = torch.randn(4, 5, 3, 1, generator=rng, dtype=torch.float64)
    sigmas = 0.1 + torch.rand(4, 5, 3, 1, generator=rng, dtype=torch.float64)
    return torch.cat([means, sigmas], -1), torch.randn(4, 3, 1, generator=rng, dtype=torch.float64)


def distance(d, sigma):
    """E|d + sigma e|, the integral written out."""

    def integrand(e):
        return abs(d + sigma * e) * math.exp(-(e**2) / 2) / math.sqrt(2 * math.pi)

    return quad(integrand, -12, 12, points=[-d / sigma], limit=200)[0]


@pytest.mark.parametrize(("d", "sigma"), [(0.0, 1.0), (0.7, 0.3), (-1.1, 0.9), (2.0, 5.0)])
def test_expected_distance_equals_the_integral(d, sigma):
    arguments = torch.tensor([d, sigma], dtype=torch.float64, requires_grad=True)
    value = expected_distance(arguments[0], arguments[1])
    assert value.item() == pytest.approx(distance(d, sigma), abs=1e-9)
    value.backward()
    step = 1e-4
    slopes = [
        (distance(d + step, sigma) - distance(d - step, sigma)) / (2 * step),
        (distance(d, sigma + step) - distance(d, sigma - step)) / (2 * step),
    ]
    assert arguments.grad.tolist() == pytest.approx(slopes, abs=1e-6)


def test_value_equals_the_loop(batch):
    outputs, targets = batch
    value = NoisyEnergyScore(NOISE)(outputs, targets).value
    for b, i in itertools.product(range(4), range(3)):
        means, sigmas = outputs[b, :, i, 0].tolist(), outputs[b, :, i, 1].tolist()
        data = [distance(float(targets[b, i, 0]) - m, s) for m, s in zip(means, sigmas, strict=True)]
        spread = [
            distance(means[s] - means[t], math.hypot(sigmas[s], sigmas[t]))
            for s, t in itertools.permutations(range(5), 2)
        ]
        assert float(value[b, i]) == pytest.approx(sum(data) / 5 - sum(spread) / 20 / 2, abs=1e-8)


def test_its_expectation_over_graphs_is_the_crps_of_the_mixture(rng):
    """Two graphs drawn from four, each draw with its probability: scoringrules has the CRPS of normal mixtures."""
    means, sigmas = torch.randn(4, generator=rng).double(), 0.2 + torch.rand(4, generator=rng).double()
    probs = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    chosen = torch.cartesian_prod(torch.arange(4), torch.arange(4))
    outputs = torch.stack([means[chosen], sigmas[chosen]], -1)[:, :, None]  # (pair of graphs, graph, node, 2)
    targets = torch.full((16, 1, 1), 0.4, dtype=torch.float64)
    value = NoisyEnergyScore(NOISE, baseline="none")(outputs, targets).value[:, 0]
    expected = scoringrules.crps_mixnorm(0.4, means.numpy(), sigmas.numpy(), probs.numpy())
    assert float(probs[chosen].prod(1) @ value) == pytest.approx(float(expected), abs=1e-12)


def test_it_is_the_mean_of_the_energy_score_over_the_noise(batch, rng):
    """10,000 draws, 12 numbers, five standard errors: a false alarm once in 140,000 runs."""
    outputs, targets = batch
    means, sigmas = outputs.chunk(2, -1)
    normals = torch.randn(10_000, *means.shape, generator=rng, dtype=torch.float64)
    drawn = (means + sigmas * normals).flatten(0, 1)
    values = EnergyScore()(drawn, targets.repeat(10_000, 1, 1)).value.view(10_000, 4, 3)
    error = (values.mean(0) - NoisyEnergyScore(NOISE)(outputs, targets).value) / (values.std(0) / 100)
    assert error.abs().max() < 5


def test_without_noise_it_is_the_energy_score(batch):
    outputs, targets = batch
    means = outputs[..., :1]
    none = torch.cat([means, torch.full_like(means, 1e-9)], -1)
    noisy, plain = NoisyEnergyScore(NOISE)(none, targets), EnergyScore()(means, targets)
    for name in ("value", "cost", "baseline"):
        assert torch.allclose(getattr(noisy, name), getattr(plain, name), atol=1e-8)


def test_groups_are_not_compared_with_themselves(batch):
    outputs, targets = batch[0][:, :4], batch[1]
    changed = outputs.clone()
    changed[:, 1, :, 0] += 1.3
    before, after = (
        NoisyEnergyScore(NOISE, baseline="none")(some, targets, group_size=2).cost for some in (outputs, changed)
    )
    assert torch.allclose(before[:, 0], after[:, 0], atol=1e-12)  # its partner moved, and it does not notice
    assert (before[:, 2] - after[:, 2]).abs().min() > 1e-4


def test_leave_one_out_baseline_is_the_mean_cost_of_the_others(batch):
    outputs, targets = batch
    baseline = NoisyEnergyScore(NOISE)(outputs, targets).baseline
    others = NoisyEnergyScore(NOISE, baseline="none")(outputs[:, [0, 1, 3, 4]], targets).cost.mean(1)
    assert torch.allclose(baseline[:, 2], others, atol=1e-12)


@pytest.mark.parametrize("missing", [False, True])
def test_pair_costs_are_what_the_loss_averages(batch, missing):
    """The mean of a row without its own place is the part of the cost that compares; and each cost by the integral."""
    outputs, targets = batch
    observed = torch.ones_like(targets)
    observed[0, 1] = 0
    costs = NoisyEnergyScore(NOISE).pair_costs(outputs, observed if missing else None)
    compared = NoisyEnergyScore(NOISE).parts(outputs, targets, observed if missing else None, 1)[0]
    assert costs.shape == (4, 5, 5, 3)
    assert compared.ends == 2
    assert torch.allclose((costs.sum(2) - costs.diagonal(dim1=1, dim2=2).mT) / 4, compared.values, atol=1e-12)
    for s, t, i in itertools.product(range(5), range(5), range(3)):
        (mean, sigma), (other, other_sigma) = outputs[0, s, i].tolist(), outputs[0, t, i].tolist()
        expected = 0.0 if missing and i == 1 else -0.5 * distance(mean - other, math.hypot(sigma, other_sigma))
        assert float(costs[0, s, t, i]) == pytest.approx(expected, abs=1e-8)


def test_missing_targets_change_nothing(batch):
    outputs, targets = batch
    observed = torch.ones_like(targets)
    observed[0], observed[1, 2] = 0, 0
    fillers = [torch.where(observed > 0, targets, filler) for filler in (0.0, torch.nan)]
    first, second = (NoisyEnergyScore(NOISE)(outputs, filled, observed) for filled in fillers)
    assert torch.equal(first.value, second.value)
    assert torch.equal(first.cost, second.cost)
    assert first.weight.sum() == 8
    plain = NoisyEnergyScore(NOISE)(outputs, targets)
    seen = observed[..., 0] > 0
    assert torch.allclose(first.value[seen], plain.value[seen], atol=1e-12)
    assert (first.value[~seen] == 0).all()
    assert ((first.cost - first.baseline).movedim(1, -1)[~seen] == 0).all()


# One edge of true probability t that adds b to y, and noise of size sigma: y = A b + sigma e.
B, SIGMA = 1.0, 0.6
GRID = torch.linspace(0, 1, 101, dtype=torch.float64)
POINTS, WEIGHTS = (torch.tensor(part) for part in np.polynomial.hermite_e.hermegauss(40))


def expected_losses(loss, truth, model_sigma):
    """The loss at each theta of the grid, summed over the hidden edge, its noise and all pairs of sampled graphs."""
    edges = torch.tensor([0.0, 1.0], dtype=torch.float64)
    targets = (edges[:, None] * B + SIGMA * POINTS).flatten()  # (hidden edge * point of the noise)
    target_probs = (torch.tensor([1 - truth, truth])[:, None] * WEIGHTS / WEIGHTS.sum()).flatten()
    chosen = torch.cartesian_prod(torch.arange(2), torch.arange(2))
    outputs = edges[chosen][..., None, None] * B  # (pair of graphs, graph, node, 1)
    if model_sigma is not None:
        outputs = torch.cat([outputs, torch.full_like(outputs, model_sigma)], -1)
    by_pair = torch.stack([loss(outputs, y.expand(4, 1, 1)).value[:, 0] for y in targets])  # (target, pair)
    probs = torch.stack([1 - GRID, GRID], -1)[:, chosen].prod(-1)  # (theta, pair)
    return probs @ (target_probs @ by_pair)


@pytest.mark.parametrize("truth", [0.0, 0.1, 0.5, 0.8])
def test_without_a_model_of_the_noise_theta_is_bent_towards_a_half(truth):
    r"""The energy score of graphs alone is least at 1/2 - (1/2 - t) (a(b) - a(0)) / b, where a(d) = E|d + sigma e|."""
    bent = float(GRID[expected_losses(EnergyScore(baseline="none"), truth, None).argmin()])
    pull = (distance(B, SIGMA) - distance(0, SIGMA)) / B
    assert bent == pytest.approx(0.5 - (0.5 - truth) * pull, abs=0.0051)  # the grid's step is 0.01
    assert truth == 0.5 or abs(bent - truth) > 0.1
    losses = expected_losses(NoisyEnergyScore(NOISE, baseline="none"), truth, SIGMA)
    assert float(GRID[losses.argmin()]) == pytest.approx(truth, abs=1e-9)


def test_it_is_proper_for_theta_and_sigma_together():
    sigmas = [0.3, 0.5, 0.6, 0.7, 1.0]
    losses = torch.stack([expected_losses(NoisyEnergyScore(NOISE, baseline="none"), 0.3, sigma) for sigma in sigmas])
    best = int(losses.argmin())
    assert sigmas[best // len(GRID)] == SIGMA
    assert float(GRID[best % len(GRID)]) == pytest.approx(0.3, abs=1e-9)
    assert float(losses.flatten().sort().values[:2].diff()) > 1e-6


def test_which_losses_have_a_closed_form():
    noise = GaussianNoise(3)
    found = EnergyScore(scope="node", baseline="none").integrating(noise)
    assert found == NoisyEnergyScore(NOISE, baseline="none")
    assert found.observation is noise
    assert NoisyEnergyScore(NOISE).integrating(noise).observation is noise
    for loss, channels in (
        (EnergyScore(scope="node"), 2),
        (EnergyScore(scope="joint"), 1),
        (EnergyScore(weight=2.0), 1),
        (MMD(), 1),
        (PointMSE(), 1),
    ):
        assert loss.integrating(GaussianNoise(3, channels)) is None
    assert all(kind.learns_noise for kind in (MMD, EnergyScore, NoisyEnergyScore))
    assert not any(kind.learns_noise for kind in (PointMSE, ExpectedError, NodewiseExpectedError, ELBO))


def test_errors(unchecked, refused):
    refused(NoisyEnergyScore, NOISE, scope="joint")
    refused(NoisyEnergyScore(NOISE), torch.ones(1, 4, 3, 4), torch.ones(1, 3, 2))
    refused(NoisyEnergyScore, HeadGaussianNoise(2))
    refused(NoisyEnergyScore(NOISE), torch.ones(1, 4, 3, 1), torch.ones(1, 3, 1))

"""Scores of counts, yes or no and categories: textbook formulas, and counts beyond the end of their table."""

import pytest
import scoringrules
import torch
from scipy import stats

from tacit.losses import EnergyScore
from tacit.observation import BernoulliTargets, NegativeBinomialCounts, OrderedCategories, PoissonCounts, TargetValues


def score(observation, outputs, targets):
    """The expected score of the mixture over graphs: a graph may be drawn twice, and so is compared with itself."""
    described = observation.describe(outputs, torch.zeros(len(targets), targets.shape[1], 1).to(targets))
    data, pairs = observation.expected_distance(described, targets), observation.pair_distance(described)
    return (data.mean(1) - pairs.mean((1, 2)) / 2)[..., 0]


def test_twice_the_score_of_yes_or_no_is_the_brier_score(rng):
    """Brier's sum over both values of (p - 1[v])^2."""
    logits = torch.randn(6, 4, 2, 1, generator=rng).double()
    answers = torch.randint(2, (6, 2, 1), generator=rng).double()
    high = torch.sigmoid(logits).mean(1)[..., 0]
    brier = (high - answers[..., 0]) ** 2 + ((1 - high) - (1 - answers[..., 0])) ** 2
    assert torch.allclose(2 * score(BernoulliTargets(2).double(), logits, answers), brier, atol=1e-12)


def test_the_score_of_categories_is_the_ranked_probability_score(rng):
    values = TargetValues.plain(2, categories=(0.0, 1.0, 2.0, 3.0))
    model = OrderedCategories(2, 1, values).double()
    outputs = torch.randn(6, 4, 2, 1, generator=rng).double()
    places = torch.randint(4, (6, 2, 1), generator=rng)
    found = score(model, outputs, places.double()).detach()
    probs = torch.diff(model.table(outputs), prepend=torch.zeros(6, 4, 2, 1, 1), append=torch.ones(6, 4, 2, 1, 1))
    forecasts = probs.mean(1)[:, :, 0].detach().numpy()
    expected = scoringrules.rps_score(places[..., 0].numpy() + 1, forecasts)
    assert torch.allclose(found, torch.tensor(expected).double(), atol=1e-12)


def counts_of(kind, largest, dtype=torch.float64):
    return kind(1, 1, TargetValues(torch.zeros(1, 1), torch.ones(1, 1), largest=largest)).to(dtype)


@pytest.mark.parametrize("mean", [0.3, 5.0, 60.0, 200.0])
@pytest.mark.parametrize("kind", [PoissonCounts, NegativeBinomialCounts])
def test_tables_in_float32(kind, mean):
    """Against scipy's distribution functions, up to 255: 2e-5 at worst, and no sum above 1."""
    model = counts_of(kind, 255, torch.float32)
    table = model.table(torch.full((1, 1, 1, 1), mean)).flatten().detach().double()
    size = 10.0
    one = stats.poisson(mean) if kind is PoissonCounts else stats.nbinom(size, size / (size + mean))
    assert (table - torch.tensor(one.cdf(range(256)))).abs().max() < 2e-5
    assert table.max() <= 1


@pytest.mark.parametrize("kind", [PoissonCounts, NegativeBinomialCounts])
def test_a_table_that_ends_too_early_is_wrong_by_the_stated_bound(kind):
    """Means 4 and 6, a table up to 8, against one up to 200."""
    short, long = counts_of(kind, 8), counts_of(kind, 200)
    means = torch.tensor([4.0, 6.0]).double().view(1, 2, 1, 1)
    beyond = (means - (1 - short.table(means)).sum(-1)).detach()  # E(Y - K - 1)^+
    for count in (0.0, 3.0, 9.0):
        target = torch.full((1, 1, 1), count).double()
        assert torch.allclose(short.expected_distance(means, target), long.expected_distance(means, target), atol=1e-9)
    for count in (10.0, 30.0):
        target = torch.full((1, 1, 1), count).double()
        error = short.expected_distance(means, target) - long.expected_distance(means, target)
        assert ((error > 1e-6) & (error <= 2 * beyond + 1e-9)).all()
    error = (long.pair_distance(means) - short.pair_distance(means)).detach()
    assert (error > 1e-6).all()
    assert (error <= beyond[:, :, None] + beyond[:, None] + 1e-12).all()


@pytest.mark.parametrize("kind", [PoissonCounts, NegativeBinomialCounts])
@pytest.mark.parametrize(("output", "count"), [(5000.0, 3.0), (3.0, 5000.0), (5000.0, 5000.0), (-90.0, 3.0)])
def test_losses_and_gradients_beyond_the_table_are_finite(kind, output, count):
    """An output far above all counts is pulled back where the target is in the table."""
    model = counts_of(kind, 30, torch.float32)
    outputs = torch.tensor([output, output + 1, 0.9 * output]).view(1, 3, 1, 1).requires_grad_()
    loss = EnergyScore().integrating(model)
    value = loss(model.describe(outputs, torch.zeros(1, 1, 1)), torch.full((1, 1, 1), count)).value.sum()
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(outputs.grad).all()
    assert all(torch.isfinite(one.grad).all() for one in model.parameters())
    if (output, count) == (5000.0, 3.0):
        assert (outputs.grad > 0.1).all()


@pytest.mark.parametrize("kind", [PoissonCounts, NegativeBinomialCounts])
def test_counts_without_closed_forms_are_sampled(kind, rng):
    """Above 255: 20,000 samples with a mean of 300, of the right mean and deviation within five standard errors."""
    model = counts_of(kind, 600, torch.float32)
    assert not model.closed_forms
    assert EnergyScore().integrating(model) is None
    means = torch.full((1, 1, 1, 1), 300.0)
    samples = model.draw(means, generator=rng, draws=20_000).flatten()
    assert torch.equal(samples, samples.round())
    deviation = model.variance(means).item() ** 0.5
    assert abs(samples.mean().item() - 300) < 5 * deviation / 20_000**0.5
    assert samples.std().item() == pytest.approx(deviation, rel=0.05)
    assert samples.max() < 300 + 7 * deviation


def test_uniforms_near_one_do_not_reach_the_end_of_the_table():
    """The largest uniform below 1 in float32 is at the upper tail of 5.2 deviations, not at the last count."""
    model = counts_of(PoissonCounts, 255, torch.float32)
    last = model.sample(torch.full((1, 1, 1, 1), 5.0), torch.full((1, 1, 1, 1), 1 - 2**-23))
    assert last.item() == stats.poisson(5.0).ppf(1 - 2**-23)

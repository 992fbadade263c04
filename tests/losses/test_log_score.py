"""The log score: value, baseline, missing targets, the bias of few graphs, and what is refused."""

import itertools
import math

import pytest
import scoringrules
import torch
from scipy import stats

from tacit.estimators import DisARM
from tacit.losses import EnergyScore, LogScore
from tacit.observation import (
    BernoulliTargets,
    GaussianNoise,
    HeadGaussianNoise,
    NegativeBinomialCounts,
    NoNoise,
    ObservationModel,
    OrderedCategories,
    PoissonCounts,
    TargetValues,
)
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel
from toys import even_graph

NOISE = HeadGaussianNoise()


@pytest.fixture
def batch(rng):
    means = torch.randn(4, 5, 3, 1, generator=rng, dtype=torch.float64)
    sigmas = 0.3 + torch.rand(4, 5, 3, 1, generator=rng, dtype=torch.float64)
    return torch.cat([means, sigmas], -1), torch.randn(4, 3, 1, generator=rng, dtype=torch.float64)


def density(described, target):
    mean, sigma = described.tolist()
    return math.exp(-(((float(target) - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("scope", ["node", "joint"])
def test_value_and_baseline_equal_the_loop(batch, scope):
    described, targets = batch
    terms = LogScore(NOISE, scope=scope)(described, targets)
    units = [[i] for i in range(3)] if scope == "node" else [[0, 1, 2]]
    for b, (u, nodes) in itertools.product(range(4), enumerate(units)):
        found = [math.prod(density(described[b, s, i], targets[b, i, 0]) for i in nodes) for s in range(5)]
        value = -math.log(sum(found) / 5) / len(nodes)
        assert float(terms.value[b, u]) == pytest.approx(value, abs=1e-12)
        assert terms.cost[b, :, u].tolist() == pytest.approx([5 * value] * 5, abs=1e-11)
        for s in range(5):
            others = [p for t, p in enumerate(found) if t != s]
            replaced = [*others, math.prod(others) ** 0.25]
            assert float(terms.baseline[b, s, u]) == pytest.approx(
                -5 * math.log(sum(replaced) / 5) / len(nodes), abs=1e-11
            )


@pytest.mark.parametrize("scope", ["node", "joint"])
def test_missing_targets_change_nothing(batch, scope):
    described, targets = batch
    observed = torch.ones_like(targets)
    observed[0], observed[1, 2] = 0, 0
    fillers = [torch.where(observed > 0, targets, filler) for filler in (0.0, torch.nan)]
    first, second = (LogScore(NOISE, scope=scope)(described, filled, observed) for filled in fillers)
    assert torch.equal(first.value, second.value)
    assert torch.equal(first.cost, second.cost)
    assert torch.equal(first.baseline, second.baseline)
    alone = LogScore(NOISE, scope="joint")(described[1:2, :, :2], targets[1:2, :2])
    if scope == "joint":
        assert first.weight[:, 0].tolist() == pytest.approx([0, 2 / 3, 1, 1])
        assert float(first.value[1, 0]) == pytest.approx(2 / 3 * float(alone.value[0, 0]), abs=1e-12)


def least_at(num_graphs, truth=0.1):
    """Where the expected loss of yes or no is least over theta: p is 0.9 with an edge, 0.1 without."""
    grid = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    edges = torch.arange(num_graphs + 1, dtype=torch.float64)  # graphs with the edge
    logits = torch.where(torch.arange(num_graphs) < edges[:, None], 0.9, 0.1).double().logit()[..., None, None]
    loss = LogScore(BernoulliTargets(1).double(), baseline="none")
    yes, no = (loss(logits, torch.full((num_graphs + 1, 1, 1), v).double()).value[:, 0] for v in (1.0, 0.0))
    high = truth * 0.9 + (1 - truth) * 0.1
    count = torch.distributions.Binomial(num_graphs, grid[:, None])
    return float(grid[(count.log_prob(edges).exp() @ (high * yes + (1 - high) * no)).argmin()])


def test_few_graphs_bend_theta_and_many_do_not():
    """The figures of the module's text."""
    found = {graphs: least_at(graphs) for graphs in (4, 8, 16, 64, 512)}
    assert found == pytest.approx({4: 0.001, 8: 0.067, 16: 0.09, 64: 0.098, 512: 0.1}, abs=6e-4)


def test_errors(rng, unchecked, refused):
    class Silent(BernoulliTargets):
        log_prob = ObservationModel.log_prob

    graph, predictor = even_graph(3), HopPredictor.random(1, 2, generator=rng)
    noise = GaussianNoise(3)
    refused(LogScore, baseline="paper")
    refused(LogScore, Silent(3))
    refused(LatentGraphModel, graph, predictor, LogScore(), observation=NoNoise())
    refused(LatentGraphModel, graph, predictor, LogScore(), observation=noise, estimator=DisARM())
    refused(LogScore(), torch.zeros(1, 3, 1, 1), torch.zeros(1, 1, 1))


# ---------------------------------------------------------------- scores of counts, yes or no and categories


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

"""Counts, yes or no, categories, positive numbers, heavy tails: against scipy, one by one."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch.func import grad, vmap

from tacit.observation import (
    BernoulliTargets,
    GaussianNoise,
    LogNormalNoise,
    MixedObservation,
    NegativeBinomialCounts,
    ObservationModel,
    OrderedCategories,
    PoissonCounts,
    StudentTNoise,
    TargetValues,
)
from tacit.registry import OBSERVATIONS

CATEGORIES = (1.0, 2.0, 4.0, 5.0)
OFFSET, UNIT = torch.tensor([[3.0], [5.0]]).double(), torch.tensor([[2.0], [1.5]]).double()
NAMES = ["poisson", "negative_binomial", "bernoulli", "ordered", "log_normal", "student_t"]


def values_of(largest=80):
    return TargetValues(OFFSET, UNIT, CATEGORIES, largest)


def made(name, rng, largest=80):
    """A kind for two nodes, with parameters of its own away from their start; in float64."""
    model = OBSERVATIONS[name].for_sizes(num_nodes=2, in_channels=1, channels=1, values=values_of(largest)).double()
    for value in model.parameters():
        value.data += 0.3 * torch.randn(value.shape, generator=rng).double()
    return model


def outputs_for(rng, graphs=3):
    return torch.randn(4, graphs, 2, 1, generator=rng).double()


def oracle(model, output, node):
    """The distribution of one node in the units of the data, by scipy."""
    offset, unit = float(OFFSET[node, 0]), float(UNIT[node, 0])
    bend = 1.0 if model.support == "counts" else unit
    mean = bend * (np.log1p(np.exp((offset + unit * output) / bend)) + 1e-6)
    if isinstance(model, PoissonCounts):
        return stats.poisson(mean)
    if isinstance(model, NegativeBinomialCounts):
        size = 1 / model.dispersion[node, 0].item()
        return stats.nbinom(size, size / (size + mean))
    if isinstance(model, BernoulliTargets):
        return stats.bernoulli(1 / (1 + np.exp(-output)))
    if isinstance(model, OrderedCategories):
        below = 1 / (1 + np.exp(output - model.cuts[node, 0].detach().numpy()))
        return stats.rv_discrete(values=(CATEGORIES, np.diff(np.concatenate([[0], below, [1]]))))
    if isinstance(model, LogNormalNoise):
        sigma = model.sigma[node, 0].item()
        return stats.lognorm(sigma, scale=mean * np.exp(-(sigma**2) / 2))
    scale = model.sigma[node, 0].item() * unit  # student t is a model of scaled targets
    return stats.t(model.degrees[node, 0].item(), offset + unit * output, scale)


def some_values(model, rng):
    """Values that the targets of a kind can have: (4, 2, 1), in the units of the data."""
    if isinstance(model, LogNormalNoise):
        return 0.2 + 6 * torch.rand(4, 2, 1, generator=rng).double()
    if isinstance(model, StudentTNoise):
        return 3 * torch.randn(4, 2, 1, generator=rng).double()
    known = {BernoulliTargets: (0.0, 1.0), OrderedCategories: CATEGORIES}.get(type(model), range(12))
    places = torch.randint(len(known), (4, 2, 1), generator=rng)
    return torch.tensor(list(known)).double()[places]


def each(found, model, outputs, of):
    """Compare each number with what the oracle of its output says."""
    for b, s, i in np.ndindex(4, 3, 2):
        expected = of(oracle(model, outputs[b, s, i, 0].item(), i), b, i)
        assert found[b, s, i, 0].item() == pytest.approx(expected, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_moments_and_log_probabilities_are_those_of_scipy(name, rng):
    model, outputs = made(name, rng), outputs_for(rng)
    values = some_values(model, rng)
    described = model.describe(outputs, torch.zeros(4, 2, 1).double())
    targets = (values - OFFSET) / UNIT
    discrete = model.support in ("counts", "two values", "categories")

    def log_prob(one, b, i):
        value = values[b, i, 0].item()
        return one.logpmf(value) if discrete else one.logpdf(value) + np.log(UNIT[i, 0].item())

    each(
        model.mean(described), model, outputs, lambda one, _, i: (one.mean() - OFFSET[i, 0].item()) / UNIT[i, 0].item()
    )
    each(model.variance(described), model, outputs, lambda one, _, i: one.var() / UNIT[i, 0].item() ** 2)
    each(model.log_prob(described, targets), model, outputs, log_prob)
    if model.closed_forms:
        below, up_to = model.cdf(described, targets)
        each(up_to, model, outputs, lambda one, b, i: one.cdf(values[b, i, 0].item()))
        lower = values - 1e-6 if discrete else values
        each(below, model, outputs, lambda one, b, i: one.cdf(lower[b, i, 0].item()))


@pytest.mark.parametrize("name", NAMES)
def test_information_is_the_expected_squared_score(name, rng):
    """Sums over all values; of numbers, the midpoints of 20,000 quantiles."""
    model, outputs = made(name, rng), torch.tensor([0.4, -0.7]).double().view(1, 1, 2, 1)
    inputs = torch.zeros(1, 2, 1).double()
    for node in (0, 1):
        one = oracle(model, outputs[0, 0, node, 0].item(), node)
        if model.support in ("positive", "real"):
            probs = np.full(20_000, 1 / 20_000)
            values = one.ppf((np.arange(20_000) + 0.5) / 20_000)
        else:
            values = np.asarray({"two values": (0, 1), "categories": CATEGORIES}.get(model.support, range(80)))
            probs = one.pmf(values)
        targets = ((torch.tensor(values).double() - OFFSET[node]) / UNIT[node])[:, None, None].repeat(1, 2, 1)

        def log_prob(f, target, node=node):
            return model.log_prob(model.describe(f, inputs), target[None])[0, 0, node, 0]

        scores = vmap(grad(log_prob), in_dims=(None, 0))(outputs, targets)[:, 0, 0, node, 0].detach().numpy()
        found = model.information(model.describe(outputs, inputs))[0, 0, node, 0].item()
        assert found == pytest.approx((probs * scores**2).sum(), rel=2e-3 if len(values) == 20_000 else 1e-9)
        assert (probs * scores).sum() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", NAMES[:-1])
def test_the_sample_at_rank_u_is_the_u_quantile(name, rng):
    model, outputs = made(name, rng), outputs_for(rng)
    described = model.describe(outputs, torch.zeros(4, 2, 1).double())
    uniforms = torch.rand(4, 3, 2, 1, generator=rng).double()
    samples = model.sample(described, uniforms).detach() * UNIT + OFFSET
    for b, s, i in np.ndindex(4, 3, 2):
        one = oracle(model, outputs[b, s, i, 0].item(), i)
        assert samples[b, s, i, 0].item() == pytest.approx(one.ppf(uniforms[b, s, i, 0].item()), rel=1e-9)
    lifted = model.sample(described, (uniforms + 0.1).clamp_max(0.999)).detach() * UNIT + OFFSET
    assert (lifted >= samples - 1e-12).all()


def test_two_uniforms_make_a_student_t(rng):
    """40,000 samples: Kolmogorov-Smirnov at 1e-4. For a given angle the size falls with the first uniform."""
    noise = StudentTNoise(1).double()
    uniforms = torch.rand(1, 40_000, 1, 2, generator=rng).double()
    samples = noise.sample(torch.zeros(1, 40_000, 1, 1).double(), uniforms).detach().flatten()
    expected = stats.t(noise.degrees.item(), 0, noise.sigma.item())
    assert stats.kstest(samples.numpy(), expected.cdf).pvalue > 1e-4
    ordered = torch.stack([torch.linspace(0.01, 0.99, 50), torch.full((50,), 0.1)], -1).view(1, 50, 1, 2).double()
    assert (noise.sample(torch.zeros(1, 50, 1, 1).double(), ordered).flatten().diff() < 0).all()


@pytest.mark.parametrize("name", NAMES[:-1])
def test_distances_are_sums_over_quantiles(name, rng):
    """E|Y - y| and E|Y - Z| by the quantiles of scipy: exact for few values, nearly for many."""
    model, outputs = made(name, rng), outputs_for(rng)
    described = model.describe(outputs, torch.zeros(4, 2, 1).double())
    values = some_values(model, rng)
    targets = (values - OFFSET) / UNIT
    data, pairs = model.expected_distance(described, targets), model.pair_distance(described)
    ranks = (np.arange(4000) + 0.5) / 4000
    for i in (0, 1):
        ones = [oracle(model, outputs[0, s, i, 0].item(), i) for s in range(3)]
        if model.support == "positive":
            points = [(one.ppf(ranks), np.full(4000, 1 / 4000)) for one in ones]
        else:
            known = np.asarray({"two values": (0, 1), "categories": CATEGORIES}.get(model.support, range(120)))
            points = [(known, one.pmf(known)) for one in ones]
        tolerance = 2e-3 if model.support == "positive" else 1e-9
        for s, (v, p) in enumerate(points):
            expected = (p * abs(v - float(values[0, i, 0]))).sum() / float(UNIT[i, 0])
            assert data[0, s, i, 0].item() == pytest.approx(expected, rel=tolerance)
            for t, (w, q) in enumerate(points):
                expected = (abs(v[:, None] - w) * p[:, None] * q).sum() / float(UNIT[i, 0])
                assert pairs[0, s, t, i, 0].item() == pytest.approx(expected, rel=tolerance)
    both = model.distances(described, targets)
    others = (pairs.sum(2) - pairs.diagonal(dim1=1, dim2=2).movedim(-1, 1)) / 2
    assert torch.allclose(both[0], data, atol=1e-12)
    assert torch.allclose(both[1], others, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_not_compared_with_themselves(name, rng):
    model = made(name, rng)
    if not model.closed_forms:
        return
    described = model.describe(outputs_for(rng, 6), torch.zeros(4, 2, 1).double())
    pairs, others = model.pair_distance(described), model.distances(described, torch.zeros(4, 2, 1).double(), 2)[1]
    for s in range(6):
        apart = [t for t in range(6) if t // 2 != s // 2]
        assert torch.allclose(others[:, s], pairs[:, s, apart].mean(1), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_some_nodes_and_the_start(name, rng):
    model, outputs, inputs = made(name, rng), outputs_for(rng), torch.zeros(4, 2, 1).double()
    targets = (some_values(model, rng) - OFFSET) / UNIT
    whole = model.log_prob(model.describe(outputs, inputs), targets)
    part = model.chosen([1])
    found = part.log_prob(part.describe(outputs[:, :, 1:], inputs[:, 1:]), targets[:, 1:])
    assert torch.allclose(found, whole[:, :, 1:], atol=1e-12)
    fresh = OBSERVATIONS[name].for_sizes(num_nodes=2, in_channels=1, channels=1, values=values_of()).double()
    start = model.initial_parameters(torch.Generator())
    for key, value in fresh.named_parameters():
        assert torch.allclose(start[key].double(), value, atol=1e-6)


@pytest.mark.parametrize("name", ["negative_binomial", "log_normal", "student_t"])
def test_a_start_with_given_deviations(name, rng):
    """At the mean of a node; deviations below that of a Poisson count are not possible for counts."""
    model, sigmas = made(name, rng), torch.tensor([[2.0], [3.0]]).double()
    model.load_state_dict(model.with_deviations(sigmas), strict=False)
    bend = torch.ones_like(UNIT) if model.support == "counts" else UNIT
    output = ((bend * (OFFSET / bend).expm1().log() - OFFSET) / UNIT).view(1, 1, 2, 1)  # the mean is then the offset
    described = model.describe(output, torch.zeros(1, 2, 1).double())
    assert torch.allclose(model.variance(described).sqrt()[0, 0], sigmas, rtol=1e-4)


def test_a_mix_says_of_each_node_what_its_own_model_says(rng):
    """Poisson, Student t and Gaussian noise over four nodes, not in order."""
    values = TargetValues(torch.tensor([[3.0], [0.0], [5.0], [1.0]]).double(), torch.ones(4, 1).double())
    counts, heavy, normal = (
        PoissonCounts(2, 1, values.chosen([2, 0])).double(),
        StudentTNoise(1).double(),
        GaussianNoise(1).double(),
    )
    mixed = MixedObservation([(counts, [2, 0]), (heavy, [3]), (normal, [1])])
    assert (mixed.num_parameters, mixed.num_uniforms, mixed.closed_forms, mixed.reparameterized) == (2, 2, False, False)
    assert mixed.supports == ("counts", "real", "counts", "real")
    outputs, inputs = torch.randn(3, 5, 4, 1, generator=rng).double(), torch.randn(3, 4, 2, generator=rng).double()
    targets = torch.tensor([0.0, -0.3, 2.0, 1.0]).double().view(1, 4, 1).repeat(3, 1, 1)
    uniforms = torch.rand(3, 5, 4, 2, generator=rng).double()
    described = mixed.describe(outputs, inputs)
    for model, own in ((counts, [2, 0]), (heavy, [3]), (normal, [1])):
        alone = model.describe(outputs[:, :, own], inputs[:, own])
        for what in ("mean", "variance", "information"):
            assert torch.equal(getattr(mixed, what)(described)[:, :, own], getattr(model, what)(alone))
        assert torch.equal(mixed.log_prob(described, targets)[:, :, own], model.log_prob(alone, targets[:, own]))
        numbers = uniforms[:, :, own, : model.num_uniforms]
        samples = mixed.sample(described, uniforms)
        assert torch.equal(samples[:, :, own], model.sample(alone, numbers))
        scores = mixed.sample_log_prob(described, samples)[:, :, own]
        assert torch.equal(scores, model.sample_log_prob(alone, samples[:, :, own]))
        assert bool(scores.any()) is not model.reparameterized
    assert type(mixed.chosen([0, 2])) is PoissonCounts
    assert torch.equal(mixed.chosen([0, 2]).offset, values.offset[[0, 2]])
    part = mixed.chosen([1, 2])
    assert [type(model) for model in part.models] == [PoissonCounts, GaussianNoise]
    found = part.mean(part.describe(outputs[:, :, [1, 2]], inputs[:, [1, 2]]))
    assert torch.allclose(found, mixed.mean(described)[:, :, [1, 2]], atol=1e-12)
    assert set(mixed.initial_parameters(rng)) == {name for name, _ in mixed.named_parameters()}


def test_a_mix_with_closed_forms(rng):
    categories = TargetValues.plain(1, categories=(0.0, 1.0, 2.0))
    parts = [(GaussianNoise(1), [1]), (OrderedCategories(1, 1, categories), [0]), (BernoulliTargets(1), [2])]
    mixed = MixedObservation(parts)
    described = mixed.describe(torch.randn(2, 4, 3, 1, generator=rng), torch.zeros(2, 3, 1))
    targets = torch.tensor([2.0, 0.4, 1.0]).view(1, 3, 1).repeat(2, 1, 1)
    assert mixed.closed_forms
    for model, own in parts:
        alone = described[:, :, own, : model.num_parameters]
        for what in ("expected_distance", "log_prob"):
            expected = getattr(model, what)(alone, targets[:, own])
            assert torch.equal(getattr(mixed, what)(described, targets)[:, :, own], expected)
        assert torch.equal(mixed.pair_distance(described)[:, :, :, own], model.pair_distance(alone))
        for what in ("cdf", "distances"):
            both = zip(
                getattr(mixed, what)(described, targets), getattr(model, what)(alone, targets[:, own]), strict=True
            )
            assert all(torch.equal(ours[:, :, own], theirs) for ours, theirs in both)


def test_errors(unchecked, refused):
    refused(OrderedCategories, 2)
    refused(MixedObservation, [(PoissonCounts(1), [0]), (GaussianNoise(1), [0])])
    refused(MixedObservation, [(PoissonCounts(1), [0]), (GaussianNoise(1, 2), [1])])
    refused(StudentTNoise(1).pair_distance, torch.zeros(1, 2, 1, 1))


def test_the_distribution_function_of_student_t_is_that_of_scipy():
    from scipy import stats

    noise, targets = StudentTNoise(2).double(), torch.linspace(-3, 3, 10, dtype=torch.float64).view(5, 2, 1)
    outputs = torch.full((5, 1, 2, 1), 0.3, dtype=torch.float64)
    below, up_to = noise.cdf(outputs, targets)
    expected = stats.t.cdf((targets - 0.3) / float(noise.sigma[0, 0].detach()), float(noise.degrees[0, 0].detach()))
    assert torch.equal(below, up_to)
    assert torch.allclose(below[:, 0].detach(), torch.from_numpy(expected))


# ---------------------------------------------------------------- draws of counts have the moments that the model says


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


# ---------------------------------------------------------------- first and second derivatives of the log probability


NODES, GRAPHS, ROWS = 3, 4, 25
VALUES = TargetValues(torch.tensor([[3.0], [0.5], [8.0]]), torch.tensor([[2.0], [1.0], [0.7]]))
GRADES = TargetValues(torch.zeros(NODES, 1), torch.tensor([[1.0], [2.0], [0.5]]), categories=(0.0, 1.0, 2.0, 5.0))
KINDS = {
    "gaussian": lambda: GaussianNoise(NODES),
    "student_t": lambda: StudentTNoise(NODES),
    "log_normal": lambda: LogNormalNoise(NODES, values=VALUES),
    "poisson": lambda: PoissonCounts(NODES, values=VALUES),
    "negative_binomial": lambda: NegativeBinomialCounts(NODES, values=VALUES),
    "bernoulli": lambda: BernoulliTargets(NODES),
    "ordered": lambda: OrderedCategories(NODES, values=GRADES),
}


def drawn(name, rng):
    model = KINDS[name]().double()
    for value in model.parameters():
        value.data += 0.5 * torch.randn(value.shape, generator=rng).double()
    outputs = 1.5 * torch.randn(ROWS, GRAPHS, NODES, 1, generator=rng).double()
    described = model.describe(outputs[:, :1], torch.zeros(ROWS, NODES, 1))
    targets = model.draw(described, generator=rng)[:, 0].detach()
    return model, outputs, targets


@pytest.mark.parametrize("name", KINDS)
def test_closed_forms_are_those_of_automatic_differentiation(name, rng):
    model, outputs, targets = drawn(name, rng)
    with torch.no_grad():
        found, expected = model.derivatives(outputs, targets), ObservationModel.derivatives(model, outputs, targets)
    for one, other in zip(found, expected, strict=True):
        one, other = (one, other) if isinstance(one, list) else ([one], [other])
        assert len(one) == len(other)
        for closed, differentiated in zip(one, other, strict=True):
            assert torch.allclose(closed.expand_as(differentiated), differentiated, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_automatic_differentiation_agrees_with_differences(name, rng):
    model, outputs, targets = drawn(name, rng)

    def log_prob(moved):
        return model.log_prob(model.describe(moved, torch.zeros(ROWS, NODES, 1)), targets).detach()

    found, step = ObservationModel.derivatives(model, outputs, targets), 1e-5
    assert torch.allclose(found.log_prob, log_prob(outputs), rtol=0, atol=1e-10)
    assert torch.allclose(found.score, (log_prob(outputs + step) - log_prob(outputs - step)) / (2 * step), atol=1e-4)
    number = 0
    for value in model.parameters():
        for place in range(value[0].numel()):
            found_here = []
            for sign in (1, -1):
                value.data.view(NODES, -1)[:, place] += sign * step
                moved = ObservationModel.derivatives(model, outputs, targets)
                found_here.append((moved.log_prob, moved.score))
                value.data.view(NODES, -1)[:, place] -= sign * step
            slope, cross = ((one - other) / (2 * step) for one, other in zip(*found_here, strict=True))
            assert torch.allclose(found.noise[number], slope, atol=1e-4)
            assert torch.allclose(found.cross[number], cross, atol=1e-4)
            number += 1
    assert len(found.noise) == number


@pytest.mark.parametrize("name", KINDS)
def test_models_of_single_nodes_stack_to_the_model_of_all(name, rng):
    model, outputs, targets = drawn(name, rng)
    again = model.chosen([0]).stacked([model.chosen([node]) for node in range(NODES)])
    assert torch.equal(again.derivatives(outputs, targets).log_prob, model.derivatives(outputs, targets).log_prob)

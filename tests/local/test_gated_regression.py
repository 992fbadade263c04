"""The exact likelihood of one node: equal to a sum over states written out, and at its maximum."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from scipy import stats

from gated_nodes import DOUBLE, KINDS, SlowFit, fitted, regression, varying_fit, with_features, with_spread
from tacit.local import GatedBatch, GatedFit, fit_gated, fit_gates


def by_hand(data, fit, row):
    """The log likelihood of a row, state by state."""
    total = 0.0
    for state in itertools.product((0, 1), repeat=2):
        output, weight = data.own[row] @ fit.own, 1.0
        for source, acts in enumerate(state):
            logit = float(fit.logits[source])
            if fit.slopes is not None:
                logit += float(fit.slopes[source] @ data.features[row, source])
            prob = 1 / (1 + math.exp(-logit))
            weight *= prob if acts else 1 - prob
            output = output + acts * data.sent[source, row] @ fit.edges[source]
        described = data.observation.describe(output.view(1, 1, 1, 1), torch.zeros(1, 1, 1).double())
        log_prob = data.observation.log_prob(described, data.targets[row].view(1, 1, 1))
        total += weight * math.exp(log_prob.detach().item())
    return math.log(total)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_the_likelihood_is_the_sum_over_all_states(name, features, rng):
    data = with_features(name, rng, rows=7)
    fit = varying_fit(data) if features else replace(varying_fit(data), slopes=None, varying=None)
    expected = torch.tensor([by_hand(data, fit, row) for row in range(7)], dtype=DOUBLE)
    assert torch.allclose(data.row_log_likelihoods(fit), expected, rtol=0, atol=1e-10)
    batch = GatedBatch([data], [fit], [None])
    of_rows = batch.row_derivatives(batch.numbers(), torch.tensor([0]), slice(0, 7))
    assert torch.allclose(of_rows.values[0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("effects", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_gradient_and_curvature_are_those_of_differences(name, effects, rng):
    """For three regressions of different length at once, with weights of rows, features and a fixed gate."""
    data = [
        replace(with_features(name, rng, rows=rows), weights=torch.rand(rows, generator=rng).double())
        for rows in (40, 25, 31)
    ]
    batch = GatedBatch(data, [varying_fit(one) for one in data], [None, 1, None])
    numbers, which = batch.numbers(), torch.arange(3)
    evaluate = batch.evaluate_effects if effects else batch.evaluate
    numbers = batch.with_effects(numbers) if effects else numbers
    _, gradient, curvature = evaluate(numbers, which)
    for place in range(numbers.shape[1]):
        step = torch.zeros_like(numbers)
        step[:, place] = 1e-5
        higher, lower = evaluate(numbers + step, which), evaluate(numbers - step, which)
        assert torch.allclose((higher[0] - lower[0]) / 2e-5, gradient[:, place], rtol=1e-5, atol=1e-5)
        assert torch.allclose((lower[1] - higher[1]) / 2e-5, curvature[:, :, place], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_the_log_posterior_is_that_of_the_slow_fit(name, rng):
    data = replace(with_features(name, rng, rows=30), weights=torch.rand(30, generator=rng).double())
    start = varying_fit(data)
    batch, slow = GatedBatch([data], [start], [None]), SlowFit(data, start)
    value, gradient, _ = batch.evaluate(batch.numbers(), torch.tensor([0]))
    expected, by_parameter = slow.value_and_gradient(slow.first)
    assert value.item() == pytest.approx(expected, abs=1e-9)
    assert gradient.norm().item() == pytest.approx(by_parameter.norm().item(), abs=1e-8)  # the order is another


@pytest.mark.parametrize("name", KINDS)
def test_the_fits_are_the_maxima_of_the_slow_search(name, rng):
    """Many regressions at once: of different length, with none, one and two gates, and with a fixed probability."""
    data = [regression(name, rng, rows=rows) for rows in (300, 260, 220)]
    bases = fit_gated(data, [one.start() for one in data])
    starts = [*bases, *(one.with_gate(1, 0.7) for one in bases), bases[0].with_gate(0, 0.8).with_gate(1, 0.6)]
    starts.append(bases[1].with_gate(1, 0.5))
    data, fixed = [*data, *data, data[0], data[1]], [None] * 7 + [1]
    for one, start, gate, found in zip(data, starts, fixed, fit_gated(data, starts, fixed), strict=True):
        slow = SlowFit(one, start, gate).fit()
        assert found.log_likelihood == pytest.approx(slow.log_likelihood, abs=1e-4)
        assert torch.allclose(found.weights, slow.weights, atol=2e-3)
        assert torch.allclose(found.edge_probs, slow.edge_probs, atol=2e-3)
        assert float(one.row_log_likelihoods(found).sum()) == pytest.approx(found.log_likelihood, abs=1e-8)
    assert found.edge_probs[1].item() == pytest.approx(0.5, abs=1e-12)


def test_without_gates_it_is_logistic_regression(rng):
    """scikit-learn's without a penalty; the prior of the weights moves them by less than a percent."""
    from sklearn.linear_model import LogisticRegression

    data = regression("bernoulli", rng, probs=(1.0, 1.0), rows=2000)
    oracle = LogisticRegression(C=1e9, fit_intercept=False, tol=1e-9, max_iter=1000)
    oracle.fit(data.design.numpy(), data.targets.numpy())
    assert torch.allclose(fitted(data).weights, torch.from_numpy(oracle.coef_[0]), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("name", ["gaussian", "poisson", "bernoulli"])
def test_the_truth_is_inside_the_likelihood_region(name, rng):
    """Twice the log likelihood ratio is below the 99.9% quantile of a chi-square of as many numbers."""
    data = regression(name, rng, rows=1500)
    gated = torch.tensor([False, True])
    (fit,) = fit_gates([data], [gated], [fitted(data)])
    weights = torch.tensor([[0.8, 0.3], [1.2, 0.0]], dtype=DOUBLE) * (2 if name == "bernoulli" else 1)
    own = torch.tensor([0.4, 0.5 + 2 * (name == "poisson")], dtype=DOUBLE) * (2 if name == "bernoulli" else 1)
    truth = GatedFit(own, weights, torch.logit(torch.tensor([0.5, 0.6], dtype=DOUBLE)), gated, fit.observation)
    ratio = 2 * (fit.log_likelihood - float(data.row_log_likelihoods(truth).sum()))
    assert -1e-6 < ratio < stats.chi2.isf(1e-3, 7)
    assert float(fit.edge_probs[1]) == pytest.approx(0.6, abs=0.15)


def test_rows_in_parts_give_the_same(rng, monkeypatch):
    data = regression("poisson", rng)
    starts = [data.start().with_gate(1, 0.6), data.start().with_gate(0, 0.3)]
    for some in (starts, starts[:1]):
        batch = GatedBatch([data] * len(some), some, [None] * len(some))
        once = batch.evaluate(batch.numbers(), torch.arange(len(some)))
        with monkeypatch.context() as patched:
            patched.setattr("tacit.local.batch.AT_ONCE", 64)
            parts = batch.evaluate(batch.numbers(), torch.arange(len(some)))
        for one, other in zip(once, parts, strict=True):
            assert torch.allclose(one, other, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_slopes_of_zero_leave_the_likelihood_as_it_is(name, rng):
    data = with_features(name, rng)
    constant = replace(varying_fit(data), slopes=None, varying=None)
    zero = constant.with_slopes(constant.gated, 3)
    assert torch.allclose(data.row_log_likelihoods(constant), data.row_log_likelihoods(zero), rtol=0, atol=1e-12)


def test_features_without_slopes_change_nothing(rng):
    data = with_features("gaussian", rng)
    plain = replace(data, features=None)
    one, other = (fitted(some, some.start().with_gate(1, 0.6)) for some in (data, plain))
    assert torch.equal(one.edges, other.edges)
    assert torch.equal(one.logits, other.logits)
    assert one.log_likelihood == other.log_likelihood


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_with_slopes_the_fit_is_the_maximum_of_the_slow_search(name, rng):
    data = with_features(name, rng)
    start = replace(varying_fit(data), observation=data.observation)
    one, other = fitted(data, start), SlowFit(data, start).fit()
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-4)
    assert torch.allclose(one.slopes, other.slopes, atol=0.01)


def test_an_edge_that_does_not_vary_keeps_a_slope_of_zero(rng):
    data = with_features("gaussian", rng)
    fit = varying_fit(data).with_slopes(torch.tensor([True, False]), 3)
    assert fit.slopes[0].tolist() == varying_fit(data).slopes[0].tolist()
    found = fitted(data, fit)
    assert found.slopes[1].tolist() == [0, 0, 0]
    assert found.slopes[0].abs().max() > 0


def test_different_kinds_of_noise_and_of_data_in_one_call(rng):
    data = [regression(name, rng, rows=120) for name in KINDS]
    found = fit_gated(data, [one.start() for one in data])
    for one, fit in zip(data, found, strict=True):
        assert fit.log_likelihood == pytest.approx(fitted(one).log_likelihood, abs=1e-6)


def test_no_regressions_are_no_fits():
    assert fit_gated([], []) == []


def test_noise_that_grows_is_a_normal_density_with_another_deviation(rng):
    data = with_spread("gaussian", rng, rows=7)
    fit = replace(data.start().with_gate(1, 0.6), spread=torch.tensor([0.7, -0.3], dtype=DOUBLE))
    sigma = fit.observation.log_sigma.detach()[0, 0].exp() + 1e-3
    deviations = sigma * (data.spread @ fit.spread).exp()
    expected = torch.distributions.Normal(torch.zeros(7, dtype=DOUBLE), deviations).log_prob(data.targets)
    assert torch.allclose(data.row_log_likelihoods(fit), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "student_t"])
def test_derivatives_with_growing_noise_are_those_of_differences(name, rng):
    """For two regressions of different length and a fixed gate, with the effects of gated edges as parameters."""
    data = [with_spread(name, rng, rows=rows) for rows in (40, 25)]
    spread = torch.tensor([0.5, -0.2], dtype=DOUBLE)
    fits = [replace(varying_fit(one), slopes=None, varying=None, spread=spread) for one in data]
    batch = GatedBatch(data, fits, [None, 1])
    numbers, which = batch.with_effects(batch.numbers()), torch.arange(2)
    _, gradient, curvature = batch.evaluate_effects(numbers, which)
    log_likelihoods = torch.tensor([one.row_log_likelihoods(fit).sum() for one, fit in zip(data, fits, strict=True)])
    unpacked = batch.unpacked(batch.numbers())
    assert torch.allclose(torch.tensor([fit.log_likelihood for fit in unpacked], dtype=DOUBLE), log_likelihoods)
    assert all(torch.equal(fit.spread, spread) for fit in unpacked)
    for place in range(numbers.shape[1]):
        step = torch.zeros_like(numbers)
        step[:, place] = 1e-5
        upper, lower = (batch.evaluate_effects(numbers + side * step, which) for side in (1, -1))
        assert torch.allclose((upper[0] - lower[0]) / 2e-5, gradient[:, place], rtol=1e-5, atol=1e-5)
        assert torch.allclose((lower[1] - upper[1]) / 2e-5, curvature[:, :, place], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "student_t"])
def test_with_growing_noise_the_fit_is_the_maximum_of_the_slow_search(name, rng):
    data = with_spread(name, rng)
    start = data.start().with_gate(1, 0.6)
    one, other = fitted(data, start), SlowFit(data, start).fit()
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-4)
    assert torch.allclose(one.spread, other.spread, atol=0.01)
    assert one.spread[0] > 0.3

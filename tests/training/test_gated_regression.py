"""The exact likelihood of one node: equal to a sum over states written out, and at its maximum."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from scipy import stats

from gated_nodes import DOUBLE, KINDS, regression, varying_fit, with_features
from tacit.training import FlatFit, GatedFit


@pytest.mark.parametrize("name", KINDS)
def test_the_likelihood_is_the_sum_over_all_states(name, rng):
    data = regression(name, rng, rows=7)
    logits = torch.tensor([0.3, -0.8], dtype=DOUBLE)
    edges = torch.tensor([[0.5, -0.2], [0.1, 0.7]], dtype=DOUBLE)
    fit = GatedFit(torch.tensor([0.2, 0.1], dtype=DOUBLE), edges, logits, torch.tensor([True, True]), data.observation)
    for row in range(7):
        total = 0.0
        for state in itertools.product((0, 1), repeat=2):
            output = data.own[row] @ fit.own
            weight = 1.0
            for source, acts in enumerate(state):
                prob = 1 / (1 + math.exp(-float(logits[source])))
                weight *= prob if acts else 1 - prob
                output = output + acts * data.sent[source, row] @ edges[source]
            described = data.observation.describe(output.view(1, 1, 1, 1), torch.zeros(1, 1, 1).double())
            log_prob = data.observation.log_prob(described, data.targets[row].view(1, 1, 1))
            total += weight * math.exp(log_prob.detach().item())
        assert float(data.row_log_likelihoods(fit)[row]) == pytest.approx(math.log(total), abs=1e-10)


@pytest.mark.parametrize("name", KINDS)
def test_gradients_are_those_of_differences(name, rng):
    data = regression(name, rng, rows=40)
    start = data.start().with_gate(0, 0.7).with_gate(1, 0.4)
    flat = FlatFit(data, start)
    numbers = flat.first + 0.1
    _, gradient = flat.value_and_gradient(numbers)
    for place in range(len(numbers)):
        moved = numbers.copy()
        moved[place] += 1e-6
        higher = flat.value_and_gradient(moved)[0]
        moved[place] -= 2e-6
        lower = flat.value_and_gradient(moved)[0]
        assert (higher - lower) / 2e-6 == pytest.approx(gradient[place], abs=1e-6)


def test_without_gates_it_is_logistic_regression(rng):
    """scikit-learn's without a penalty; the prior of the weights moves them by less than a percent."""
    from sklearn.linear_model import LogisticRegression

    data = regression("bernoulli", rng, probs=(1.0, 1.0), rows=2000)
    fit = data.fit()
    oracle = LogisticRegression(C=1e9, fit_intercept=False, tol=1e-9, max_iter=1000)
    oracle.fit(data.design.numpy(), data.targets.numpy())
    found = torch.cat([fit.own, fit.edges.flatten()])
    assert torch.allclose(found, torch.from_numpy(oracle.coef_[0]), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("name", KINDS)
def test_the_truth_is_inside_the_likelihood_region(name, rng):
    """Twice the log likelihood ratio is below the 99.9% quantile of a chi-square of as many numbers."""
    data = regression(name, rng, rows=1500)
    gated = torch.tensor([False, True])
    fit = data.fit_gates(gated, data.fit())
    weights = torch.tensor([[0.8, 0.3], [1.2, 0.0]], dtype=DOUBLE) * (2 if name == "bernoulli" else 1)
    own = torch.tensor([0.4, 0.5 + 2 * (name == "poisson")], dtype=DOUBLE) * (2 if name == "bernoulli" else 1)
    truth = GatedFit(own, weights, torch.logit(torch.tensor([0.5, 0.6], dtype=DOUBLE)), gated, fit.observation)
    ratio = 2 * (fit.log_likelihood - float(data.row_log_likelihoods(truth).sum()))
    assert -1e-6 < ratio < stats.chi2.isf(1e-3, 7)
    assert float(fit.edge_probs[1]) == pytest.approx(0.6, abs=0.15)


def test_rows_in_parts_give_the_same(rng, monkeypatch):
    data = regression("poisson", rng)
    start = data.start().with_gate(1, 0.6)
    once = FlatFit(data, start).value_and_gradient(FlatFit(data, start).first)
    monkeypatch.setattr("tacit.training.gated_regression.MOST_NUMBERS", 64)
    parts = FlatFit(data, start).value_and_gradient(FlatFit(data, start).first)
    assert once[0] == pytest.approx(parts[0], abs=1e-12)
    assert torch.allclose(torch.from_numpy(once[1]), torch.from_numpy(parts[1]), atol=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_with_features_the_likelihood_is_the_sum_over_all_states(name, rng):
    data = with_features(name, rng, rows=7)
    fit = varying_fit(data)
    found = data.row_log_likelihoods(fit)
    for row in range(7):
        total = 0.0
        for state in itertools.product((0, 1), repeat=2):
            output, weight = data.own[row] @ fit.own, 1.0
            for source, acts in enumerate(state):
                logit = float(fit.logits[source] + fit.slopes[source] @ data.features[row, source])
                prob = 1 / (1 + math.exp(-logit))
                weight *= prob if acts else 1 - prob
                output = output + acts * data.sent[source, row] @ fit.edges[source]
            described = data.observation.describe(output.view(1, 1, 1, 1), torch.zeros(1, 1, 1).double())
            log_prob = data.observation.log_prob(described, data.targets[row].view(1, 1, 1))
            total += weight * math.exp(log_prob.detach().item())
        assert float(found[row]) == pytest.approx(math.log(total), abs=1e-10)


@pytest.mark.parametrize("name", KINDS)
def test_slopes_of_zero_leave_the_likelihood_as_it_is(name, rng):
    data = with_features(name, rng)
    constant = replace(varying_fit(data), slopes=None, varying=None)
    zero = constant.with_slopes(constant.gated, 3)
    assert torch.allclose(data.row_log_likelihoods(constant), data.row_log_likelihoods(zero), rtol=0, atol=1e-12)


def test_features_without_slopes_change_nothing(rng):
    data = with_features("gaussian", rng)
    plain = replace(data, features=None)
    one, other = (some.fit(some.start().with_gate(1, 0.6)) for some in (data, plain))
    assert torch.equal(one.edges, other.edges)
    assert torch.equal(one.logits, other.logits)
    assert one.log_likelihood == other.log_likelihood


@pytest.mark.parametrize("name", KINDS)
def test_gradients_of_slopes_are_those_of_differences(name, rng):
    data = with_features(name, rng, rows=40)
    flat = FlatFit(data, varying_fit(data))
    _, gradient = flat.value_and_gradient(flat.first)
    for place in range(len(flat.first)):
        moved = flat.first.copy()
        moved[place] += 1e-6
        higher = flat.value_and_gradient(moved)[0]
        moved[place] -= 2e-6
        lower = flat.value_and_gradient(moved)[0]
        assert (higher - lower) / 2e-6 == pytest.approx(gradient[place], abs=1e-6)


def test_an_edge_that_does_not_vary_keeps_a_slope_of_zero(rng):
    data = with_features("gaussian", rng)
    fit = varying_fit(data).with_slopes(torch.tensor([True, False]), 3)
    assert fit.slopes[0].tolist() == varying_fit(data).slopes[0].tolist()
    found = data.fit(fit)
    assert found.slopes[1].tolist() == [0, 0, 0]
    assert found.slopes[0].abs().max() > 0

"""Covariances and ratios of variances, against numerical derivatives of the likelihood by probabilities."""

from dataclasses import replace

import pytest
import torch
from scipy import stats

from dependent_sums import slow_covariance
from gated_nodes import fitted, regression, with_features
from tacit.local import Dependence, Inference, fill_noise, fit_gated, noise_vector, safe_inverse

SERIES = torch.arange(240) // 20


def by_differences(data, fit, dependence, step=2e-5):
    """Model and robust covariance of weights, probabilities of the gates and noise, all derivatives numerical."""
    gates, first = int(fit.gated.sum()), len(fit.weights)
    middle = torch.cat([fit.weights, fit.edge_probs[fit.gated], noise_vector(fit.observation)])

    def values(numbers):
        own, edges = numbers[:first].tensor_split([len(fit.own)])
        observation = data.observation.chosen([0])
        fill_noise(observation, numbers[None, first + gates :])
        logits = fit.logits.masked_scatter(fit.gated, torch.logit(numbers[first : first + gates]))
        moved = replace(fit, own=own, edges=edges.view_as(fit.edges), logits=logits, observation=observation)
        return data.row_log_likelihoods(moved)

    each = step * torch.eye(len(middle), dtype=torch.float64)
    scores = torch.stack([(values(middle + one) - values(middle - one)) / (2 * step) for one in each], 1)
    bend = torch.zeros(len(middle), len(middle), dtype=torch.float64)
    for a, one in enumerate(each):
        for b, other in enumerate(each):
            signs = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
            rows = sum(sign * values(middle + u * one + v * other) for u, v, sign in signs) / (4 * step**2)
            bend[a, b] = -rows.sum()
    bend[:first, :first] += data.precision
    inverse = torch.linalg.inv(bend)
    whole = dependence.by_series
    spread = torch.tensor(
        [
            [slow_covariance(one, other, dependence.block, dependence.series, whole) for other in scores.mT]
            for one in scores.mT
        ],
        dtype=torch.float64,
    )
    units = len(scores) / dependence.block
    return inverse, inverse @ spread @ inverse * (1.0 if whole else units / (units - 1))


@pytest.mark.parametrize(
    "dependence", [Dependence(), Dependence(6), Dependence(6, SERIES)], ids=["one", "six", "series"]
)
@pytest.mark.parametrize("at_boundary", [False, True])
def test_the_ratio_of_variances_is_that_of_the_probability(rng, dependence, at_boundary):
    data = regression("gaussian", rng, (1.0, 1.0 if at_boundary else 0.6), 240)
    start = fitted(data).with_gate(1, 0.6)
    fit = (
        fitted(data, replace(start, logits=torch.full_like(start.logits, 7.0)), 1)
        if at_boundary
        else fitted(data, start)
    )
    inverse, covariance = by_differences(data, fit, dependence)
    place = len(fit.weights)
    found = Inference.of(data, fit, dependence)
    (own,) = found.gates[1].tolist()
    slope = float(fit.edge_probs[1] * (1 - fit.edge_probs[1]))  # of the probability by its logit
    assert float(found.inverse[own, own]) * slope**2 == pytest.approx(float(inverse[place, place]), rel=2e-3)
    assert float(found.covariance[own, own]) * slope**2 == pytest.approx(float(covariance[place, place]), rel=2e-3)
    expected = max(1.0, float(covariance[place, place] / inverse[place, place]))
    assert found.ratio(found.gates[1]) == pytest.approx(expected, rel=2e-3)


def test_rows_that_occur_four_times_count_once(rng):
    data = regression("poisson", rng, rows=150)
    fit = fitted(data, fitted(data).with_gate(1, 0.6))
    rows = torch.arange(150).repeat_interleave(4)
    names = ("own", "offset", "targets", "weights")
    four = replace(data, sent=data.sent[:, rows], **{name: getattr(data, name)[rows] for name in names})
    once = Inference.of(data, fit)
    again = Inference.of(four, fit, Dependence(1, rows))
    (own,) = once.gates[1].tolist()
    free = once.curvature.diagonal() > 1  # the prior counts once in both
    ratio = (again.covariance / once.covariance).diagonal()[free]
    assert torch.allclose(ratio, torch.ones_like(ratio), rtol=0.05)
    assert again.ratio(again.gates[1]) == pytest.approx(
        float(4 * once.covariance[own, own] / once.inverse[own, own]), rel=0.05
    )
    assert again.quantile == pytest.approx(stats.t.isf(0.025, 149))


def test_a_likelihood_ratio_is_compared_with_f():
    scores = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)).double()
    places, series = torch.tensor([1, 2]), torch.arange(60) // 5
    bend = scores.mT @ scores
    plain = Inference(bend, scores)
    assert plain.ratio(places) == pytest.approx(60 / 59)
    assert plain.p_value(5.0, places) == pytest.approx(stats.f.sf(5.0 * 57 / 60 / 2 * 59 / 60, 2, 57))
    panel = Inference(bend, scores, Dependence(1, series))
    model, robust = (one[1:, 1:] for one in (panel.inverse, panel.covariance))
    ratio = max(1.0, float(torch.trace(torch.linalg.inv(model) @ robust)) / 2)
    assert panel.ratio(places) == pytest.approx(ratio)
    assert panel.p_value(5.0, places) == pytest.approx(stats.f.sf(5.0 * 57 / 60 / 2 / ratio, 2, 10))


def test_covariances_are_those_of_logit_and_slopes_of_each_edge(rng):
    """Without a prior of weight and with one gate the sandwich is that of a logistic regression on known gates."""
    rows = 4000
    data = with_features("gaussian", rng, rows=rows)
    gates = (torch.rand(rows, generator=rng) < torch.sigmoid(0.3 + data.features[:, 0, 0])).double()
    targets = 50 * gates * data.sent[0, :, 0] + 0.01 * torch.randn(rows, generator=rng).double()
    far = data.sent[0, :, 0].abs() > 0.1  # there is no doubt whether the edge acts
    one = replace(
        data,
        own=data.own[far],
        sent=data.sent[:1, far, :1],
        offset=data.offset[far],
        targets=targets[far],
        weights=data.weights[far],
        features=data.features[far][:, :1],
    )
    start = one.start().with_gate(0, 0.6)
    start = replace(start, edges=torch.full_like(start.edges, 50.0)).with_slopes(torch.tensor([True]), 3)
    fit = fitted(one, start)
    found = Inference.of(one, fit)
    places = found.gates[0]
    design = torch.cat([torch.ones(int(far.sum()), 1), one.features[:, 0]], 1).double()
    probs = torch.sigmoid(design @ torch.cat([fit.logits, fit.slopes[0]]))
    expected = torch.linalg.inv((design * (probs * (1 - probs))[:, None]).mT @ design)
    covariance = found.covariance[places[:, None], places]
    assert covariance.shape == (4, 4)
    assert torch.allclose(covariance.diagonal(), expected.diagonal(), rtol=0.1)


def test_the_error_of_a_logit_is_the_curvature_of_its_profile(rng):
    data = regression("gaussian", rng, rows=1000)
    fit = fitted(data, fitted(data).with_gate(0, 0.7).with_gate(1, 0.7))
    found = Inference.of(data, fit)
    (place,) = found.gates[1].tolist()
    step = 0.02
    moved = [replace(fit, logits=fit.logits + torch.tensor([0.0, sign * step])) for sign in (1, -1)]
    held = fit_gated([data] * 2, moved, [1, 1])
    bend = (2 * fit.log_likelihood - sum(one.log_likelihood for one in held)) / step**2
    assert abs(float(found.inverse[place, place].sqrt()) * bend**0.5 - 1) < 0.03


def test_a_parameter_without_curvature_takes_nothing_from_the_others():
    information = torch.tensor([[4.0, 1.0, 0.2], [1.0, 3.0, 0.1], [0.2, 0.1, 2.0]], dtype=torch.float64)
    torch.testing.assert_close(safe_inverse(information), torch.linalg.inv(information))
    for nothing in (0.0, -5.0, float("nan")):  # 0 and -5 ended in an error of the eigenvalues
        more = torch.zeros(4, 4, dtype=torch.float64)
        more[:3, :3], more[3, 3], more[3, 0], more[0, 3] = information, nothing, 0.5, 0.5
        found = safe_inverse(more)
        torch.testing.assert_close(found[:3, :3], torch.linalg.inv(information))
        assert found[3, 3] == torch.inf
        assert (found[3, :3] == 0).all()

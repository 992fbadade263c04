"""Fits by the scores of rows: the same likelihood as that of the sum over states, and its covariance."""

from dataclasses import replace

import pytest
import torch

from gated_nodes import KINDS, varying_fit, with_features
from tacit.training import FlatFit, ScoredFit


@pytest.mark.parametrize("name", KINDS)
def test_scores_add_up_to_the_gradient(name, rng):
    data = with_features(name, rng, rows=40)
    data = replace(data, weights=(torch.rand(40, generator=rng) < 0.7).double() + 1)
    start = varying_fit(data)
    scored, flat = ScoredFit(data, start), FlatFit(data, start)
    value, gradient = scored.value_and_gradient(flat.first)
    expected, slow = flat.value_and_gradient(flat.first)
    assert value == pytest.approx(expected, abs=1e-12)
    assert torch.allclose(torch.from_numpy(gradient), torch.from_numpy(slow), rtol=0, atol=1e-12)
    values, _ = scored.scores(flat.first)
    assert torch.allclose(values, data.row_log_likelihoods(start), rtol=0, atol=1e-12)


def test_rows_in_parts_give_the_same(rng, monkeypatch):
    data = with_features("student_t", rng, rows=50)
    start = varying_fit(data)
    once = ScoredFit(data, start).scores(FlatFit(data, start).first)[1]
    monkeypatch.setattr("tacit.training.gated_regression.MOST_NUMBERS", 64)
    parts = ScoredFit(data, start).scores(FlatFit(data, start).first)[1]
    assert torch.allclose(once, parts, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_the_fit_is_the_maximum_of_the_other_search(name, rng):
    data = with_features(name, rng)
    start = replace(varying_fit(data), observation=data.observation)
    one, other = ScoredFit(data, start).fit(), data.fit(start)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-3)
    assert torch.allclose(one.slopes, other.slopes, atol=0.02)


@pytest.mark.parametrize("name", KINDS)
def test_the_hessian_is_that_of_differences_of_the_other_gradient(name, rng):
    data = with_features(name, rng, rows=60)
    start = varying_fit(data)
    scored, flat = ScoredFit(data, start), FlatFit(data, start)
    columns = []
    for place in range(len(flat.first)):
        step = torch.zeros(len(flat.first), dtype=torch.float64).numpy()
        step[place] = 1e-5
        higher, lower = (flat.value_and_gradient(flat.first + sign * step)[1] for sign in (1, -1))
        columns.append(torch.from_numpy(higher - lower) * 60 / 2e-5)
    found, exact = scored.hessian(flat.first), torch.stack(columns)
    scale = exact.diagonal().abs().sqrt()
    assert ((found - exact).abs() / (scale[:, None] * scale) < 1e-3).all()


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
    fit = ScoredFit(one, start).fit()
    found = ScoredFit(one, fit).edge_covariances()
    design = torch.cat([torch.ones(int(far.sum()), 1), one.features[:, 0]], 1).double()
    probs = torch.sigmoid(design @ torch.cat([fit.logits, fit.slopes[0]]))
    expected = torch.linalg.inv((design * (probs * (1 - probs))[:, None]).mT @ design)
    assert found.shape == (1, 4, 4)
    assert torch.allclose(found[0].diagonal(), expected.diagonal(), rtol=0.1)

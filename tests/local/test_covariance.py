"""Covariances of the logits and slopes of edges that vary."""

from dataclasses import replace

import torch

from gated_nodes import fitted, regression, with_features
from tacit.local import edge_covariances, fit_gated, logit_errors


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
    found = edge_covariances(one, fit)
    design = torch.cat([torch.ones(int(far.sum()), 1), one.features[:, 0]], 1).double()
    probs = torch.sigmoid(design @ torch.cat([fit.logits, fit.slopes[0]]))
    expected = torch.linalg.inv((design * (probs * (1 - probs))[:, None]).mT @ design)
    assert found.shape == (1, 4, 4)
    assert torch.allclose(found[0].diagonal(), expected.diagonal(), rtol=0.1)


def test_the_error_of_a_logit_is_the_curvature_of_its_profile(rng):
    data = regression("gaussian", rng, rows=1000)
    fit = fitted(data, fitted(data).with_gate(0, 0.7).with_gate(1, 0.7))
    (error,) = logit_errors([data], [fit], [1])
    step = 0.02
    moved = [replace(fit, logits=fit.logits + torch.tensor([0.0, sign * step])) for sign in (1, -1)]
    held = fit_gated([data] * 2, moved, [1, 1])
    bend = (2 * fit.log_likelihood - sum(one.log_likelihood for one in held)) / step**2
    assert abs(error * bend**0.5 - 1) < 0.03

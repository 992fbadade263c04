"""Evidence of targets that are not Gaussian: against Gaussian regressions, and against Laplace's approximation."""

import math
from dataclasses import replace

import pytest
import torch

from tacit.assessment.evidence import Candidates, ColumnForm, parent_evidence
from tacit.assessment.evidence.candidates import build_columns
from tacit.assessment.evidence.volatility import with_responses
from tacit.data import Pairs
from tacit.graph import EdgeRules
from tacit.observation import BernoulliTargets, GaussianNoise, PoissonCounts, StudentTNoise
from tacit.predictors import SeriesLayout

NODES, ROWS = 4, 800
LAYOUT = SeriesLayout(1, 1, 1)
FORM = ColumnForm()


def pairs_of(kind, rng, weight=1.0):
    """Node 1 leads to node 0; the others are on their own."""
    inputs = torch.randn(ROWS, NODES, 1, generator=rng)
    outputs = 0.3 * inputs[..., 0]
    outputs[:, 0] = outputs[:, 0] + weight * inputs[:, 1, 0]
    if kind == "poisson":
        targets = torch.poisson(torch.nn.functional.softplus(outputs + 1), generator=rng)
    elif kind == "bernoulli":
        targets = (torch.rand(outputs.shape, generator=rng) < torch.sigmoid(2 * outputs)).float()
    else:
        targets = outputs + torch.randn(outputs.shape, generator=rng)
    return Pairs(inputs, targets[..., None])


def candidates():
    return Candidates.from_rules(EdgeRules(tuple("abcd")))


def test_of_gaussian_targets_the_response_is_the_target(rng):
    pairs = pairs_of("gaussian", rng)
    columns = build_columns(pairs, LAYOUT, FORM)
    found = with_responses(columns, candidates(), torch.zeros(NODES, 3, dtype=torch.bool), pairs, GaussianNoise(NODES))
    assert torch.allclose(found.targets, pairs.targets.double(), atol=1e-8)
    assert torch.allclose(found.weights, torch.ones_like(found.weights))
    plain, other = (
        parent_evidence(pairs, LAYOUT, candidates(), form=FORM, observation=observation, density=0.2, resamples=0)
        for observation in (None, GaussianNoise(NODES))
    )
    assert torch.allclose(plain.probs, other.probs, atol=1e-6)
    assert torch.allclose(plain.effects, other.effects, atol=1e-9)


def test_weighted_rows_are_those_of_noise_with_other_deviations(rng):
    r"""Rows with weights $w$ give the responses of the rows times $\sqrt w$, divided by it."""
    pairs, model, none = pairs_of("gaussian", rng), StudentTNoise(NODES), torch.zeros(NODES, 3, dtype=torch.bool)
    weights = torch.rand(ROWS, NODES, generator=rng).double() + 0.5
    columns = replace(build_columns(pairs, LAYOUT, FORM), row_weights=weights)
    found = with_responses(columns, candidates(), none, pairs, model)
    for node in range(NODES):
        root = weights[:, node].sqrt()
        scaled = replace(
            columns, row_weights=None, own=columns.own * root[:, None, None], shared=columns.shared * root[:, None]
        )
        targets = pairs.targets[..., 0].double() * root[:, None]
        of_scaled = with_responses(
            scaled, candidates(), none, replace(pairs, inputs=pairs.inputs.double(), targets=targets[..., None]), model
        )
        assert torch.allclose(found.targets[:, node, 0] * root, of_scaled.targets[:, node, 0], atol=1e-6)
        assert torch.allclose(found.weights[:, node], of_scaled.weights[:, node] * weights[:, node], atol=1e-6)


@pytest.mark.parametrize(("kind", "model"), [("poisson", PoissonCounts), ("bernoulli", BernoulliTargets)])
def test_the_edge_is_found_and_no_other(kind, model, rng):
    found = parent_evidence(pairs_of(kind, rng), LAYOUT, candidates(), form=FORM, observation=model(NODES))
    probs = torch.zeros(NODES, NODES, dtype=torch.float64).scatter(1, found.candidates.sources, found.probs)
    assert probs[0, 1] > 0.99
    probs[0, 1] = 0
    assert probs.max() < 0.5


@pytest.mark.parametrize("weight", [0.0, 0.12, 0.25])
def test_log_odds_are_near_those_of_the_generalised_linear_model(weight, rng):
    """Those of two fits, $\\Delta \\ell - \\tfrac12 \\log(1 + n)$; the expansion is good to an eighth of the gain."""
    pairs = pairs_of("bernoulli", rng, weight)
    one = Candidates.from_edges(torch.tensor([1]), torch.tensor([0]), NODES)
    found = parent_evidence(
        pairs, LAYOUT, one, form=FORM, observation=BernoulliTargets(NODES), density=0.5, resamples=0
    )
    odds = torch.logit(found.probs[0, 0]).item()
    own, source = pairs.inputs[:, 0].double(), pairs.inputs[:, 1].double()
    values = pairs.targets[:, 0, 0].double()

    def log_likelihood(design):
        design = torch.cat([design, torch.ones_like(own)], 1)
        weights = torch.zeros(design.shape[1], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

        def closure():
            optimizer.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(design @ weights, values, reduction="sum")
            loss.backward()
            return loss

        optimizer.step(closure)
        return -closure().detach().item()

    gain = log_likelihood(torch.cat([own, source], 1)) - log_likelihood(own)
    assert odds == pytest.approx(gain - 0.5 * math.log1p(ROWS), abs=0.5 + gain / 8)

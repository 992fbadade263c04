"""Gates that several edges share: the likelihood against enumeration, and which gates are joined."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.optimize import minimize

from tacit.assessment.uncertainty.common_gates import (
    CORRELATIONS,
    common_gates,
    fit_together,
    joint_states,
    merged,
    with_common_gates,
)
from tacit.assessment.uncertainty.explanations import ExplainedGates
from tacit.local import Dependence, GatedRegression, states
from tacit.observation import GaussianNoise, PoissonCounts, StudentTNoise

DOUBLE = torch.float64
ROWS = 600


def node(rng, gates, noise=0.4, rows=ROWS, kind=GaussianNoise, shared=None):
    """A node that reads a source of size 1 through each of the given gates."""
    sent, own = torch.randn(len(gates), rows, 1, generator=rng).double(), torch.randn(rows, generator=rng).double()
    shared = torch.randn(rows, generator=rng).double() if shared is None else shared
    targets = 0.5 * own + 0.3 + (torch.stack(gates) * sent[..., 0]).sum(0) + noise * shared
    if kind is PoissonCounts:
        sent = sent.abs()
        targets = torch.poisson(1 + 4 * (torch.stack(gates) * sent[..., 0]).sum(0), generator=rng)
    zeros = torch.zeros(rows, dtype=DOUBLE)
    columns = torch.stack([own, zeros + 1], 1)
    return GatedRegression(columns, sent, zeros, targets, zeros + 1, kind(1).double())


def gate(rng, prob, rows=ROWS):
    return (torch.rand(rows, generator=rng) < prob).double()


def found(*data, intervals=True):
    masks = [torch.ones(len(one.sent), dtype=torch.bool) for one in data]
    rows = [torch.ones(len(one.targets), dtype=torch.bool) for one in data]
    return common_gates(list(data), masks, rows, Dependence(1), intervals=intervals)


@pytest.mark.parametrize("kind", [GaussianNoise, StudentTNoise, PoissonCounts])
def test_the_likelihood_of_a_common_gate_is_a_sum_over_two_of_all_states(rng, kind):
    both, alone = gate(rng, 0.6, 40), gate(rng, 0.5, 40)
    data = node(rng, [both, alone, both], rows=40, kind=kind)
    with torch.no_grad():
        fit = fit_together(data, [0, 2], torch.tensor([0.6, 0.5, 0.6], dtype=DOUBLE))
        joint = data.joint(fit, data.outputs(fit))
    assert fit.gated.all()
    assert fit.edge_probs[0] == fit.edge_probs[2]
    total, probs = 0.0, fit.edge_probs
    for number, acts in enumerate(states(3)):
        independent = torch.where(acts == 1, probs, 1 - probs).prod()
        common = torch.where(acts == 1, probs, 1 - probs)[:2].prod() if acts[0] == acts[2] else 0.0
        total = total + joint[:, number].exp() / independent * common
    assert float(total.log().sum()) == pytest.approx(fit.log_likelihood, abs=1e-8)


def test_merged_sources_have_all_their_lags(rng):
    data = node(rng, [gate(rng, 0.6), gate(rng, 0.5), gate(rng, 0.5)])
    one = merged(data, [0, 2])
    assert torch.equal(one.sent[0], torch.cat([data.sent[0], data.sent[2]], 1))
    assert torch.equal(one.sent[1, :, :1], data.sent[1])
    assert not one.sent[1, :, 1:].any()


@pytest.mark.parametrize("independent", [False, True])
def test_two_gates_have_the_largest_likelihood_over_all_tables_and_correlations(rng, independent):
    logs = [torch.randn(40, 2, generator=rng).double() for _ in range(2)]
    scores = [torch.randn(40, 2, generator=rng).double() for _ in range(2)]
    value, table = joint_states(*logs, *scores, independent=independent)
    assert float(table.sum()) == pytest.approx(1)
    if independent:
        assert torch.allclose(table, table.sum(1, keepdim=True) * table.sum(0, keepdim=True))

    def likelihood(raw, rho):
        if independent:
            one, other = (1 / (1 + math.exp(-number)) for number in raw[:2])
            probs = [[(1 - one) * (1 - other), (1 - one) * other], [one * (1 - other), one * other]]
        else:
            probs = torch.tensor([0.0, *raw]).softmax(0).view(2, 2).tolist()
        total = 0.0
        for a, b in itertools.product((0, 1), repeat=2):
            total = total + probs[a][b] * (logs[0][:, a] + logs[1][:, b]).exp().numpy() * densities[rho][a, b]
        return np.log(total).sum()

    near, densities = [float(rho) for rho in CORRELATIONS[16:23]], {}
    for rho in near:
        normal = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
        for a, b in itertools.product((0, 1), repeat=2):
            z = torch.stack([scores[0][:, a], scores[1][:, b]], 1).numpy()
            densities.setdefault(rho, {})[a, b] = normal.pdf(z) / stats.norm.pdf(z).prod(1)
    best = max(
        -minimize(lambda raw, rho=rho: -likelihood(raw, rho), [0.0] * 3, method="Nelder-Mead", tol=1e-5).fun
        for rho in near
    )
    assert value >= best - 0.02


def test_rows_without_a_target_are_left_out(rng):
    logs = [torch.randn(50, 2, generator=rng).double() for _ in range(2)]
    scores = [torch.randn(50, 2, generator=rng).double() for _ in range(2)]
    fewer = joint_states(*(one[:40] for one in logs), *(one[:40] for one in scores))
    scores[0][40:45], scores[1][45:] = torch.nan, torch.nan
    value, table = joint_states(*logs, *scores)
    assert value == pytest.approx(fewer[0])
    assert torch.allclose(table, fewer[1])


def test_one_gate_of_several_edges_of_two_nodes(rng):
    opened, always = gate(rng, 0.6), torch.ones(ROWS, dtype=DOUBLE)
    data = [node(rng, [opened, always, opened]), node(rng, [opened, always])]
    [one] = found(*data)
    assert one.edges == [(0, 0), (0, 2), (1, 0)]
    assert one.low < 0.6 < one.high < one.low + 0.2
    assert one.low < one.prob < one.high
    [quick] = found(*data, intervals=False)
    assert (quick.edges, quick.prob) == (one.edges, pytest.approx(one.prob))


def test_a_common_gate_of_counts(rng):
    opened = gate(rng, 0.6)
    [one] = found(node(rng, [opened, opened], kind=PoissonCounts), node(rng, [opened]))
    assert one.edges == [(0, 0), (0, 1), (1, 0)]
    assert one.low < 0.6 < one.high


def test_a_gate_within_one_node_has_the_interval_of_its_likelihood(rng):
    opened = gate(rng, 0.5)
    [one] = found(node(rng, [opened, opened]))
    assert one.edges == [(0, 0), (0, 1)]
    assert one.low < 0.5 < one.high


def test_independent_gates_stay_apart(rng):
    assert found(node(rng, [gate(rng, 0.6), gate(rng, 0.6)]), node(rng, [gate(rng, 0.6)]), intervals=False) == []


def test_edges_that_always_act_share_no_gate(rng):
    always = torch.ones(ROWS, dtype=DOUBLE)
    assert found(node(rng, [always, always]), node(rng, [always]), intervals=False) == []


def test_noise_that_two_nodes_share_does_not_join_their_gates(rng):
    shared, logs, scores = torch.randn(ROWS, generator=rng).double(), [], []
    for _ in range(2):  # the effects have one sign, so that shared noise looks like a shared gate
        effect = 1 + 0.3 * torch.rand(ROWS, generator=rng).double()
        away = gate(rng, 0.5) * effect + 0.6 * shared - torch.stack([torch.zeros_like(effect), effect])
        scores.append(away.mT / 0.6)
        logs.append(-scores[-1].square() / 2)
    one, other = (joint_states(*logs, *scores, independent=independent)[0] for independent in (False, True))
    assert 2 * (one - other) < stats.chi2.isf(0.01, 1)
    unknown = [torch.zeros_like(one) for one in scores]  # no correlation of the noise
    one, other = (joint_states(*logs, *unknown, independent=independent)[0] for independent in (False, True))
    assert 2 * (one - other) > stats.chi2.isf(1e-6, 1)


def test_the_matrices_have_the_common_gate_and_its_smallest_p_value(rng):
    matrix = torch.full((3, 3), torch.nan, dtype=DOUBLE)
    p_values = matrix.clone()
    p_values[1, 0], p_values[2, 0] = 1e-9, 0.3
    opened = gate(rng, 0.6)
    common = found(node(rng, [opened]), node(rng, [opened, torch.ones(ROWS, dtype=DOUBLE)]))
    assert common[0].edges == [(0, 0), (1, 0)]
    gates, together = with_common_gates(
        ExplainedGates(matrix, matrix, matrix, p_values, matrix),
        common,
        [1, 2],
        [torch.tensor([0]), torch.tensor([0, 1])],
    )
    assert together[1, 0] == together[2, 0] == 1
    assert int((~together.isnan()).sum()) == 2
    for values, expected in zip(gates[:4], (common[0].prob, common[0].low, common[0].high, 1e-9), strict=True):
        assert values[1, 0] == values[2, 0] == expected
    assert gates.nats.isnan().all()

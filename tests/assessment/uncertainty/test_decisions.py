"""Which edges to show: against sets tried one by one, and scipy's adjusted p-values."""

import itertools
import math

import pytest
import torch
from scipy import stats
from sklearn.calibration import calibration_curve

from tacit.assessment.uncertainty import expected_wrong_edges, reliability, significant_edges

PROBS = torch.tensor([[0.99, 0.95, 0.6], [0.95, 0.3, 0.2], [0.1, 0.0, 1.0]])
ERRORS = torch.tensor([[0.1, 0.3, 0.2], [0.2, 0.1, 0.1], [0.05, 0.02, 0.4]])


def random_case(seed, symmetric=False):
    """Probabilities of two digits, so that some are equal, errors and a mask."""
    rng = torch.Generator().manual_seed(seed)
    probs = torch.rand(4, 4, generator=rng, dtype=torch.float64).sqrt().mul(20).round() / 20
    errors = torch.rand(4, 4, generator=rng, dtype=torch.float64) / 3
    mask = torch.rand(4, 4, generator=rng) < 0.8
    if symmetric:
        probs, errors, mask = (torch.maximum(m.triu(), m.triu().mT) for m in (probs, errors, mask.int()))
    return probs, errors, mask > 0


def distinct(mask, symmetric):
    return [(i, j) for i, j in mask.nonzero().tolist() if not symmetric or i <= j]


@pytest.mark.parametrize("degrees", [None, 5])
@pytest.mark.parametrize("dependence", ["positive", "any"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_significant_edges_against_scipy(seed, symmetric, dependence, degrees):
    probs, errors, mask = random_case(seed, symmetric)
    edges = distinct(mask, symmetric)
    law = stats.norm if degrees is None else stats.t(degrees)
    p_values = {e: law.sf((probs[e].item() - 0.3) / errors[e].item()) for e in edges}
    adjusted = stats.false_discovery_control(list(p_values.values()), method="bh" if dependence == "positive" else "by")
    for rate in (0.01, 0.05, 0.2):
        found = significant_edges(
            probs,
            errors,
            above=0.3,
            rate=rate,
            degrees=degrees,
            dependence=dependence,
            learned=mask,
            symmetric=symmetric,
        )
        for i, j in itertools.product(range(4), repeat=2):
            edge = (min(i, j), max(i, j)) if symmetric else (i, j)
            if edge in p_values:
                assert found.p_values[i, j].item() == pytest.approx(p_values[edge], rel=1e-9)
                assert found.chosen[i, j].item() == (adjusted[edges.index(edge)] <= rate)
            else:
                assert math.isnan(found.p_values[i, j].item())
                assert not found.chosen[i, j]


def test_step_up_by_hand():
    """Lines 0.025, 0.05, 0.075, 0.1: the second p-value is above its line, the third below: all three count."""
    wanted = torch.tensor([0.02, 0.06, 0.07, 0.5], dtype=torch.float64)
    probs = (0.5 + 0.1 * torch.as_tensor(stats.norm.isf(wanted.numpy()))).view(2, 2)
    found = significant_edges(probs, torch.full((2, 2), 0.1, dtype=torch.float64), above=0.5, rate=0.1)
    torch.testing.assert_close(found.p_values.flatten(), wanted, rtol=1e-9, atol=0)
    assert found.chosen.flatten().tolist() == [True, True, True, False]
    stricter = significant_edges(probs, torch.full((2, 2), 0.1), above=0.5, rate=0.1, dependence="any")
    assert not stricter.chosen.any()  # the first line is 0.025 / (1 + 1/2 + 1/3 + 1/4) = 0.012


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # 0.05 in single precision is above 0.05
def test_an_error_of_zero_or_infinity_decides(dtype):
    probs = torch.tensor([[0.06, 0.05], [0.04, 1.0]], dtype=dtype)
    errors = torch.tensor([[0.0, 0.0], [0.0, torch.inf]], dtype=dtype)
    found = significant_edges(probs, errors, above=0.05)
    assert found.p_values.tolist() == [[0.0, 1.0], [1.0, 0.5]]
    assert found.chosen.tolist() == [[True, False], [False, False]]


def test_an_edge_that_cannot_be_learned_is_never_chosen():
    can = torch.ones(3, 3, dtype=torch.bool)
    can[0, 0] = can[2, 2] = False
    errors = torch.where(can, 0.01, torch.nan)
    found = significant_edges(PROBS, errors, identifiable=can)
    assert found.p_values.isnan().equal(~can)
    assert found.chosen.tolist() == [[False, True, True], [True, True, True], [True, False, False]]
    wrong = expected_wrong_edges(PROBS, 0.5, identifiable=can)
    assert wrong.false == pytest.approx(0.05 + 0.05 + 0.4)
    assert wrong.missed == pytest.approx(0.99 + 1.0 + 0.3 + 0.2 + 0.1)
    half = torch.tensor([[True, True], [False, True]])  # one entry of a pair is enough to leave it out
    wrong = expected_wrong_edges(torch.full((2, 2), 0.75), 0.5, identifiable=half, symmetric=True)
    assert wrong == (0.5, 0.75, 1.25)


def test_fewer_tests_make_each_easier():
    """p = 0.03 passes alone, and not as one of two."""
    probs = torch.tensor([[0.05 + 0.1 * stats.norm.isf(0.03), 0.0], [0.0, 0.0]])
    errors, only = torch.full((2, 2), 0.1), torch.tensor([[True, False], [False, False]])
    assert not significant_edges(probs, errors).chosen.any()
    assert significant_edges(probs, errors, learned=only).chosen[0, 0]
    assert significant_edges(probs, errors, identifiable=only).chosen[0, 0]
    assert not significant_edges(probs, errors, learned=~only & False).chosen.any()


def test_expected_wrong_edges_by_hand():
    wrong = expected_wrong_edges(PROBS, 0.6)  # 0.6 itself is not above
    assert wrong.false == pytest.approx(0.01 + 0.05 + 0.05 + 0.0)
    assert wrong.missed == pytest.approx(0.6 + 0.3 + 0.2 + 0.1 + 0.0)
    assert wrong.total == wrong.false + wrong.missed
    assert expected_wrong_edges(PROBS, 1.0) == pytest.approx((0.0, PROBS.sum().item(), PROBS.sum().item()))
    held = expected_wrong_edges(PROBS, 0.5, learned=PROBS == 0.3)
    assert held == pytest.approx((0.0, 0.3, 0.3))
    undirected = torch.tensor([[0.5, 0.75], [0.75, 1.0]])
    assert expected_wrong_edges(undirected, 0.5, symmetric=True) == (0.25, 0.5, 0.75)
    assert expected_wrong_edges(undirected, 0.5) == (0.5, 0.5, 1.0)


def test_expected_wrong_edges_is_an_average_over_graphs():
    probs = torch.tensor([[0.9, 0.4], [0.2, 0.7]], dtype=torch.float64)
    total = 0.0
    for edges in itertools.product((0.0, 1.0), repeat=4):
        graph = torch.tensor(edges, dtype=torch.float64).view(2, 2)
        chance = torch.where(graph > 0, probs, 1 - probs).prod().item()
        total += chance * ((probs > 0.5) != (graph > 0)).sum().item()
    assert expected_wrong_edges(probs, 0.5).total == pytest.approx(total, abs=1e-12)


def test_errors(unchecked, refused):
    refused(significant_edges, PROBS, ERRORS, rate=0.0)
    refused(significant_edges, PROBS, ERRORS[0])
    refused(significant_edges, PROBS, [0.1])
    refused(significant_edges, PROBS, -ERRORS)
    refused(significant_edges, PROBS, ERRORS * torch.nan)
    refused(significant_edges, PROBS, ERRORS, above=2)
    refused(significant_edges, PROBS, ERRORS, degrees=0)
    refused(significant_edges, PROBS, ERRORS, dependence="no")
    refused(expected_wrong_edges, PROBS[:2], 0.1)
    refused(expected_wrong_edges, torch.eye(2).long(), 0.5)
    refused(expected_wrong_edges, PROBS, 0.1, identifiable=[True])
    refused(expected_wrong_edges, PROBS, -1)


# ---------------------------------------------------------------- the data of a reliability diagram, by hand, against a


RNG = torch.Generator().manual_seed(0)
PROBS_RELIABILITY = torch.rand(12, 12, generator=RNG, dtype=torch.float64) ** 2
GRAPH = (torch.rand(12, 12, generator=RNG, dtype=torch.float64) < PROBS_RELIABILITY).double()


def test_by_hand_with_true_probabilities():
    probs = torch.tensor([[0.0, 0.5], [0.6, 0.8]], dtype=torch.float64)
    truth = torch.tensor([[0.1, 0.2], [0.9, 0.8]], dtype=torch.float64)
    got = reliability(probs, truth, num_bins=2)  # 0.5 is in the lower bin
    assert got.predicted.tolist() == pytest.approx([0.25, 0.7])
    assert got.true.tolist() == pytest.approx([0.15, 0.85])
    assert got.count.tolist() == [2, 2]
    assert got.calibration_error == pytest.approx(0.5 * 0.1 + 0.5 * 0.15)
    one = reliability(probs, truth, num_bins=1)
    assert one.calibration_error == pytest.approx(abs(1.9 - 2.0) / 4)  # errors of opposite sign cancel
    assert reliability(truth, truth).calibration_error == 0


@pytest.mark.parametrize("num_bins", [1, 5, 10, 40])
def test_against_sklearn(num_bins):
    true, predicted = calibration_curve(GRAPH.flatten().numpy(), PROBS_RELIABILITY.flatten().numpy(), n_bins=num_bins)
    got = reliability(PROBS_RELIABILITY, GRAPH, num_bins=num_bins)
    assert got.predicted.tolist() == pytest.approx(predicted.tolist(), abs=1e-12)
    assert got.true.tolist() == pytest.approx(true.tolist(), abs=1e-12)


@pytest.mark.parametrize("held", [False, True])
def test_against_a_loop_over_edges(held):
    probs, truth = PROBS_RELIABILITY, GRAPH
    learned = ~torch.eye(12, dtype=torch.bool) if held else None
    bins = {}
    for i in range(12):
        for j in range(12):
            if not (held and i == j):
                bins.setdefault(int(probs[i, j] * 4), []).append((probs[i, j].item(), truth[i, j].item()))
    count = [len(bins[b]) for b in sorted(bins)]
    means = [[sum(pair[k] for pair in bins[b]) / len(bins[b]) for b in sorted(bins)] for k in (0, 1)]
    error = sum(n * abs(p - t) for n, p, t in zip(count, *means, strict=True)) / sum(count)
    got = reliability(probs, truth, num_bins=4, learned=learned)
    assert got.count.tolist() == count
    assert sum(count) == (132 if held else 144)
    assert got.predicted.tolist() == pytest.approx(means[0], abs=1e-12)
    assert got.true.tolist() == pytest.approx(means[1], abs=1e-12)
    assert got.calibration_error == pytest.approx(error, abs=1e-12)


def test_empty_bins_are_left_out():
    got = reliability(torch.tensor([[0.05, 0.95], [0.05, 0.95]]), torch.zeros(2, 2))
    assert got.count.tolist() == [2, 2]
    assert got.calibration_error == pytest.approx(0.5, abs=1e-6)


def test_errors_reliability(unchecked, refused):
    refused(reliability, PROBS_RELIABILITY, torch.zeros(2, 2))
    refused(reliability, PROBS_RELIABILITY, 0 * GRAPH + 2)
    refused(reliability, PROBS_RELIABILITY, GRAPH > 0)
    refused(reliability, PROBS_RELIABILITY, GRAPH, num_bins=0)
    refused(reliability, PROBS_RELIABILITY, GRAPH, learned=torch.zeros(12, 12, dtype=torch.bool))

"""The data of a reliability diagram, by hand, against a loop and against scikit-learn."""

import pytest
import torch
from sklearn.calibration import calibration_curve

from tacit.assessment.uncertainty import reliability

RNG = torch.Generator().manual_seed(0)
PROBS = torch.rand(12, 12, generator=RNG, dtype=torch.float64) ** 2
GRAPH = (torch.rand(12, 12, generator=RNG, dtype=torch.float64) < PROBS).double()


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
    true, predicted = calibration_curve(GRAPH.flatten().numpy(), PROBS.flatten().numpy(), n_bins=num_bins)
    got = reliability(PROBS, GRAPH, num_bins=num_bins)
    assert got.predicted.tolist() == pytest.approx(predicted.tolist(), abs=1e-12)
    assert got.true.tolist() == pytest.approx(true.tolist(), abs=1e-12)


@pytest.mark.parametrize("held", [False, True])
def test_against_a_loop_over_edges(held):
    probs, truth = PROBS, GRAPH
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


def test_errors(unchecked, refused):
    refused(reliability, PROBS, torch.zeros(2, 2))
    refused(reliability, PROBS, 0 * GRAPH + 2)
    refused(reliability, PROBS, GRAPH > 0)
    refused(reliability, PROBS, GRAPH, num_bins=0)
    refused(reliability, PROBS, GRAPH, learned=torch.zeros(12, 12, dtype=torch.bool))

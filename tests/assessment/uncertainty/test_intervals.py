"""Intervals from replicas, against numbers by hand and loops over edges."""

import math

import pytest
import torch
from scipy import stats

from tacit.assessment.uncertainty import EdgeIntervals, edge_intervals, intervals_around
from tacit.assessment.uncertainty.decisions import bagged_edge_probs, std_errors

# Three replicas of two nodes: spread 0.1 around 0.5, near 1, near 0, constant.
REPLICAS = torch.tensor(
    [[[0.4, 0.9], [0.0, 0.1]], [[0.5, 1.0], [0.0, 0.1]], [[0.6, 1.0], [0.3, 0.1]]], dtype=torch.float64
)
MASK = torch.tensor([[True, False], [True, True]])
MANY = torch.rand(7, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_mean_and_std_error_by_hand():
    mean = torch.tensor([[0.5, 2.9 / 3], [0.1, 0.1]], dtype=torch.float64)
    error = torch.tensor([[0.1, math.sqrt(0.02 / 6)], [math.sqrt(0.03), 0.0]], dtype=torch.float64)
    torch.testing.assert_close(bagged_edge_probs(REPLICAS), mean, rtol=0, atol=1e-14)
    torch.testing.assert_close(std_errors(REPLICAS), error, rtol=0, atol=1e-14)


def test_an_edge_held_fixed_has_no_error():
    error = std_errors(REPLICAS, MASK)
    assert error[0, 1] == 0
    assert torch.equal(error[MASK], std_errors(REPLICAS)[MASK])
    intervals = edge_intervals(REPLICAS, learned=MASK)
    assert intervals.low[0, 1] == intervals.high[0, 1] == bagged_edge_probs(REPLICAS)[0, 1]
    assert intervals.low[0, 0] < 0.5 < intervals.high[0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_replicas_give_exactly_their_probability(dtype):
    same = torch.rand(1, 4, 4, generator=torch.Generator().manual_seed(0), dtype=dtype).repeat(7, 1, 1)
    assert torch.equal(bagged_edge_probs(same), same[0])
    assert not std_errors(same).any()
    for simultaneous in (False, True):
        intervals = edge_intervals(same, simultaneous=simultaneous)
        assert torch.equal(intervals.low, same[0])
        assert torch.equal(intervals.high, same[0])


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_against_a_loop_over_edges(level, simultaneous, symmetric, held):
    replicas = (MANY + MANY.mT) / 2 if symmetric else MANY
    learned = torch.ones(3, 3, dtype=torch.bool)
    if held:
        learned[0, 0] = learned[0, 2] = learned[2, 0] = False
    count = len({tuple(sorted(e)) if symmetric else tuple(e) for e in learned.nonzero().tolist()})
    assert count == {(False, False): 9, (False, True): 6, (True, False): 6, (True, True): 4}[symmetric, held]
    each = level ** (1 / count) if simultaneous else level
    got = edge_intervals(replicas, level, simultaneous=simultaneous, learned=learned, symmetric=symmetric)
    assert (got.level, got.simultaneous) == (level, simultaneous)
    for i in range(3):
        for j in range(3):
            values = replicas[:, i, j].numpy()
            reach = stats.t.ppf((1 + each) / 2, 6) * values.std(ddof=1) if learned[i, j] else 0.0
            expected = (max(0.0, values.mean() - reach), min(1.0, values.mean() + reach))
            assert (got.low[i, j].item(), got.high[i, j].item()) == pytest.approx(expected, abs=1e-12)


def test_around_given_errors():
    """t of 4 degrees is 2.776 at 0.95; both entries of a pair may differ by a rounding error."""
    probs = torch.tensor([[0.5, 0.2], [0.2 + 1e-9, 1.0]], dtype=torch.float64)
    errors = torch.tensor([[0.1, torch.inf], [0.01, torch.nan]], dtype=torch.float64)
    learned = torch.tensor([[True, True], [True, False]])
    got = intervals_around(probs, errors, 4, learned=learned)
    assert got.low.tolist() == [pytest.approx([0.5 - 0.27764, 0.0], abs=1e-5), pytest.approx([0.17224, 1.0], abs=1e-5)]
    assert got.high.tolist() == [pytest.approx([0.77764, 1.0], abs=1e-5), pytest.approx([0.22776, 1.0], abs=1e-5)]
    both = intervals_around(probs, errors, 4, simultaneous=True, learned=learned, symmetric=True)
    assert both.high[0, 0].item() == pytest.approx(0.5 + 0.1 * stats.t.ppf((1 + 0.95**0.5) / 2, 4))


def test_bounds_are_reached():
    wide = edge_intervals(REPLICAS, 0.99)
    assert wide.low[1, 0] == 0
    assert wide.high[0, 1] == 1


def test_all_held_together():
    nothing = torch.zeros(2, 2, dtype=torch.bool)
    intervals = edge_intervals(REPLICAS, simultaneous=True, learned=nothing)
    assert torch.equal(intervals.low, intervals.high)


def test_coverage_of_all_edges_at_once():
    """Normal replicas of 16 independent edges: 500 trials hold all with chance 0.8; 5 standard errors, 1 in 10^6."""
    rng, trials, held = torch.Generator().manual_seed(0), 500, [0, 0]
    for _ in range(trials):
        noise = 0.01 * torch.randn(7, 4, 4, generator=rng, dtype=torch.float64)
        for number, simultaneous in enumerate((False, True)):
            found: EdgeIntervals = edge_intervals(0.5 + noise[1:], 0.8, simultaneous=simultaneous)
            centre = bagged_edge_probs(0.5 + noise[1:])
            # the truth lies off the centre as far as one more fit would
            held[number] += bool(((centre + noise[0] >= found.low) & (centre + noise[0] <= found.high)).all())
    sd = math.sqrt(0.8 * 0.2 * trials)
    assert abs(held[1] - 0.8 * trials) < 5 * sd
    assert held[0] < 0.8 * trials - 5 * sd  # one by one is not all at once


def test_why_not_the_largest_of_few_replicas():
    """Samuelson's bound, and that 100 edges need more: what the docstring says."""
    outlier = torch.zeros(8, 1, 1, dtype=torch.float64)
    outlier[0] = 1.0
    distance = ((outlier - bagged_edge_probs(outlier)).abs() / std_errors(outlier)).max().item()
    assert distance == pytest.approx(7 / math.sqrt(8))
    assert stats.t.ppf((1 + 0.95**0.01) / 2, 7) == pytest.approx(6.06, abs=0.01)


def test_errors_of_intervals_around(unchecked, refused):
    probs, errors = REPLICAS[0], torch.full((2, 2), 0.1)
    refused(intervals_around, probs, errors, 0)
    refused(intervals_around, probs, errors[0], 5)
    refused(intervals_around, probs, errors * torch.nan, 5)
    refused(intervals_around, probs + 1, errors, 5)


def test_errors(unchecked, refused):
    one = REPLICAS[:1]
    for call in (bagged_edge_probs, std_errors, edge_intervals):
        refused(call, one)
    refused(std_errors, REPLICAS[0])
    refused(std_errors, [[[0.5]]])
    refused(bagged_edge_probs, REPLICAS * 2)
    refused(std_errors, REPLICAS * torch.nan)
    refused(edge_intervals, REPLICAS, 95)
    refused(std_errors, REPLICAS, torch.ones(2, 2))
    refused(edge_intervals, REPLICAS, simultaneous=True, symmetric=True)
    refused(edge_intervals, (REPLICAS + REPLICAS.mT) / 2, simultaneous=True, symmetric=True, learned=MASK)

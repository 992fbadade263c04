"""Paired gains on scaled errors: against the formula by hand, and coverage of the block standard error."""

import numpy as np
import pytest
import torch

from tacit.assessment.evaluation import blocks_of, paired_gain, target_spreads
from tacit.data import Pairs


def pairs_of(num_pairs, nodes=2, **options):
    return Pairs(torch.zeros(num_pairs, nodes, 1), torch.zeros(num_pairs, nodes, 1), **options)


def test_a_unit_does_not_decide():
    """In the units of the data the second node decides; on scaled errors both count alike."""
    rng = torch.Generator().manual_seed(0)
    reference = torch.rand(60, 2, 1, generator=rng) * torch.tensor([[1.0], [1000.0]])
    crps = reference * torch.tensor([[0.5], [1.0]])
    spread = torch.tensor([[1.0], [1000.0]])
    found = paired_gain(crps, reference, pairs_of(60), spread)
    ours, theirs = (crps / spread).double().sum(), (reference / spread).double().sum()
    assert found.gain == pytest.approx(1 - float(ours / theirs))
    assert 0.2 < found.gain < 0.3
    assert found.by_node == pytest.approx((0.5, 0.0))
    larger = paired_gain(crps * spread[None], reference * spread[None], pairs_of(60), spread**2)
    assert (larger.gain, larger.std_error) == pytest.approx((found.gain, found.std_error))


def test_the_standard_error_by_hand():
    crps = torch.arange(1.0, 13.0).view(12, 1, 1)
    reference = torch.tensor([2.0, 1.0, 5.0, 4.0, 9.0, 6.0, 6.0, 9.0, 11.0, 9.0, 14.0, 15.0]).view(12, 1, 1)
    found = paired_gain(crps, reference, pairs_of(12, 1), torch.ones(1, 1), block=2)
    ratio = 78 / 91
    left = (ratio * reference - crps).flatten().view(6, 2).sum(1)
    assert found.gain == pytest.approx(1 - ratio)
    assert found.num_blocks == 6
    assert found.std_error == pytest.approx(np.sqrt(6 / 5 * float(left.square().sum())) / 91, rel=1e-5)
    few = paired_gain(crps, reference, pairs_of(12, 1), torch.ones(1, 1), block=3)
    assert (few.num_blocks, few.std_error) == (4, None)


def test_missing_targets_are_left_out():
    observed = torch.ones(12, 2, 1)
    observed[::2, 0] = 0
    observed[:, 1] = 0
    crps, reference = torch.ones(12, 2, 1), 2 * torch.ones(12, 2, 1)
    crps[observed == 0] = 100
    found = paired_gain(crps, reference, pairs_of(12, observed=observed), torch.ones(2, 1))
    assert found.gain == pytest.approx(0.5)
    assert found.by_node[0] == pytest.approx(0.5)
    assert np.isnan(found.by_node[1])
    assert paired_gain(crps, 0 * reference, pairs_of(12), torch.ones(2, 1)) is None  # it cannot be beaten


@pytest.mark.parametrize("block", [1, 8])
def test_two_standard_errors_hold_the_truth(block):
    """Errors in runs of eight: blocks of eight hold the truth about as often as they should, single pairs do not."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        common = np.repeat(rng.normal(size=40), 8) + 0.1 * rng.normal(size=320)
        reference = torch.from_numpy(2 + 0.1 * rng.normal(size=320)).float().view(-1, 1, 1)
        crps = reference - 0.2 + 0.3 * torch.from_numpy(common).float().view(-1, 1, 1)
        found = paired_gain(crps, reference, pairs_of(320, 1), torch.ones(1, 1), block=block)
        inside += abs(found.gain - 0.1) <= 2 * found.std_error
    assert 178 <= inside <= 199 if block == 8 else inside < 150  # 190 expected; four standard errors


def test_blocks():
    series = torch.tensor([3, 0, 0, 3, 3, 0, 0, 0])  # in any order
    found = blocks_of(pairs_of(8, series=series), block=2)
    assert found.tolist() == [3, 0, 0, 3, 4, 1, 1, 2]
    five = torch.arange(10) // 2
    assert blocks_of(pairs_of(10, series=five), block=1).tolist() == five.tolist()
    assert blocks_of(pairs_of(5), block=2).tolist() == [0, 0, 1, 1, 2]


def test_spreads():
    targets = torch.tensor([[1.0, 7.0], [3.0, 7.0], [50.0, 7.0]])[..., None]
    observed = torch.tensor([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])[..., None]
    assert target_spreads(Pairs(targets, targets, observed)).flatten().tolist() == [1.0, 1.0]


def test_errors(unchecked, refused):
    refused(paired_gain, torch.ones(4, 2, 1), torch.ones(3, 2, 1), pairs_of(4), torch.ones(2, 1))
    refused(blocks_of, pairs_of(4), 0)

"""Coverage from ranks: exact shares, exact p-values, and pairs as the independent parts."""

import pytest
import torch
from scipy.stats import binom

from tacit.assessment.fit_tests import Ranks, coverage


def ranks_of(values, num_samples, observed=None):
    observed = torch.ones_like(values, dtype=torch.bool) if observed is None else observed
    return Ranks(values, observed, num_samples)


@pytest.mark.parametrize("num_samples", [2, 7, 38, 99, 199])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_every_rank_once_gives_the_nominal_share(num_samples, level):
    every = torch.arange(num_samples + 1).view(-1, 1, 1)
    (one,) = coverage(ranks_of(every, num_samples), (level,))
    assert one.overall == pytest.approx(one.nominal)
    assert one.by_number == pytest.approx((one.nominal,))
    assert abs(one.nominal - level) <= 1 / (num_samples + 1) + 1e-12


def test_interval_is_central():
    values = torch.tensor([4, 5, 194, 195]).view(-1, 1, 1)
    (one,) = coverage(ranks_of(values, 199), (0.95,))
    assert one.nominal == pytest.approx(0.95)
    assert one.overall == 0.5  # 5 and 194 are inside, 4 and 195 are not


def test_p_value_of_one_number_is_the_exact_binomial():
    values = torch.tensor([100] * 14 + [0] * 6).view(-1, 1, 1)
    (one,) = coverage(ranks_of(values, 199), (0.5,))
    tail = binom.sf(13, 20, 0.5)
    assert one.p_value == pytest.approx(2 * tail)
    assert one.p_by_number == pytest.approx((2 * tail,))


def test_nodes_that_move_together_count_once():
    values = torch.tensor([100] * 130 + [0] * 70).view(-1, 1, 1)
    (alone,) = coverage(ranks_of(values, 199), (0.5,))
    (copies,) = coverage(ranks_of(values.expand(-1, 10, -1), 199), (0.5,))
    assert copies.overall == alone.overall == 0.65
    assert copies.p_value == pytest.approx(2.2e-5, rel=0.05)  # 30 of 200 too many: 4.24 deviations, as for one node
    assert binom.sf(1299, 2000, 0.5) < 1e-30  # what pooled counts would have claimed


def test_missing_targets_are_left_out():
    values = torch.tensor([[100, 0], [0, 0], [0, 0]])[..., None]
    observed = torch.tensor([[1, 0], [1, 0], [0, 0]])[..., None] > 0
    (one,) = coverage(ranks_of(values, 199, observed), (0.5,))
    assert one.overall == 0.5
    assert one.by_number == (0.5, None)
    assert one.p_by_number[1] is None


def test_nothing_observed_gives_none():
    (one,) = coverage(ranks_of(torch.zeros(3, 1, 1).long(), 9, torch.zeros(3, 1, 1) > 0), (0.5,))
    assert (one.overall, one.p_value, one.gap) == (None, None, 0.0)


def test_levels_are_checked(refused):
    refused(coverage, ranks_of(torch.zeros(3, 1, 1).long(), 9), (95,))

"""Ranks against a loop; their histogram, its test and its shape."""

import pytest
import torch
from scipy.stats import chisquare

from tacit.assessment.fit_tests import Ranks, goodness_of_fit, holm, uniformity
from tacit.assessment.fit_tests.kernel_test import scales_of
from tacit.assessment.fit_tests.ranks import HUMP, TOO_HIGH, TOO_LOW, U_SHAPED, UNIFORM, UNTESTED, rank_of
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel


def of_values(values, num_samples):
    values = torch.as_tensor(values).view(-1, 1, 1)
    return Ranks(values, torch.ones_like(values, dtype=torch.bool), num_samples)


def test_ranks_without_ties_are_counts_of_smaller_samples(rng):
    samples = torch.randn(5, 11, 3, 2, generator=rng)
    targets = torch.randn(5, 3, 2, generator=rng)
    ranks = rank_of(targets, samples, torch.zeros(3, 2), generator=rng)
    for i in range(5):
        for node in range(3):
            for channel in range(2):
                smaller = sum(float(z) < float(targets[i, node, channel]) for z in samples[i, :, node, channel])
                assert ranks[i, node, channel] == smaller


def test_ties_are_broken_evenly(rng):
    count = 9000
    samples = torch.tensor([0.0, 1.0, 1.0 + 1e-7, 2.0]).view(1, 4, 1, 1).expand(count, 4, 1, 1)
    ranks = rank_of(torch.ones(count, 1, 1), samples, torch.full((1, 1), 1e-5), generator=rng).flatten()
    counts = torch.bincount(ranks, minlength=5)
    assert counts[0] == counts[4] == 0  # one below, two equal: ranks 1, 2 and 3
    deviation = (count * (1 / 3) * (2 / 3)) ** 0.5
    assert (counts[1:4] - count / 3).abs().max() < 4.5 * deviation  # false alarm 2e-5


def coin_model(prob):
    """One node whose output is tanh(1) or 0."""
    graph = BernoulliGraph(torch.full((1, 1), prob))
    return LatentGraphModel(graph, HopPredictor(torch.ones(1, 1, 1)), EnergyScore())


def coin_pairs(prob, count, generator):
    heads = (torch.rand(count, 1, 1, generator=generator) < prob).float()
    return Pairs(torch.ones(count, 1, 1), torch.tanh(heads) * (1 + 1e-7))  # rounded otherwise than by the model


def test_ranks_of_a_right_model_with_atoms_are_uniform(rng):
    found = goodness_of_fit(coin_model(0.3), coin_pairs(0.3, 4000, rng), generator=rng, num_samples=39)
    assert sum(found.ranks[0].counts) == 4000
    assert found.ranks[0].p_value > 1e-4  # false alarm 1e-4


def test_ranks_of_a_wrong_model_with_atoms_are_not(rng):
    test = goodness_of_fit(coin_model(0.4), coin_pairs(0.3, 4000, rng), generator=rng).ranks[0]
    assert test.p_value < 1e-6
    assert test.shape == TOO_HIGH


def test_expected_counts_are_exact_where_bins_do_not_divide_ranks():
    test = uniformity(of_values(torch.arange(130) % 13, 12), num_bins=5)[0]  # 13 ranks: bins of 3, 3, 2, 3, 2
    assert test.expected == pytest.approx((30, 30, 20, 30, 20))
    assert test.counts == (30, 30, 20, 30, 20)
    assert test.p_value == 1


@pytest.mark.parametrize(("pairs", "bins"), [(19, None), (20, 4), (60, 12), (500, 20)])
def test_few_pairs_have_few_bins_or_are_not_tested(pairs, bins):
    test = uniformity(of_values(torch.arange(pairs) % 200, 199))[0]
    if bins is None:
        assert (test.p_value, test.adjusted, test.shape) == (None, None, UNTESTED)
    else:
        assert len(test.counts) == bins
        assert test.p_value is not None
        assert sum(test.expected) >= 5 * bins


def test_p_value_is_that_of_the_chi_square_test(rng):
    values = torch.randint(0, 200, (300,), generator=rng)
    test = uniformity(of_values(values, 199))[0]
    assert test.p_value == pytest.approx(chisquare(test.counts, test.expected).pvalue)
    assert 0.001 < test.p_value < 0.999, "the check would be empty"


def test_numbers_within_a_thousandth_of_the_spread_are_one(rng):
    samples = torch.randn(50, 40, 2, 1, generator=rng, dtype=torch.float64) * torch.tensor([1.0, 100.0]).view(2, 1)
    spread = samples.std((0, 1), correction=0)
    assert torch.allclose(scales_of(samples).same, 1e-3 * spread, rtol=1e-12)
    constant = scales_of(torch.full((4, 3, 1, 1), 7.0))
    assert 7e-7 < constant.same.item() < 7e-5  # a few roundings of the number itself


def test_missing_targets_are_left_out(rng):
    values = torch.stack([torch.arange(40), torch.zeros(40).long()], 1)[..., None]
    observed = torch.ones(40, 2, 1, dtype=torch.bool)
    observed[30:, 0] = False
    observed[:, 1] = False
    first, second = uniformity(Ranks(values, observed, 39))
    assert sum(first.counts) == 30
    assert sum(second.counts) == 0
    assert second.p_value is None
    assert first.adjusted == first.p_value  # one test, nothing to correct
    assert second.above_median == 0.5


def test_holm_is_the_textbook_one():
    assert holm([]) == []
    assert holm([0.5]) == [0.5]
    assert holm([0.02, 0.01, 0.9]) == pytest.approx([0.04, 0.03, 0.9])
    assert holm([0.6, 0.7]) == [1, 1]


@pytest.mark.parametrize(
    ("transform", "shape"),
    [
        (lambda u: u, UNIFORM),
        (lambda u: torch.where(u < 0.5, 2 * u**2, 1 - 2 * (1 - u) ** 2), U_SHAPED),
        (lambda u: 0.5 + (u - 0.5) * 0.7, HUMP),
        (lambda u: u.sqrt(), TOO_LOW),
        (lambda u: u**2, TOO_HIGH),
    ],
)
def test_shapes_have_their_words(transform, shape):
    grid = (torch.arange(1000) + 0.5) / 1000
    test = uniformity(of_values((transform(grid) * 200).long(), 199))[0]
    assert test.shape == shape
    assert (test.p_value < 1e-6) == (shape != UNIFORM)


def test_share_above_the_median_counts_the_upper_half():
    assert uniformity(of_values([0] * 30 + [9] * 70, 9))[0].above_median == pytest.approx(0.7)
    odd = uniformity(of_values([0] * 20 + [1] * 20 + [2] * 60, 2), num_bins=3)[0]
    assert odd.above_median == pytest.approx(0.7)  # half of the middle bin

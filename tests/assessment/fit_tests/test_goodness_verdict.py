"""The verdict in words, for misfits made on purpose, and its form in a record."""

import json
import math
import re
from dataclasses import replace

import pytest
import torch

from tacit.assessment.fit_tests import Goodness, goodness_of_fit
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise, PoissonCounts, TargetValues
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel

NAMES = ["north", "east", "south"]


def model_of(sigma=None, prob=0.6):
    predictor = HopPredictor(torch.tensor([[[0.8], [-0.5]]]))
    noise = None if sigma is None else GaussianNoise(3, initial_sigma=sigma)
    return LatentGraphModel(BernoulliGraph(torch.full((3, 3), prob)), predictor, EnergyScore(), observation=noise)


def data(sigmas=0.3, count=1500, shift=0.0, prob=0.6):
    """Targets with noise of given sigmas, one number or one per node."""
    generator = torch.Generator().manual_seed(7)
    inputs, truth = torch.randn(count, 3, 2, generator=generator), model_of(prob=prob)
    with torch.no_grad():
        targets = truth.predictor(inputs, truth.graph.sample(1, num_pairs=count, generator=generator))[:, 0]
    noise = torch.randn(targets.shape, generator=generator) * torch.as_tensor(sigmas).view(-1, 1)
    return Pairs(inputs, targets + noise + shift)


def judge(model, pairs, **choices):
    choices = {"node_names": NAMES} | choices
    return goodness_of_fit(model, pairs, generator=torch.Generator().manual_seed(0), **choices)


def test_the_right_model_fits():
    found = judge(model_of(0.3), data())
    assert found.fits is True
    assert found.p_value == min(1, 2 * min(found.kernel.p_value, found.ranks_p_value))
    (only,) = found.sentences()
    assert only.startswith("the model fits: no evidence against it at the 5% level (kernel test p = ")
    assert "1500 pairs" in only
    assert found.coverage_gap < 0.05


def test_too_narrow_everywhere():
    said = judge(model_of(0.15), data()).sentences()
    assert said[0].startswith("the model does not fit at the 5% level (kernel test p = 0.010, ranks p < 0.001")
    assert said[1] == (
        "ranks at nodes north, east, south are U-shaped: the model is overconfident, its intervals are too narrow"
    )
    assert "intervals contain" in said[2]
    assert "small at each node" not in said[2]
    assert said[-1].startswith("try: fewer epochs, or patience")


def test_advice_for_a_fit_in_closed_form_does_not_name_epochs():
    for sigma, advice in ((0.15, "try: more rows, or a shorter window"), (0.8, "try: training by gradients")):
        found = replace(judge(model_of(sigma), data()), trained=False)
        assert found.sentences()[-1].startswith(advice)
        assert Goodness.from_dict(found.to_dict()) == found


def test_too_narrow_without_noise_asks_for_a_noise_model():
    said = judge(model_of(), data(0.1)).sentences()
    assert "too narrow" in said[1]
    assert 'an observation model (kind = "gaussian" or "gaussian_input")' in said[-1]


def test_too_narrow_at_one_node_names_it():
    said = judge(model_of(0.3), data([0.3, 0.3, 0.9])).sentences()
    assert said[1].startswith("ranks at node south are U-shaped")
    assert "the largest gap is at node south" in said[2]
    assert said[-1].endswith('(kind = "gaussian_input" in [observation]), or other inputs for node south')


def test_counts_that_vary_more_than_their_mean_ask_for_the_negative_binomial():
    """Gamma-Poisson counts, dispersion 0.5: 1,500 pairs with a mean near 4, and a Poisson model of them."""
    generator = torch.Generator().manual_seed(3)
    rates = 4 * torch._standard_gamma(torch.full((1500, 3, 1), 2.0), generator=generator) / 2
    pairs = Pairs(torch.zeros(1500, 3, 2), torch.poisson(rates, generator=generator))
    values = TargetValues(torch.full((3, 1), 4.0), torch.ones(3, 1))
    graph, predictor = BernoulliGraph(torch.full((3, 3), 0.5)), HopPredictor(torch.tensor([[[0.8], [-0.5]]]))
    model = LatentGraphModel(graph, predictor, EnergyScore(), observation=PoissonCounts(3, 1, values))
    found = judge(model, pairs)
    assert (found.noise, found.wider) == ("counts", "negative_binomial")
    assert (
        'try: counts that vary more than their mean (kind = "negative_binomial" in [observation])'
        in (found.sentences()[-1])
    )
    assert Goodness.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_heavy_tails_ask_for_student_t():
    """Noise with three degrees of freedom and a deviation of 0.3, a Gaussian model with that deviation."""
    generator = torch.Generator().manual_seed(5)
    pairs = data(0.0, count=4000, prob=1.0)
    normals = torch.randn(4000, 3, 4, generator=generator)
    heavy = normals[..., :1] / (normals[..., 1:].square().mean(-1, keepdim=True)).sqrt() / math.sqrt(3)
    found = judge(model_of(0.3, prob=1.0), Pairs(pairs.inputs, pairs.targets + 0.3 * heavy))
    assert found.fits is False
    assert 'noise with heavier tails (kind = "student_t" in [observation])' in found.sentences()[-1]


def test_too_wide():
    said = judge(model_of(0.8), data()).sentences()
    assert "hump-shaped: the model is underconfident, its intervals are too wide" in said[1]
    assert "more epochs" in said[-1]


@pytest.mark.parametrize(("shift", "word"), [(0.3, "too low"), (-0.3, "too high")])
def test_shifted(shift, word):
    found = judge(model_of(0.3), data(shift=shift))
    said = found.sentences()
    assert f"slanted: predictions are {word}" in said[1]
    assert "lie above the predicted median" in said[1]
    assert all((rank.above_median > 0.6) == (shift > 0) for rank in found.ranks)
    assert "small at each node" not in said[2]
    assert "drift between training and test" in said[-1]


def test_uniform_ranks_with_wrong_dependence_ask_for_another_scope_or_predictor():
    pairs = data(0.0, prob=1.0)
    generator = torch.Generator().manual_seed(1)
    shared = torch.randn(len(pairs), 1, 1, generator=generator)
    own = torch.randn(len(pairs), 3, 1, generator=generator)
    noise = 0.3 * (math.sqrt(0.6) * shared + math.sqrt(0.4) * own)
    found = judge(model_of(0.3, prob=1.0), Pairs(pairs.inputs, pairs.targets + noise))
    said = found.sentences()
    assert found.fits is False
    assert said[1].startswith("the ranks are uniform at every node")
    assert said[2].startswith("small at each node: statistically significant, but less than 2 points of coverage")
    assert "scope joint" in said[-1]
    assert "another or a more flexible predictor, a longer window, or more epochs" in said[-1]


def test_a_prediction_without_spread_is_said():
    found = judge(model_of(prob=1.0), data(0.1, count=100))
    assert found.no_spread == (True, True, True)
    assert "the prediction at nodes north, east, south has no spread" in found.sentences()
    assert found.fits is False
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_prediction_without_spread_that_is_right_fits():
    found = judge(model_of(prob=1.0), data(0.0, count=100, prob=1.0))
    assert found.fits is True
    assert found.kernel.p_value == 1
    assert "has no spread" in found.sentences()[1]


def test_too_few_pairs_to_say():
    found = judge(model_of(0.3), data(count=15))
    assert found.fits is None
    (only,) = found.sentences()
    assert only.startswith("too few pairs to test the fit")
    assert "ranks not tested" in only


def test_few_pairs_are_enough_to_reject_by_the_exact_test():
    found = judge(model_of(0.1), data(count=15, shift=1.0))
    assert found.fits is False
    assert found.p_value == found.kernel.p_value == 0.005
    assert found.sentences()[0].startswith("the model does not fit")


def test_a_node_that_was_never_observed_is_left_out():
    pairs = data(count=200)
    targets = pairs.targets.clone()
    targets[:, 1] = torch.nan
    found = judge(model_of(0.3), Pairs.with_missing(pairs.inputs, targets))
    assert found.ranks[1].p_value is None
    assert all(one.by_number[1] is None for one in found.coverage)
    assert found.fits is True
    json.dumps(found.to_dict(), allow_nan=False)


def test_nothing_observed_says_nothing():
    pairs = data(count=50)
    found = judge(model_of(0.3), Pairs.with_missing(pairs.inputs, torch.full_like(pairs.targets, torch.nan)))
    assert found.fits is None
    assert found.kernel.p_value == 1
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("sigma", [0.3, 0.1])
def test_record_and_back(sigma):
    found = judge(model_of(sigma), data(count=60))
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    again = Goodness.from_dict(stored)
    assert again == found
    assert again.sentences() == found.sentences() == stored["sentences"]
    assert stored["fits"] is found.fits


def test_stride_is_recorded_and_thins():
    found = judge(model_of(0.3), data(count=100), stride=3)
    assert (found.num_pairs, found.stride) == (34, 3)
    assert all(sum(rank.counts) == 34 for rank in found.ranks)


def test_channels_have_names_of_their_own():
    predictor = HopPredictor(torch.ones(1, 2, 2))
    model = LatentGraphModel(BernoulliGraph(torch.full((3, 3), 0.5)), predictor, EnergyScore())
    generator = torch.Generator().manual_seed(0)
    pairs = Pairs(torch.randn(30, 3, 2, generator=generator), torch.randn(30, 3, 2, generator=generator))
    found = judge(model, pairs)
    assert found.names[:3] == ("north (channel 0)", "north (channel 1)", "east (channel 0)")
    assert len(found.ranks) == 6


def test_wrong_calls_are_refused(refused):
    refused(judge, model_of(0.3), data(count=30), node_names=["north"])
    refused(judge, model_of(0.3), data(count=30), num_samples=19)


def test_the_right_model_is_seldom_called_wrong():
    """60 data sets at the 20% level: more than 25 rejections have probability below 1e-4 if the level is kept."""
    wrong = 0
    for start in range(60):
        pairs = data(count=60 * 40)[slice(40 * start, 40 * start + 40)]
        wrong += judge(model_of(0.3), pairs, level=0.2, num_samples=19).fits is False
    assert wrong <= 25
    assert wrong >= 1  # none of 60 would be as strange: the level is nearly used up


@pytest.mark.parametrize("kernel", [0.005, 0.02, 0.025, 0.0251, 0.03, 0.035, 0.05, 0.5])
def test_the_p_values_that_are_printed_agree_with_the_verdict(kernel):
    """At the 5% level 'fits' never stands beside a p-value of 0.05 or less, nor 'does not fit' beside larger ones."""
    found = judge(model_of(0.3), data(count=100))
    for p_ranks in (0.01, 0.025, 0.0251, 0.4):
        ranks = tuple(replace(one, adjusted=p_ranks) for one in found.ranks)
        one = replace(found, kernel=replace(found.kernel, p_value=kernel), ranks=ranks)
        printed = [float(text) for text in re.findall(r"p = ([0-9.]+[0-9])", one.sentences()[0])]
        assert len(printed) == 2
        assert one.fits is (min(printed) > 0.05)
        assert one.sentences()[0].startswith("the model fits" if min(printed) > 0.05 else "the model does not fit")

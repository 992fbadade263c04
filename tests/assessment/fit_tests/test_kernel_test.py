"""The kernel test: exact by symmetry, against explicit sums, and with the level and power it claims."""

import itertools
import math
import sys

import pytest
import torch

from tacit.assessment.fit_tests import kernel_test, own_samples, thinned
from tacit.assessment.fit_tests.kernel_test import FourierFeatures, KernelSums, p_value, scales_of
from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel

TOLERANCE = 1e-10


def problem(rng, pairs=4, candidates=6, nodes=3, channels=2):
    """Candidates of a few pairs, a mask, and empty sums with few features; in float64."""
    values = torch.randn(pairs, candidates, nodes, channels, generator=rng, dtype=torch.float64)
    targets = torch.zeros(pairs, nodes, channels, dtype=torch.float64)
    mask = (torch.rand(targets.shape, generator=rng) < 0.7).double()
    scales = scales_of(torch.randn(9, 5, nodes, channels, generator=rng, dtype=torch.float64))
    sums = KernelSums.start(
        Pairs(targets, targets), scales, candidates - 1, generator=rng, node_features=5, joint_features=7
    )
    return values, mask, sums


def explicit(values, mask, sums):
    """T_c of each kernel and the SKCE by double sums over pairs of products of residuals."""
    node, joint = sums.features.cosines(values, mask, sums.scales)
    pairs, count = values.shape[:2]
    features = {
        "nodes": [(node[:, :, k], 1 / node.shape[2]) for k in range(node.shape[2])],
        "pooled": [(node.mean(2), 1.0)],
        "joint": [(joint, 1.0)],
    }
    statistics, skce = torch.zeros(3, count, dtype=torch.float64), 0.0
    for (part, maps), c, i, j in itertools.product(
        enumerate(features.values()), range(count), range(pairs), range(pairs)
    ):
        for phi, weight in maps:
            others = [b for b in range(count) if b != c]
            first, second = (phi[k, c] - phi[k, others].mean(0) for k in (i, j))
            product = float(weight * 2 / phi.shape[-1] * (first @ second))
            statistics[part, c] += product / pairs**2
            skce += product / (pairs * (pairs - 1)) if c == 0 and i != j else 0.0
    return statistics, skce


@pytest.mark.parametrize("masked", [False, True])
def test_sums_equal_the_double_sum(rng, masked):
    values, mask, sums = problem(rng)
    mask = mask if masked else None
    sums.add_candidates(values[:1], None if mask is None else mask[:1])  # chunk by chunk
    sums.add_candidates(values[1:], None if mask is None else mask[1:])
    statistics, skce = explicit(values, mask, sums)
    assert float((sums.statistics() - statistics).abs().max()) < TOLERANCE
    assert abs(sums.result().skce - skce) < TOLERANCE
    assert float(statistics.min()) > 1e-4, "the check would be empty"


def test_features_are_those_of_a_gaussian_kernel(rng):
    count = 100_000
    targets = torch.zeros(1, 1, 1, dtype=torch.float64)
    features = FourierFeatures.draw(targets, generator=rng, num_node=count, num_joint=count)
    scales = scales_of(torch.tensor([[0.0, 2.0], [4.0, 10.0]], dtype=torch.float64).view(2, 2, 1, 1))
    values = torch.tensor([[0.0, 1.0, 2.0], [1.0, 2.5, 4.0]], dtype=torch.float64).view(2, 3, 1, 1)
    node, joint = features.cosines(values, None, scales)
    mean, deviation = values.mean(1), values.std(1, correction=0)
    context = torch.cat([mean / scales.mean_spread, deviation / scales.deviation_spread], -1)[:, 0]
    residual = ((values - mean[:, None]) / deviation[:, None])[..., 0, 0]
    for b, c in itertools.product(range(3), range(3)):
        apart = float((context[0] - context[1]).square().sum())
        gap = float((residual[0, b] - residual[1, c]).square())
        for cosines, weight in ((node[:, :, 0], 1.0), (joint, 0.3**2)):
            kernel = 2 * float((cosines[0, b] * cosines[1, c]).mean())
            assert abs(kernel - math.exp(-(weight * apart + gap) / 2)) < 5 / math.sqrt(count)  # 5 standard errors


def test_swapping_candidates_swaps_their_statistics(rng):
    values, mask, sums = problem(rng)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    swapped = KernelSums(sums.features, sums.scales, sums.node.clone(), sums.joint.clone(), sums.own.clone())
    sums.add_candidates(values, mask)
    swapped.add_candidates(values[:, order], mask)
    assert float((swapped.statistics() - sums.statistics()[:, order]).abs().max()) < 1e-14


def test_level_is_exact_whichever_candidate_is_the_target(rng):
    values, _, empty = problem(rng)
    found = []
    for c in range(6):
        sums = KernelSums(empty.features, empty.scales, empty.node.clone(), empty.joint.clone(), empty.own.clone())
        order = [c, *(b for b in range(6) if b != c)]
        sums.add_candidates(values[:, order])
        found.append(sums.result().p_value)
    assert sorted(found) == pytest.approx([k / 6 for k in range(1, 7)])  # each once: P(p <= k / 6) = k / 6


def test_ties_count_against_rejection():
    level = [p_value(torch.tensor([[1.0, 1.0, 2.0, 2.0]]).roll(-c, 1)).item() for c in range(4)]
    assert level == [1.0, 1.0, 0.5, 0.5]
    assert p_value(torch.zeros(3, 5)).item() == 1
    assert p_value(torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).item() == pytest.approx(1 / 3)


def test_unobserved_targets_have_no_say(rng):
    values, mask, sums = problem(rng)
    other = KernelSums(sums.features, sums.scales, sums.node.clone(), sums.joint.clone(), sums.own.clone())
    sums.add_candidates(values, mask)
    changed = values.clone()
    changed[:, 0] += 100 * (1 - mask)
    other.add_candidates(changed, mask)
    assert torch.equal(sums.statistics(), other.statistics())
    other.add_candidates(changed)
    assert not torch.equal(sums.node, other.node)


def test_a_pair_without_any_target_adds_the_same_to_every_candidate(rng):
    values, mask, sums = problem(rng)
    sums.add_candidates(values, torch.zeros_like(mask))
    assert float(sums.statistics().abs().max()) < 1e-28
    assert sums.result().p_value == 1


def small_model(prob=0.6, sigma=None, dtype=torch.float32):
    predictor = HopPredictor(torch.tensor([[[0.8], [-0.5]]]))
    noise = None if sigma is None else GaussianNoise(3, initial_sigma=sigma)
    return LatentGraphModel(BernoulliGraph(torch.full((3, 3), prob)), predictor, EnergyScore(), observation=noise).to(
        dtype=dtype
    )


def data_from(model, count, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 3, 2, generator=generator)
    with torch.no_grad():
        graphs = model.graph.sample(1, num_pairs=count, generator=generator)
        return Pairs(inputs, model.observation.draw(model.describe(inputs, graphs), generator=generator)[:, 0])


def p_values(model, truth, data_sets, count, **choices):
    return [
        kernel_test(
            model, data_from(truth, count, seed), generator=torch.Generator().manual_seed(seed), **choices
        ).p_value
        for seed in range(data_sets)
    ]


@pytest.mark.parametrize("sigma", [None, 0.3])
def test_level_is_the_nominal_one(sigma):
    model = small_model(sigma=sigma)
    found = torch.tensor(p_values(model, model, 200, 25, num_samples=19, node_features=4, joint_features=8))
    for level in (0.1, 0.5):
        rejected = int((found <= level + 1e-9).sum())
        deviation = math.sqrt(200 * level * (1 - level))
        assert abs(rejected - 200 * level) < 4.4 * deviation  # false alarm 1e-5 each


def test_wrong_edge_probabilities_are_noticed():
    found = p_values(small_model(0.35), small_model(0.6), 10, 300, num_samples=39)
    assert max(found) == pytest.approx(1 / 40)


def test_wrong_dependence_is_noticed_by_the_joint_kernel(rng):
    model, count = small_model(1.0, sigma=0.5), 1000
    inputs = torch.randn(count, 3, 2, generator=rng)
    means = model.predictor(inputs, torch.ones(1, 1, 3, 3))[:, 0].detach()
    shared = torch.randn(count, 1, 1, generator=rng) * math.sqrt(0.5)
    own = torch.randn(count, 3, 1, generator=rng) * math.sqrt(0.5)
    pairs = Pairs(inputs, means + 0.5 * (shared + own))  # right at each node, correlation 0.5 between them
    test = kernel_test(model, pairs, generator=rng)
    assert test.p_value == test.parts["joint"] == 0.005
    assert test.parts["nodes"] > 0.005


def test_a_prediction_of_one_number_that_is_right_up_to_rounding_is_right(rng):
    model = small_model(1.0)
    exact = data_from(model, 40, 0)
    rounded = Pairs(exact.inputs, exact.targets * (1 + 2e-7))
    test = kernel_test(model, rounded, generator=rng)
    assert test.p_value == 1
    assert abs(test.skce) < 1e-9


def test_a_prediction_of_one_number_that_is_wrong_is_rejected(rng):
    model = small_model(1.0)
    exact = data_from(model, 40, 0)
    test = kernel_test(model, Pairs(exact.inputs, exact.targets + 0.1), generator=rng)
    assert test.p_value == 0.005
    assert math.isfinite(test.skce)


def test_a_constant_prediction_of_zero_is_no_division_by_zero(rng):
    model = LatentGraphModel(BernoulliGraph(torch.zeros(2, 2)), HopPredictor(torch.ones(1, 1, 1)), EnergyScore())
    inputs = torch.randn(30, 2, 1, generator=rng)
    right = kernel_test(model, Pairs(inputs, torch.zeros(30, 2, 1)), generator=rng)
    wrong = kernel_test(model, Pairs(inputs, torch.ones(30, 2, 1)), generator=rng)
    assert (right.p_value, wrong.p_value) == (1, 0.005)
    assert math.isfinite(right.skce)
    assert math.isfinite(wrong.skce)


def test_stride_thins_the_pairs():
    model, pairs = small_model(), data_from(small_model(0.5), 60, 1)
    thin = kernel_test(model, pairs, generator=torch.Generator().manual_seed(0), stride=4)
    same = kernel_test(model, pairs[::4], generator=torch.Generator().manual_seed(0))
    every = kernel_test(model, pairs, generator=torch.Generator().manual_seed(0))
    assert thin == same
    assert thin != every


def test_the_answer_does_not_depend_on_the_unit_of_the_targets(rng):
    values, mask, sums = problem(rng)
    sums.add_candidates(values, mask)
    pilot = torch.randn(9, 5, 3, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    found = []
    for unit in (1.0, 1000.0):
        other = KernelSums(sums.features, scales_of(unit * pilot), *(0 * s for s in (sums.node, sums.joint, sums.own)))
        other.add_candidates(unit * values, mask)
        found.append(other.statistics())
    assert float((found[0] - found[1]).abs().max()) < TOLERANCE


@pytest.mark.gpu
def test_on_a_gpu():
    truth = small_model()
    pairs = data_from(truth, 400, 0).to("cuda")
    for prob, rejected in ((0.6, False), (0.3, True)):
        model = small_model(prob).to("cuda")
        test = kernel_test(model, pairs, generator=torch.Generator("cuda").manual_seed(0))
        assert (test.p_value == 0.005) == rejected


# ---------------------------------------------------------------- samples for tests


samples_module = sys.modules["tacit.assessment.fit_tests.kernel_test"]  # the function has its name


def coin_model(prob=0.5, sigma=None):
    predictor = HopPredictor(torch.ones(1, 1, 1))
    noise = None if sigma is None else GaussianNoise(2, initial_sigma=sigma)
    return LatentGraphModel(BernoulliGraph(torch.full((2, 2), prob)), predictor, EnergyScore(), observation=noise)


def test_pairs_with_the_same_input_have_graphs_of_their_own(rng):
    model, inputs = coin_model(), torch.ones(2, 2, 1)
    drawn = own_samples(model, inputs, 200, generator=rng)
    assert drawn.shape == (2, 200, 2, 1)
    differ = (drawn[0] != drawn[1]).float().mean()
    assert differ > 0.3  # shared graphs would give 0; here 1 - (1/16 + 1/4 + 1/16) = 0.625 is expected
    shared = model.sample(inputs, 200, generator=rng)
    assert torch.equal(shared[0], shared[1])


def test_noise_is_drawn_for_every_sample(rng):
    drawn = own_samples(coin_model(1.0, sigma=0.2), torch.zeros(3, 2, 1), 50, generator=rng)
    assert len(drawn.flatten().unique()) == drawn.numel()


def test_chunks_cover_all_rows_once(rng, monkeypatch):
    monkeypatch.setattr(samples_module, "CHUNK_NUMBERS_ELSEWHERE", 7 * 2 * 64 * 3)  # three pairs
    inputs = torch.arange(8.0).view(8, 1, 1).expand(8, 2, 1)
    parts = list(samples_module.sample_chunks(coin_model(1.0), Pairs(inputs, inputs), 7, generator=rng))
    rows = [rows for rows, _ in parts]
    assert rows == [slice(0, 3), slice(3, 6), slice(6, 8)]
    together = torch.cat([samples for _, samples in parts])
    assert torch.allclose(together[:, 0, 0, 0], torch.tanh(2 * torch.arange(8.0)))


def test_a_pair_too_large_for_a_chunk_is_still_drawn(rng, monkeypatch):
    monkeypatch.setattr(samples_module, "CHUNK_NUMBERS_ELSEWHERE", 1)
    parts = list(
        samples_module.sample_chunks(coin_model(), Pairs(torch.ones(2, 2, 1), torch.ones(2, 2, 1)), 5, generator=rng)
    )
    assert [rows for rows, _ in parts] == [slice(0, 1), slice(1, 2)]


def test_thinning_keeps_every_so_many_pairs(refused):
    pairs = Pairs.with_missing(torch.zeros(7, 1, 1), torch.tensor([0.0, 1, 2, torch.nan, 4, 5, 6]).view(7, 1, 1))
    thin = thinned(pairs, 3)
    assert thin.targets.flatten().tolist() == [0, 0, 6]
    assert thin.observed.flatten().tolist() == [1, 0, 1]
    assert thinned(pairs, 1) is pairs
    refused(thinned, pairs, 0)


@pytest.mark.parametrize(
    "pairs",
    [
        Pairs(torch.ones(1, 2, 1), torch.ones(1, 2, 1)),
        Pairs(torch.ones(5, 3, 1), torch.ones(5, 3, 1)),
        Pairs(torch.ones(5, 2, 1).double(), torch.ones(5, 2, 1).double()),
    ],
)
def test_what_cannot_be_compared_is_refused(rng, pairs, refused):
    refused(kernel_test, coin_model(), pairs, generator=rng)

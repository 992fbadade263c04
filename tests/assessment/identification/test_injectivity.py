import itertools

import pytest
import torch

from tacit.assessment.identification import check_injectivity, draw_contexts
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel


def row_model(sources, hops=1):
    """Node 0 reads any of the others; no other edge is possible."""
    fixed = torch.ones(sources + 1, sources + 1, dtype=torch.bool)
    fixed[0, 1:] = False
    graph = BernoulliGraph(torch.where(fixed, 0.0, 0.5), fixed=fixed)
    return LatentGraphModel(graph, HopPredictor(0.1 * torch.ones(hops, 1, 1)), EnergyScore())


def full_model(nodes, rng):
    graph = BernoulliGraph(torch.full((nodes, nodes), 0.5))
    return LatentGraphModel(graph, HopPredictor.random(2, 2, generator=rng), EnergyScore())


@pytest.mark.parametrize("x", [(1.0, 2.0, 4.0), (1.0, 2.0, 3.0), (0.0, 1.0, 2.0), (3.0, 5.0, 7.0)])
def test_one_row_is_injective_off_the_hyperplanes_of_the_lemma(rng, x):
    on_a_hyperplane = any(
        sum(d * v for d, v in zip(delta, x, strict=True)) == 0
        for delta in itertools.product((-1, 0, 1), repeat=3)
        if any(delta)
    )
    inputs = torch.tensor([(0.0, *x)])[..., None]
    found = check_injectivity(row_model(3), inputs, generator=rng)
    assert found.enumerated
    assert found.comparisons == 28
    assert found.holds == (not on_a_hyperplane)
    assert ("holds" in found.sentence()) == found.holds


def test_smallest_distance_is_that_of_the_enumerated_outputs():
    model, x = row_model(3), torch.tensor([0.0, 1.0, 2.0, 4.5])
    sums = torch.tensor([sum(row) for row in itertools.product(*((0, v) for v in x[1:].tolist()))])
    gap = torch.tanh(0.1 * sums.double()).sort().values.diff().min()
    found = check_injectivity(model, x[None, :, None], generator=torch.Generator().manual_seed(0))
    same = torch.Generator().manual_seed(0)
    torch.randperm(1, generator=same)
    bases = draw_contexts(model.graph, 8, generator=same, pulled=False).double()
    spread = torch.tanh(0.1 * bases[:, 0] @ x.double()).std(correction=0)
    assert found.closest == pytest.approx((gap / spread).item(), rel=1e-6)  # psi is 0.1 in float32


def test_a_single_good_input_is_enough_and_zero_is_none(rng):
    good, zero = torch.tensor([0.0, 1.0, 2.0, 4.5]), torch.zeros(4)
    inputs = torch.stack([good, zero, zero, zero])[..., None]
    found = check_injectivity(row_model(3), inputs, generator=rng)
    assert found.holds
    assert found.share == 0.25
    assert found.num_inputs == 4
    assert not check_injectivity(row_model(3), inputs[1:], generator=rng).holds


def test_all_graphs_of_three_nodes_and_two_hops(rng):
    inputs = torch.randn(6, 3, 2, generator=rng)
    found = check_injectivity(full_model(3, rng), inputs, generator=rng)
    assert found.enumerated
    assert found.comparisons == 512 * 511 // 2
    assert found.share == 1


def test_more_edges_are_sampled_and_the_words_say_so(rng):
    inputs = torch.randn(6, 5, 2, generator=rng)
    found = check_injectivity(full_model(5, rng), inputs, generator=rng)
    assert not found.enumerated
    assert found.num_edges == 25
    assert found.comparisons == 25 + 3 * 1024
    assert found.holds
    assert found.sentence().endswith("sampled, not proven.")
    inputs[:, 1] = inputs[:, 0]  # then only two flips at once, of the right edges, tell nothing
    found = check_injectivity(full_model(5, rng), inputs, generator=rng)
    assert not found.holds
    assert "was not met" in found.sentence()


def test_edges_left_out_do_not_count(rng):
    inputs = torch.randn(6, 3, 2, generator=rng)
    inputs[:, 0] = 0
    model = LatentGraphModel(
        BernoulliGraph(torch.full((3, 3), 0.5)), HopPredictor.random(1, 2, generator=rng), EnergyScore()
    )
    assert not check_injectivity(model, inputs, generator=rng).holds
    seen = torch.tensor([[False, True, True]]).expand(3, 3)
    found = check_injectivity(model, inputs, generator=rng, edges=seen)
    assert found.holds
    assert found.num_edges == 6
    nothing = check_injectivity(model, inputs, generator=rng, edges=torch.zeros(3, 3, dtype=torch.bool))
    assert nothing.comparisons == 0
    assert nothing.sentence().startswith("No learned edge is identifiable")


def test_symmetric_graphs_have_a_coin_for_each_pair(rng):
    model = LatentGraphModel(
        BernoulliGraph(torch.full((4, 4), 0.5), symmetric=True), HopPredictor.random(2, 2, generator=rng), EnergyScore()
    )
    found = check_injectivity(model, torch.randn(3, 4, 2, generator=rng), generator=rng)
    assert found.enumerated
    assert found.num_edges == 10
    assert found.share == 1

import pytest
import torch

import toys
from tacit.assessment.identification import identify
from tacit.assessment.identification.verdict import confirmed_twins
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import ConvolutionStack, HopPredictor
from tacit.systems import CommunitySystem
from tacit.training import LatentGraphModel


class Scaled(torch.nn.Module):
    """One hop whose edges have the strengths of a matrix: y_i = sum_j A_ij S_ij x_j."""

    def __init__(self, strengths):
        super().__init__()
        self.register_buffer("strengths", strengths)

    def forward(self, inputs, graphs):
        return (graphs * self.strengths) @ inputs[:, None]


def scaled(strengths, **choices):
    graph = BernoulliGraph(torch.full_like(strengths, 0.5), **choices)
    return LatentGraphModel(graph, Scaled(strengths), EnergyScore())


@pytest.fixture
def inputs(rng):
    return torch.randn(50, 4, 1, generator=rng)


@pytest.mark.parametrize("widths", [[4, 1], [4, 2, 1], [4, 8, 1], [4, 8, 2, 1]])
@pytest.mark.parametrize("start", ["true", "uniform"])
def test_of_the_generic_stack_exactly_the_diagonal_is_flagged(rng, widths, start):
    system = CommunitySystem()
    pairs = system.generate(200, seed=1)
    stack = ConvolutionStack.random(widths, self_loops=True, activation="tanh", generator=rng)
    graph = system.true_graph() if start == "true" else BernoulliGraph.uniform(12, generator=rng)
    model = LatentGraphModel(graph, stack, EnergyScore(scope="joint"), credit="global")
    found = identify(model, pairs.inputs, pairs.targets, generator=rng, num_pairs=28_000)
    assert torch.equal(~found.identifiable, torch.eye(12, dtype=torch.bool))
    assert found.reasons == [
        "12 edges cannot be learned: flipping them changes no prediction (every node's edge to itself)."
    ]
    assert found.sentences()[0] == "132 of 144 learned edges are identifiable from the predictions."


def test_without_forced_self_loops_every_edge_is_identifiable(rng):
    pairs = CommunitySystem().generate(200, seed=1)
    for predictor in (ConvolutionStack.random([4, 8, 1], generator=rng), CommunitySystem().true_predictor()):
        model = LatentGraphModel(CommunitySystem().true_graph(), predictor, EnergyScore())
        found = identify(model, pairs.inputs, pairs.targets, generator=rng, num_pairs=28_000)
        assert found.identifiable.all()
        assert found.reasons == []
        assert found.sentences()[0] == "All 144 learned edges are identifiable from the predictions."


def test_a_node_that_ignores_its_inputs_and_one_that_nobody_reads(rng, inputs):
    strengths = torch.ones(4, 4)
    strengths[2], strengths[:, 3] = 0, 0
    found = identify(scaled(strengths), inputs, generator=rng, nodes=list("abcd"))
    assert torch.equal(found.without_effect, strengths == 0)
    assert found.reasons == [
        "7 edges cannot be learned: flipping them changes no prediction (all edges into c, whose output ignores its "
        "inputs; all edges out of d, which change no prediction)."
    ]
    assert [found.flag(2, 0), found.flag(0, 3), found.flag(0, 1)] == ["no", "no", "yes"]


def test_too_weak_for_so_many_pairs(rng, inputs):
    strengths = torch.ones(4, 4)
    strengths[0, 1] = 0.01
    targets = torch.randn(50, 4, 1, generator=rng)
    model = scaled(strengths)
    unlimited = identify(model, inputs, targets, generator=rng)
    effect = unlimited.effects[0, 1].item()
    expected = 0.01 * inputs[:, 1].square().mean().sqrt() / targets[:, 0].std(correction=0)
    assert effect == pytest.approx(expected.item(), rel=1e-4)
    assert unlimited.identifiable.all()
    enough, few = int((2 / effect) ** 2) + 2, int((2 / effect) ** 2) - 2
    assert identify(model, inputs, targets, generator=rng, num_pairs=enough).identifiable.all()
    found = identify(model, inputs, targets, generator=rng, num_pairs=few, nodes=list("abcd"))
    assert (~found.identifiable).nonzero().tolist() == [[0, 1]]
    assert found.reasons == [f"1 edge cannot be learned: the effect of it is too weak for {few:,} pairs ('b -> a')."]


def test_fixed_edges_are_not_judged(rng, inputs):
    fixed = torch.eye(4, dtype=torch.bool)
    found = identify(scaled(torch.ones(4, 4) - torch.eye(4), fixed=fixed), inputs, generator=rng)
    assert torch.equal(found.learned, ~fixed)
    assert found.flag(1, 1) == ""
    assert torch.equal(found.identifiable, ~fixed)
    assert found.reasons == []
    held = identify(scaled(torch.ones(4, 4), fixed=torch.ones_like(fixed)), inputs, generator=rng)
    assert held.sentences()[0] == "No edge is learned."


def test_twins_are_not_identifiable(rng, inputs):
    inputs[:, 3] = inputs[:, 2]
    found = identify(scaled(torch.ones(4, 4)), inputs, generator=rng, nodes=list("abcd"))
    assert found.identifiable.tolist() == [[True, True, False, False]] * 4
    assert "8 edges cannot be distinguished" in found.reasons[0]
    assert "'c -> a' and 'd -> a'" in found.reasons[0]
    assert not found.injectivity.holds


def test_symmetric_graphs_are_judged_pair_by_pair(rng, inputs):
    strengths = torch.ones(4, 4) - torch.eye(4)
    strengths[0, 1] = strengths[1, 0] = 0
    found = identify(scaled(strengths, symmetric=True), inputs, generator=rng, nodes=list("abcd"))
    assert torch.equal(found.identifiable, found.identifiable.mT)
    assert torch.equal(~found.identifiable, strengths == 0)
    assert found.reasons == [
        "5 edges cannot be learned: flipping them changes no prediction (every node's edge to itself; 'b -- a')."
    ]
    one_way = torch.ones(4, 4).triu()  # flipped together, one entry with an effect is enough
    assert identify(scaled(one_way, symmetric=True), inputs, generator=rng).identifiable.all()


def test_a_constant_target_is_handled_and_said(rng, inputs):
    targets = torch.randn(50, 4, 1, generator=rng)
    targets[:, 2] = 0.1
    found = identify(scaled(torch.ones(4, 4)), inputs, targets, generator=rng, nodes=list("abcd"))
    assert torch.isfinite(found.effects).all()
    assert found.identifiable.all()
    assert any(line.startswith("The targets of c never vary") for line in found.sentences())
    every = identify(scaled(torch.ones(4, 4)), inputs, torch.ones(50, 4, 1), generator=rng)
    assert torch.isfinite(every.effects).all()
    assert every.constant == [0, 1, 2, 3]


def test_missing_targets_are_left_out_of_the_spread(rng, inputs):
    targets = torch.randn(50, 4, 1, generator=rng)
    seen = torch.ones_like(targets)
    seen[25:, 0] = 0
    spoiled = torch.where(seen > 0, targets, 1e6)
    model = scaled(torch.ones(4, 4))
    found = identify(model, inputs, spoiled, generator=rng, observed=seen)
    marked = identify(model, inputs, torch.where(seen > 0, targets, torch.nan), generator=rng)
    expected = inputs[:, 1].square().mean().sqrt() / targets[:25, 0].std(correction=0)
    assert found.effects[0, 1].item() == pytest.approx(expected.item(), rel=1e-4)
    assert torch.allclose(found.effects, marked.effects, rtol=1e-4)


def test_large_graphs_try_doubtful_edges_again(rng, monkeypatch):
    """Node 0 sends in one pair of forty alone: the few inputs that many edges allow do not show it."""
    monkeypatch.setattr("tacit.assessment.identification.effects.OUTPUTS", 3200)
    inputs, targets = (torch.randn(40, 4, 1, generator=rng) for _ in range(2))
    inputs[1:, 0] = 0
    fixed = torch.zeros(4, 4, dtype=torch.bool)
    fixed[1:, 0] = True
    model = scaled(torch.ones(4, 4), fixed=fixed)
    at_first = toys.edge_effects(model, inputs, targets, generator=torch.Generator().manual_seed(2))
    assert at_first[0, 0] == 0
    found = identify(model, inputs, targets, generator=torch.Generator().manual_seed(2))
    assert found.flag(0, 0) == "yes"


def test_bad_input_is_named(rng, inputs, unchecked, refused):
    model = LatentGraphModel(
        BernoulliGraph(torch.full((4, 4), 0.5)), HopPredictor.random(1, 1, generator=rng), EnergyScore()
    )
    refused(identify, model, inputs, generator=rng, num_pairs=0)
    refused(identify, model, inputs, generator=rng, nodes=["a", "b"])
    refused(identify, model, inputs[:0], generator=rng)
    refused(identify, model, inputs[:, :3], generator=rng)


def test_edges_into_a_node_that_was_never_observed_cannot_be_learned():
    """The others can; the node is not called constant, as nothing is known of it."""
    generator = torch.Generator().manual_seed(0)
    graph = BernoulliGraph(torch.full((3, 3), 0.5))
    model = LatentGraphModel(graph, HopPredictor(torch.ones(1, 1, 1)), EnergyScore())
    inputs = torch.randn(64, 3, 1, generator=generator)
    targets, observed = torch.randn(64, 3, 1, generator=generator), torch.ones(64, 3, 1)
    observed[:, 1] = 0
    found = identify(model, inputs, targets, observed=observed, generator=generator)
    assert not found.identifiable[1].any()
    assert found.identifiable[[0, 2]].all()
    assert found.constant == []


# ---------------------------------------------------------------- twins


def find_twins(model, inputs, generator):
    return identify(model, inputs, generator=generator, injectivity=False).twins


def model_of(weights, nodes=3, predictor=HopPredictor, **choices):
    graph = BernoulliGraph(torch.full((nodes, nodes), 0.4), **choices)
    return LatentGraphModel(graph, predictor(torch.tensor(weights).view(-1, 1, 1)), EnergyScore())


def test_nodes_that_send_the_same_are_twins_for_every_reader(rng):
    inputs = torch.randn(30, 3, 1, generator=rng)
    assert find_twins(model_of([1.0]), inputs, generator=rng) == []
    inputs[:, 2] = inputs[:, 1]
    assert find_twins(model_of([1.0]), inputs, generator=rng) == [((i, 1), (i, 2)) for i in range(3)]


def test_the_second_edge_has_less_effect_under_tanh_and_they_are_twins_all_the_same(rng):
    """Where one is present and the other not, their effects differ: only graphs where they agree may be compared."""
    inputs = 2 + torch.rand(30, 3, 1, generator=rng)  # all positive: a second edge adds little
    inputs[:, 2] = inputs[:, 1]
    assert find_twins(model_of([0.3]), inputs, generator=rng) == [((i, 1), (i, 2)) for i in range(3)]


def test_opposite_effects_and_proportional_ones_are_no_twins(rng):
    inputs = torch.randn(30, 3, 1, generator=rng)
    inputs[:, 2] = -inputs[:, 1]
    assert find_twins(model_of([1.0]), inputs, generator=rng) == []
    small = 1e-3 * inputs
    small[:, 2] = 1.05 * small[:, 1]  # tanh is linear here
    assert find_twins(model_of([1.0]), small, generator=rng) == []


def test_edges_without_effect_are_no_twins(rng):
    assert find_twins(model_of([1.0]), torch.zeros(30, 3, 1), generator=rng) == []


def test_large_graphs_compare_edges_into_one_node(rng, monkeypatch):
    monkeypatch.setattr("tacit.assessment.identification.effects.TOGETHER", 4)
    inputs = torch.randn(30, 3, 1, generator=rng)
    inputs[:, 2] = inputs[:, 1]
    assert find_twins(model_of([1.0]), inputs, generator=rng) == [((i, 1), (i, 2)) for i in range(3)]


def test_chance_likeness_of_short_vectors_is_checked_again(rng):
    """With one input and one output every edge looks like any other of the same size; more inputs tell them apart."""
    inputs = torch.cat([torch.ones(1, 3, 1), torch.randn(63, 3, 1, generator=rng)])
    model = model_of([1.0])
    shown = inputs[torch.tensor([0] * 30)]
    assert find_twins(model, shown, generator=rng) != []
    assert confirmed_twins(model, inputs, None, [((0, 1), (0, 2))], generator=rng) == []


def test_twins_of_a_symmetric_graph_are_pairs(rng):
    inputs = torch.randn(30, 3, 1, generator=rng)
    inputs[:, 2] = inputs[:, 1]
    fixed = torch.eye(3, dtype=torch.bool)
    fixed[1, 2] = fixed[2, 1] = True
    graph = BernoulliGraph(torch.where(fixed, 0.0, 0.4), fixed=fixed, symmetric=True)

    class Total(torch.nn.Module):
        def forward(self, inputs, graphs):
            return (graphs @ inputs[:, None])[..., :1, :].expand(-1, -1, 3, -1)  # what node 0 reads, everywhere

    model = LatentGraphModel(graph, Total(), EnergyScore())
    assert find_twins(model, inputs, generator=rng) == [((0, 1), (0, 2))]

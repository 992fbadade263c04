import torch

from tacit.assessment.identification import identify
from tacit.assessment.identification.verdict import confirmed_twins
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel


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

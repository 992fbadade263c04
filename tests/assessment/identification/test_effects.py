import pytest
import torch

import oracles
import toys
from tacit.assessment.identification import draw_contexts
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise, HeadGaussianNoise, InputGaussianNoise
from tacit.observation.gaussian import raw_sigma
from tacit.predictors import ConvolutionStack, GraphFilter, HopPredictor
from tacit.training import LatentGraphModel

EVERY_EDGE = torch.ones(3, 3, dtype=torch.bool)


def exact_effects(model, inputs, targets, graphs, probs, outputs_of):
    """A loop over edges and graphs: root of the mean squared change by node, over the deviation of its targets."""
    nodes = inputs.shape[1]
    spread = targets.std(0, correction=0)
    effects = torch.zeros(nodes, nodes, dtype=torch.float64)
    for i in range(nodes):
        for j in range(nodes):
            total = 0.0
            for adjacency, prob in zip(graphs, probs, strict=True):
                on, off = adjacency.clone(), adjacency.clone()
                on[i, j], off[i, j] = 1, 0
                if model.graph.symmetric:
                    on[j, i], off[j, i] = 1, 0
                change = torch.stack([outputs_of(x, on) - outputs_of(x, off) for x in inputs])
                total = total + prob * change.square().mean(0)
            effects[i, j] = (total.sqrt() / spread).max()
    return effects


@pytest.mark.parametrize("hops", [1, 2])
def test_effects_are_the_sum_over_all_512_graphs(hops):
    model, inputs, targets = toys.toy(EVERY_EDGE, EnergyScore(), 3, 4, hops=hops)
    graphs = oracles.all_graphs(EVERY_EDGE)
    probs = oracles.graph_probs(graphs, model.graph.edge_probs.detach())
    weights = model.predictor.hop_weights.detach()
    exact = exact_effects(
        model, inputs, targets, graphs, probs, lambda x, a: oracles.hop_predictor(x, a, weights)
    )  # fmt: skip
    found = toys.edge_effects(model, inputs, targets, generator=torch.Generator(), contexts=graphs, weights=probs)
    assert toys.gap(found, exact) < toys.TOLERANCE
    assert exact.min() > 0.05


def test_effects_of_a_symmetric_graph_flip_both_entries():
    model, inputs, targets = toys.toy(EVERY_EDGE, EnergyScore(), 2, 4, symmetric=True)
    coins = oracles.all_graphs(EVERY_EDGE.triu())
    graphs = torch.maximum(coins, coins.mT)
    probs = oracles.graph_probs(coins, torch.where(EVERY_EDGE.triu(), model.graph.edge_probs.detach(), 0.0))
    weights = model.predictor.hop_weights.detach()
    exact = exact_effects(
        model, inputs, targets, graphs, probs, lambda x, a: oracles.hop_predictor(x, a, weights)
    )  # fmt: skip
    found = toys.edge_effects(model, inputs, targets, generator=torch.Generator(), contexts=graphs, weights=probs)
    assert toys.gap(found, exact) < toys.TOLERANCE
    assert torch.equal(found, found.mT)


def test_fixed_edges_have_no_entry_and_parts_equal_the_whole(rng, monkeypatch):
    fixed = torch.eye(4, dtype=torch.bool)
    model = LatentGraphModel(
        BernoulliGraph(torch.full((4, 4), 0.5), fixed=fixed), HopPredictor.random(2, 2, generator=rng), EnergyScore()
    )
    inputs = torch.randn(5, 4, 2, generator=rng)
    contexts = draw_contexts(model.graph, 6, generator=rng)
    whole = toys.edge_effects(model, inputs, generator=rng, contexts=contexts)
    assert (whole.diagonal() == 0).all()
    assert (whole[~fixed] > 0).all()
    monkeypatch.setattr("tacit.assessment.identification.effects.TOGETHER", 3)  # node by node
    monkeypatch.setattr("tacit.assessment.identification.effects.NUMBERS_AT_ONCE", 1)  # and edge by edge
    assert torch.allclose(toys.edge_effects(model, inputs, generator=rng, contexts=contexts), whole, atol=1e-6)


def test_an_edge_that_changes_sigma_alone_has_an_effect(rng):
    class Louder(torch.nn.Module):
        numbers_per_target = 2

        def forward(self, inputs, graphs):
            sigmas = 1 + graphs.sum(-1, keepdim=True).expand(len(inputs), -1, -1, -1)
            raw = torch.log(torch.expm1(sigmas - 1e-3)) - raw_sigma(0.5)  # what becomes these sigmas
            return torch.cat([torch.zeros_like(sigmas), raw], -1)

    graph = BernoulliGraph(torch.full((2, 2), 0.5))
    model = LatentGraphModel(graph, Louder(), EnergyScore(), observation=HeadGaussianNoise())
    targets = torch.tensor([-2.0, 2.0]).view(2, 1, 1).expand(2, 2, 1)
    effects = toys.edge_effects(model, torch.zeros(2, 2, 1), targets, generator=rng)
    assert torch.allclose(effects, torch.full((2, 2), 0.5))  # one more sigma, targets of deviation 2


def test_noise_counts_in_the_spread(rng):
    filter_ = GraphFilter(3, window=1, num_features=1, residual=False)
    filter_.edge_weights.data.fill_(1.0)
    contexts, inputs = torch.zeros(1, 3, 3), torch.ones(4, 3, 1)
    for noise in (GaussianNoise(3), InputGaussianNoise(3, 1)):
        model = LatentGraphModel(BernoulliGraph(torch.full((3, 3), 0.5)), filter_, EnergyScore(), observation=noise)
        effects = toys.edge_effects(model, inputs, generator=rng, contexts=contexts)
        assert torch.allclose(effects, torch.full((3, 3), 2.0), atol=1e-4)  # a change of 1 against a sigma of 0.5


def test_contexts_show_edges_that_theta_hides(rng):
    """Node 0 reads node 2 only by way of node 1, and theta says that it never reads node 1."""

    class Chain(torch.nn.Module):
        def forward(self, inputs, graphs):
            gate = (graphs[..., 0, 1] * graphs[..., 1, 2])[..., None, None]
            return (gate * inputs[:, None, 2:]).expand(-1, -1, 3, -1)

    probs = torch.full((3, 3), 0.5)
    probs[0, 1] = 1e-6
    model = LatentGraphModel(BernoulliGraph(probs), Chain(), EnergyScore())
    inputs, targets = torch.randn(20, 3, 1, generator=rng), torch.randn(20, 3, 1, generator=rng)
    assert toys.edge_effects(model, inputs, targets, generator=rng)[1, 2] > 0.1
    at_theta = draw_contexts(model.graph, 32, generator=rng, pulled=False)
    assert toys.edge_effects(model, inputs, targets, generator=rng, contexts=at_theta)[1, 2] == 0


def test_pulled_contexts_leave_fixed_edges_alone_and_are_symmetric(rng):
    probs = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    graph = BernoulliGraph(probs, fixed=torch.eye(3, dtype=torch.bool), symmetric=True)
    graphs = draw_contexts(graph, 64, generator=rng)
    assert torch.equal(graphs, graphs.mT)
    assert (graphs.diagonal(dim1=1, dim2=2) == 1).all()
    assert graphs[:32].sum() == 3 * 32
    assert 0.1 < graphs[32:, 0, 1].mean() < 0.4  # a quarter, in the mean over weights


def test_bad_input_is_named(rng, unchecked, refused):
    model = LatentGraphModel(
        BernoulliGraph(torch.full((3, 3), 0.5)), ConvolutionStack.random([1, 1], generator=rng), EnergyScore()
    )
    refused(toys.edge_effects, model, torch.zeros(5, 4, 1), generator=rng)
    refused(toys.edge_effects, model, torch.zeros(0, 3, 1), generator=rng)
    refused(toys.edge_effects, model, torch.zeros(5, 3, 1), torch.zeros(5, 2, 1), generator=rng)

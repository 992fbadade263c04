"""The regime of each observation, against Bayes' rule with every graph enumerated."""

import math
from importlib import import_module

import pytest
import torch

import oracles
from tacit.assessment.regimes import regime_posterior
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, CandidateEdges, MixtureGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel
from toys import LinearHop

SIGMA = 0.4
EVERYTHING = oracles.all_graphs(torch.ones(2, 2, dtype=torch.bool))
# Probabilities of Monte Carlo sums over 4,000 graphs: errors of .02 at most, in any seed.
GRAPHS, CLOSE = 4000, 0.03


def model_of(blocks, *, noise=True, table=False, predictor=None):
    rng = torch.Generator().manual_seed(0)
    probs, candidates = torch.full((2, 2), 0.5), None
    if table:
        candidates = CandidateEdges.from_mask(torch.ones(2, 2, dtype=torch.bool))
    graph = MixtureGraph(BernoulliGraph(probs, candidates=candidates), 2, blocks)
    with torch.no_grad():
        for value in graph.parameters():
            value.copy_(1.5 * torch.randn(value.shape, generator=rng))
    predictor = LinearHop(torch.ones(1, 1, 1)) if predictor is None else predictor
    observation = GaussianNoise(num_nodes=2, initial_sigma=SIGMA) if noise else None
    model = LatentGraphModel(graph, predictor, EnergyScore(), observation=observation, num_graphs=4)
    inputs = torch.randn(6, 2, 1, generator=rng)
    return model, Pairs(inputs, torch.randn(6, 2, 1, generator=rng))


def by_enumeration(model, pairs):
    """(pair, block, regime): prior times density, summed over every graph of each regime."""
    graph = model.graph
    probs, weights = graph.regime_probs.detach(), graph.regime_weights.detach()
    outputs = model.predictor(pairs.inputs, EVERYTHING[None].float()).detach()[..., 0]  # (pair, graph, node)
    density = torch.exp(-0.5 * ((pairs.targets[:, None, :, 0] - outputs) / SIGMA) ** 2)
    blocks = [[0], [1]] if graph.blocks == "rows" else [[0, 1]]
    found = torch.zeros(len(pairs), len(blocks), 2)
    for block, nodes in enumerate(blocks):
        for k in range(2):
            coins = torch.where(EVERYTHING > 0, probs[k], 1 - probs[k]).prod(-1).prod(-1).float()
            product = torch.stack([density[..., i] @ coins for i in nodes]).prod(0)
            found[:, block, k] = weights[block, k] * product
    return found / found.sum(-1, keepdim=True)


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("blocks", ["rows", "all"])
def test_it_is_bayes_rule(blocks, table):
    model, pairs = model_of(blocks, table=table)
    exact = by_enumeration(model, pairs)
    found = regime_posterior(model, pairs, generator=torch.Generator().manual_seed(0), num_graphs=GRAPHS)
    assert found.shape == exact.shape
    assert float(exact.std(0).max()) > 0.1, "the check would be empty"
    assert torch.allclose(found, exact, atol=CLOSE)


def test_a_node_whose_output_depends_on_other_rows():
    """Two hops, regimes of the rows: those of other rows are at their own weights."""
    predictor = HopPredictor(torch.tensor([[[1.0]], [[0.7]]]))
    model, pairs = model_of("rows", predictor=predictor)
    graph = model.graph
    probs, weights = graph.regime_probs.detach(), graph.regime_weights.detach()
    outputs = predictor(pairs.inputs, EVERYTHING[None].float()).detach()[..., 0]
    density = torch.exp(-0.5 * ((pairs.targets[:, None, :, 0] - outputs) / SIGMA) ** 2)
    exact = torch.zeros(len(pairs), 2, 2)
    for i in range(2):
        for k in range(2):
            of_regime = torch.where(EVERYTHING[:, None] > 0, probs, 1 - probs).prod(-1).float()  # (graph, regime, row)
            rows = torch.einsum("gkr,rk->gr", of_regime, weights)
            own = of_regime[:, k, i] * rows[:, 1 - i]
            exact[:, i, k] = weights[i, k] * (density[..., i] @ own)
    exact = exact / exact.sum(-1, keepdim=True)
    found = regime_posterior(model, pairs, generator=torch.Generator().manual_seed(0), num_graphs=GRAPHS)
    assert torch.allclose(found, exact, atol=CLOSE)


def test_a_regime_that_is_never_drawn():
    """Two hops: a regime of weight 1e-4 has graphs of its own. Node 1 reads nothing, in the rare regime both nodes."""
    predictor = HopPredictor(torch.tensor([[[1.0]], [[1.0]]]))
    model, _ = model_of("rows", predictor=predictor)
    with torch.no_grad():
        model.graph.edge_logits.copy_(torch.tensor([-20.0, 20.0]).view(2, 1, 1).expand(2, 2, 2))
        model.graph.weight_logits.copy_(torch.tensor([0.9999, 0.0001]).log().expand(2, 2))
    inputs, reads = torch.ones(2, 2, 1), torch.tensor([[1.0, 1.0], [0.0, 0.0]])
    nothing, both = (predictor(inputs, graph[None, None])[0, 0, 0].detach() for graph in (0 * reads, reads))
    targets = torch.stack([nothing, both])[:, None].expand(2, 2, 1).clone()
    observed = torch.ones_like(targets)
    observed[:, 1] = targets[:, 1] = 0.0
    pairs = Pairs(inputs, targets, observed)
    found = regime_posterior(model, pairs, generator=torch.Generator().manual_seed(0), num_graphs=20)
    factor = math.exp(-0.5 * float((both - nothing) / SIGMA) ** 2)
    assert factor < 0.1, "the check would be empty"
    odds = 1e-4 / 0.9999
    assert (found[:, 0, 1] / found[:, 0, 0]).tolist() == pytest.approx([odds * factor, odds / factor], rel=1e-3)
    assert found[:, 1, 1].tolist() == pytest.approx([1e-4, 1e-4], rel=1e-3), "without a target, its weight"


@pytest.mark.parametrize("blocks", ["rows", "all"])
def test_missing_targets_count_nothing(blocks):
    model, pairs = model_of(blocks)
    observed = torch.ones_like(pairs.targets)
    observed[0], observed[1, 1] = 0.0, 0.0
    targets = torch.where(observed > 0, pairs.targets, 0.0)
    found = regime_posterior(
        model, Pairs(pairs.inputs, targets, observed), generator=torch.Generator().manual_seed(0), num_graphs=GRAPHS
    )
    weights = model.graph.regime_weights.detach()
    assert torch.allclose(found[0], weights, atol=1e-5), "without a target the weights are all that is known"
    if blocks == "rows":
        assert torch.allclose(found[1, 1], weights[1], atol=1e-5)
        assert torch.allclose(found[1, 0], by_enumeration(model, pairs)[1, 0], atol=CLOSE)


def test_without_noise_a_kernel_decides():
    """Regime 1 reads both nodes, regime 2 none: targets show which."""
    model, _ = model_of("all", noise=False)
    with torch.no_grad():
        model.graph.edge_logits.copy_(torch.tensor([4.0, -4.0]).view(2, 1, 1).expand(2, 2, 2))
        model.graph.weight_logits.zero_()
    inputs = torch.ones(4, 2, 1)
    targets = torch.tensor([2.0, 0.0, 2.0, 0.0]).view(4, 1, 1).expand(4, 2, 1)
    found = regime_posterior(model, Pairs(inputs, targets), generator=torch.Generator().manual_seed(0))
    assert found[:, 0, 0].round().tolist() == [1.0, 0.0, 1.0, 0.0]
    assert found.isfinite().all()
    odd = Pairs(inputs, torch.full((4, 2, 1), 50.0))
    undecided = regime_posterior(model, odd, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(undecided, torch.full((4, 1, 2), 0.5), atol=0.05)


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_a_pair_alone_has_the_same_answer(size):
    """Without noise: the width of the kernel depends on the pair and the model alone, and grows with the targets."""
    model, pairs = model_of("all", noise=False)
    targets = torch.linspace(0.1, 2, 6)[:, None, None] * pairs.targets
    together, alone = (
        regime_posterior(model, some, generator=torch.Generator().manual_seed(0))
        for some in (Pairs(pairs.inputs, targets), Pairs(pairs.inputs[:1], targets[:1]))
    )
    assert torch.allclose(together[:1], alone, atol=1e-6)
    larger = Pairs(size * pairs.inputs, size * targets)
    found = regime_posterior(model, larger, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(found, together, atol=1e-4)


def test_pairs_in_chunks_have_the_same_answer(monkeypatch):
    model, pairs = model_of("all")
    whole = regime_posterior(model, pairs, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(import_module("tacit.assessment.regimes.posterior"), "CHUNK_NUMBERS", 1)
    parts = regime_posterior(model, pairs, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(whole, parts, atol=1e-6)
    assert math.isclose(float(whole.sum()), 6.0, rel_tol=1e-5)


def test_a_graph_without_regimes_is_refused(refused):
    graph = BernoulliGraph(torch.full((2, 2), 0.5))
    model = LatentGraphModel(graph, LinearHop(torch.ones(1, 1, 1)), EnergyScore(), num_graphs=4)
    pairs = Pairs(torch.ones(2, 2, 1), torch.ones(2, 2, 1))
    refused(regime_posterior, model, pairs, generator=torch.Generator())

"""Regimes found by training on small systems with the truth known."""

import pytest
import torch

from tacit.assessment.regimes import regime_posterior, regimes_by_training
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, MixtureGraph
from tacit.losses import EnergyScore
from tacit.training import FitSettings, LatentGraphModel
from toys import LinearHop

SETTINGS = FitSettings(epochs=10, batch_size=40)
SWITCHED = torch.tensor([[[0.9, 0.8], [0.1, 0.0]], [[0.1, 0.2], [0.9, 0.0]]])  # one of two nodes reads at a time


def system(regime_probs, weights, num_pairs=1000, *, by_row=False, seed=0):
    r"""Two nodes, $y_i = \sum_j A_{ij} x_j$, with a regime for each pair, or for each pair and row."""
    rng = torch.Generator().manual_seed(seed)
    inputs = torch.rand(num_pairs, 2, 1, generator=rng) + torch.tensor([0.5, 1.5])[:, None]
    regime = torch.multinomial(torch.tensor(weights), 2 * num_pairs, True, generator=rng).view(num_pairs, 2)
    if not by_row:
        regime = regime[:, :1].expand(-1, 2)
    probs = regime_probs[regime, torch.arange(2)]
    graphs = (torch.rand(num_pairs, 2, 2, generator=rng) < probs).float()
    marginal = torch.einsum("k,kij->ij", torch.tensor(weights), regime_probs)
    graph = BernoulliGraph(marginal, marginal == 0)
    predictor = LinearHop(torch.ones(1, 1, 1)).requires_grad_(False)
    model = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=6)
    return model, Pairs(inputs, graphs @ inputs), regime


@pytest.mark.slow
def test_regimes_of_the_whole_graph():
    model, pairs, regime = system(SWITCHED, [0.7, 0.3])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = regimes_by_training(model, pairs[:700], pairs[700:], SETTINGS, blocks="all", compile=False)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()), "the model stays"
    assert found.num_regimes == 2
    assert [step.better for step in found.steps] == [True, False]
    assert torch.allclose(found.regime_probs.value, SWITCHED, atol=0.12)
    assert found.weights.value.flatten().tolist() == pytest.approx([0.7, 0.3], abs=0.08)
    for estimate in (found.regime_probs, found.weights, found.marginals):
        assert torch.stack(estimate[1:]).isnan().all(), "trained regimes have no errors"
    assert isinstance(found.graph, MixtureGraph)
    assert found.model.loss == model.loss
    assert torch.equal(found.graph.fixed, model.graph.fixed)
    posterior = regime_posterior(found.model, pairs, generator=torch.Generator().manual_seed(0))
    right = (posterior[:, 0].argmax(-1) == regime[:, 0]).float().mean()
    assert right > 0.85  # of the true model .9


def test_edges_of_a_row_that_come_together():
    together = torch.tensor([[[1.0, 1.0], [0.5, 0.0]], [[0.0, 0.0], [0.5, 0.0]]])
    model, pairs, regime = system(together, [0.6, 0.4], 500, by_row=True)
    found = regimes_by_training(model, pairs, pairs, SETTINGS, num_regimes=2, compile=False)
    assert found.steps == ()
    assert found.blocks == "rows"
    assert torch.allclose(found.regime_probs.value[:, 0], together[:, 0], atol=0.15)
    assert float(found.weights.value[0, 0]) == pytest.approx(float((regime[:, 0] == 0).float().mean()), abs=0.02)
    for estimate in (found.regime_probs, found.weights, found.marginals):
        assert torch.stack(estimate[1:]).isnan().all(), "trained regimes have no errors"
    assert torch.allclose(found.graph.edge_probs, model.graph.edge_probs, atol=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("blocks", ["rows", "all"])
def test_independent_edges_have_one_regime(blocks):
    model, pairs, _ = system(SWITCHED.mean(0).expand(2, 2, 2), [0.5, 0.5])
    found = regimes_by_training(model, pairs[:700], pairs[700:], SETTINGS, blocks=blocks, compile=False)
    assert found.model is None
    assert found.num_regimes == 1
    assert [step.better for step in found.steps] == [False]
    assert torch.equal(found.regime_probs.value[0], model.graph.edge_probs)
    assert found.weights.value.tolist() == [[1.0]] * (2 if blocks == "rows" else 1)


@pytest.mark.slow
@pytest.mark.parametrize("blocks", ["rows", "all"])
def test_a_poor_constant_fit_is_no_reason_for_regimes(blocks):
    """Independent edges, and a constant fit whose logits are off by .35: one regime is trained as long as two."""
    model, pairs, _ = system(SWITCHED.mean(0).expand(2, 2, 2), [0.5, 0.5], seed=4)
    with torch.no_grad():
        model.graph.raw.add_(0.35 * torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
    found = regimes_by_training(model, pairs[:700], pairs[700:], SETTINGS, blocks=blocks, compile=False)
    assert found.num_regimes == 1
    assert torch.equal(found.marginals.value, model.graph.edge_probs), "the constant fit stands"


def test_regimes_are_in_the_order_of_their_weights():
    model, pairs, _ = system(SWITCHED, [0.7, 0.3], 200)
    few = FitSettings(epochs=3, batch_size=40)
    found = regimes_by_training(model, pairs, pairs, few, num_regimes=2, blocks="all", compile=False)
    weights = found.weights.value[0]
    assert float(weights[0]) > float(weights[1])
    assert torch.allclose(found.graph.regime_weights, found.weights.value)
    assert torch.allclose(found.graph.regime_probs, found.regime_probs.value, atol=1e-5)


def test_one_regime_asked_for():
    model, pairs, _ = system(SWITCHED, [0.7, 0.3])
    found = regimes_by_training(model, pairs, pairs, SETTINGS, num_regimes=1, compile=False)
    assert found.model is None
    assert torch.stack(found.regime_probs[1:]).isnan().all()


@pytest.mark.usefixtures("unchecked")
def test_refusals(refused):
    model, pairs, _ = system(SWITCHED, [0.7, 0.3], 40)
    mixed = LatentGraphModel(MixtureGraph(model.graph), model.predictor, model.loss, num_graphs=6)
    refused(regimes_by_training, mixed, pairs, pairs, SETTINGS)
    refused(regimes_by_training, model, pairs, pairs, SETTINGS, num_regimes=0)
    refused(regimes_by_training, model, pairs, pairs, SETTINGS, num_regimes=2, blocks="nodes", compile=False)

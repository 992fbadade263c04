"""Weights of regimes from their posterior, on rows whose regime is visible in the targets."""

from importlib import import_module

import pytest
import torch

from tacit.assessment.regimes.sharpening import with_posterior_weights
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, MixtureGraph
from tacit.losses import EnergyScore
from tacit.training import LatentGraphModel
from toys import LinearHop

CERTAIN = 12.0  # logit of an edge that always acts in a regime


def switched_rows(shares, weights, num_pairs=400):
    r"""Two nodes, $y_i = \sum_j A_{ij} x_j$: row $i$ has all edges in a share of the pairs, otherwise none."""
    rng = torch.Generator().manual_seed(0)
    inputs = torch.rand(num_pairs, 2, 1, generator=rng) + 1
    acting = torch.arange(num_pairs)[:, None] < num_pairs * torch.tensor(shares)
    graph = MixtureGraph(BernoulliGraph(torch.full((2, 2), 0.5)), 2)
    with torch.no_grad():
        graph.edge_logits.copy_(torch.tensor([CERTAIN, -CERTAIN])[:, None, None].expand(2, 2, 2))
        graph.weight_logits.copy_(torch.tensor(weights).log())
    predictor = LinearHop(torch.ones(1, 1, 1)).requires_grad_(False)
    model = LatentGraphModel(graph, predictor, EnergyScore(scope="node"), num_graphs=8)
    return model, Pairs(inputs, acting[..., None] * inputs.sum(1, keepdim=True))


def test_weights_become_the_shares_of_visible_regimes():
    model, pairs = switched_rows([0.75, 0.4], [[0.7, 0.3], [0.5, 0.5]])
    found = with_posterior_weights(model, pairs, pairs, 0, most_errors=2)
    expected = torch.tensor([[0.75, 0.25], [0.4, 0.6]])
    assert torch.allclose(found.graph.regime_weights, expected, atol=5e-3)
    assert torch.equal(found.graph.edge_logits, model.graph.edge_logits)
    assert model.graph.regime_weights[0, 0].item() == pytest.approx(0.7), "the model itself is not changed"


def test_missing_targets_leave_the_weight_of_their_regime():
    model, pairs = switched_rows([0.75, 0.4], [[0.7, 0.3], [0.5, 0.5]])
    observed = torch.ones_like(pairs.targets)
    observed[:200, 0] = 0
    missing = Pairs(pairs.inputs, pairs.targets, observed)
    found = with_posterior_weights(model, missing, missing, 0, most_errors=2)
    expected = torch.tensor([(200 * 0.7 + 100) / 400, 0.4])  # of pairs 200 to 399, node 0 acts in 100
    assert torch.allclose(found.graph.regime_weights[:, 0], expected, atol=5e-3)


def test_a_higher_validation_loss_keeps_the_trained_weights():
    model, train = switched_rows([0.1, 0.1], [[0.9, 0.1], [0.9, 0.1]])
    _, validation = switched_rows([0.9, 0.9], [[0.9, 0.1], [0.9, 0.1]])
    found = with_posterior_weights(model, train, validation, 0, most_errors=2)
    assert torch.equal(found.graph.weight_logits, model.graph.weight_logits)


def test_data_that_take_too_long_keep_the_trained_weights(monkeypatch):
    monkeypatch.setattr(import_module("tacit.assessment.regimes.sharpening"), "MOST_OUTPUTS", 32 * 400 * 2 * 2 - 1)
    model, pairs = switched_rows([0.75, 0.4], [[0.7, 0.3], [0.5, 0.5]])
    found = with_posterior_weights(model, pairs, pairs, 0, most_errors=2)
    assert torch.equal(found.graph.weight_logits, model.graph.weight_logits)

"""Probabilities near 0 and 1 are rounded unless the validation pairs contradict it."""

import copy
from importlib import import_module

import pytest
import torch

from tacit.assessment.regimes.at_boundary import RISE, put_at_boundary
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, MixtureGraph
from tacit.losses import EnergyScore
from tacit.training import LatentGraphModel
from toys import LinearHop

AT_BOUNDARY = import_module("tacit.assessment.regimes.at_boundary")
REGIMES = torch.tensor([[[0.98, 0.03], [0.5, 0.96]], [[0.02, 0.97], [0.5, 0.04]]])
ROUNDED = torch.tensor([[[1.0, 0.0], [0.5, 1.0]], [[0.0, 1.0], [0.5, 0.0]]])


def model_of(regime_probs):
    graph = MixtureGraph(BernoulliGraph(torch.full((2, 2), 0.5)), 2, "rows")
    with torch.no_grad():
        graph.edge_logits.copy_(torch.logit(regime_probs))
    predictor = LinearHop(torch.ones(1, 1, 1)).requires_grad_(False)
    return LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=6)


def pairs_of(model, num_pairs):
    """Return pairs drawn from a model: two nodes, y the sum of the x that a node reads."""
    rng = torch.Generator().manual_seed(0)
    inputs = torch.rand(num_pairs, 2, 1, generator=rng) + torch.tensor([0.5, 1.5])[:, None]
    graphs = model.graph.sample(1, num_pairs=num_pairs, generator=rng)[:, 0].detach()
    return Pairs(inputs, graphs @ inputs)


def test_probabilities_near_the_boundary_are_put_there():
    model = model_of(REGIMES)
    found = put_at_boundary(copy.deepcopy(model), pairs_of(model_of(ROUNDED.clamp(1e-6, 1 - 1e-6)), 500))
    assert torch.allclose(found.graph.regime_probs, ROUNDED, atol=1e-5)


@pytest.mark.parametrize(("rise", "rounded"), [(0.9 * RISE, True), (1.1 * RISE, False)])
def test_a_rise_within_its_error_is_permitted(monkeypatch, rise, rounded):
    monkeypatch.setattr(AT_BOUNDARY, "loss_difference", lambda *_: (rise, 1.0))
    model = model_of(REGIMES)
    found = put_at_boundary(copy.deepcopy(model), pairs_of(model, 10))
    assert torch.allclose(found.graph.regime_probs, ROUNDED if rounded else REGIMES, atol=1e-5)


def test_nothing_near_the_boundary_leaves_the_model():
    model = model_of(torch.full((2, 2, 2), 0.5))
    before = copy.deepcopy(model.state_dict())
    put_at_boundary(model, pairs_of(model, 10))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())

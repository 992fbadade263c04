"""The regressions of all nodes: the same data for both objectives, and parameters that keep the mean effects."""

from dataclasses import replace

import pytest
import torch

from gates import OFTEN, filter_model, gate_pairs
from tacit.data import Pairs
from tacit.local import LocalModel, fit_gated

PRESENT = OFTEN > 0


@pytest.fixture(scope="module")
def data():
    pairs = gate_pairs(120)
    observed = torch.ones_like(pairs.targets)
    observed[::5, 0] = 0
    return LocalModel.of(filter_model(PRESENT), Pairs(pairs.inputs, pairs.targets, observed))


def test_both_objectives_have_the_same_data(data):
    for node in range(3):
        likelihood, moments, known = data.node(node), data.moments(node), data.weights[:, node] > 0
        assert len(likelihood.targets) == int(known.sum()) == (96 if node == 0 else 120)
        for name in ("own", "targets", "offset", "weights", "design"):
            assert torch.equal(getattr(likelihood, name), getattr(moments, name)[known]), name
        assert likelihood.own.shape[1] + len(data.sources(node)) * 1 == likelihood.design.shape[1]
        assert data.num_moments(node) == moments.design.shape[1] + moments.spread.shape[1] + len(data.sources(node))


def test_nodes_of_one_chunk_fit_into_memory(data, monkeypatch):
    assert data.chunks() == [[0, 1, 2]]
    from tacit.local import model

    monkeypatch.setattr(model, "MOST_NUMBERS", 1)
    assert data.chunks() == [[0], [1], [2]]


def test_parameters_keep_mean_effects_and_nodes_that_are_not_fitted(data):
    nodes = [data.node(node) for node in range(3)]
    fits = fit_gated(nodes, [one.start() for one in nodes])
    probs, fitted = torch.where(PRESENT, 0.5, 0.0), torch.tensor([True, True, False])
    found, before = data.parameters(fits, probs, fitted), data.model.state_dict()
    weights = found["predictor.edge_weights"][..., 0, 0]
    for node in (0, 1):
        sources = data.sources(node)
        assert torch.allclose(weights[node, sources], fits[node].edges[:, 0].to(weights) / 0.5)
        assert not torch.equal(found["observation.log_sigma"][node], before["observation.log_sigma"][node])
    for name, value in found.items():
        assert torch.equal(value[2], before[name][2]), name
    assert torch.allclose(torch.sigmoid(found["graph.edge_logits"][:2])[PRESENT[:2]], torch.tensor(0.5).to(weights))


def test_a_model_with_another_graph_keeps_its_own(data):
    before = {name: value.clone() for name, value in data.model.state_dict().items()}
    fits = [replace(data.start(node), own=torch.ones(2).double()) for node in range(3)]
    parameters = data.parameters(fits, data.model.graph.edge_probs.detach(), torch.ones(3, dtype=torch.bool))
    new = data.with_graph(filter_model(PRESENT).graph, parameters)
    assert (new.predictor.own == 1).all()
    assert new.graph is not data.model.graph
    assert all(torch.equal(value, before[name]) for name, value in data.model.state_dict().items())

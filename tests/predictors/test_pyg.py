import warnings

import pytest
import torch
from torch import nn

from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import PyGPredictor, initial_parameters, num_hops_of
from tacit.training import FitSettings, LatentGraphModel, fit

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own deprecations
    from torch_geometric.nn import GCN, GATConv, GCNConv, GINConv, GraphConv, SAGEConv

MODULES = {
    "GCNConv": lambda: GCNConv(4, 2),
    "GINConv": lambda: GINConv(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))),
    "GATConv": lambda: GATConv(4, 2, heads=1),
    "SAGEConv": lambda: SAGEConv(4, 2),
    "GraphConv": lambda: GraphConv(4, 2),
    "GCN": lambda: GCN(4, 8, 2, 2),
}


def build(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return MODULES[name]()


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_equals_the_module_on_each_graph_by_itself(rng, name, shared):
    module = build(name).double()
    predictor = PyGPredictor(module, window=2, num_features=2, out_channels=2).double()
    predictor.load_state_dict(initial_parameters(predictor, rng), strict=False)
    inputs = torch.randn(3, 5, 4, generator=rng).double()
    graphs = (torch.rand(1 if shared else 3, 4, 5, 5, generator=rng) < 0.4).double()
    graphs[0, 0] = 0  # a graph without any edge
    samples = predictor(inputs, graphs)
    for b in range(3):
        for s in range(4):
            target, source = graphs[0 if shared else b, s].nonzero().T  # row receives, column sends
            alone = module(inputs[b], torch.stack([source, target]))
            expected = alone + inputs[b] @ predictor.own + predictor.bias + inputs[b, :, 2:]
            assert torch.allclose(samples[b, s], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["GCNConv", "GATConv", "GCN"])
def test_a_small_fit_runs_in_turn_and_eagerly_and_says_so(rng, name):
    predictor = PyGPredictor(build(name), window=2, num_features=2, out_channels=2)
    assert num_hops_of(predictor) is None
    graph = BernoulliGraph.uniform(3, generator=rng, low=0.2, high=0.8)
    model = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4)
    pairs = Pairs(torch.randn(60, 3, 4, generator=rng), torch.randn(60, 3, 2, generator=rng)).split()
    result = fit(model, pairs.train, pairs.validation, FitSettings(epochs=3, batch_size=12), seeds=(0, 1))
    assert len(result.warnings) == 1
    assert "eagerly" in result.warnings[0]
    first, last = result.history[0].train_loss, result.history[-1].train_loss
    assert all(later < earlier for earlier, later in zip(first, last, strict=True))


def test_replicas_are_looped_where_lifting_was_asked_for(rng):
    model = LatentGraphModel(
        BernoulliGraph.uniform(3, generator=rng, low=0.2, high=0.8),
        PyGPredictor(build("GCNConv"), window=2, num_features=2, out_channels=2),
        EnergyScore(),
        observation=GaussianNoise(3, 2),
        num_graphs=4,
    )
    pairs = Pairs(torch.randn(60, 3, 4, generator=rng), torch.randn(60, 3, 2, generator=rng)).split()
    settings = FitSettings(epochs=1, batch_size=12)
    result = fit(model, pairs.train, pairs.validation, settings, seeds=(0, 1), lift="vmap", compile=False)
    assert "does not support vmap" in result.warnings[0]


def test_errors(rng, unchecked, refused):
    inputs, graphs = torch.zeros(2, 5, 4), torch.ones(1, 3, 5, 5)
    refused(PyGPredictor(build("GCNConv"), window=2, num_features=2), inputs, graphs)

    class Two(nn.Module):
        def forward(self, x, edge_index):
            return x, edge_index

    refused(PyGPredictor(Two(), window=2, num_features=2), inputs, graphs)
    with torch.random.fork_rng():
        cached = nn.Sequential(GCNConv(4, 2, cached=True))
    refused(PyGPredictor, cached, window=2, num_features=2, out_channels=2)
    refused(PyGPredictor, "gcn", window=2, num_features=2)

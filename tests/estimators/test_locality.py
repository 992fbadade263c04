import pytest
import torch
from torch import nn

from tacit.estimators import check_locality
from tacit.estimators.flips import flip_edges
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import GraphFilter, HopPredictor
from tacit.training import LatentGraphModel
from toys import even_graph


class SymmetricGCN(nn.Module):
    """Two layers with D^-1/2 A D^-1/2: a sender's degree counts who else it sends to, so it is not local."""

    num_hops = 2

    def forward(self, inputs, graphs):
        degree_in, degree_out = graphs.sum(-1, keepdim=True) + 1, graphs.sum(-2, keepdim=True) + 1
        normalised = graphs / (degree_in * degree_out).sqrt()
        hidden = torch.tanh(normalised @ inputs.sum(-1, keepdim=True)[:, None])
        return normalised @ hidden


def test_hop_predictor_is_local(rng):
    predictor = HopPredictor.random(3, 4, generator=rng)
    check_locality(predictor, even_graph(12), 4, 3, generator=rng)


@pytest.mark.parametrize("weight", [0.0, 1e-12])
def test_a_filter_that_starts_at_weights_of_zero_is_local(rng, weight):
    """The likelihood of data with many exact zeros can have its maximum where no edge changes the output."""
    predictor = GraphFilter(num_nodes=4, window=2, num_features=1)
    edge_weights = torch.zeros_like(predictor.edge_weights)
    edge_weights[0, 1] = weight
    warm = predictor.with_weights(torch.zeros_like(predictor.own), edge_weights, jitter=0.01)
    model = LatentGraphModel(BernoulliGraph.uniform(4, generator=rng), warm, EnergyScore(scope="node"))
    model.check(torch.randn(4, 4, 2, generator=rng), torch.zeros(4, 4, 1))
    assert flip_edges(warm, even_graph(4), 2, generator=rng).changed.any()


def test_fewer_hops_than_true_are_found_out(rng, refused):
    predictor = HopPredictor.random(3, 4, generator=rng)
    refused(check_locality, predictor, even_graph(12), 4, 2, generator=rng)


@pytest.mark.parametrize("nodes", [3, 12, 40])
def test_symmetric_normalisation_is_refused(rng, nodes, refused):
    model = LatentGraphModel(BernoulliGraph.uniform(nodes, generator=rng), SymmetricGCN(), EnergyScore(scope="node"))
    refused(model.check, torch.randn(4, nodes, 4, generator=rng), torch.zeros(4, nodes, 1))


def test_data_of_zeros_does_not_empty_the_check(rng, refused):
    model = LatentGraphModel(BernoulliGraph.uniform(12, generator=rng), SymmetricGCN(), EnergyScore(scope="node"))
    refused(model.check, torch.zeros(4, 12, 4), torch.zeros(4, 12, 1))


class Deaf(nn.Module):
    num_hops = 1

    def forward(self, inputs, graphs):
        return inputs[:, None, :, :1].expand(-1, graphs.shape[1], -1, -1)


def test_a_predictor_that_no_edge_changes_is_refused(rng, refused):
    refused(check_locality, Deaf(), even_graph(6), 4, 1, generator=rng)


def test_symmetric_normalisation_is_fine_with_global_credit(rng):
    model = LatentGraphModel(
        BernoulliGraph.uniform(5, generator=rng), SymmetricGCN(), EnergyScore(scope="node"), credit="global"
    )
    model.check(torch.randn(4, 5, 4, generator=rng), torch.zeros(4, 5, 1))


def test_credit_needs_node_scope_and_declared_hops(rng, unchecked, refused):
    graph = BernoulliGraph.uniform(3, generator=rng)
    refused(
        LatentGraphModel,
        graph,
        HopPredictor.random(2, 1, generator=rng),
        EnergyScore(scope="joint"),
        credit="receptive_field",
    )
    refused(LatentGraphModel, graph, nn.Identity(), EnergyScore(scope="node"), credit="receptive_field")
    refused(LatentGraphModel, graph, nn.Identity(), EnergyScore(scope="node"), credit="local")

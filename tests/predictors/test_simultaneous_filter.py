"""Effects within a step: means and mixing of every graph against the equations, solved node by node."""

import itertools

import torch

from tacit.graph import BernoulliGraph, CandidateEdges
from tacit.observation import SimultaneousNoise
from tacit.predictors import GraphFilter, SimultaneousFilter
from tacit.predictors.simultaneous import sources_first

ALLOWED = torch.tensor([[0, 1, 0], [0, 0, 0], [1, 1, 0]])  # 1 -> 0, 0 -> 2, 1 -> 2: node 1 first


def made(seed=0, window=2):
    rng = torch.Generator().manual_seed(seed)
    predictor = SimultaneousFilter(3, window, 1).double()
    predictor.allow_within(ALLOWED)
    for parameter in predictor.parameters():
        parameter.data = torch.randn(parameter.shape, generator=rng, dtype=torch.double)
    inputs = torch.randn(4, 3, window, generator=rng, dtype=torch.double)
    return predictor, inputs


def all_graphs(nodes=3):
    places = [(i, j) for i in range(nodes) for j in range(nodes) if i != j]
    graphs = torch.zeros(2 ** len(places), nodes, nodes, dtype=torch.double)
    for graph, gates in zip(graphs, itertools.product((0.0, 1.0), repeat=len(places)), strict=True):
        for place, gate in zip(places, gates, strict=True):
            graph[place] = gate
    return graphs


def by_hand(predictor, inputs, graph, noise):
    """Return y of one pair under one graph and noise, one node after another."""
    drift = plain(predictor)(inputs[None], graph[None, None])[0, 0, :, 0]
    y = torch.zeros(3, dtype=torch.double)
    for node in (1, 0, 2):
        y[node] = drift[node] + noise[node]
        for source in range(3):
            if ALLOWED[node, source]:
                y[node] += graph[node, source] * predictor.within[node, source] * y[source]
    return y


def plain(predictor):
    twin = GraphFilter(3, predictor.layout.window, 1).double()
    twin.load_state_dict({name: value for name, value in predictor.state_dict().items() if "within" not in name})
    return twin


@torch.no_grad()
def test_mean_and_covariance_over_all_graphs_are_exact():
    predictor, inputs = made()
    noise = SimultaneousNoise(3).double()
    noise.log_sigma.data = torch.tensor([[0.1], [-0.5], [0.3]], dtype=torch.double)
    sigmas, graphs = noise.log_sigma.exp()[:, 0] + 1e-3, all_graphs()
    probs = torch.rand(3, 3, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    off = ~torch.eye(3, dtype=torch.bool)
    weights = torch.where(graphs > 0, probs, 1 - probs)[:, off].prod(1)
    described = noise.describe(predictor(inputs, graphs[None]), inputs)
    for pair, x in enumerate(inputs):
        mean, second = torch.zeros(3, dtype=torch.double), torch.zeros(3, 3, dtype=torch.double)
        for graph, weight in zip(graphs, weights, strict=True):
            centre = by_hand(predictor, x, graph, torch.zeros(3))
            effects = [by_hand(predictor, x, graph, unit) - centre for unit in torch.eye(3).double()]
            loads = torch.stack(effects, 1) * sigmas
            mean += weight * centre
            second += weight * (centre.outer(centre) + loads @ loads.mT)
        found = noise.mean(described)[pair, :, :, 0]
        loadings = described[pair, :, :, 1:]
        total = torch.einsum("s,si,sj->ij", weights, found, found)
        total += torch.einsum("s,sik,sjk->ij", weights, loadings, loadings)
        torch.testing.assert_close(weights @ found, mean, atol=1e-10, rtol=0)
        torch.testing.assert_close(total, second, atol=1e-10, rtol=0)
        variances = weights @ noise.variance(described)[pair, :, :, 0]
        alone = torch.einsum("s,sik->i", weights, loadings.square())
        torch.testing.assert_close(variances, alone, atol=1e-10, rtol=0)


@torch.no_grad()
def test_without_allowed_edges_it_is_the_filter():
    predictor, inputs = made()
    predictor.allow_within(torch.zeros(3, 3))
    graphs = all_graphs()[None]
    means, mixing = predictor(inputs, graphs).tensor_split([1], -1)
    assert torch.equal(means, plain(predictor)(inputs, graphs))
    assert torch.equal(mixing, torch.eye(3).double().expand_as(mixing))


@torch.no_grad()
def test_graphs_of_their_own_and_shared_ones_give_the_same():
    predictor, inputs = made()
    graphs = all_graphs()[:5]
    shared = predictor(inputs, graphs[None])
    own = predictor(inputs, graphs.expand(4, -1, -1, -1))
    torch.testing.assert_close(shared, own, atol=1e-12, rtol=0)


def test_a_cycle_is_refused_and_a_table_too(refused):
    refused(sources_first, torch.tensor([[0, 1, 0], [0, 0, 1], [1, 0, 0]]))
    predictor = SimultaneousFilter(3, 2, 1)
    refused(predictor.allow_within, torch.zeros(2, 2))
    table = CandidateEdges.from_edges(torch.tensor([1]), torch.tensor([0]), num_nodes=3)
    graph = BernoulliGraph(torch.full((3, 1), 0.5), candidates=table)
    graphs = graph.as_operator(graph.sample(2, generator=torch.Generator().manual_seed(0)))
    refused(predictor, torch.zeros(1, 3, 2), graphs)


def test_a_pair_counts_where_the_sources_within_the_step_are_known():
    predictor, _ = made()
    observed = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])[..., None]
    assert predictor.complete(observed)[..., 0].tolist() == [[1, 1, 1], [0, 0, 0], [0, 1, 0]]


def test_weights_of_one_more_lag_are_those_within_the_step():
    predictor, _ = made()
    weights = torch.arange(27.0).view(3, 3, 3, 1).double()
    warm = predictor.with_weights(predictor.own, weights)
    assert torch.equal(warm.edge_weights, weights[:, :, :2])
    assert torch.equal(warm.within, weights[:, :, 2, 0] * ALLOWED)
    assert warm.initial_parameters(torch.Generator())["within"].equal(warm.within)
    assert torch.equal(SimultaneousFilter(3, 2, 1).initial_parameters(torch.Generator())["within"], torch.zeros(3, 3))

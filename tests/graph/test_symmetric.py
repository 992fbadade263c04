"""Graphs whose edges have no direction: the two entries of a pair are one coin."""

import math

import pytest
import torch
from torch.distributions import Bernoulli, kl_divergence

import oracles
from tacit.graph import BernoulliGraph, EdgePrior, Sigmoid, SineSquared

LINKS = [Sigmoid(), SineSquared()]


def symmetric_probs(nodes, rng):
    probs = torch.rand(nodes, nodes, generator=rng, dtype=torch.float64)
    return (probs + probs.mT) / 2


@pytest.mark.parametrize("link", LINKS)
def test_probabilities_of_all_symmetric_graphs_add_up_to_one(rng, link):
    probs = symmetric_probs(3, rng)
    coins = oracles.all_graphs(torch.ones(3, 3, dtype=torch.bool).triu())  # 64 of them
    graph = BernoulliGraph(probs, link=link, symmetric=True)
    log_prob = graph.log_prob(torch.maximum(coins, coins.mT)[None])[0]
    expected = torch.where(coins > 0, probs, 1 - probs)
    expected[:, *torch.ones(3, 3).tril(-1).nonzero().T] = 1.0
    assert torch.allclose(log_prob.exp(), expected.prod(-1).prod(-1), atol=1e-14)
    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_a_graph_with_an_edge_in_one_direction_alone_is_impossible():
    graph = BernoulliGraph(torch.full((2, 2), 0.5), symmetric=True)
    for one_way in ([[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]):
        assert graph.log_prob(torch.tensor(one_way)[None, None]).item() == -math.inf


@pytest.mark.parametrize("link", LINKS)
def test_samples_are_symmetric_with_the_right_frequencies(rng, link):
    """36 coins at five standard errors: a false alarm once in 48,000 seeds; this seed is fixed."""
    probs, count = symmetric_probs(8, rng).float(), 20_000
    graphs = BernoulliGraph(probs, link=link, symmetric=True).sample(count, generator=rng)
    assert torch.equal(graphs, graphs.mT)
    frequency = graphs.mean((0, 1))
    assert ((frequency - probs).abs() < 5 * (probs * (1 - probs) / count).sqrt()).all()


@pytest.mark.parametrize("link", LINKS)
def test_only_what_is_stored_above_the_diagonal_counts(rng, link):
    graph = BernoulliGraph(symmetric_probs(4, rng), link=link, symmetric=True)
    before = graph.edge_probs.detach().clone()
    with torch.no_grad():
        graph.raw.add_(torch.rand(4, 4, generator=rng, dtype=torch.float64).tril(-1))
    assert torch.equal(graph.edge_probs.detach(), before)
    assert torch.allclose(graph.log_probs()[0].exp(), before, atol=1e-14)
    assert torch.allclose(graph.log_probs()[1].exp(), 1 - before, atol=1e-14)
    stack = torch.stack([graph.raw.detach(), graph.raw.detach() + 0.1])
    shown = graph.probs_from(stack)  # (replica, node, node)
    assert torch.equal(shown[0], before)
    assert torch.equal(shown, shown.mT)
    assert torch.allclose(shown[1].triu(), link.probs(stack[1]).triu(), atol=1e-14)


def test_score_is_the_derivative_of_log_prob(rng):
    fixed = torch.zeros(3, 3, dtype=torch.bool)
    fixed[0, 1] = fixed[1, 0] = True
    graph = BernoulliGraph(symmetric_probs(3, rng), fixed, symmetric=True)
    graphs = graph.sample(1, generator=rng)
    graph.log_prob(graphs).sum().backward()
    assert torch.allclose(graph.edge_logits.grad, graph.score(graphs)[0, 0], atol=1e-14)
    assert (graph.edge_logits.grad.triu() != 0).sum() == 5  # six coins, one of them held


@pytest.mark.parametrize("link", LINKS)
def test_weighted_log_prob_counts_every_coin_once(rng, link):
    probs = symmetric_probs(4, rng)
    probs[0, 1] = probs[1, 0] = 0.0
    probs[2, 3] = probs[3, 2] = 1.0
    graph = BernoulliGraph(probs, link=link, symmetric=True)
    graphs = graph.sample(5, num_pairs=3, generator=rng)
    weights = torch.randn(3, 5, 4, 4, generator=rng, dtype=torch.float64)
    total = sum(
        weights[b, s, i, j] * (probs[i, j] if graphs[b, s, i, j] else 1 - probs[i, j]).log()
        for b in range(3)
        for s in range(5)
        for i in range(4)
        for j in range(i, 4)
    )
    ours = graph.weighted_log_prob(weights, graphs)
    assert ours.item() == pytest.approx(float(total) / 15, abs=1e-12)
    assert torch.isfinite(torch.autograd.grad(ours, graph.raw)[0]).all()
    by_row = graph.weighted_log_prob(weights[..., :1], graphs)
    assert by_row.item() == pytest.approx((weights[..., 0] * graph.row_log_prob(graphs)).sum(-1).mean().item())


@pytest.mark.parametrize("constant", [True, False])
def test_a_prior_counts_every_coin_once(rng, constant):
    probs, prior = symmetric_probs(4, rng), symmetric_probs(4, rng)
    prior = torch.tensor(0.2, dtype=torch.float64) if constant else prior
    fixed = torch.zeros(4, 4, dtype=torch.bool)
    fixed[0, 2] = fixed[2, 0] = True
    graph, edge_prior = BernoulliGraph(probs, fixed, symmetric=True), EdgePrior(prior, weight=0.7)
    edge_prior.check(graph)
    divergence = kl_divergence(Bernoulli(probs), Bernoulli(prior.expand(4, 4)))
    expected = 0.7 * sum(divergence[i, j] for i in range(4) for j in range(i, 4) if (i, j) != (0, 2))
    assert edge_prior.penalty(graph).item() == pytest.approx(float(expected), abs=1e-12)


def test_fresh_replicas_start_symmetric(rng):
    graph = BernoulliGraph.uniform(12, generator=rng, symmetric=True)
    assert 0 < graph.edge_probs.min() < graph.edge_probs.max() < 0.1
    fresh = graph.initial_parameters(rng)["edge_logits"]
    assert torch.equal(fresh, fresh.mT)
    assert not torch.equal(torch.sigmoid(fresh), graph.edge_probs)


def test_what_differs_from_its_mirror_image_is_refused(unchecked, refused):
    refused(BernoulliGraph, torch.tensor([[0.0, 0.5], [0.25, 0.0]]), symmetric=True)
    fixed = torch.tensor([[False, True], [False, False]])
    refused(BernoulliGraph, torch.full((2, 2), 0.5), fixed, symmetric=True)
    prior = EdgePrior(torch.tensor([[0.5, 0.5], [0.25, 0.5]]))
    refused(prior.check, BernoulliGraph(torch.full((2, 2), 0.5), symmetric=True))

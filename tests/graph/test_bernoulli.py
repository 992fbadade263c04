import itertools
import math

import pytest
import torch

import oracles
from tacit.graph import BernoulliGraph, boolean_powers, reachability, walks_within


def test_probabilities_of_all_graphs_add_up_to_one(rng):
    probs = torch.rand(3, 3, generator=rng, dtype=torch.float64)
    graphs = oracles.all_graphs(torch.ones(3, 3, dtype=torch.bool))
    log_prob = BernoulliGraph(probs).log_prob(graphs[None])[0]
    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert torch.allclose(log_prob.exp(), oracles.graph_probs(graphs, probs), atol=1e-14)


def test_score_is_the_derivative_of_log_prob(rng):
    fixed = torch.zeros(3, 3, dtype=torch.bool)
    fixed[0, 1] = True
    graph = BernoulliGraph(torch.rand(3, 3, generator=rng, dtype=torch.float64), fixed)
    graphs = graph.sample(1, generator=rng)
    graph.log_prob(graphs).sum().backward()
    assert torch.allclose(graph.edge_logits.grad, graph.score(graphs)[0, 0], atol=1e-14)
    assert graph.edge_logits.grad[0, 1] == 0


@pytest.mark.parametrize("as_fixed", [True, False])
def test_exact_and_finite_at_zero_and_one(rng, as_fixed):
    probs = torch.tensor([[0.0, 1.0], [0.3, 0.0]])
    graph = BernoulliGraph(probs, torch.full((2, 2), as_fixed) & (probs != 0.3))
    graphs = graph.sample(200, generator=rng)
    assert (graphs[..., 0, 0] == 0).all()
    assert (graphs[..., 0, 1] == 1).all()
    log_prob = graph.log_prob(graphs)
    assert log_prob.unique().exp().tolist() == pytest.approx([0.3, 0.7])
    log_prob.sum().backward()
    assert torch.isfinite(graph.edge_logits.grad).all()
    assert torch.isfinite(graph.score(graphs)).all()
    assert (graph.edge_logits.grad[0] == 0).all()
    assert torch.equal(graph.edge_probs.detach(), probs)
    impossible = graphs[:, :1].clone()
    impossible[..., 0, 0] = 1
    assert graph.log_prob(impossible).item() == -math.inf


def test_sampled_frequencies_match_within_five_standard_errors(rng):
    """144 entries at five standard errors: a false alarm once in 12,000 seeds; this seed is fixed."""
    probs = torch.rand(12, 12, generator=rng)
    count = 20_000
    frequency = BernoulliGraph(probs).sample(count, generator=rng).mean((0, 1))
    assert ((frequency - probs).abs() < 5 * (probs * (1 - probs) / count).sqrt()).all()


def test_same_generator_same_graphs():
    graph = BernoulliGraph(torch.full((4, 4), 0.5))
    first, second = (graph.sample(8, num_pairs=2, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert first.shape == (2, 8, 4, 4)
    assert torch.equal(first, second)


def test_uniform_start_and_fresh_replicas(rng):
    graph = BernoulliGraph.uniform(12, generator=rng)
    assert 0 < graph.edge_probs.min() < graph.edge_probs.max() < 0.1
    fresh = torch.sigmoid(graph.initial_parameters(rng)["edge_logits"])
    assert 0 < fresh.min() < fresh.max() < 0.1
    assert not torch.equal(fresh, graph.edge_probs)
    given = BernoulliGraph(torch.full((2, 2), 0.3))
    assert torch.equal(given.initial_parameters(rng)["edge_logits"], given.edge_logits)


def test_reachability_against_search(rng):
    graphs = (torch.rand(1, 30, 6, 6, generator=rng) < 0.2).float()
    for adjacency, steps in itertools.product(graphs[0], range(4)):
        walk = {i: {i} for i in range(6)}
        exact, seen, ever = dict(walk), dict(walk), {i: set() for i in range(6)}
        for _ in range(steps):
            exact = {i: {k for j in exact[i] for k in range(6) if adjacency[j, k]} for i in range(6)}
            seen = {i: seen[i] | exact[i] for i in range(6)}
            ever = {i: ever[i] | exact[i] for i in range(6)}
        as_matrix = lambda sets: torch.tensor([[float(j in sets[i]) for j in range(6)] for i in range(6)])  # noqa: E731
        assert torch.equal(reachability(adjacency[None, None], steps)[0, 0], as_matrix(seen))
        if steps:
            assert torch.equal(list(boolean_powers(adjacency[None, None], steps))[-1][0, 0], as_matrix(exact))
            assert torch.equal(walks_within(adjacency[None, None], steps)[0, 0], as_matrix(ever))


def test_errors(unchecked, refused):
    refused(BernoulliGraph, torch.tensor([[0.0, 1.5], [0.0, 0.0]]))
    refused(BernoulliGraph, torch.tensor([[0.0, 0.5], [torch.nan, 0.0]]))
    refused(BernoulliGraph.uniform, 3, low=0.5, high=0.2, generator=torch.Generator())
    refused(BernoulliGraph.uniform, 0, generator=torch.Generator())
    refused(BernoulliGraph(torch.zeros(2, 2)).sample, 0, generator=torch.Generator())

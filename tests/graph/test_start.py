import pytest
import torch

from tacit.graph import BernoulliGraph, Sigmoid, SineSquared

START = torch.tensor([[0.0, 0.5, 0.03], [0.5, 0.0, 0.03], [0.2, 0.03, 0.0]])


def starts(graph, count):
    """Where replicas of the first seeds begin, (replica, node, node)."""
    fresh = [graph.initial_parameters(torch.Generator().manual_seed(s))[graph.link.parameter] for s in range(count)]
    return graph.probs_from(torch.stack(fresh))


def test_without_spread_every_replica_starts_at_the_given_probabilities():
    graph = BernoulliGraph(torch.full((3, 3), 0.1), initial_range=(0.05, 0.15))
    graph.start_around(START)
    assert torch.allclose(graph.edge_probs, START)
    assert torch.allclose(starts(graph, 4), START.expand(4, 3, 3))


@pytest.mark.parametrize("link", [Sigmoid(), SineSquared()])
def test_with_spread_logits_are_moved_by_normals_of_that_deviation(link):
    """Over 4,000 replicas; bounds at 5 standard errors: 5 s / sqrt(n) for means, 5 s / sqrt(2 n) for deviations."""
    graph = BernoulliGraph(torch.full((3, 3), 0.1), link=link)
    graph.start_around(START, spread=0.4)
    moved = torch.logit(starts(graph, 4000).double()) - torch.logit(START.double())
    away = ~torch.eye(3, dtype=torch.bool)
    count, moved = 4000 * 6, moved[:, away]
    assert moved.mean().abs() < 5 * 0.4 / count**0.5
    assert (moved.std() - 0.4).abs() < 5 * 0.4 / (2 * count) ** 0.5
    assert (starts(graph, 4)[:, ~away] == 0).all()  # an edge at 0 stays there


def test_held_entries_stay_and_a_symmetric_graph_takes_the_higher_of_two():
    held = torch.eye(3, dtype=torch.bool)
    graph = BernoulliGraph(torch.full((3, 3), 0.1).fill_diagonal_(0.9), held, symmetric=True)
    graph.start_around(START, spread=1.0)
    assert torch.allclose(graph.edge_probs.diagonal(), torch.tensor(0.9))
    assert graph.edge_probs[0, 2].item() == pytest.approx(0.2)
    assert torch.equal(graph.edge_probs, graph.edge_probs.mT)
    several = starts(graph, 5)
    assert torch.equal(several, several.mT)
    assert (several[:, held] == 0.9).all()
    assert several[:, 0, 2].unique().numel() == 5


def test_errors(unchecked, refused):
    graph = BernoulliGraph(torch.full((3, 3), 0.1))
    refused(graph.start_around, torch.full((2, 2), 0.1))
    refused(graph.start_around, START, spread=-1.0)
    refused(graph.start_around, 2 * torch.ones(3, 3))

"""Sampled graphs without cycles have the probabilities that enumeration gives."""

import itertools

import numpy as np
import pytest

from tacit.assessment.evidence.within_step import GraphSampler, ParentScores


def tables_of(nodes: int, size: float, seed: int = 0) -> ParentScores:
    """Return random scores of all parent sets."""
    rng = np.random.default_rng(seed)
    candidates = [np.array([other for other in range(nodes) if other != node]) for node in range(nodes)]
    return ParentScores(candidates, [size * rng.normal(size=2 ** (nodes - 1)) for _ in range(nodes)])


def has_cycle(graph: np.ndarray) -> bool:
    """Return whether a path leads back to where it starts."""
    return any(np.trace(np.linalg.matrix_power(graph.astype(int), length)) > 0 for length in range(1, len(graph) + 1))


def enumerated(tables: ParentScores) -> tuple[np.ndarray, int]:
    """Return the probability of each edge by going through all graphs, and how many have no cycle."""
    nodes = len(tables.scores)
    total, mass, count = np.zeros((nodes, nodes)), 0.0, 0
    for chosen in itertools.product(*(range(len(scores)) for scores in tables.scores)):
        state = np.array([chosen])
        graph = tables.graphs(state)[0]
        if has_cycle(graph):
            continue
        weight = float(np.exp(tables.totals(state)[0]))
        total, mass, count = total + weight * graph, mass + weight, count + 1
    return total / mass, count


@pytest.mark.parametrize(("nodes", "graphs"), [(3, 25), (4, 543)])
def test_edges_have_their_exact_probabilities(nodes: int, graphs: int) -> None:
    tables = tables_of(nodes, size=2.0)
    exact, count = enumerated(tables)
    assert count == graphs  # known numbers of acyclic graphs
    sampler = GraphSampler(tables, np.random.default_rng(1), chains=64)
    drawn = [tables.graphs(states).mean(0) for states in sampler.sweeps(150, 20)]
    np.testing.assert_allclose(np.mean(drawn, 0), exact, atol=0.02)


def test_far_graphs_are_reached_from_each_other() -> None:
    def score(node: int, members: frozenset[int]) -> float:
        """Two graphs that share no edge direction have nearly all of the probability, 12 and 11.5."""
        forward = {0: frozenset(), 1: frozenset({0}), 2: frozenset({0, 1}), 3: frozenset({1, 2})}
        backward = {3: frozenset(), 2: frozenset({3}), 1: frozenset({2, 3}), 0: frozenset({1, 2})}
        return 3.0 * (members == forward[node]) + 2.875 * (members == backward[node])

    candidates = [np.array([other for other in range(4) if other != node]) for node in range(4)]
    scores = [
        np.array([score(node, frozenset(members[[bool(s >> k & 1) for k in range(3)]].tolist())) for s in range(8)])
        for node, members in enumerate(candidates)
    ]
    tables = ParentScores(candidates, scores)
    exact, _ = enumerated(tables)
    drawn = [
        tables.graphs(states).mean(0) for states in GraphSampler(tables, np.random.default_rng(0), chains=48).sweeps()
    ]
    np.testing.assert_allclose(np.mean(drawn, 0), exact, atol=0.03)


def test_no_sampled_graph_has_a_cycle() -> None:
    tables = tables_of(5, size=4.0, seed=3)
    for states in GraphSampler(tables, np.random.default_rng(2)).sweeps(20, 0):
        assert not any(has_cycle(graph) for graph in tables.graphs(states))


def test_nodes_may_have_few_candidates_or_none() -> None:
    candidates = [np.array([1, 2]), np.array([0]), np.array([], dtype=int)]
    tables = ParentScores(candidates, [np.zeros(4), np.zeros(2), np.zeros(1)])
    assert tables.pairs() == [(0, 1), (0, 2)]
    exact, _ = enumerated(tables)
    drawn = [
        tables.graphs(states).mean(0) for states in GraphSampler(tables, np.random.default_rng(0), chains=48).sweeps()
    ]
    np.testing.assert_allclose(np.mean(drawn, 0), exact, atol=0.03)
    alone = ParentScores([np.array([], dtype=int)] * 2, [np.zeros(1)] * 2)
    states = list(GraphSampler(alone, np.random.default_rng(0)).sweeps())
    assert len(states) == 1
    assert int(states[0].sum()) == 0

"""Regimes of one fit found again in another."""

import itertools

import pytest
import torch

from tacit.assessment.regimes import match_regimes
from tacit.graph import BernoulliGraph, MixtureGraph


@pytest.mark.parametrize("blocks", ["rows", "all"])
def test_the_order_of_least_distance(blocks, rng):
    graph = MixtureGraph(BernoulliGraph(torch.full((3, 3), 0.5)), 3, blocks)
    reference, other = torch.rand(3, 3, 3, generator=rng), torch.rand(3, 3, 3, generator=rng)
    found = match_regimes(graph, reference, other).tolist()
    rows = [[0], [1], [2]] if blocks == "rows" else [[0, 1, 2]]
    for block, inside in enumerate(rows):
        best = min(
            itertools.permutations(range(3)),
            key=lambda order: sum(
                float((reference[k, inside] - other[order[k], inside]).abs().sum()) for k in range(3)
            ),
        )
        assert tuple(found[block]) == best


def test_permuted_regimes_are_matched_back(rng):
    graph = MixtureGraph(BernoulliGraph(torch.full((3, 3), 0.5)), 3)
    with torch.no_grad():
        graph.edge_logits.copy_(torch.randn(3, 3, 3, generator=rng))
        graph.weight_logits.copy_(torch.randn(3, 3, generator=rng))
    probs, weights = graph.regime_probs.detach(), graph.regime_weights.detach()
    order = torch.stack([torch.randperm(3, generator=rng) for _ in range(3)])
    graph.load_state_dict(graph.permuted(order), strict=False)
    back = match_regimes(graph, probs, graph.regime_probs.detach())
    graph.load_state_dict(graph.permuted(back), strict=False)
    assert torch.allclose(graph.regime_probs, probs)
    assert torch.allclose(graph.regime_weights, weights)

"""Blocks with too few edges for their regimes, and intervals of numbers that the data do not determine."""

import pytest
import torch

from tacit.assessment.regimes.fitted import Estimate, undetermined
from tacit.graph import BernoulliGraph, MixtureGraph


def mixture(regime_probs, blocks="rows"):
    regimes = torch.tensor(regime_probs)
    graph = MixtureGraph(BernoulliGraph(torch.full(regimes.shape[1:], 0.5)), len(regimes), blocks)
    with torch.no_grad():
        graph.edge_logits.copy_(torch.logit(regimes, eps=1e-6))
    return graph


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([0.9, 0.8, 0.7], [0.1, 0.2, 0.3], False),  # three edges are enough for two regimes
        ([0.9, 0.8, 0.0], [0.1, 0.2, 0.0], True),  # the third is never there
        ([0.9, 0.8, 1.0], [0.1, 0.2, 1.0], True),  # the third is always there
        ([1.0, 1.0, 0.0], [0.0, 0.0, 0.0], False),  # two edges that always act together
        ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], True),  # a single edge has no regimes
    ],
)
def test_two_regimes_need_three_edges(first, second, expected):
    none = [0.0] * 3
    graph = mixture([[first, none, none], [second, none, none]])
    assert undetermined(graph).tolist() == [expected, False, False]


@pytest.mark.parametrize("edges", [4, 5])
def test_three_regimes_need_five_edges(edges):
    row = [[0.2 + 0.2 * regime] * edges + [0.0] * (5 - edges) for regime in range(3)]
    graph = mixture([[one] + [[0.0] * 5] * 4 for one in row])
    assert undetermined(graph).tolist() == [edges < 5] + [False] * 4


def test_edges_of_all_rows_are_in_one_block():
    two = [[[0.9, 0.0], [0.0, 0.8]], [[0.1, 0.0], [0.0, 0.2]]]
    four = [[[0.9, 0.7], [0.9, 0.8]], [[0.1, 0.2], [0.3, 0.2]]]
    assert undetermined(mixture(two, "all")).tolist() == [True]
    assert undetermined(mixture(four, "all")).tolist() == [False]


def test_intervals_of_unknown_numbers_reach_from_0_to_1():
    values = torch.tensor([0.3, 0.4, 0.5, 0.6])
    errors = torch.tensor([0.1, 0.7, 0.1, torch.nan])
    found = Estimate(values, errors, values - 0.2, values + 0.2).bounded(torch.tensor([False, False, True, True]))
    assert found.std_error[:3].tolist() == pytest.approx([0.1, 0.5, 0.5])
    assert found.std_error[3].isnan(), "what was not computed stays empty"
    assert found.low.tolist() == pytest.approx([0.1, 0.0, 0.0, 0.4])
    assert found.high.tolist() == pytest.approx([0.5, 1.0, 1.0, 0.8])
    assert found.unknown.tolist() == [False, True, True, False]

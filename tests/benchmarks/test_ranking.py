import pytest
import torch
from benchmarks.studies.ranking import edge_ranking

TRUTH = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])  # two edges; self-loops do not count
SCORES = torch.tensor([[0.0, 0.9, 0.6], [0.2, 1.0, 0.4], [0.1, 0.3, 0.0]])


def test_by_hand():
    """Down the ranking: .9 true, .6 false, .4 true, then three false ones."""
    ranking = edge_ranking(SCORES, TRUTH)
    assert ranking["auroc"] == pytest.approx(7 / 8)  # of 2 x 4 pairs, one is the wrong way round
    assert ranking["aupr"] == pytest.approx((1 + 2 / 3) / 2)
    assert ranking["f1_top"] == pytest.approx(1 / 2)
    assert (ranking["precision"], ranking["recall"], ranking["f1"]) == pytest.approx((1 / 2, 1 / 2, 1 / 2))
    lower = edge_ranking(SCORES, TRUTH, threshold=0.35)
    assert (lower["precision"], lower["recall"], lower["f1"]) == pytest.approx((2 / 3, 1.0, 0.8))
    assert set(edge_ranking(SCORES, TRUTH, threshold=None)) == {"auroc", "aupr", "f1_top"}


def test_a_perfect_answer_and_no_answer():
    perfect = edge_ranking(TRUTH, TRUTH)
    assert set(perfect.values()) == {1.0}
    nothing = edge_ranking(torch.zeros(3, 3), TRUTH)
    assert nothing["auroc"] == 0.5
    assert nothing["f1_top"] == pytest.approx(2 / 6)  # the share of edges among all pairs
    assert nothing["f1"] == nothing["precision"] == nothing["recall"] == 0.0


def test_errors(unchecked, refused):
    refused(edge_ranking, SCORES, torch.zeros(2, 2))
    refused(edge_ranking, SCORES[:, :2], TRUTH)
    refused(edge_ranking, SCORES, TRUTH / 2)
    refused(edge_ranking, SCORES, torch.eye(3))
    refused(edge_ranking, SCORES * torch.nan, TRUTH)

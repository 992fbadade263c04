"""The evidence stage of the pipeline: rules, and one number for both directions."""

import torch

from tacit.assessment.evidence import Candidates
from tacit.graph import EdgeRules
from tacit.pipeline.evidence import _both_ways, _with_rules, placed


def test_both_directions_share_their_evidence_and_the_prior_counts_once():
    rules = EdgeRules(("a", "b", "c"), symmetric=True)
    exists = torch.tensor([[0.0, 0.6, 0.1], [0.3, 0.0, 0.1], [0.1, 0.02, 0.0]], dtype=torch.float64)
    index = rules.index("matrix")
    found = _both_ways(exists.flatten(), 0.1, rules, index).view(3, 3)
    odds = (0.6 / 0.4) * (0.3 / 0.7) / (0.1 / 0.9)  # evidence of a direction: posterior odds over prior odds
    torch.testing.assert_close(found[0, 1].item(), odds / (1 + odds), rtol=0, atol=1e-10)
    torch.testing.assert_close(found, found.mT, rtol=0, atol=1e-12)
    assert abs(found[0, 2].item() - 0.1) < 1e-10  # no evidence in either direction leaves the prior
    assert found.diagonal().tolist() == [0.0] * 3


def test_numbers_of_candidates_become_a_matrix_and_required_edges_exist():
    rules = EdgeRules(("a", "b", "c"), forbidden={("a", "b")}, required={("c", "a")}, self_loops=True)
    candidates = Candidates.from_rules(rules)
    values = torch.tensor([[0.2, 0.0], [0.3, 0.0], [0.4, 0.5]], dtype=torch.float64)
    index = rules.index("matrix")
    matrix = _with_rules(placed(values, candidates, index), rules, index).view(3, 3)
    assert bool(matrix.diagonal().isnan().all())  # no regression judges a self-loop
    assert matrix.nan_to_num(-1).tolist() == [[-1, 0.2, 1.0], [0.0, -1, 0.3], [0.4, 0.5, -1]]

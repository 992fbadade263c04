"""Padding, required parents, rules, missing targets."""

import numpy as np
import pytest
import torch

from parent_sets import left_over, one_step, var_series
from tacit.assessment.evidence import Candidates, ColumnForm, likely_parents
from tacit.assessment.evidence.candidates import build_columns
from tacit.data import Pairs
from tacit.graph import EdgeRules

NODES = tuple("abcde")
WEIGHTS = 0.4 * np.eye(5) + 0.5 * np.eye(5, k=-1)  # each node reads the one before it


@pytest.fixture(scope="module")
def series():
    return one_step(var_series(0, WEIGHTS, 200))


def probs(pairs, layout, rules):
    return likely_parents(pairs, layout, Candidates.from_rules(rules), ColumnForm(), 0.1)[0]


def test_rules_become_candidates():
    rules = EdgeRules(NODES[:3], forbidden={("a", "b")}, required={("c", "a")}, priors={("b", "a"): 0.9})
    found = Candidates.from_rules(rules)
    assert [row[used].tolist() for row, used in zip(found.sources, found.used, strict=True)] == [[1], [2], [0, 1]]
    assert [one.tolist() for one in found.required] == [[2], [], []]
    assert float(found.prior[0, 0]) == pytest.approx(np.log(9), abs=1e-6)
    assert bool(found.prior[1:].isnan().all())


def test_padding_is_never_a_parent_and_changes_nothing(series):
    pairs, layout = series
    full = probs(pairs, layout, EdgeRules(NODES))
    found = Candidates.from_rules(EdgeRules(NODES, forbidden={("b", "a"), ("c", "a")}))
    some = likely_parents(pairs, layout, found, ColumnForm(), 0.1)[0]
    assert found.used[0].tolist() == [True, True, False, False]
    assert some[0, 2:].tolist() == [0.0, 0.0]
    torch.testing.assert_close(some[1:], full[1:], rtol=0, atol=1e-10)


def test_required_parents_are_in_every_regression(series):
    pairs, layout = series
    columns = build_columns(pairs, layout, ColumnForm())
    candidates = Candidates.from_rules(EdgeRules(NODES, required={("a", "b")}))
    matrix = candidates.matrices(columns, torch.ones(1, len(pairs)).double())[0, 1].numpy()
    x, y = columns.sources[:, :, 0].numpy(), columns.targets[:, 1, 0].numpy()
    design = np.stack([np.ones(len(y)), x[:, 1], x[:, 0]], 1)  # intercept, own past, the required one
    assert matrix[-1, -1] == pytest.approx(left_over(design, y), rel=1e-10)
    assert candidates.sources[1][candidates.used[1]].tolist() == [2, 3, 4]


def test_unknown_targets_count_as_rows_left_out(series):
    pairs, layout = series
    gone = torch.arange(len(pairs)) % 3 == 0
    observed = torch.ones_like(pairs.targets)
    observed[gone] = 0
    masked = build_columns(Pairs(pairs.inputs, pairs.targets, observed), layout, ColumnForm())
    candidates, every = Candidates.from_rules(EdgeRules(NODES)), torch.ones(len(pairs)).double()
    left_out = build_columns(pairs, layout, ColumnForm())
    assert candidates.num_rows(masked, every).tolist() == [float((~gone).sum())] * 5
    found, slow = (candidates.matrices(*of)[0] for of in ((masked, every[None]), (left_out, (~gone)[None].double())))
    width = candidates.width
    torch.testing.assert_close(found[:, :width, :width], slow[:, :width, :width], rtol=0, atol=1e-9)
    shares = [one[:, :width, width].square() / one[:, width, width, None] for one in (found, slow)]
    torch.testing.assert_close(*shares, rtol=0, atol=1e-9)  # targets are scaled by the rows that count


def test_likely_parents_finds_the_chain(series):
    found = probs(*series, EdgeRules(NODES))
    candidates = Candidates.from_rules(EdgeRules(NODES))
    true = candidates.sources == (torch.arange(5) - 1)[:, None]
    assert float(found[true].min()) > 0.95
    assert float(found[~true].mean()) < 0.1


def test_screening_keeps_the_candidates_that_explain_most(series):
    pairs, layout = series
    columns = build_columns(pairs, layout, ColumnForm())
    screened = Candidates.from_rules(EdgeRules(NODES)).screened(columns, 1)
    assert screened.sources[1:, 0].tolist() == [0, 1, 2, 3]


def test_single_gains_equal_least_squares(series):
    pairs, layout = series
    columns = build_columns(pairs, layout, ColumnForm())
    gains = Candidates.from_rules(EdgeRules(NODES)).single_gains(columns)
    x, y = columns.sources[:, :, 0].numpy(), columns.targets[:, 2, 0].numpy()
    always = np.stack([np.ones(len(y)), x[:, 2]], 1)
    for place, source in enumerate((0, 1, 3, 4)):
        left = left_over(np.concatenate([always, x[:, [source]]], 1), y) / left_over(always, y)
        assert float(gains[2, place]) == pytest.approx(1 - left, abs=1e-6)

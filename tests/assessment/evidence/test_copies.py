"""Copies of a source: one group with one probability, against enumeration and on simulated series."""

import numpy as np
import pytest
import torch

from parent_sets import g_prior_score, left_over, one_step, subsets, var_series
from tacit.assessment.evidence import (
    SUGGESTION,
    Candidates,
    ColumnForm,
    averaging,
    batched_regressions,
    group_names,
    merged,
    parent_evidence,
)
from tacit.assessment.evidence.candidates import first_members, near_copies, similarities
from tacit.assessment.evidence.diagnostics import COPIED_NODES
from tacit.graph import EdgeRules

LAST = ColumnForm()
INLET, PUMP, TANK, OUTLET, COPY = range(5)
WEIGHTS = np.diag([0.4, 0.4, 0.4, 0.4])
WEIGHTS[TANK, INLET] = WEIGHTS[OUTLET, TANK] = 0.4


def with_copy(noise, seed=0, rows=600):
    """A series in which the last node is a copy of the first plus ``noise`` times its deviation."""
    series = var_series(seed, WEIGHTS, rows)
    inlet = series[:, INLET]
    more = noise * inlet.std() * np.random.default_rng(seed + 1).normal(size=rows)
    return np.column_stack([series, inlet + more])


def evidence(series, **options):
    pairs, layout = one_step(series)
    candidates = Candidates.from_rules(EdgeRules(tuple(map(str, range(series.shape[1])))))
    return parent_evidence(pairs, layout, candidates, form=LAST, **options)


def matrix(values, found):
    """Numbers of candidates as a matrix, rows are targets."""
    nodes = len(found.candidates.targets)
    filled = torch.zeros(nodes, nodes, dtype=values.dtype)
    return filled.scatter(1, found.candidates.sources, values)


def slow_scores(columns, own, target):
    """The log marginal likelihood of every set of columns, given the own past and an intercept."""
    always = np.column_stack([own, np.ones(len(own))])
    shares = {chosen: left_over(np.column_stack([always, columns[:, chosen]]), target) for chosen in subsets(range(4))}
    return {chosen: g_prior_score(len(own), 2, len(chosen), left / shares[()]) for chosen, left in shares.items()}


def any_of(scores, prior, group):
    """P(any member of the group in M) from {set: log marginal likelihood} and one prior log odds."""
    logs = {chosen: score + prior * len(chosen) for chosen, score in scores.items()}
    top = max(logs.values())
    weights = {chosen: np.exp(log - top) for chosen, log in logs.items()}
    return sum(one for chosen, one in weights.items() if {*chosen} & {*group}) / sum(weights.values())


@pytest.mark.parametrize("most_enumerated", [9, 2])  # all sets, or the sampler
def test_the_group_exists_with_the_probability_of_any_member(monkeypatch, most_enumerated):
    for module in (averaging, batched_regressions):
        monkeypatch.setattr(module, "MOST_ENUMERATED", most_enumerated)
    series = with_copy(0.05, rows=70)
    found = evidence(series, density=0.1, resamples=0)
    scores = slow_scores(series[:-1, [INLET, PUMP, OUTLET, COPY]], series[:-1, TANK], series[1:, TANK])
    expected = any_of(scores, np.log(0.1 / 0.9), (0, 3))
    assert 0.3 < expected < 0.95  # neither certain nor impossible
    assert matrix(found.groups, found)[TANK].tolist() == [1, 0, 0, 0, 1]
    either = matrix(found.either, found)[TANK, [INLET, COPY]]
    np.testing.assert_allclose(either, [expected] * 2, rtol=0, atol=1e-6 if most_enumerated == 9 else 0.05)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
def test_copies_are_one_group_as_certain_as_the_single_source(noise, seed):
    series = with_copy(noise, seed)
    single, found = (evidence(values) for values in (series[:, :COPY], series))
    groups, either = matrix(found.groups, found), matrix(found.either, found)
    assert float(matrix(single.probs, single)[TANK, INLET]) > 0.95
    assert groups.nonzero().tolist() == [[TANK, INLET], [TANK, COPY]]
    assert float(either[TANK, INLET]) == float(either[TANK, COPY]) > 0.95
    probs = matrix(found.probs, found)
    if not noise:
        assert float(probs[TANK, INLET]) == pytest.approx(float(probs[TANK, COPY]), abs=1e-6)
    assert float(probs[INLET, COPY]) <= found.density
    assert float(probs[COPY, INLET]) <= found.density
    assert float(probs[OUTLET, TANK]) > 0.95
    believed = torch.zeros_like(probs, dtype=torch.bool).scatter(1, found.screened.sources, found.believed)
    assert believed.nonzero().tolist() == [[TANK, INLET], [OUTLET, TANK]]
    effects = matrix(found.effects, found)
    expected = float(matrix(single.effects, single)[TANK, INLET])
    assert effects[TANK, [INLET, COPY]].tolist() == pytest.approx([expected] * 2, abs=0.01)


def test_exact_copies_have_equal_shares_among_many_candidates(monkeypatch):
    """The sampler visits them unequally often."""
    for module in (averaging, batched_regressions):
        monkeypatch.setattr(module, "MOST_ENUMERATED", 2)
    found = evidence(with_copy(0.0))
    probs = matrix(found.probs, found)[TANK]
    assert float(probs[INLET]) == pytest.approx(float(probs[COPY]), abs=1e-9)
    assert 0.4 < float(probs[INLET]) < 0.6
    assert float(matrix(found.either, found)[TANK, INLET]) > 0.95


def test_copies_are_named_and_no_effect_within_the_step_is_suggested():
    found = evidence(with_copy(0.0), names=("inlet", "pump", "tank", "outlet", "copy"), correlated=SUGGESTION)
    said = " ".join(found.notes.values())
    assert "inlet or copy -> tank (the model uses inlet)" in said
    assert "Copies: inlet and copy" in said
    assert "--simultaneous" not in said
    assert "correlated" not in said


def test_without_copies_the_probabilities_are_those_without_groups():
    series = with_copy(1.0)[:, :COPY]
    grouped, plain = evidence(series), evidence(series, grouped=False)
    assert not grouped.groups.any()
    assert grouped.either.isnan().all()
    assert torch.equal(grouped.probs, plain.probs)
    assert torch.equal(grouped.effects, plain.effects)
    assert grouped.notes == plain.notes


def test_correlated_sources_are_not_copies():
    series = with_copy(0.0)
    noise = np.random.default_rng(5).normal(size=len(series))
    series[:, COPY] = 0.9 * series[:, INLET] + np.sqrt(1 - 0.9**2) * series[:, INLET].std() * noise
    found = evidence(series)
    assert not found.groups.any()
    assert COPIED_NODES not in found.notes
    assert float(matrix(found.probs, found)[TANK, INLET]) > 0.95


def test_a_copy_that_the_data_reject_is_no_alternative():
    """With many rows the true source is preferred to a copy with noise, and keeps its own edge."""
    found = evidence(with_copy(0.15, rows=6000))
    probs = matrix(found.probs, found)
    assert not found.groups.any()
    assert float(probs[TANK, INLET]) > 0.95
    assert float(probs[TANK, COPY]) < 0.1


def test_two_near_copies_that_both_act_are_two_edges():
    """Their small difference is a strong effect."""
    series = with_copy(0.1, rows=1500)
    rng = np.random.default_rng(3)
    series[1:, OUTLET] = 10 * (series[:-1, INLET] - series[:-1, COPY]) + rng.normal(size=len(series) - 1)
    found = evidence(series)
    probs = matrix(found.probs, found)
    assert not matrix(found.groups, found)[OUTLET].any()
    assert probs[OUTLET, [INLET, COPY]].min() > 0.95


def test_similarity_is_the_mean_squared_canonical_correlation():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(200, 2))
    second = first @ rng.normal(size=(2, 2)) + 0.1 * rng.normal(size=(200, 2))
    both = np.column_stack([first, second])
    bases = [np.linalg.qr(part)[0] for part in (first, second)]
    expected = (np.linalg.svd(bases[0].T @ bases[1])[1] ** 2).mean()
    found = similarities(torch.from_numpy(both.T @ both)[None], torch.full((1, 2), 2.0).double())
    np.testing.assert_allclose(found[0], [[1, expected], [expected, 1]], rtol=0, atol=1e-10)


def test_groups_are_of_similar_candidates_with_similar_probabilities():
    similar = torch.eye(5).double()[None].repeat(2, 1, 1)
    similar[0, :3, :3] = similar[1, 3:, 3:] = 1.0
    probs = torch.tensor([[0.5, 0.4, 0.03, 0.9, 0.9], [0.5, 0.5, 0.5, 0.3, 0.2]]).double()
    assert near_copies(similar, probs).tolist() == [[1, 1, 0, 0, 0], [0, 0, 0, 1, 1]]


def test_the_first_member_stands_for_its_group():
    groups = torch.tensor([[0, 1, 2, 1, 2], [1, 0, 0, 0, 1]])
    assert first_members(groups).tolist() == [[False, True, True, False, False], [True, False, False, False, False]]
    values = torch.tensor([[[0.1, 0.25, 0.5, 0.25, 0.75], [0.5, 0.1, 0.2, 0.3, 0.25]]], dtype=torch.float64)
    assert merged(values, groups).tolist() == [[[0.1, 0.5, 1.0, 0.0, 0.0], [0.75, 0.1, 0.2, 0.3, 0.0]]]
    assert group_names([4, 1, 2], [0, 0, 0], [1, 1, 0], "abcde") == ["b or e", "b or e", ""]

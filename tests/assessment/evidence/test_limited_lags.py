"""Evidence with ranges of lags: the columns of other lags explain nothing and cost nothing."""

import itertools

import numpy as np
import pytest
import torch

from tacit.assessment.evidence import Candidates, ColumnForm, lag_profiles, likely_parents, parent_evidence
from tacit.assessment.evidence.candidates import build_columns
from tacit.assessment.evidence.diagnostics import residuals
from tacit.assessment.evidence.forms import possible_forms
from tacit.data import Pairs
from tacit.graph import EdgeRules, LagRange
from tacit.predictors import SeriesLayout

NODES, WINDOW, ROWS = ("a", "b", "c", "d"), 3, 200
LAYOUT = SeriesLayout(WINDOW, 1)
LAGS = {("a", "b"): LagRange(2, 3), ("c", "b"): LagRange(1, 1), ("d", "b"): LagRange(3, 3)}
DENSITY = 0.2


def system(seed=0):
    """Pairs of four nodes: a -> b at lag 2 and d -> b at lag 1, which the rules do not allow."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(ROWS + WINDOW, 4))
    values[2:, 1] += 0.3 * values[:-2, 0]
    values[1:, 1] += 0.5 * values[:-1, 3]
    inputs = np.stack([values[lag : lag + ROWS] for lag in range(WINDOW)], 2)
    return Pairs(torch.tensor(inputs), torch.tensor(values[WINDOW:, :, None]))


def slow_probs(pairs, always, groups):
    """Inclusion probabilities of groups of columns by all sets, in plain numpy: a g-prior with g = n."""
    rows = len(always)

    def left(columns):
        return np.linalg.lstsq(columns, target, rcond=None)[1].item()

    target = pairs.targets[:, 1, 0].numpy()
    target = (target - target.mean()) / target.std()
    none, scores = left(always), {}
    for members in itertools.chain.from_iterable(itertools.combinations(groups, size) for size in range(4)):
        columns = [groups[name] for name in members]
        size = sum(one.shape[1] for one in columns)
        share = left(np.concatenate([always, *columns], 1)) / none
        free = rows - always.shape[1]
        score = (free - size) / 2 * np.log1p(rows) - free / 2 * np.log1p(rows * share)
        scores[members] = score + len(members) * np.log(DENSITY / (1 - DENSITY))
    weights = {members: np.exp(score - max(scores.values())) for members, score in scores.items()}
    total = sum(weights.values())
    return {name: sum(w for members, w in weights.items() if name in members) / total for name in groups}


def columns_of(pairs, node, ages):
    inputs = pairs.inputs[:, node].numpy()
    inputs = (inputs - inputs.mean(0)) / inputs.std(0)
    return inputs[:, [WINDOW - 1 - age for age in ages]]


@pytest.mark.parametrize("required", [False, True])
def test_probabilities_are_those_of_all_sets_of_the_allowed_columns(required):
    pairs = system()
    rules = EdgeRules(NODES, lags=LAGS, required={("c", "b")} if required else frozenset())
    candidates = Candidates.from_rules(rules)
    found = likely_parents(pairs, LAYOUT, candidates, ColumnForm(WINDOW), DENSITY)[0, 1]
    always = np.concatenate([columns_of(pairs, 1, range(WINDOW)), np.ones((ROWS, 1))], 1)
    groups = {0: columns_of(pairs, 0, (1, 2)), 2: columns_of(pairs, 2, (0,)), 3: columns_of(pairs, 3, (2,))}
    if required:
        always = np.concatenate([always, groups.pop(2)], 1)
    wanted = slow_probs(pairs, always, groups)
    for place, source in enumerate(candidates.sources[1][candidates.used[1]].tolist()):
        assert float(found[place]) == pytest.approx(wanted[source], abs=1e-5)
    assert int(candidates.num_always(build_columns(pairs, LAYOUT, ColumnForm(WINDOW)))[1]) == always.shape[1]


def test_more_candidates_than_are_enumerated_are_sampled_to_the_same(monkeypatch):
    pairs = system()
    candidates = Candidates.from_rules(EdgeRules(NODES, lags=LAGS))
    exact = likely_parents(pairs, LAYOUT, candidates, ColumnForm(WINDOW), DENSITY)
    for module in ("averaging", "batched_regressions"):
        monkeypatch.setattr(f"tacit.assessment.evidence.{module}.MOST_ENUMERATED", 0)
    sampled = likely_parents(pairs, LAYOUT, candidates, ColumnForm(WINDOW), DENSITY)
    torch.testing.assert_close(sampled, exact, atol=0.05, rtol=0)


def test_forms_have_each_lag_and_reach_every_range():
    pairs = system()
    limited = Candidates.from_rules(EdgeRules(NODES, lags=LAGS))
    assert possible_forms(pairs, LAYOUT, limited) == [ColumnForm(3)]
    all_edges = Candidates.from_rules(EdgeRules(NODES, lag_range=LagRange(2)))
    assert possible_forms(pairs, LAYOUT, all_edges) == [ColumnForm(2), ColumnForm(3)]


def test_inputs_of_forbidden_lags_have_no_influence_on_the_evidence():
    """Only the own past of a node reads them: the evidence of other targets stays as it is, to the last bit."""
    pairs = system()
    candidates = Candidates.from_rules(EdgeRules(NODES, lags={(j, "b"): LagRange(2, 3) for j in "acd"}))
    changed = Pairs(pairs.inputs.clone(), pairs.targets)
    changed.inputs[:, [0, 2, 3], -1] = torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(1)).double()
    first, second = (
        parent_evidence(one, LAYOUT, candidates, block=4, density=DENSITY, form=ColumnForm(WINDOW), resamples=4)
        for one in (pairs, changed)
    )
    torch.testing.assert_close(first.effects[1], second.effects[1], atol=1e-12, rtol=0)
    form, believed = ColumnForm(WINDOW), candidates.used
    probs = [likely_parents(one, LAYOUT, candidates, form, DENSITY)[0, 1] for one in (pairs, changed)]
    torch.testing.assert_close(*probs, atol=1e-12, rtol=0)
    left = [residuals(build_columns(one, LAYOUT, form), candidates, believed)[:, 1] for one in (pairs, changed)]
    torch.testing.assert_close(*left, atol=1e-12, rtol=0)


def test_a_profile_has_no_lags_that_an_edge_may_not_have():
    pairs, candidates = system(), Candidates.from_rules(EdgeRules(NODES, lags=LAGS))
    found = lag_profiles(pairs, LAYOUT, candidates, candidates.used, ColumnForm(WINDOW), block=4)
    assert found.effects[1].isnan().tolist() == [[True, False, False], [False, True, True], [True, True, False]]
    design = np.concatenate(
        [
            columns_of(pairs, 0, (1, 2)),
            columns_of(pairs, 2, (0,)),
            columns_of(pairs, 3, (2,)),
            columns_of(pairs, 1, range(WINDOW)),
            np.ones((ROWS, 1)),
        ],
        1,
    )
    target = pairs.targets[:, 1, 0].numpy()
    wanted = np.linalg.lstsq(design, (target - target.mean()) / target.std(), rcond=None)[0]
    np.testing.assert_allclose(found.effects[1][~found.effects[1].isnan()], wanted[:4], atol=1e-6)

"""Sets of parents with products against least squares on columns that are written out."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from parent_sets import g_prior_score, inclusion, left_over, one_step, subsets, var_series
from tacit.assessment.evidence import Candidates, ColumnForm, likely_parents, parent_evidence, products
from tacit.assessment.evidence.averaging import averaged
from tacit.assessment.evidence.candidates import build_columns
from tacit.assessment.evidence.forms import choose_forms
from tacit.graph import EdgeRules

NODES, ROWS, LAGS = 5, 150, 2
FORM = ColumnForm(lags=LAGS, products=True)
CANDIDATES = Candidates.from_rules(EdgeRules(tuple("abcde")))


def interacting(seed=0, rows=ROWS, strength=0.6):
    """Node c reads the product of a and b, which do not help it alone."""
    rng = np.random.default_rng(seed)
    series = rng.normal(size=(rows + LAGS, NODES))
    for now in range(1, len(series)):
        series[now] += 0.3 * series[now - 1]
        series[now, 2] += strength * series[now - 1, 0] * series[now - 1, 1]
    return one_step(series, window=LAGS)


@pytest.mark.parametrize(("width", "rows"), [(5, 300), (9, 400), (12, 300)])
def test_the_best_of_all_sets_is_found_without_trying_all(width, rows):
    """Interactions of two, three and four candidates; padding is in no set."""
    rng = np.random.default_rng(width)
    series = rng.normal(size=(rows + 1, width + 1))
    for now in range(1, len(series)):
        last = series[now - 1]
        series[now, 0] += 0.9 * last[3] * last[4]
        series[now, 1] += 0.9 * last[3] * last[4] + 0.5 * last[5]
        series[now, 2] += 0.7 * last[3] * last[4] + 0.5 * last[5] * last[0]
    names = tuple(f"v{node}" for node in range(width + 1))
    some = Candidates.from_rules(EdgeRules(names))
    some = replace(some, used=some.used & (torch.arange(width) != 2) | (torch.arange(width + 1) != 4)[:, None])
    columns = build_columns(*one_step(series), ColumnForm(products=True))
    matrices = products.product_matrices(columns, some, torch.ones(1, rows, dtype=torch.float64))[0]
    per_column = torch.full((width + 1,), np.log(rows) / 2, dtype=torch.float64)

    def fit(left):
        return -rows / 2 * left.log().sum(-1)

    members, left, sizes = products.set_residuals(matrices, width)
    values = fit(left) - per_column[:, None] * sizes - 2.2 * members.double().sum(1)
    values = values.masked_fill((~some.used).double() @ members.double().mT > 0, -torch.inf)
    found = products.best_of_sets(matrices, some.used, fit, per_column, 2.2)
    torch.testing.assert_close(found, values.amax(1), rtol=1e-12, atol=1e-9)
    assert members[values.argmax(1)].sum(1).tolist()[:3] == [2, 3, 4]


def slow_residuals(pairs, target, members):
    """What least squares leaves of a target, and of how many columns beside those always in."""
    inputs = pairs.inputs.numpy()
    scaled = (inputs - inputs.mean(0)) / inputs.std(0)
    newest, y = scaled[:, :, -1], pairs.targets[:, target, 0].numpy()
    y = (y - y.mean()) / y.std()
    own = newest[:, target]
    always = [np.ones(len(y)), *scaled[:, target].T, own**2]
    extra = [newest[:, j] for j in members] + [newest[:, j] * own for j in members]
    extra += [newest[:, j] * newest[:, k] for j, k in itertools.combinations_with_replacement(members, 2)]
    return left_over(np.stack(always + extra, 1), y), len(extra), len(always)


@pytest.fixture(scope="module")
def scored():
    pairs, layout = interacting()
    columns = build_columns(pairs, layout, FORM)
    matrices = products.product_matrices(columns, CANDIDATES, torch.ones(1, len(pairs)).double())[0]
    return pairs, columns, matrices


def test_every_set_is_scored_as_by_least_squares(scored):
    pairs, columns, matrices = scored
    rows = torch.full((NODES,), float(len(pairs)), dtype=torch.float64)
    sets, scores = products.set_scores(matrices, 4, rows, columns.num_always.to(rows))
    assert len(sets) == 2**4
    prior = torch.full((NODES, 4), -2.0, dtype=torch.float64)
    for target in range(NODES):
        others = [node for node in range(NODES) if node != target]
        empty, _, always = slow_residuals(pairs, target, ())
        slow = {}
        for chosen in subsets(range(4)):
            left, count, _ = slow_residuals(pairs, target, [others[place] for place in chosen])
            slow[chosen] = g_prior_score(len(pairs), always, count, left / empty)
        fast = {tuple(one.nonzero()[:, 0].tolist()): float(s) for one, s in zip(sets, scores[target], strict=True)}
        assert fast == pytest.approx(slow, abs=1e-4)  # the matrix has 1e-8 of each column added
        found = averaged(sets, scores, prior)[target]
        np.testing.assert_allclose(found, inclusion(fast, [-2.0] * 4, 4), rtol=0, atol=1e-10)
        np.testing.assert_allclose(found, inclusion(slow, [-2.0] * 4, 4), rtol=0, atol=1e-4)


def test_columns_of_sets_are_counted_and_differ():
    for size in range(5):
        for chosen in itertools.combinations(range(6), size):
            found = products.set_columns(6, chosen)
            assert len(found) == len(set(found)) == 2 * size + size * (size + 1) // 2


def test_sets_that_are_too_large_for_the_rows_have_no_chance(scored):
    _, columns, matrices = scored
    rows = torch.full((NODES,), 40.0, dtype=torch.float64)
    sets, scores = products.set_scores(matrices, 4, rows, columns.num_always.to(rows))
    sizes = 2 * sets.sum(1) + sets.sum(1) * (sets.sum(1) + 1) / 2
    assert torch.equal(scores[0].isinf(), sizes > (40 - columns.num_always[0]) / 3)


def test_many_candidates_have_smaller_sets():
    assert len(products.sets_of(9)) == products.MOST_PARENTS + 1
    assert len(products.sets_of(12)) == 5
    assert sum(map(len, products.sets_of(12))) <= products.MOST_SETS


def test_parents_that_act_only_together_are_found():
    pairs, layout = interacting(rows=300)
    found = parent_evidence(pairs, layout, CANDIDATES, resamples=0, form=FORM)
    assert found.probs[2].tolist() == pytest.approx([1, 1, 0, 0], abs=0.1)
    assert float(found.probs[[0, 1, 3, 4]].max()) < 0.5
    assert 0.3 < float(found.effects[2, 0].abs()) < 1.2
    linear = parent_evidence(pairs, layout, CANDIDATES, resamples=0, form=ColumnForm())
    assert float(linear.probs[2, :2].max()) < 0.5


def test_a_strong_product_chooses_the_form():
    assert choose_forms(*interacting(strength=1.5, rows=300), CANDIDATES)[0][0].products


def test_a_linear_system_and_a_weak_product_keep_their_form():
    weights = 0.3 * np.eye(NODES) + 0.4 * np.eye(NODES, k=-1)
    assert choose_forms(*one_step(var_series(0, weights, 300), window=LAGS), CANDIDATES)[0][0] == ColumnForm()
    assert not choose_forms(*interacting(strength=0.05), CANDIDATES)[0][0].products


def test_padding_is_no_parent_and_changes_nothing():
    pairs, layout = interacting()
    full = likely_parents(pairs, layout, CANDIDATES, FORM, 0.1)[0]
    fewer = Candidates.from_rules(EdgeRules(tuple("abcde"), forbidden={("b", "a"), ("c", "a")}))
    some = likely_parents(pairs, layout, fewer, FORM, 0.1)[0]
    assert some[0, 2:].tolist() == [0.0, 0.0]
    torch.testing.assert_close(some[1:], full[1:], rtol=0, atol=1e-10)


def test_screening_sees_products():
    rng = np.random.default_rng(0)
    series = rng.normal(size=(200, 16))
    series[1:, 0] += series[:-1, 14] * series[:-1, 15]
    pairs, layout = one_step(series)
    candidates = Candidates.from_rules(EdgeRules(tuple(map(str, range(16)))))
    found = products.screened(build_columns(pairs, layout, ColumnForm(products=True)), candidates)
    assert found.width == products.MOST_CANDIDATES
    assert {14, 15} <= set(found.sources[0].tolist())


def test_gains_of_products_are_squared_correlations(scored):
    _, columns, _ = scored
    gains = products.product_gains(columns, CANDIDATES)
    v, y = columns.sources[:, :, 0].numpy(), columns.targets[:, 2, 0].numpy()
    always = CANDIDATES.always(columns, torch.tensor([2]))[0].mT.numpy()
    left = y - always @ np.linalg.lstsq(always, y, rcond=None)[0]
    expected = max(np.corrcoef(left, v[:, 0] * v[:, k])[0, 1] ** 2 for k in range(NODES))
    assert float(gains[2, 0]) == pytest.approx(expected, rel=1e-6)

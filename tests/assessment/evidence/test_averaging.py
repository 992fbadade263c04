"""Averages over sets of parents against loops over all sets."""

import numpy as np
import pytest
import torch

from parent_sets import g_prior_score, inclusion, matrix_of, subsets
from tacit.assessment.evidence.averaging import (
    MarginalLikelihood,
    Tableau,
    enumerate_sets,
    inclusion_probs,
)

ROWS = 80


def regression(groups, size, seed=0, channels=1):
    """Correlated parents, of which the first three act, and an intercept."""
    rng = np.random.default_rng(seed)
    parents = rng.normal(size=(ROWS, groups * size)) + 0.7 * rng.normal(size=(ROWS, 1))
    target = 0.4 * parents[:, [0, size, 2 * size]].sum(1, keepdims=True) + rng.normal(size=(ROWS, channels))
    return parents, np.ones((ROWS, 1)), target


def tableau_of(parts, groups, size, chains=1):
    matrix = matrix_of(*parts, np.ones(ROWS))
    tableau = Tableau.start(matrix.repeat(chains, 1, 1), groups, size)
    rows = torch.full((chains,), float(ROWS), dtype=torch.float64)
    return tableau, MarginalLikelihood(rows, torch.ones_like(rows), tableau.residuals.clone())


def slow_scores(matrix, groups, size):
    """Score every set by solving its normal equations, which are entries of the matrix of cross products."""
    width, found = groups * size, {}
    totals = np.diag(matrix)[width:]
    for chosen in subsets(range(groups)):
        columns = [size * group + place for group in chosen for place in range(size)]
        inner, cross = matrix[np.ix_(columns, columns)], matrix[columns, width:]
        left = totals - (cross * np.linalg.solve(inner, cross)).sum(0)
        found[chosen] = sum(g_prior_score(ROWS, 1, len(columns), share) for share in left / totals)
    return found


@pytest.mark.parametrize(("size", "channels"), [(1, 1), (2, 1), (2, 2)])
def test_enumeration_equals_a_loop_over_sets(size, channels):
    groups = 5
    prior = torch.linspace(-3, 0.5, groups, dtype=torch.float64)[None]
    parts = regression(groups, size, channels=channels)
    tableau, likelihood = tableau_of(parts, groups, size)
    slow = slow_scores(tableau.matrices[0].numpy().copy(), groups, size)
    sets, scores = enumerate_sets(tableau, likelihood)
    fast = {tuple(one.nonzero()[:, 0].tolist()): float(score) for one, score in zip(sets, scores[0], strict=True)}
    assert fast == pytest.approx(slow, abs=1e-10)
    tableau, likelihood = tableau_of(parts, groups, size)
    found = inclusion_probs(tableau, likelihood, prior, torch.Generator())
    np.testing.assert_allclose(found[0], inclusion(slow, prior[0].tolist(), groups), rtol=0, atol=1e-10)


def test_likelihood_is_the_textbook_formula():
    rows, always = torch.tensor([[50.0, 90.0], [4.0, 4.0]]).double()
    likelihood = MarginalLikelihood(rows, always, torch.tensor([[2.0], [5.0]]).double())
    found = likelihood(torch.tensor([[[1.0]], [[4.0]]]).double(), torch.tensor([[3.0], [2.0]]).double())
    assert float(found[0, 0]) == pytest.approx(g_prior_score(50, 4, 3, 0.5), abs=1e-10)
    assert float(found[1, 0]) == pytest.approx(g_prior_score(90, 4, 2, 0.8), abs=1e-10)


@pytest.mark.parametrize("groups", [10, 11])
def test_sampler_agrees_with_enumeration(groups, monkeypatch):
    monkeypatch.setattr("tacit.assessment.evidence.averaging.MOST_ENUMERATED", 9)
    chains = 24
    tableau, likelihood = tableau_of(regression(groups, 1), groups, 1, chains)
    exact = inclusion(slow_scores(tableau.matrices[0].numpy().copy(), groups, 1), [-1.5] * groups, groups)
    assert max(min(one, 1 - one) for one in exact) > 0.2  # some are undecided, so that there is something to sample
    prior = torch.full((chains, groups), -1.5, dtype=torch.float64)
    found = inclusion_probs(tableau, likelihood, prior, torch.Generator().manual_seed(3), steps=80)
    errors = found.std(0) / chains**0.5
    assert bool(((found.mean(0) - torch.tensor(exact)).abs() < 4 * errors + 0.005).all())  # false alarm below 1e-3
    np.testing.assert_allclose(found.mean(0), exact, atol=0.03)


def test_same_seed_same_probabilities(monkeypatch):
    monkeypatch.setattr("tacit.assessment.evidence.averaging.MOST_ENUMERATED", 9)
    answers = []
    for _ in range(2):
        tableau, likelihood = tableau_of(regression(11, 1), 11, 1)
        prior = torch.full((1, 11), -1.5, dtype=torch.float64)
        answers.append(inclusion_probs(tableau, likelihood, prior, torch.Generator().manual_seed(5), steps=20))
    assert torch.equal(*answers)


def test_sets_with_more_columns_than_a_third_of_the_rows_are_impossible():
    tableau, likelihood = tableau_of(regression(5, 10), 5, 10)
    sets, scores = enumerate_sets(tableau, likelihood)
    assert torch.equal(scores[0].isinf(), sets.sum(1) * 10 > (ROWS - 1) / 3)

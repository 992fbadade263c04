"""Sweeps against numpy's least squares."""

import numpy as np
import pytest
import torch

from parent_sets import left_over, matrix_of
from tacit.assessment.evidence.averaging import Tableau, quadratic_forms

ROWS, GROUPS, SIZE = 60, 4, 2


@pytest.fixture
def made():
    """Parents (row, column), columns always in, two target columns, weights, and their tableau."""
    rng = np.random.default_rng(0)
    parents, always = rng.normal(size=(ROWS, GROUPS * SIZE)), rng.normal(size=(ROWS, 3))
    always[:, 0] = 1
    target = parents[:, [0, 3]] + always[:, [1, 2]] + rng.normal(size=(ROWS, 2))
    weights = rng.integers(0, 4, ROWS).astype(float)
    matrix = matrix_of(parents, always, target, weights)
    return parents, always, target, weights, Tableau.start(matrix, GROUPS, SIZE)


def expected(made, groups):
    parents, always, target, weights, _ = made
    columns = [SIZE * group + place for group in groups for place in range(SIZE)]
    design = np.concatenate([always, parents[:, columns]], 1)
    return [left_over(design, target[:, channel], weights) for channel in range(2)]


def test_residuals_follow_parents_in_and_out(made):
    tableau, members = made[4], set()
    for group in (2, 0, 3, 0, 2, 1, 3, 1):
        tableau.flip(torch.tensor([group]))
        members ^= {group}
        assert set(tableau.included[0].nonzero()[:, 0].tolist()) == members
        np.testing.assert_allclose(tableau.residuals[0], expected(made, sorted(members)), rtol=1e-6)


@pytest.mark.parametrize("members", [(), (1,), (0, 3), (0, 1, 2, 3)])
def test_changes_are_those_of_the_set_with_one_parent_more_or_less(made, members):
    tableau = made[4]
    for group in members:
        tableau.flip(torch.tensor([group]))
    for group in range(GROUPS):
        fall = np.array(expected(made, members)) - expected(made, sorted({*members} ^ {group}))
        np.testing.assert_allclose(tableau.changes()[0, group], fall, rtol=1e-5, atol=1e-6)


def test_coefficients_are_those_of_the_set_and_the_group(made):
    parents, always, target, weights, tableau = made
    members = (0, 2)
    for group in members:
        tableau.flip(torch.tensor([group]))
    for group in range(GROUPS):
        joined = sorted({*members, group})
        columns = [SIZE * one + place for one in joined for place in range(SIZE)]
        design = np.concatenate([parents[:, columns], always], 1) * np.sqrt(weights)[:, None]
        found = np.linalg.lstsq(design, target * np.sqrt(weights)[:, None], rcond=None)[0]
        first = SIZE * joined.index(group)
        np.testing.assert_allclose(tableau.coefficients()[0, group], found[first : first + SIZE], atol=1e-6)


def test_chains_of_a_batch_do_not_mix(made):
    alone = made[4]
    both = Tableau.start(alone.matrices.repeat(2, 1, 1).clone(), GROUPS, SIZE)
    both.flip(torch.tensor([1, 3]))
    alone.flip(torch.tensor([1]))
    torch.testing.assert_close(both.matrices[0], alone.matrices[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(both.residuals[1], expected(made, (3,)), rtol=1e-6)


def test_quadratic_forms_equal_solves(rng):
    root = torch.randn(2, 3, 4, 4, generator=rng, dtype=torch.float64)
    block, cross = root @ root.mT + torch.eye(4), torch.randn(2, 3, 4, 2, generator=rng, dtype=torch.float64)
    slow = (cross * torch.linalg.solve(block, cross)).sum(2)
    torch.testing.assert_close(quadratic_forms(block, cross), slow, rtol=1e-10, atol=1e-10)


def test_a_parent_that_the_own_past_explains_changes_nothing():
    rng = np.random.default_rng(1)
    always, target = rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    parts = (always[:, :1] * 2, always, target, np.ones(50))
    tableau = Tableau.start(matrix_of(*parts), 1, 1)
    assert float(tableau.changes().abs().max()) < 1e-6

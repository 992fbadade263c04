"""Errors of ratios and the test of "always", against slow versions written with loops."""

import math

import numpy as np
import pytest
import torch

from dependent_sums import slow_covariance
from gates import node_data
from tacit.local import Dependence, RatioErrors, fit_moments, ratio_errors
from tacit.local.moments import score_tests


def slow_statistics(spread, squares, weights, first, block):
    """Each term by itself, with numpy's least squares."""
    spread, squares, root = spread.numpy(), squares.numpy(), np.sqrt(weights.numpy())
    statistics = []
    for place in range(first, spread.shape[1]):
        others = np.delete(spread, place, 1) * root[:, None]

        def left(values, others=others):
            scaled = values * root
            return scaled - others @ np.linalg.lstsq(others, scaled, rcond=None)[0]

        terms = torch.from_numpy(left(squares) * left(spread[:, place]))
        statistics.append(float(terms.sum()) / math.sqrt(slow_covariance(terms, terms, block)))
    return statistics


@pytest.mark.parametrize("block", [1, 4])
def test_score_test_against_least_squares(block, rng):
    spread = torch.cat([torch.ones(50, 1), torch.randn(50, 3, generator=rng).square()], 1).double()
    squares = torch.randn(50, generator=rng).double().square() * (1 + spread[:, 2])
    weights = torch.rand(50, generator=rng).double() + 0.5
    found = score_tests(spread, squares, weights, 1, Dependence(block))
    assert found.tolist() == pytest.approx(slow_statistics(spread, squares, weights, 1, block), rel=1e-6)
    assert score_tests(spread, squares, weights, 4, Dependence(block)).shape == (0,)


def some_errors(**changed):
    numbers = {
        "ratios": [0.5, 0.1, -0.2],
        "slope": [0.01, 0.04, 0.01],
        "upper": [0.01, 0.04, 0.01],
        "both": [0.002, -0.01, 0.0],
        "scale": [0.02, 0.05, 0.5],
        "statistics": [0.0, 0.0, 0.0],
    }
    return RatioErrors(**{name: torch.tensor(values).double() for name, values in (numbers | changed).items()})


def test_an_interval_is_where_the_quadratic_passes():
    errors = some_errors()
    low, high = errors.interval(1.96)
    grid = torch.linspace(-2, 10, 200_001).double()
    for edge in range(2):
        slope, both, scale = (float(v[edge]) for v in (errors.slope, errors.both, errors.scale))
        passes = (errors.ratios[edge] - grid).square() <= 1.96**2 * (slope - 2 * grid * both + grid**2 * scale)
        inside = grid[passes]
        assert float(low[edge]) == pytest.approx(max(0.0, float(inside.min())), abs=1e-4)
        assert float(high[edge]) == pytest.approx(float(inside.max()), abs=1e-4)
    assert (float(low[2]), float(high[2])) == (0.0, math.inf)  # the scale may be 0
    wider = errors.interval(1.96, torch.tensor([2.0, 1.0, 1.0]))[1]
    assert wider[0] > high[0]
    assert wider[1] == high[1]


def test_a_slope_below_0_still_allows_always():
    errors = some_errors(ratios=[-0.5] * 3, both=[0.0] * 3, scale=[0.0] * 3, upper=[0.04, 0.01, 0.01])
    low, high = errors.interval(2.0)
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == pytest.approx([0.4, 0.2, 0.2])  # the first with the variance of the upper end


def test_errors_are_those_of_many_data_sets():
    """40 data sets of 3 edges: the mean variance over that of the estimates has a deviation of sqrt(2 / 117) = .13."""
    ratios, variances = [], []
    for seed in range(40):
        node = node_data(300, sources=3, seed=seed)
        weights = torch.ones(1, 300).double()
        found = fit_moments(node, weights, torch.ones(1, 3, dtype=torch.bool))
        ratios.append(found.ratios[0])
        variances.append(ratio_errors(node, found, weights[0], Dependence()).std_errors().square())
    spread = torch.stack(ratios).var(0).mean()
    assert float(torch.stack(variances).mean() / spread) == pytest.approx(1, abs=0.5)

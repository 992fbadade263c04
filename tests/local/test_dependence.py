"""Covariances of sums of dependent rows, against a loop over pairs of rows."""

import pytest
import torch

from dependent_sums import slow_covariance
from tacit.local import Dependence

SERIES = torch.tensor([0] * 20 + [1] * 15 + [2] * 25)
SIX = torch.arange(60) // 10


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("block", "series"), [(1, None), (5, None), (80, None), (5, SERIES), (5, SIX)])
def test_variance_of_a_sum(block, series, missing, rng):
    one, other = torch.randn(2, 60, 2, generator=rng, dtype=torch.float64)
    dependence, kept = Dependence(block, series), torch.rand(60, generator=rng) < (0.7 if missing else 2)
    one, other = (torch.where(kept[:, None], terms, 0.0) for terms in (one, other))
    found = dependence.among(kept).covariance(one[kept], other[kept])
    matrix = dependence.covariances(one, other)
    for term in range(2):
        expected = slow_covariance(one[:, term], other[:, term], block, series, whole=series is SIX)
        assert float(found[term]) == pytest.approx(expected, rel=1e-10, abs=1e-12)
        assert float(matrix[term, term]) == pytest.approx(expected, rel=1e-10, abs=1e-12)
    both = [slow_covariance(one[:, a], other[:, b], block, series, series is SIX) for a, b in ((0, 1), (1, 0))]
    assert float(matrix[0, 1]) == float(matrix[1, 0]) == pytest.approx(sum(both) / 2, rel=1e-10)


def test_degrees_are_the_independent_units_less_one():
    assert Dependence(5).degrees(60) == 11
    assert Dependence(5, SERIES).degrees(60) == 11
    assert Dependence(5, SIX).degrees(60) == 5

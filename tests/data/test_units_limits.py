"""Numbers far from those of training are refused before they overflow; a covariate that never moves is no scale."""

import numpy as np
import pytest

from tacit.data import Series, Windows
from tacit.data.scaling import ChannelUnits
from tacit.errors import InputError


def test_numbers_far_away_are_refused():
    units = ChannelUnits.of(np.array([[[1.0], [3.0]], [[2.0], [5.0]]]))
    assert np.isfinite(units.scaled(np.array([[[1e15], [np.nan]]]))[0, 0, 0])
    with pytest.raises(InputError, match=r"pair 1 must have numbers like those of the training part, .* got 1e\+300"):
        units.scaled(np.array([[[1.0], [2.0]], [[1e300], [2.0]]]))


@pytest.mark.parametrize("constant", [0.1, 1234.1, 1e9 + 0.1])
def test_a_covariate_that_is_constant_keeps_its_size(constant):
    """Its deviation is what rounding leaves: divided by that, the first change would be a million million."""
    rows = 70
    values = np.random.default_rng(0).normal(size=(rows, 2, 1))
    covariates = np.full((rows, 1), constant)
    series = Series(values, ("a", "b"), covariates=covariates, covariate_names=("still",))
    assert Windows(window=2, horizon=1).prepare(series).scaling.covariate_deviation.tolist() == [1.0]

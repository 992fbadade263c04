"""Units of pairs: a mean and a deviation per channel, out and in."""

import json

import numpy as np
import pytest

from tacit.data.scaling import ChannelUnits


@pytest.fixture
def values():
    """The first channel has gaps, the second is constant to the last bit but one."""
    rng = np.random.default_rng(0)
    values = rng.normal(5, 3, size=(20, 4, 2))
    values[::2, 1, 0], values[..., 1] = np.nan, 1e9 / 3
    return values


def test_what_is_missing_is_left_out_and_constants_keep_their_size(values):
    units = ChannelUnits.of(values)
    assert units.mean[0] == pytest.approx(np.nanmean(values[..., 0]))
    assert units.deviation[0] == pytest.approx(np.nanstd(values[..., 0]))
    assert units.deviation[1] == 1
    nothing = ChannelUnits.of(np.full((3, 2, 1), np.nan))
    assert (nothing.mean.item(), nothing.deviation.item()) == (0, 1)


def test_there_and_back(values):
    units = ChannelUnits.of(values)
    scaled = units.scaled(values)
    assert np.nanmean(scaled[..., 0]) == pytest.approx(0, abs=1e-9)
    assert np.nanstd(scaled[..., 0]) == pytest.approx(1)
    np.testing.assert_allclose(units.restored(scaled), values)
    np.testing.assert_allclose(units.restored(scaled[None, 3:5]), values[None, 3:5])
    again = ChannelUnits.from_dict(json.loads(json.dumps(units.to_dict())))
    np.testing.assert_array_equal(again.scaled(values), scaled)


def test_units_that_change_nothing(values):
    np.testing.assert_array_equal(ChannelUnits.unchanged(2).scaled(values), values)

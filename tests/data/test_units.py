"""Units of pairs: a mean and a deviation per channel, out and in."""

import json

import numpy as np
import pytest

from tacit.data import ChannelUnits, Series, Windows, read_named_pairs, read_series


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


# ---------------------------------------------------------------- numbers far from those of training are refused before


def test_numbers_far_away_are_refused(refused):
    units = ChannelUnits.of(np.array([[[1.0], [3.0]], [[2.0], [5.0]]]))
    assert np.isfinite(units.scaled(np.array([[[1e15], [np.nan]]]))[0, 0, 0])
    refused(units.scaled, np.array([[[1.0], [2.0]], [[1e300], [2.0]]]))


@pytest.mark.parametrize("constant", [0.1, 1234.1, 1e9 + 0.1])
def test_a_covariate_that_is_constant_keeps_its_size(constant):
    """Its deviation is what rounding leaves: divided by that, the first change would be a million million."""
    rows = 70
    values = np.random.default_rng(0).normal(size=(rows, 2, 1))
    covariates = np.full((rows, 1), constant)
    series = Series(values, ("a", "b"), covariates=covariates, covariate_names=("still",))
    assert Windows(window=2, horizon=1).prepare(series).scaling.covariate_deviation.tolist() == [1.0]


# ---------------------------------------------------------------- numbers that single precision cannot hold, alone or s


def write(path, a, b=lambda row: row % 7):
    path.write_text("time,a,b\n" + "".join(f"{row},{a(row)!r},{b(row)!r}\n" for row in range(30)))
    return path


@pytest.mark.parametrize("value", [1e300, -1e300, 1e16])
def test_a_cell_that_is_too_large(tmp_path, value, refused):
    path = write(tmp_path / "t.csv", lambda row: value if row == 4 else float(row % 5))
    refused(read_series, path)


@pytest.mark.parametrize("small", [1e-310, 1e-20])
def test_numbers_without_a_spread(tmp_path, small, refused):
    series = read_series(write(tmp_path / "t.csv", lambda row: row % 5 * small))
    refused(Windows(2).prepare, series)


def test_a_constant_but_for_rounding(tmp_path, refused):
    series = read_series(write(tmp_path / "t.csv", lambda row: 1.0 + (row == 9) * 1e-15))
    refused(Windows(2).prepare, series)


def test_new_numbers_far_from_those_of_training(refused):
    values = np.stack([np.arange(30.0) % 5 * 1e-3, np.arange(30.0) % 7], axis=-1)[:, :, None]
    made = Windows(2).prepare(Series(values, ("a", "b")))
    values[3, 0] = 9e14
    refused(Windows(2).apply, Series(values, ("a", "b")), made.scaling)


@pytest.mark.parametrize("kind", [np.float64, np.longdouble])
def test_arrays_that_are_too_large(tmp_path, kind, refused):
    x = np.ones((10, 2, 1), dtype=kind)
    x[3] = 1e300
    np.savez(tmp_path / "p.npz", x=x, y=x)
    refused(read_named_pairs, tmp_path / "p.npz")


def test_a_node_without_a_name(refused):
    values = np.stack([np.arange(30.0) % 5, np.arange(30.0) % 7], axis=-1)[:, :, None]
    refused(Series, values, ("a", ""))

"""Arrays of xarray: dimensions in any order, variables, covariates over time alone, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import chosen_rows, read_frame
from tacit.errors import InputError

xr = pytest.importorskip("xarray")

RNG = np.random.default_rng(0)
TIMES = pd.date_range("2026-01-01", periods=20, freq="D")
LEVELS = RNG.normal(size=(20, 3))
RAIN = RNG.normal(size=(20, 3))
NODES = ["north", "south", "east"]


def array(values=LEVELS, **coords):
    return xr.DataArray(values, dims=("time", "station"), coords={"time": TIMES, "station": NODES, **coords})


def test_time_and_node_in_either_order():
    plain = read_frame(pd.DataFrame(LEVELS, index=TIMES, columns=NODES))
    for given in (array(), array().T, array().rename(time="t", station="x").T):
        made = read_frame(given)
        assert made.nodes == tuple(NODES)
        np.testing.assert_array_equal(made.values, plain.values)
        np.testing.assert_array_equal(made.times, plain.times)


def test_a_third_dimension_is_that_of_variables():
    both = xr.concat([array(), array(RAIN)], pd.Index(["level", "rain"], name="kind")).transpose("kind", ...)
    made = read_frame(both)
    assert made.channels == ("level", "rain")
    np.testing.assert_array_equal(made.values, np.stack([LEVELS, RAIN], axis=-1))


def test_variables_of_a_data_set():
    regime = ("time", RNG.choice(["wet", "dry"], size=20))
    data = xr.Dataset({"level": array(), "rain": array(RAIN).T, "regime": regime, "load": ("time", np.arange(20.0))})
    made = read_frame(data, covariates=["load"], where="regime == 'wet'")
    assert (made.nodes, made.channels) == (tuple(NODES), ("level", "rain"))
    np.testing.assert_array_equal(made.values, np.stack([LEVELS, RAIN], axis=-1))
    np.testing.assert_array_equal(made.covariates[:, 0], np.arange(20.0))
    np.testing.assert_array_equal(chosen_rows(made), regime[1] == "wet")
    with pytest.raises(InputError, match="variable 'regime' must have the dimensions time, station, got time; list it"):
        read_frame(data, covariates=["load"])
    with pytest.raises(InputError, match=r"variable 'height' must have the dimensions .*, got station; drop it"):
        read_frame(xr.Dataset({"level": array(), "height": ("station", [1.0, 2.0, 3.0])}))


def test_a_coordinate_of_time_is_a_label():
    made = read_frame(array(regime=("time", ["wet", "dry"] * 10)), where="regime == 'dry'")
    assert made.nodes == tuple(NODES)
    assert chosen_rows(made).sum() == 10


def test_without_coordinates():
    made = read_frame(xr.DataArray(LEVELS, dims=("row", "column")))
    assert made.nodes == ("0", "1", "2")
    np.testing.assert_array_equal(made.values[..., 0], LEVELS)


def test_other_dimensions():
    with pytest.raises(InputError, match=r"must have dimensions \(time, node\) or .*, got \(a, b, c, d\); select"):
        read_frame(xr.DataArray(np.zeros((2, 2, 2, 2)), dims=list("abcd")))
    with pytest.raises(InputError, match=r"must have dimensions \(time, node\) or .*, got \(time\)"):
        read_frame(array()[:, 0])

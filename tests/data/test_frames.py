"""A DataFrame is read by the code of the files: same series, same refusals."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import chosen_rows, read_frame, read_series


def numbers(rows=40, columns=3, missing=0.2, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-8, 8, size=(rows, columns))
    values[rng.random(values.shape) < missing] = np.nan
    return values


def frame_of(index, **options):
    return pd.DataFrame(numbers(len(index), **options), index=index, columns=["x", "007", "y z"])


def assert_same(one, other):
    assert np.array_equal(one.values, other.values, equal_nan=True)  # to the last bit
    assert one.row_times.dtype == other.row_times.dtype
    assert np.array_equal(one.row_times, other.row_times)
    for name in ("nodes", "channels", "covariate_names", "lengths", "series_names", "notes"):
        assert getattr(one, name) == getattr(other, name), name
    assert (one.covariates is None) == (other.covariates is None)
    assert one.covariates is None or np.array_equal(one.covariates, other.covariates)


INDICES = {
    "dates": pd.date_range("2020-03-01", periods=40, freq="h"),
    "named dates": pd.date_range("2020-03-01", periods=40, freq="D", name="when"),
    "zone": pd.date_range("2020-03-28", periods=40, freq="h", tz="Europe/Rome", name="time"),
    "months": pd.period_range("2020-03", periods=40, freq="D", name="time"),
    "gaps": pd.Index([*range(20), *range(22, 42)], name="step"),
    "floats": pd.Index(np.arange(40) / 4, name="time"),
    "range": pd.RangeIndex(40),
}


@pytest.mark.parametrize("kind", INDICES)
def test_a_file_written_from_the_frame_gives_the_same_series(kind, tmp_path):
    frame = frame_of(INDICES[kind])
    frame.to_csv(tmp_path / "t.csv")
    found = read_frame(frame)
    assert_same(found, read_series(tmp_path / "t.csv", time=frame.index.name))
    assert len(found) == (42 if kind == "gaps" else 40)


def test_covariates_and_a_time_column(tmp_path):
    frame = frame_of(INDICES["dates"]).assign(hour=lambda frame: frame.index.hour)
    frame.to_csv(tmp_path / "t.csv")
    found = read_frame(frame, covariates=["hour"])
    assert_same(found, read_series(tmp_path / "t.csv", covariates=["hour"]))
    column = frame.rename_axis("date").reset_index()  # an index without meaning, and a column of times
    assert_same(read_frame(column, covariates=["hour"]), found)
    other = frame.rename_axis("moment").reset_index()
    assert_same(read_frame(other, time="moment", covariates=["hour"]), found)


def test_columns_of_two_levels(tmp_path):
    index = INDICES["named dates"]
    columns = pd.MultiIndex.from_product([["north", "so:uth"], ["pm", "wind"]])
    frame = pd.DataFrame(numbers(40, 4), index=index, columns=columns)
    frame[("hour", "")] = np.arange(40)
    found = read_frame(frame, covariates=["hour"])
    assert (found.nodes, found.channels, found.covariate_names) == (("north", "so:uth"), ("pm", "wind"), ("hour",))
    assert np.array_equal(found.values[:, 1, 0], frame[("so:uth", "pm")], equal_nan=True)
    flat = frame.set_axis(["north/pm", "north/wind", "so:uth/pm", "so:uth/wind", "hour"], axis=1)
    flat.to_csv(tmp_path / "t.csv")
    assert_same(found, read_series(tmp_path / "t.csv", time="when", sep="/", covariates=["hour"]))


@pytest.mark.parametrize("names", [["instance", "time"], [None, None], ["series", "time"], ["trial", "when"]])
def test_an_index_of_two_levels_is_instance_and_time(names, tmp_path):
    parts = {name: frame_of(pd.RangeIndex(rows), seed=rows) for name, rows in (("p1", 6), ("p0", 9), ("p2", 5))}
    frame = pd.concat(parts, names=names)
    found = read_frame(frame)
    assert (found.series_names, found.lengths) == (("p1", "p0", "p2"), (6, 9, 5))
    assert np.array_equal(found.parts[1].values[:, :, 0], parts["p0"].to_numpy(), equal_nan=True)
    assert found.parts[1].times.tolist() == list(range(9))
    labels = [name or usual for name, usual in zip(names, ("series", "time"), strict=True)]
    frame.rename_axis(labels).to_csv(tmp_path / "t.csv")
    assert_same(found, read_series(tmp_path / "t.csv", series=labels[0], time=labels[1]))


def test_the_levels_may_come_in_the_other_order():
    frame = pd.concat({"p": frame_of(pd.RangeIndex(6)), "q": frame_of(pd.RangeIndex(5))}, names=["patient", "time"])
    assert_same(read_frame(frame.swaplevel()), read_frame(frame))
    assert_same(read_frame(frame.swaplevel().sort_index(level=0, sort_remaining=False)), read_frame(frame))


def test_dates_of_patients():
    days = pd.date_range("2020-01-01", periods=5)
    frame = pd.concat({7: frame_of(days, seed=1), 3: frame_of(days[:4], seed=2)}, names=["patient", "day"])
    found = read_frame(frame)
    assert found.series_names == ("7", "3")
    assert found.parts[1].times.astype("datetime64[D]").tolist() == days[:4].date.tolist()


def test_long_frames(tmp_path):
    wide = frame_of(INDICES["named dates"], missing=0.0)
    long = wide.rename_axis(columns="station").stack().rename("v")
    found = read_frame(long.to_frame(), time="when")  # an index of time and station
    assert (found.nodes, found.channels) == (("x", "007", "y z"), ("v",))
    assert np.array_equal(found.values[:, :, 0], wide.to_numpy())
    long.reset_index().to_csv(tmp_path / "t.csv", index=False)
    assert_same(found, read_series(tmp_path / "t.csv", time="when"))


def test_times_that_start_again_in_a_frame():
    frame = pd.DataFrame(numbers(8, 2, 0.0), index=pd.Index([0, 1, 2, 3] * 2, name="time"), columns=["a", "b"])
    found = read_frame(frame)
    assert found.lengths == (4, 4)
    assert found.notes == ("column 'time' starts again 1 time: read as 2 series",)


def test_refusals_are_those_of_the_files(tmp_path, unchecked, refused):
    good = frame_of(pd.RangeIndex(10, name="time"), missing=0.0)
    texts = good.astype(object)
    texts.iloc[3, 1] = "high"
    infinite = good.copy()
    infinite.iloc[2, 0] = np.inf
    still = good[["x"]].assign(y=1.0)
    for frame in (texts, infinite, still, good.iloc[[0, 2, 1, 3]], good.iloc[:0], good[["x"]].assign(y="n")):
        frame.to_csv(tmp_path / "t.csv")
        from_file = refused(read_series, tmp_path / "t.csv")
        assert refused(read_frame, frame) == from_file.replace("FOLDER/t.csv", "the DataFrame")
    three = pd.MultiIndex.from_product([[1], [2], range(10)])
    refused(read_frame, [[1.0]])
    refused(read_frame, good.set_axis(three))
    refused(read_frame, good.set_axis(three[:3], axis=1))
    refused(read_frame, good.set_axis(pd.MultiIndex.from_product([["a"], ["u", "v", "w"]]), axis=1), sep=":")
    refused(read_frame, good.assign(time=1.0))
    refused(read_frame, good, covariates=["h"])


def test_odd_cells_are_refused_in_one_line(refused):
    index, columns = pd.date_range("2020", periods=2), pd.MultiIndex.from_tuples([("a", "u"), ("b", "u")])
    for frame in (
        pd.DataFrame({"a": [1j, 2j]}),
        pd.DataFrame({"a": pd.date_range("2020", periods=2)}),
        pd.DataFrame({"a": [1.0, 2]}, index=pd.DatetimeIndex([pd.NaT] * 2)),
        pd.DataFrame({"time": [0, 1], "s": pd.array([1, None], dtype="Int64"), "a": [1.0, 2]}),
    ):
        refused(read_frame, frame, series="s" if "s" in frame else None)
    two = pd.DataFrame([[1.0, 2.0], [2.0, 3.0]], index=index, columns=columns)
    assert read_frame(two).nodes == ("a", "b")
    single = pd.concat({"p": two, "q": two})
    assert read_frame(single).lengths == (2, 2)


def test_the_frame_is_left_alone():
    frame = frame_of(INDICES["dates"])
    before = frame.copy()
    read_frame(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_a_piece_may_stand_still(refused):
    frame = pd.DataFrame({"a": [1.0, 1.0], "b": [2.0, np.nan]})
    refused(read_frame, frame)
    assert np.isnan(read_frame(frame, piece=True).values).sum() == 1


def test_number_types_of_frames():
    frame = pd.DataFrame(
        {"a": pd.array([1, None, 3], dtype="Int64"), "b": np.array([1, 2, 4], dtype=np.int8), 3: [0.5, 1, 2]}
    )
    found = read_frame(frame)
    assert found.nodes == ("a", "b", "3")
    assert np.array_equal(found.values[:, 0, 0], [1, np.nan, 3], equal_nan=True)


# ---------------------------------------------------------------- arrays of xarray


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


def test_variables_of_a_data_set(refused):
    regime = ("time", RNG.choice(["wet", "dry"], size=20))
    data = xr.Dataset({"level": array(), "rain": array(RAIN).T, "regime": regime, "load": ("time", np.arange(20.0))})
    made = read_frame(data, covariates=["load"], where="regime == 'wet'")
    assert (made.nodes, made.channels) == (tuple(NODES), ("level", "rain"))
    np.testing.assert_array_equal(made.values, np.stack([LEVELS, RAIN], axis=-1))
    np.testing.assert_array_equal(made.covariates[:, 0], np.arange(20.0))
    np.testing.assert_array_equal(chosen_rows(made), regime[1] == "wet")
    refused(read_frame, data, covariates=["load"])
    refused(read_frame, xr.Dataset({"level": array(), "height": ("station", [1.0, 2.0, 3.0])}))


def test_a_coordinate_of_time_is_a_label():
    made = read_frame(array(regime=("time", ["wet", "dry"] * 10)), where="regime == 'dry'")
    assert made.nodes == tuple(NODES)
    assert chosen_rows(made).sum() == 10


def test_without_coordinates():
    made = read_frame(xr.DataArray(LEVELS, dims=("row", "column")))
    assert made.nodes == ("0", "1", "2")
    np.testing.assert_array_equal(made.values[..., 0], LEVELS)


def test_other_dimensions(refused):
    refused(read_frame, xr.DataArray(np.zeros((2, 2, 2, 2)), dims=list("abcd")))
    refused(read_frame, array()[:, 0])

"""A DataFrame is read by the code of the files: same series, same refusals."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import read_frame, read_series
from tacit.errors import InputError


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


def test_refusals_are_those_of_the_files(tmp_path, unchecked):
    good = frame_of(pd.RangeIndex(10, name="time"), missing=0.0)
    texts = good.astype(object)
    texts.iloc[3, 1] = "high"
    infinite = good.copy()
    infinite.iloc[2, 0] = np.inf
    still = good[["x"]].assign(y=1.0)
    for frame in (texts, infinite, still, good.iloc[[0, 2, 1, 3]], good.iloc[:0], good[["x"]].assign(y="n")):
        frame.to_csv(tmp_path / "t.csv")
        with pytest.raises(InputError) as from_file:
            read_series(tmp_path / "t.csv")
        with pytest.raises(InputError) as from_frame:
            read_frame(frame)
        assert str(from_frame.value) == str(from_file.value).replace(str(tmp_path / "t.csv"), "the DataFrame")
        assert "\n" not in str(from_frame.value)
    three = pd.MultiIndex.from_product([[1], [2], range(10)])
    for message, call in {
        "the table must be a DataFrame of pandas or polars, an Arrow table or an xarray, got list": lambda: read_frame(
            [[1.0]]
        ),
        r"the index must have one level \(time\) or two": lambda: read_frame(good.set_axis(three)),
        r"the columns must have one level \(node\) or two": lambda: read_frame(good.set_axis(three[:3], axis=1)),
        "sep must be left out for columns of two levels": lambda: read_frame(
            good.set_axis(pd.MultiIndex.from_product([["a"], ["u", "v", "w"]]), axis=1), sep=":"
        ),
        "the header must have unique names, got 'time' twice": lambda: read_frame(good.assign(time=1.0)),
        "covariates names the column 'h', which does not exist": lambda: read_frame(good, covariates=["h"]),
    }.items():
        with pytest.raises(InputError, match=message):
            call()


def test_odd_cells_are_refused_in_one_line():
    index, columns = pd.date_range("2020", periods=2), pd.MultiIndex.from_tuples([("a", "u"), ("b", "u")])
    for frame, message in {
        "complex": (pd.DataFrame({"a": [1j, 2j]}), "a column of numbers per node besides 'time', got only text"),
        "dates": (pd.DataFrame({"a": pd.date_range("2020", periods=2)}), "a column per node besides 'a', got none"),
        "no time": (pd.DataFrame({"a": [1.0, 2]}, index=pd.DatetimeIndex([pd.NaT] * 2)), "a time in every row, got an"),
        "no name": (
            pd.DataFrame({"time": [0, 1], "s": pd.array([1, None], dtype="Int64"), "a": [1.0, 2]}),
            "a name in",
        ),
    }.values():
        with pytest.raises(InputError, match=message) as refusal:
            read_frame(frame, series="s" if "s" in frame else None)
        assert "\n" not in str(refusal.value)
    two = pd.DataFrame([[1.0, 2.0], [2.0, 3.0]], index=index, columns=columns)
    assert read_frame(two).nodes == ("a", "b")
    single = pd.concat({"p": two, "q": two})
    assert read_frame(single).lengths == (2, 2)


def test_the_frame_is_left_alone():
    frame = frame_of(INDICES["dates"])
    before = frame.copy()
    read_frame(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_a_piece_may_stand_still():
    frame = pd.DataFrame({"a": [1.0, 1.0], "b": [2.0, np.nan]})
    with pytest.raises(
        InputError, match=r"the DataFrame: two nodes or more must remain, got none; left out: 'a' \(constant\)"
    ):
        read_frame(frame)
    assert np.isnan(read_frame(frame, piece=True).values).sum() == 1


def test_number_types_of_frames():
    frame = pd.DataFrame(
        {"a": pd.array([1, None, 3], dtype="Int64"), "b": np.array([1, 2, 4], dtype=np.int8), 3: [0.5, 1, 2]}
    )
    found = read_frame(frame)
    assert found.nodes == ("a", "b", "3")
    assert np.array_equal(found.values[:, 0, 0], [1, np.nan, 3], equal_nan=True)

import gzip
import hashlib
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tacit.data import Series, read_coordinates, read_frame, read_series
from tacit.data.times import Grid

WIDE = "time,a,b\n2020-01-01 00:00,1,2.5\n2020-01-01 01:00,,3.5\n2020-01-01 02:00,4,NA\n"
LONG = "time,node,value\n0,b,1\n0,a,2\n1,b,3\n1,a,5\n2,a,6\n"


def write(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text)
    return path


def same(one: Series, other: Series) -> bool:
    return (
        np.array_equal(one.values, other.values, equal_nan=True)
        and np.array_equal(one.row_times, other.row_times)
        and (one.nodes, one.channels, one.covariate_names) == (other.nodes, other.channels, other.covariate_names)
    )


def test_wide(tmp_path):
    series = read_series(write(tmp_path, WIDE))
    assert series.nodes == ("a", "b")
    assert series.channels == ("value",)
    assert np.array_equal(series.values[:, :, 0], [[1, 2.5], [np.nan, 3.5], [4, np.nan]], equal_nan=True)
    assert series.times.astype("datetime64[h]").astype(str).tolist() == [f"2020-01-01T0{hour}" for hour in range(3)]
    assert series.notes == ()


def test_long(tmp_path):
    series = read_series(write(tmp_path, LONG))
    assert series.nodes == ("b", "a")
    assert np.array_equal(series.values[:, :, 0], [[1, 2], [3, 5], [np.nan, 6]], equal_nan=True)
    assert series.times.tolist() == [0, 1, 2]


def test_the_same_series_from_every_kind_of_file(tmp_path):
    rng = np.random.default_rng(0)
    times = pd.date_range("2021-03-01", periods=30, freq="h")
    frame = pd.DataFrame(rng.normal(size=(30, 4)), columns=["x:u", "x:v", "007:u", "007:v"]).assign(hour=times.hour)
    frame = frame.mask(rng.random(frame.shape) < 0.2).assign(hour=times.hour)
    frame.insert(0, "when", times)
    options = {"time": "when", "sep": ":", "covariates": ["hour"]}
    frame.to_csv(tmp_path / "w.csv", index=False)
    frame.to_csv(tmp_path / "w.csv.gz", index=False)
    frame.to_csv(tmp_path / "s.csv", index=False, sep=";")
    frame.to_parquet(tmp_path / "w.parquet")
    frame.set_index("when").to_parquet(tmp_path / "i.parquet")
    wide = read_series(tmp_path / "w.csv", **options)
    assert wide.values.shape == (30, 2, 2)
    assert (wide.nodes, wide.channels, wide.covariate_names) == (("x", "007"), ("u", "v"), ("hour",))
    expected = frame[["x:u", "x:v", "007:u", "007:v"]].to_numpy().reshape(30, 2, 2)
    assert np.array_equal(wide.values, expected, equal_nan=True)  # to the last bit
    assert wide.covariates[:, 0].tolist() == times.hour.tolist()
    for name in ("w.csv.gz", "s.csv", "w.parquet", "i.parquet"):
        assert same(wide, read_series(tmp_path / name, **options)), name

    long = pd.concat(
        [frame[["when", "hour"]].assign(id=node, u=frame[f"{node}:u"], v=frame[f"{node}:v"]) for node in ("x", "007")]
    )
    options = {"time": "when", "node": "id", "covariates": ["hour"]}
    long.to_csv(tmp_path / "l.csv", index=False)
    long.to_parquet(tmp_path / "l.parquet")
    long.set_index(["when", "id"]).to_parquet(tmp_path / "m.parquet")
    for name in ("l.csv", "l.parquet", "m.parquet"):
        assert same(wide, read_series(tmp_path / name, **options)), name
        one = read_series(tmp_path / name, value="v", **options)
        assert one.channels == ("v",)
        assert np.array_equal(one.values[..., 0], wide.values[..., 1], equal_nan=True)


def test_columns_found_without_being_named(tmp_path):
    stations = read_series(write(tmp_path, LONG.replace("node", "Station").replace("time", "Date")))
    assert stations.nodes == ("b", "a")
    words = read_series(write(tmp_path, LONG.replace("node", "gauge")), layout="long")
    assert words.nodes == ("b", "a")
    counted = read_series(write(tmp_path, "step,a\n5,1\n6,2\n7,4\n"))
    assert counted.times.tolist() == [5, 6, 7]
    assert counted.notes == ("column 'step' was used as the times; set time to use another column",)
    unnamed = read_series(write(tmp_path, ",a\n5,1\n6,2\n"))
    assert unnamed.times.tolist() == [5, 6]
    dates = read_series(write(tmp_path, "day,a\n2020/01/05,1\n2020/01/06,2\n"))
    assert dates.times.astype("datetime64[D]").astype(str).tolist() == ["2020-01-05", "2020-01-06"]


def test_gaps_are_put_in_and_told(tmp_path):
    text = "time,a,h\n2020-01-01,1,5\n2020-01-02,2,6\n2020-01-05,3,7\n2020-01-06,4,8\n"
    series = read_series(write(tmp_path, text), covariates=["h"])
    assert np.array_equal(series.values[:, 0, 0], [1, 2, np.nan, np.nan, 3, 4], equal_nan=True)
    assert series.covariates[:, 0].tolist() == [5, 6, 6, 6, 7, 8]
    assert series.times.astype("datetime64[D]").astype(int).tolist() == list(range(18262, 18268))
    assert series.notes[0].startswith("2 steps without a row were added as missing values: 6 rows from 2020-01-01")
    assert series.notes[1] == "covariates of the added steps are copied from the previous row"
    long = read_series(write(tmp_path, "time,node,v\n0.0,a,1\n0.5,a,2\n1.5,a,3\n0.0,b,2\n1.5,b,4\n"))
    assert long.times.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert np.isnan(long.values[2]).all()


def test_uneven_times_are_kept_and_told(tmp_path):
    series = read_series(write(tmp_path, "time,a\n2020-01-31,1\n2020-02-27,2\n2020-03-31,3\n2020-04-30,5\n"))
    assert len(series) == 4
    assert "times are not evenly spaced" in series.notes[0]


def test_grid_against_a_loop():
    rng = np.random.default_rng(3)
    for _ in range(50):
        step, start = rng.integers(1, 100), rng.integers(-50, 50)
        kept = np.flatnonzero(rng.random(30) < 0.8)
        times = start + step * kept
        grid = Grid.around(times)
        assert grid.times.tolist() == [start + step * k for k in range(kept[0], kept[-1] + 1)]
        assert [grid.times[place] for place in grid.places] == times.tolist()
        assert bool(grid.notes) == (len(grid.times) > len(times))


def test_grid_of_awkward_times():
    uneven = Grid.around(np.array([0, 10, 20, 21, 30, 40]))  # one row out of place makes no grid of ones
    assert len(uneven.times) == 6
    assert uneven.notes[0].startswith("times are not evenly spaced (steps from 1 to 10)")
    nearly_twice = Grid.around(np.array([0, 1, 1 + 1e-8, 2, 3]))
    assert "not evenly spaced" in nearly_twice.notes[0]
    tenths = np.delete(np.arange(40) / 10, 17)
    even = Grid.around(tenths)
    assert len(even.times) == 40
    assert np.array_equal(even.times[even.places], tenths)  # to the last bit


def test_zones_become_utc(tmp_path):
    text = "time,a\n2020-03-29T01:00+01:00,1\n2020-03-29T03:00+02:00,2\n2020-03-29T04:00+02:00,3\n"
    series = read_series(write(tmp_path, text))
    assert series.times.astype("datetime64[h]").astype(str).tolist() == [f"2020-03-29T0{hour}" for hour in range(3)]
    assert series.notes == ("times of column 'time' were converted to UTC",)


def test_new_rows_may_stand_still(tmp_path, refused):
    path = write(tmp_path, "time,a,b\n0,1,\n1,1,\n")
    refused(read_series, path)
    assert np.isnan(read_series(path, piece=True).values).sum() == 2


TEXTS = [
    "",
    "time,a\n",
    "time,a,a\n0,1,2\n",
    "time,a\n0,1\n1,2,3\n",
    "time,a\n0,1,9\n1,2,3\n",
    'time,a\n0,"1\n1,2\n',
    "time,a,b\n0,1,2\n1,2,x\n2,3,y\n3,4,5",
    "time,a\n0,1\n1,inf\n",
    "time,a\n0,1\n1,True\n",
    "time,a\n0,1\n1,2\n1,3\n",
    "time,a\n0,1\n1,2\n1,2\n",
    "time,a\n2020-01-02,1\n2020-01-01,2\n",
    "time,a\n2020-01-02,1\nmorning,2\n",
    "time,a\n0,1\n,2\n",
    "time,a,b\n0,1,\n1,2,\n",
    "time,a,b\n0,1,3\n1,2,3\n",
    "time,a\n0,1\n1,2\n2,3\n9999,4\n",
    "node,v\na,1\nb,0\n",
    "time\n0\n1\n",
    "time,node,v\n0,a,1\n1,a,2\n1,a,3\n",
    "time,node,v\n0,a,1\n1,b,2\n1,a,2\n0,b,3\n",
    "time,node,v\n1,b,2\n1,a,2\n0,a,3\n0,b,3\n",
    "time,node,v\n0,a,1\n1,,2\n",
    "time,node,v,wind\n0,a,1,N\n1,a,2,5\n",
    "time,node,station,v\n0,a,x,1\n",
    "time,node\n0,a\n1,a\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_bad_tables(text, tmp_path, refused):
    path = write(tmp_path, text)
    refused(read_series, path)
    assert path.read_text() == text


CALLS = [
    {"time": "tme"},
    {"node": "x"},
    {"covariates": ["x"]},
    {"covariates": "a"},
    {"covariates": ["a"]},
    {"layout": "tall"},
    {"layout": "wide", "value": "a"},
    {"sep": ":"},
    {"sep": ":", "layout": "long"},
    {"layout": "long"},
]


@pytest.mark.parametrize("options", CALLS)
def test_bad_calls(options, tmp_path, unchecked, refused):
    refused(read_series, write(tmp_path, WIDE), **options)


def test_bad_variables_and_covariates(tmp_path, refused):
    refused(read_series, write(tmp_path, "time,a:u,a:v,b:u\n0,1,2,3\n1,2,3,4\n"), sep=":")
    text = "time,node,v,h\n0,a,1,5\n0,b,2,6\n1,a,3,5\n1,b,3,5\n"
    refused(read_series, write(tmp_path, text), covariates=["h"])


def test_files_that_are_none(tmp_path, refused):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "image.png").write_bytes(b"x")
    (tmp_path / "latin.csv").write_bytes("time,a\n0,é\n".encode("latin-1"))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(WIDE.encode() * 100)[:-20])
    (tmp_path / "plain.csv.gz").write_text(WIDE)
    (tmp_path / "text.parquet").write_text(WIDE)
    os.mkfifo(tmp_path / "pipe.csv")
    parquet.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "twice.parquet")
    for name in ("none.csv", *sorted(path.name for path in tmp_path.iterdir())):
        assert name in refused(read_series, tmp_path / name)


def test_files_are_left_alone(tmp_path):
    path = write(tmp_path, WIDE)
    before = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns
    read_series(path)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.csv"]


def test_coordinates(tmp_path, refused):
    good = "node,id,lat,lon\nb,1,46.5,9\na,2,47,8\nc,3,,\n"
    assert read_coordinates(write(tmp_path, good), ("a", "b")).tolist() == [[47, 8], [46.5, 9]]
    for text, nodes in (
        (good, ("a", "d")),
        (good, ("c",)),
        ("n,x,y\na,1,2\na,3,4\n", ("a",)),
        ("n,x\na,1\n", ("a",)),
        ("n,x,y\na,east,2\n", ("a",)),
    ):
        refused(read_coordinates, write(tmp_path, text), nodes)


def test_one_long_line_is_refused_before_it_is_read(tmp_path, monkeypatch, refused):
    monkeypatch.setattr("tacit.data.files.LONGEST_HEADER", 100_000)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a" * 200_000))
    refused(read_series, tmp_path / "x.csv.gz")


# ---------------------------------------------------------------- times that repeat


REPEATED = "time,a,b,h\n0,1,2,0\n1,3,,1\n1,5,6,9\n2,4,8,2\n3,2,7,3\n"
REPEATED_LONG = (
    "time,node,v,w\n0,a,1,1\n0,b,2,1\n1,a,3,1\n1,a,5,\n1,b,6,1\n2,b,8,2\n2,a,4,1\n2,a,0,3\n3,a,2,7\n3,b,3,5\n"
)
EXPECTED = {"first": [3, np.nan], "last": [5, 6], "mean": [4, 6]}


@pytest.mark.parametrize("how", EXPECTED)
def test_a_wide_table(how, tmp_path):
    series = read_series(write(tmp_path, REPEATED), duplicates=how, covariates=["h"])
    assert series.times.tolist() == [0, 1, 2, 3]
    assert np.array_equal(series.values[1, :, 0], EXPECTED[how], equal_nan=True)
    assert series.values[[0, 2, 3], :, 0].tolist() == [[1, 2], [4, 8], [2, 7]]
    assert series.covariates[:, 0].tolist() == [0, 9 if how == "last" else 1, 2, 3]
    words = {"first": "the first row is used", "last": "the last row is used", "mean": "their mean is used"}[how]
    assert series.notes == (f"1 row repeats a time: {words} (duplicates = {how})",)


@pytest.mark.parametrize(("how", "a"), [("first", [1, 3, 4, 2]), ("last", [1, 5, 0, 2]), ("mean", [1, 4, 2, 2])])
def test_a_long_table(how, a, tmp_path):
    series = read_series(write(tmp_path, REPEATED_LONG), duplicates=how)
    assert (series.nodes, series.channels) == (("a", "b"), ("v", "w"))
    assert series.values[:, 0, 0].tolist() == a
    assert series.values[:, 1, 0].tolist() == [2, 6, 8, 3]
    assert series.notes[0].startswith("2 rows repeat the time of a node: ")


def test_several_series_keep_the_same_time_each(tmp_path):
    text = "time,s,a,b\n0,x,1,2\n0,y,5,6\n1,x,2,1\n1,x,4,3\n1,y,7,7\n2,x,1,1\n2,y,1,2\n"
    series = read_series(write(tmp_path, text), series="s", duplicates="mean")
    assert series.lengths == (3, 3)
    assert series.values[:, 0, 0].tolist() == [1, 3, 1, 5, 7, 1]


def test_a_table_without_repeated_times_is_read_as_before(tmp_path):
    text = "time,a,b\n0,1,2\n1,2,1\n3,1,2\n4,2,1\n"
    plain, merged = (read_series(write(tmp_path, text), duplicates=how) for how in (None, "mean"))
    assert np.array_equal(plain.values, merged.values, equal_nan=True)
    assert plain.notes == merged.notes


def test_frames_and_repeated_hours(refused):
    hours = pd.to_datetime(["2026-10-25 01:00", "2026-10-25 02:00", "2026-10-25 02:00", "2026-10-25 03:00"])
    frame = pd.DataFrame({"a": [1.0, 2, 4, 5], "b": [1.0, 0, 2, 5]}, index=hours)
    refused(read_frame, frame)
    assert read_frame(frame, duplicates="mean").values[:, 0, 0].tolist() == [1, 3, 5]


def test_refusals(tmp_path, unchecked, refused):
    path = write(tmp_path, REPEATED)
    refused(read_series, path)
    rows = [(t, t * t % 7 + 0.5, t % 3 + 0.25) for t in (0, 0, 1, 1, 1, 2, 2, *range(3, 20))]
    many = write(tmp_path, pd.DataFrame(rows, columns=["time", "a", "b"]).to_csv(index=False))
    refused(read_series, many)
    refused(read_series, path, duplicates="sum")
    unsorted = write(tmp_path, "time,a,b\n0,1,2\n2,3,1\n2,2,1\n1,5,6\n")
    refused(read_series, unsorted, duplicates="mean")

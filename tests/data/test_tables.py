import gzip
import hashlib
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tacit.data import Series, read_coordinates, read_series
from tacit.data.times import Grid
from tacit.errors import InputError

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


def test_new_rows_may_stand_still(tmp_path):
    path = write(tmp_path, "time,a,b\n0,1,\n1,1,\n")
    with pytest.raises(InputError, match=r"table.csv: two nodes or more must remain, got none; left out: 'a' \(const"):
        read_series(path)
    assert np.isnan(read_series(path, piece=True).values).sum() == 2


TEXTS = {
    "": "the file is empty",
    "time,a\n": "there is a header but no rows",
    "time,a,a\n0,1,2\n": "the header must have unique names, got 'a' twice; rename one",
    "time,a\n0,1\n1,2,3\n": r"cannot be read as a table: Expected 2 fields in line 3, saw 3; correct that line",
    "time,a\n0,1,9\n1,2,3\n": "the header names 2 columns but row 1 has 3 cells",
    'time,a\n0,"1\n1,2\n': "cannot be read as a table: .*EOF inside string",
    "time,a,b\n0,1,2\n1,2,x\n2,3,y\n3,4,5": r"column 'b' must have numbers, got 'x' in row 2 \(2 such cells\)",
    "time,a\n0,1\n1,inf\n": "column 'a' must have finite numbers, got 'inf' in row 2",
    "time,a\n0,1\n1,True\n": "column 'a' must have numbers, got 'True' in row 2",
    "time,a\n0,1\n1,2\n1,3\n": "column 'time' must have ascending times, but 1 comes twice, in rows 2 and 3; correct",
    "time,a\n0,1\n1,2\n1,2\n": ".*but 1 comes twice, in rows 2 and 3; remove one of these equal rows, or set series",
    "time,a\n2020-01-02,1\n2020-01-01,2\n": r".*but 2020-01-01T00:00:00 in row 2 comes before that of row 1; sort",
    "time,a\n2020-01-02,1\nmorning,2\n": "column 'time' must have times, got 'morning' in row 2; write "
    "times as numbers or",
    "time,a\n0,1\n,2\n": "column 'time' must have a time in every row, got an empty cell in row 2",
    "time,a,b\n0,1,\n1,2,\n": r"two nodes or more must remain, got 1; left out: 'b' \(empty\)",
    "time,a,b\n0,1,3\n1,2,3\n": r"two nodes or more must remain, got 1; left out: 'b' \(constant\)",
    "time,a\n0,1\n1,2\n2,3\n9999,4\n": "times must form a regular grid with few gaps, got 9997 steps of 1 between",
    "node,v\na,1\nb,0\n": "a column must be called time, date or similar, or contain dates, got none; set time",
    "time\n0\n1\n": "a wide table must have a column per node besides 'time', got none",
    "time,node,v\n0,a,1\n1,a,2\n1,a,3\n": ".*1 comes twice for node 'a', in rows 2 and 3",
    "time,node,v\n0,a,1\n1,b,2\n1,a,2\n0,b,3\n": ".*0 in row 4 comes before that of row 2 for node 'b'; sort the rows",
    "time,node,v\n1,b,2\n1,a,2\n0,a,3\n0,b,3\n": ".*0 in row 3 comes before that of row 2 for node 'a'",
    "time,node,v\n0,a,1\n1,,2\n": "column 'node' must have a name in every row, got an empty cell in row 2",
    "time,node,v,wind\n0,a,1,N\n1,a,2,5\n": "column 'wind' must have numbers, got 'N' in row 1.*list the columns",
    "time,node,station,v\n0,a,x,1\n": "a long table must have one column of node names, got node, "
    "station; set node to its name",
    "time,node\n0,a\n1,a\n": "a long table must have a column of values besides 'time' and 'node'",
}


@pytest.mark.parametrize("text", TEXTS)
def test_bad_tables(text, tmp_path):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=rf"table\.csv: {TEXTS[text]}") as refusal:
        read_series(path)
    assert "\n" not in str(refusal.value)
    assert path.read_text() == text


CALLS = {
    r"time names the column 'tme', which does not exist; did you mean 'time'\?": {"time": "tme"},
    "node names the column 'x', which does not exist; known are a, b, time": {"node": "x"},
    "covariates names the column 'x', which does not exist": {"covariates": ["x"]},
    r"covariates must be a list of column names, got 'a'; put it in \[ \]": {"covariates": "a"},
    "covariate 'a' must have a number in every row, got none in row 2": {"covariates": ["a"]},
    "layout must be one of auto, wide, long, got 'tall'": {"layout": "tall"},
    "node and value are for long tables, but layout is 'wide'": {"layout": "wide", "value": "a"},
    "column 'a' must have the form node:variable": {"sep": ":"},
    "sep must be used with a wide table, got ':' for a long one": {"sep": ":", "layout": "long"},
    "a long table must have one column of node names, got none; set node to its name": {"layout": "long"},
}


@pytest.mark.parametrize("message", CALLS)
def test_bad_calls(message, tmp_path, unchecked):
    with pytest.raises(InputError, match=message):
        read_series(write(tmp_path, WIDE), **CALLS[message])


def test_bad_variables_and_covariates(tmp_path):
    with pytest.raises(InputError, match=r"node 'b' has no column 'b:v'; every node must have every variable"):
        read_series(write(tmp_path, "time,a:u,a:v,b:u\n0,1,2,3\n1,2,3,4\n"), sep=":")
    text = "time,node,v,h\n0,a,1,5\n0,b,2,6\n1,a,3,5\n1,b,3,5\n"
    with pytest.raises(
        InputError, match=r"covariate 'h' must have one number per time, got several at 0 .*list it in value"
    ):
        read_series(write(tmp_path, text), covariates=["h"])


def test_files_that_are_none(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "image.png").write_bytes(b"x")
    (tmp_path / "latin.csv").write_bytes("time,a\n0,é\n".encode("latin-1"))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(WIDE.encode() * 100)[:-20])
    (tmp_path / "plain.csv.gz").write_text(WIDE)
    (tmp_path / "text.parquet").write_text(WIDE)
    messages = {
        "none.csv": "there is no such file; check the name",
        "folder.csv": "is a directory or a device; pass a file",
        "image.png": "a table must end in .csv, .csv.gz",
        "latin.csv": "must be text in UTF-8, got byte 9 that is not",
        "cut.csv.gz": "cannot be read as a table",
        "plain.csv.gz": "cannot be read as a table: Not a gzipped file",
        "text.parquet": "cannot be read as parquet",
        "pipe.csv": "is a directory or a device; pass a file",
        "twice.parquet": "the table has column 'a' twice; rename one",
    }
    os.mkfifo(tmp_path / "pipe.csv")
    parquet.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "twice.parquet")
    for name, message in messages.items():
        with pytest.raises(InputError, match=rf"{name}: {message}"):
            read_series(tmp_path / name)


def test_files_are_left_alone(tmp_path):
    path = write(tmp_path, WIDE)
    before = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns
    read_series(path)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.csv"]


def test_coordinates(tmp_path):
    good = "node,id,lat,lon\nb,1,46.5,9\na,2,47,8\nc,3,,\n"
    assert read_coordinates(write(tmp_path, good), ("a", "b")).tolist() == [[47, 8], [46.5, 9]]
    calls = {
        r"table.csv: node 'd' has no row \(1 such nodes\); add it": (good, ("a", "d")),
        "node 'c' in row 3 must have two numbers, got an empty cell": (good, ("c",)),
        "node 'a' occurs twice, again in row 2": ("n,x,y\na,1,2\na,3,4\n", ("a",)),
        "must have a column of node names and two of numbers, got n, x": ("n,x\na,1\n", ("a",)),
        "column 'x' must have numbers, got 'east' in row 1": ("n,x,y\na,east,2\n", ("a",)),
    }
    for message, (text, nodes) in calls.items():
        with pytest.raises(InputError, match=message):
            read_coordinates(write(tmp_path, text), nodes)


def test_one_long_line_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.data.files.LONGEST_HEADER", 100_000)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a" * 200_000))
    with pytest.raises(InputError, match="the first line must have less than 100,000 characters"):
        read_series(tmp_path / "x.csv.gz")

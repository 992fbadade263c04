"""The same table in every format: the same series, and no copy of its numbers besides the array of the series."""

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tacit.data import open_table, read_frame, read_series
from tacit.data.files import is_parquet_folder
from tacit.errors import InputError

pl = pytest.importorskip("polars")
pytest.importorskip("openpyxl")


def cells(rows=60):
    rng = np.random.default_rng(0)
    times = pd.date_range("2026-01-01", periods=rows, freq="h")
    frame = pd.DataFrame(rng.normal(size=(rows, 3)).round(3), columns=list("abc"))
    frame.insert(0, "time", times)
    frame["count"] = rng.integers(0, 9, size=rows)
    frame["regime"] = rng.choice(["wet", "dry"], size=rows)
    frame.loc[5:7, "b"] = np.nan
    return frame


def assert_same(series, other):
    assert (series.nodes, series.channels, series.covariate_names) == (
        other.nodes,
        other.channels,
        other.covariate_names,
    )
    np.testing.assert_array_equal(series.values, other.values)
    np.testing.assert_array_equal(series.times, other.times)
    np.testing.assert_array_equal(series.covariates, other.covariates)
    assert series.levels == other.levels


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder, frame = tmp_path_factory.mktemp("formats"), cells()
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_csv(folder / "table.tsv", sep="\t", index=False)
    frame.to_csv(folder / "table.tsv.gz", sep="\t", index=False)
    frame.to_parquet(folder / "table.parquet", index=False)
    frame.to_feather(folder / "table.feather")
    frame.to_excel(folder / "table.xlsx", index=False)
    return folder


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "parquet", "feather", "xlsx"])
def test_files_hold_the_same_series(written, ending):
    options = {"covariates": ["regime"], "calendar": ["hour"]}
    made = read_series(written / f"table.{ending}", **options)
    assert_same(made, read_series(written / "table.csv", **options))
    assert made.nodes == ("a", "b", "c", "count")


@pytest.mark.parametrize(
    "make",
    [
        pa.Table.from_pandas,
        lambda frame: pa.concat_tables(pa.Table.from_pandas(frame[i : i + 13]) for i in range(0, 60, 13)),
        pl.from_pandas,
        lambda frame: pl.from_pandas(frame).with_columns(pl.col("regime").cast(pl.Categorical)),
        lambda frame: pa.Table.from_pandas(frame.set_index("time")),
    ],
)
def test_tables_in_memory_hold_the_same_series(written, make):
    options = {"covariates": ["regime"], "where": "hour < 12"}
    assert_same(read_frame(make(cells()), **options), read_series(written / "table.csv", **options))


def test_a_long_table_of_polars(written):
    long = cells().melt(["time", "regime"], value_vars=list("abc"), var_name="station", value_name="level")
    made = read_frame(pl.from_pandas(long), covariates=["regime"])
    wide = read_series(written / "table.csv", covariates=["regime"], drop=["count"])
    np.testing.assert_array_equal(made.values, wide.values)
    assert made.nodes == ("a", "b", "c")


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_numbers_are_copied_once(make):
    rng, rows = np.random.default_rng(0), 100_000
    columns = {f"n{i}": rng.normal(size=rows) for i in range(40)}
    table = make({"time": np.arange(rows), **columns})
    read_frame(table)  # imports
    tracemalloc.start()
    try:
        series = read_frame(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert series.values.nbytes == 8 * 40 * rows
    assert peak < 1.5 * series.values.nbytes  # with vectors of a number per row; two copies would be 2


def write_parts(folder, frame, names):
    folder.mkdir()
    for name, part in zip(names, np.array_split(np.arange(len(frame)), len(names)), strict=True):
        frame.iloc[part].to_parquet(folder / name, index=False)
    return folder


def test_a_folder_of_parts_is_one_table(written, tmp_path):
    whole = read_series(written / "table.csv", drop=["regime"])
    for name, files in (
        ("levels.parquet", ["x.parquet", "a.parquet"]),
        ("levels", ["part-1.parquet", "part-0.parquet"]),
    ):
        folder = write_parts(tmp_path / name, cells(), files)  # the first rows are in the last file
        assert is_parquet_folder(folder)
        assert_same(read_series(folder, drop=["regime"]), whole)
    other = write_parts(tmp_path / "files", cells(), ["x.parquet", "a.parquet"])
    assert not is_parquet_folder(other)
    assert not is_parquet_folder(written)


def test_a_folder_with_keys_in_its_names(written, tmp_path):
    frame = cells().assign(day=lambda one: one["time"].dt.day, station="north").drop(columns="regime")
    frame.to_parquet(tmp_path / "by_day", partition_cols=["day"], index=False)
    made = read_series(tmp_path / "by_day", drop=["station"])
    assert_same(made, read_series(written / "table.csv", drop=["regime"]))
    assert "left out: 'day' (name of a folder)" in made.notes
    assert sum(read_series(tmp_path / "by_day", drop=["station"], covariates=["day"]).covariates[:, 0]) > 60
    long = cells().melt("time", value_vars=list("abc"), var_name="station", value_name="level")
    long.to_parquet(tmp_path / "by_station", partition_cols=["station"], index=False)
    stations = read_series(tmp_path / "by_station")
    assert stations.nodes == ("a", "b", "c")
    np.testing.assert_array_equal(stations.values[:, :, 0], cells()[list("abc")])


def test_sheets(tmp_path, refused):
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        cells().to_excel(book, sheet_name="levels", index=False)
        pd.DataFrame({"x": [1]}).to_excel(book, sheet_name="notes")
    made = read_series(tmp_path / "book.xlsx")
    assert made.notes[0] == "sheet 'levels' was read, the first of 2"
    pd.DataFrame().to_excel(tmp_path / "empty.xlsx")
    refused(read_series, tmp_path / "empty.xlsx")


@pytest.mark.parametrize("ending", ["parquet", "feather", "xlsx"])
def test_broken_files(tmp_path, ending):
    (tmp_path / f"table.{ending}").write_bytes(b"PK\x03\x04 not a table")
    with pytest.raises(InputError, match=rf"table.{ending}: cannot be read as {ending}: .*; write it again"):
        open_table(tmp_path / f"table.{ending}")


def test_what_is_no_table(tmp_path, refused):
    (tmp_path / "none.parquet").mkdir()
    refused(open_table, tmp_path / "none.parquet")
    refused(read_frame, pl.Series([1, 2, 3]))
    refused(read_frame, np.zeros((3, 2)))

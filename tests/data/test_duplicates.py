"""Times that repeat: refused by default, or one row for each time, in wide and long tables."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import read_frame, read_series
from tacit.errors import InputError

WIDE = "time,a,b,h\n0,1,2,0\n1,3,,1\n1,5,6,9\n2,4,8,2\n3,2,7,3\n"
LONG = "time,node,v,w\n0,a,1,1\n0,b,2,1\n1,a,3,1\n1,a,5,\n1,b,6,1\n2,b,8,2\n2,a,4,1\n2,a,0,3\n3,a,2,7\n3,b,3,5\n"
EXPECTED = {"first": [3, np.nan], "last": [5, 6], "mean": [4, 6]}


def write(folder, text):
    path = folder / "table.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("how", EXPECTED)
def test_a_wide_table(how, tmp_path):
    series = read_series(write(tmp_path, WIDE), duplicates=how, covariates=["h"])
    assert series.times.tolist() == [0, 1, 2, 3]
    assert np.array_equal(series.values[1, :, 0], EXPECTED[how], equal_nan=True)
    assert series.values[[0, 2, 3], :, 0].tolist() == [[1, 2], [4, 8], [2, 7]]
    assert series.covariates[:, 0].tolist() == [0, 9 if how == "last" else 1, 2, 3]
    words = {"first": "the first row is used", "last": "the last row is used", "mean": "their mean is used"}[how]
    assert series.notes == (f"1 row repeats a time: {words} (duplicates = {how})",)


@pytest.mark.parametrize(("how", "a"), [("first", [1, 3, 4, 2]), ("last", [1, 5, 0, 2]), ("mean", [1, 4, 2, 2])])
def test_a_long_table(how, a, tmp_path):
    series = read_series(write(tmp_path, LONG), duplicates=how)
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


def test_frames_and_repeated_hours():
    hours = pd.to_datetime(["2026-10-25 01:00", "2026-10-25 02:00", "2026-10-25 02:00", "2026-10-25 03:00"])
    frame = pd.DataFrame({"a": [1.0, 2, 4, 5], "b": [1.0, 0, 2, 5]}, index=hours)
    with pytest.raises(InputError, match=r"clocks were set back: .*; or use --duplicates first, last or mean$"):
        read_frame(frame)
    assert read_frame(frame, duplicates="mean").values[:, 0, 0].tolist() == [1, 3, 5]


def test_refusals(tmp_path, unchecked):
    path = write(tmp_path, WIDE)
    with pytest.raises(InputError, match=r"but 1 comes twice, in rows 2 and 3; correct .*; or use --duplicates first"):
        read_series(path)
    rows = [(t, t * t % 7 + 0.5, t % 3 + 0.25) for t in (0, 0, 1, 1, 1, 2, 2, *range(3, 20))]
    many = write(tmp_path, pd.DataFrame(rows, columns=["time", "a", "b"]).to_csv(index=False))
    with pytest.raises(InputError, match=r"but 0 comes twice, in rows 1 and 2 \(4 such rows\); remove one"):
        read_series(many)
    with pytest.raises(InputError, match="duplicates must be one of first, last, mean, got 'sum'; pick one"):
        read_series(path, duplicates="sum")
    unsorted = write(tmp_path, "time,a,b\n0,1,2\n2,3,1\n2,2,1\n1,5,6\n")
    with pytest.raises(InputError, match="1 in row 4 comes before that of row 3; sort the rows by time"):
        read_series(unsorted, duplicates="mean")

"""Columns are chosen by options, not by editing the file: names, patterns, text, constants, indices, times."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import read_frame, read_series


def write(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text)
    return path


def wide(*extra, rows=6, time=True):
    """Return a table of two nodes, a and b, and some more columns: (name, cells)."""
    columns = {"time": range(rows)} if time else {}
    columns |= {"a": [3, 1, 4, 1, 5, 9][:rows], "b": [2, 7, 1, 8, 2, 8][:rows], **dict(extra)}
    return pd.DataFrame(columns)


def read(folder, frame, **options):
    frame.to_csv(folder / "table.csv", index=False)
    series = read_series(folder / "table.csv", **options)
    again = read_frame(frame, **options)  # the same cells in memory
    assert again.nodes == series.nodes
    assert np.array_equal(again.values, series.values, equal_nan=True)
    assert dict(again.settled) == dict(series.settled)
    return series


TWO = pd.DataFrame(
    {"time": range(4)} | {f"{node}_{name}": [1, 3, 2, place] for place, (node, name) in enumerate(
        (node, name) for node in ("north", "south", "east") for name in ("pm", "rain"))}
)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "nodes", "channels"),
    [
        ({"columns": ["north", "east"]}, ("north", "east"), ("pm", "rain")),
        ({"columns": ["*_pm"]}, ("north", "south", "east"), ("pm",)),
        ({"columns": ["north:rain", "east_rain"]}, ("north", "east"), ("rain",)),
        ({"columns": ["pm"]}, ("north", "south", "east"), ("pm",)),
        ({"drop": ["south"]}, ("north", "east"), ("pm", "rain")),
        ({"drop": ["*:RAIN"]}, ("north", "south", "east"), ("pm",)),
        ({"columns": ["*_pm"], "drop": ["east"]}, ("north", "south"), ("pm",)),
    ],
)
def test_names_and_patterns(options, nodes, channels, tmp_path):
    series = read(tmp_path, TWO, sep="_", **options)
    assert (series.nodes, series.channels) == (nodes, channels)
    assert series.notes == ()


def test_columns_of_a_plain_table(tmp_path):
    table = wide(("c", [1, 2, 1, 2, 1, 3]), ("a[1]", [5, 2, 5, 1, 0, 1]), ("a1", [1, 2, 1, 0, 1, 3]))
    assert read(tmp_path, table, columns=["c", "a"]).nodes == ("a", "c")  # in the order of the table
    assert read(tmp_path, table, drop=["a[1]"]).nodes == ("a", "b", "c", "a1")  # a name comes before a pattern
    assert read(tmp_path, table, drop=["a*"]).nodes == ("b", "c")


def test_values_and_nodes_of_a_long_table(tmp_path, refused):
    rng = np.random.default_rng(0)
    rows = [(t, node, *rng.normal(size=2).round(2)) for t in range(5) for node in "abc"]
    table = pd.DataFrame(rows, columns=["time", "station", "pm", "rain"])
    assert read(tmp_path, table, columns=["pm"]).channels == ("pm",)
    assert read(tmp_path, table, drop=["rain"]).channels == ("pm",)
    assert read(tmp_path, table, drop=["b"]).nodes == ("a", "c")
    words = read(tmp_path, table.assign(city="Lugano"))
    assert (words.channels, words.notes) == (("pm", "rain"), ("left out: 'city' (text)",))
    for options in (
        {"columns": ["pm"], "value": "pm"},
        {"columns": ["station"]},
        {"drop": ["d"]},
        {"drop": ["a", "b", "c"]},
    ):
        refused(read_series, write(tmp_path, table.to_csv(index=False)), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["aa"]},
        {"columns": ["z*"]},
        {"columns": []},
        {"columns": ["time"]},
        {"columns": ["a"], "drop": ["a"]},
        {"columns": ["a"], "drop": ["[ab]"]},
        {"drop": ["bb"]},
        {"drop": ["time"]},
        {"drop": ["time"], "time": "time"},
        {"drop": ["a", "b"]},
        {"drop": ["*"]},
        {"decimal": ";"},
    ],
)
def test_wrong_choices(options, tmp_path, refused):
    refused(read_series, write(tmp_path, wide().to_csv(index=False)), **options)


def test_new_rows_need_not_have_what_is_dropped(tmp_path):
    path = write(tmp_path, wide().to_csv(index=False))
    assert read_series(path, drop=["comment", "unnamed*"], piece=True).nodes == ("a", "b")


def test_what_nothing_can_be_learned_from_is_left_out_in_one_note(tmp_path):
    table = wide(
        ("city", ["Lugano"] * 6),
        ("id", [7] * 6),
        ("empty", [None] * 6),
        ("mixed", ["x", "y", 3, "z", "x", 2]),
        ("seen", pd.date_range("2020", periods=6)),
    )
    series = read(tmp_path, table)
    assert series.nodes == ("a", "b")
    assert series.notes == (
        "left out: 'city' (text), 'mixed' (text), 'seen' (dates), 'id' (constant), 'empty' (empty)",
    )
    assert set(series.settled["drop"]) == {"city", "mixed", "seen", "id", "empty"}
    new = read_series(tmp_path / "table.csv", drop=series.settled["drop"], piece=True)
    assert (new.nodes, new.notes) == (("a", "b"), ())


def test_the_note_on_a_nearly_empty_column_has_the_number_of_empty_cells(tmp_path):
    table = pd.DataFrame({"time": range(300), "a": np.arange(300) % 7, "b": np.arange(300) % 5, "c": np.nan})
    table.loc[10, "c"] = 3.0
    assert read(tmp_path, table).notes == ("left out: 'c' (299 of 300 cells are empty, constant in the others)",)


def test_what_is_asked_for_is_refused(tmp_path, refused):
    table = wide(("city", ["Lugano"] * 6), ("id", [7] * 6), ("typo", [1, 2, "3x", 4, 5, 6]))
    path = write(tmp_path, table.to_csv(index=False))
    for options in ({"columns": ["a", "city"]}, {"columns": ["a", "id"]}, {}):
        refused(read_series, path, **options)
    assert read_series(path, columns=["a", "b", "c*"]).notes == ("left out: 'city' (text)",)  # a pattern asks for none
    two = TWO.assign(north_pm="high", south_pm="low", east_pm="low")
    refused(read_series, write(tmp_path, two.to_csv(index=False)), sep="_", asked=["pm"])


def test_variables_that_are_constant_everywhere(tmp_path, refused):
    table = TWO.assign(north_rain=1, south_rain=2, east_rain=3)
    series = read(tmp_path, table, sep="_")
    assert (series.channels, series.notes) == (("pm",), ("left out: 'rain' (constant)",))
    new = read_series(tmp_path / "table.csv", sep="_", drop=series.settled["drop"], piece=True)
    assert new.channels == ("pm",)
    refused(read_series, write(tmp_path, TWO.assign(north_rain=1).to_csv(index=False)), sep="_")


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "unnamed: 12"])
@pytest.mark.parametrize("start", [0, 1])
def test_an_index_beside_times(name, start, tmp_path):
    table = wide()
    table.insert(0, name, range(start, start + 6))
    series = read_series(write(tmp_path, table.to_csv(index=False)))
    shown = f"'{name}'" if name else "the column without a name"
    assert (series.nodes, series.notes) == (("a", "b"), (f"left out: {shown} (index of rows)",))
    assert series.settled == {}
    days = table.assign(time=pd.date_range("2020", periods=6).astype(str)).rename(columns={"time": "when"})
    series = read_series(write(tmp_path, days.to_csv(index=False)))
    assert series.nodes == ("a", "b")
    assert series.times.astype("datetime64[D]").astype(str)[0] == "2020-01-01"
    again = table.assign(time=[0, 1, 2, 0, 1, 2])  # the index goes on while time starts again
    assert read_series(write(tmp_path, again.to_csv(index=False))).lengths == (3, 3)
    alone = table.drop(columns="time")
    assert read_series(write(tmp_path, alone.to_csv(index=False))).times.tolist() == list(range(start, start + 6))


def test_no_column_of_times(tmp_path):
    path = write(tmp_path, wide(time=False).to_csv(index=False))
    series = read_series(path)
    assert (series.nodes, series.times.tolist()) == (("a", "b"), [0, 1, 2, 3, 4, 5])
    assert series.notes[0].startswith("no column of times was found: each row counts as one step; set time")
    assert series.settled == {"time": False}
    rising = pd.DataFrame({"a": [1, 2], "b": [2, 7]})  # the first of a few new rows may look like times
    assert read_series(write(tmp_path, rising.to_csv(index=False)), time=False, piece=True).nodes == ("a", "b")
    several = wide(("s", list("xyxyxy")), time=False)
    found = read_series(write(tmp_path, several.to_csv(index=False)), series="s", time=False)
    assert (found.lengths, found.times.tolist()) == ((3, 3), [0, 1, 2, 0, 1, 2])
    assert found.parts[1].values[:, 0, 0].tolist() == [1, 1, 9]


def test_dates_under_another_name_are_the_times(tmp_path, refused):
    table = wide(("observed on", [f"2020-01-0{day}" for day in range(1, 7)]), time=False)
    series = read(tmp_path, table)
    assert series.notes == ("column 'observed on' was used as the times; set time to use another column",)
    assert series.settled == {"time": "observed on"}
    both = table.assign(sent=table["observed on"])
    refused(read_series, write(tmp_path, both.to_csv(index=False)))


LONG = pd.DataFrame(
    [(t, tag, t % 3 + len(tag)) for t in range(6) for tag in ("p1", "p10")], columns=["date", "tag", "v"]
)


@pytest.mark.parametrize("order", ["date", "tag"])
@pytest.mark.parametrize("labels", ["words", "numbers"])
def test_a_long_table_that_is_not_recognised(order, labels, tmp_path, refused):
    table = LONG.sort_values(order, kind="stable").assign(w=range(12))
    if labels == "numbers":
        table["tag"] = table["tag"].str.len()
    path = write(tmp_path, table.to_csv(index=False))
    refused(read_series, path)
    assert read_series(path, node="tag").num_nodes == 2
    assert read_series(path, series="tag").lengths == (6, 6)


def test_a_date_and_a_time_of_day_are_not_taken_for_a_node(tmp_path, refused):
    text = "date,time,a,b\n" + "".join(f"2020-01-{1 + t // 4:02},{t % 4}:00,{t % 3},{t % 5}\n" for t in range(16))
    refused(read_series, write(tmp_path, text))


def test_a_few_times_that_come_twice_are_no_long_table(tmp_path, refused):
    text = "time,a,b\n0,1,2\n1,2,1\n1,1,3\n2,1,2\n3,2,1\n"
    refused(read_series, write(tmp_path, text))


def test_cells_that_are_lists(tmp_path, refused):
    cells = [[1.0, 2.0]] * 6
    wide(("c", cells)).to_parquet(tmp_path / "t.parquet")
    assert read_series(tmp_path / "t.parquet").notes == ("left out: 'c' (text)",)
    refused(read_series, tmp_path / "t.parquet", columns=["a", "c"])
    wide(("c", cells)).assign(time=[0, 0, 1, 1, 2, 2]).to_parquet(tmp_path / "t.parquet")
    refused(read_series, tmp_path / "t.parquet", drop=["a", "b"], asked=["c"])

"""Long tables whose columns have other names, columns that count rows, and columns that describe a wide table."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from tacit.data import read_frame, read_series
from tacit.errors import InputError

RNG = np.random.default_rng(0)
VISITS = pd.DataFrame(list(product(["p1", "p2", "p3"], range(10), ["pulse", "sugar"]))).set_axis(
    ["patient", "day", "measure"], axis="columns"
)
VISITS["value"] = RNG.normal(size=len(VISITS)).round(3)
WIDE = pd.DataFrame(RNG.normal(size=(20, 3)).round(3), columns=["a", "b", "c"])
NUMBERED = VISITS["patient"].str[1:].astype(int)


def write(folder, table):
    table.to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


@pytest.mark.parametrize(
    "table",
    [
        VISITS,
        VISITS.assign(patient=NUMBERED),
        VISITS.sort_values("day", kind="stable", ignore_index=True),
        VISITS[["value", "measure", "day", "patient"]],
        VISITS.assign(sex=NUMBERED.map({1: "f", 2: "m", 3: "f"}), unit=VISITS["measure"].map(len).astype(str) + "mg"),
        VISITS.assign(day=(pd.Timestamp("2020-01-01") + pd.to_timedelta(VISITS["day"], "D")).astype(str)),
    ],
    ids=["words", "numbers", "by day", "other order", "descriptions", "dates"],
)
@pytest.mark.parametrize("kind", ["file", "frame"])
def test_patients_days_and_measures(table, kind, tmp_path):
    path = write(tmp_path, table)
    series = read_frame(table) if kind == "frame" else read_series(path)
    assert set(series.nodes) == {"pulse", "sugar"}
    assert series.lengths == (10, 10, 10)
    first = table[(table["measure"] == "sugar") & (table["patient"] == table["patient"].iloc[0])]
    rows = series.values[:10, series.nodes.index("sugar"), 0]
    assert rows.tolist() == first.sort_values("day")["value"].tolist()
    assert series.settled == {"time": "day", "node": "measure", "value": "value", "series": "patient"}
    assert series.notes[0].startswith("read as a long table: time = day, node = measure, value = value, series = pat")
    again = read_series(path, **series.settled)
    assert np.array_equal(again.values, series.values)


def test_the_series_may_be_given_or_absent(tmp_path):
    given = read_series(write(tmp_path, VISITS), series="patient")
    assert (given.nodes, given.lengths) == (("pulse", "sugar"), (10, 10, 10))
    assert read_frame(VISITS, series="patient").lengths == (10, 10, 10)
    one = read_series(write(tmp_path, VISITS[:20].drop(columns="patient")))
    assert (one.nodes, one.lengths, len(one)) == (("pulse", "sugar"), (), 10)
    tags = VISITS[:20].drop(columns="patient").rename(columns={"day": "time"})
    assert read_series(write(tmp_path, tags)).nodes == ("pulse", "sugar")


def test_several_columns_of_values_are_asked_about(tmp_path):
    panel = VISITS.pivot_table(index=["patient", "day"], columns="measure", values="value").reset_index()
    path = write(tmp_path, panel)
    with pytest.raises(
        InputError, match=r"a row per 'day' and 'patient'; use --set data.time=day --series patient if each 'patient'"
    ):
        read_series(path)
    named = read_series(path, series="patient", time="day")
    found = read_series(path, series="patient")
    assert (found.nodes, found.lengths, found.settled) == (("pulse", "sugar"), (10, 10, 10), {"time": "day"})
    assert np.array_equal(found.values, named.values)
    assert read_frame(panel, series="patient").nodes == ("pulse", "sugar")


def test_names_that_do_not_decide_are_asked_about(tmp_path):
    wards = VISITS.rename(columns={"patient": "ward", "measure": "unit"})
    with pytest.raises(
        InputError, match=r"a row per 'day', 'ward' and 'unit'; name .*, such as --set data.node=unit --series ward$"
    ):
        read_series(write(tmp_path, wards))
    series = read_series(write(tmp_path, wards), node="unit", series="ward")
    assert (series.nodes, series.lengths) == (("pulse", "sugar"), (10, 10, 10))


def test_wide_tables_with_units_and_words_stay_wide(tmp_path):
    table = WIDE.assign(month=[1] * 10 + [2] * 10, weather=["sun", "rain"] * 10)
    series = read_series(write(tmp_path, table))
    assert series.nodes == ("a", "b", "c", "month")
    timed = WIDE.assign(time=range(20), quality=["good", "bad"] * 10)
    assert read_series(write(tmp_path, timed)).notes == ("left out: 'quality' (text)",)
    events = WIDE[["a", "b"]].assign(day=range(20), state=["on", "off"] * 10)  # each day has one row
    assert read_series(write(tmp_path, events)).nodes == ("a", "b", "day")


@pytest.mark.parametrize(
    ("name", "numbers", "reason"),
    [
        ("id", range(20), "row numbers"),
        ("Index", range(1, 21), "row numbers"),
        ("nr", [*range(40, 50), *range(20, 30)], "unique integers, as identifiers have"),
        ("id", np.sort(RNG.permutation(999)[:20]), "unique integers, as identifiers have"),
    ],
)
def test_a_column_that_counts_rows_is_neither_time_nor_node(name, numbers, reason, tmp_path):
    table = WIDE.copy()
    table.insert(0, name, list(numbers))
    path = write(tmp_path, table)
    series = read_series(path)
    assert (series.nodes, series.times.tolist()) == (("a", "b", "c"), list(range(20)))
    assert series.notes[-1] == f"left out: '{name}' ({reason})"
    assert series.settled == {"time": False, "drop": (name,)}
    assert read_frame(table).nodes == ("a", "b", "c")
    assert read_series(write(tmp_path, table.assign(time=range(0, 40, 2)))).nodes == ("a", "b", "c")
    assert read_series(path, columns=[name, "a"], time=False).nodes == (name, "a")  # it was asked for
    if (np.diff(list(numbers)) > 0).all():
        assert read_series(write(tmp_path, table), time=name).nodes == ("a", "b", "c")


def test_an_id_that_repeats_is_no_counter(tmp_path):
    table = WIDE.assign(time=range(20), id=[3, 4, 3, 5] * 5)
    assert read_series(write(tmp_path, table)).nodes == ("a", "b", "c", "id")


def test_a_column_called_like_nodes_in_a_wide_table(tmp_path):
    table = WIDE.assign(time=range(20), site=["x", "y"] * 10)
    with pytest.raises(
        InputError,
        match="column 'site' is called like a column of nodes, but each 'time' has one row; use --drop site if the oth",
    ):
        read_series(write(tmp_path, table))
    assert read_series(write(tmp_path, table), drop=["site"]).nodes == ("a", "b", "c")
    assert read_series(write(tmp_path, table), layout="long").nodes == ("x", "y")
    one = read_series(write(tmp_path, table.assign(site="Zurich")))
    assert (one.nodes, one.notes) == (("a", "b", "c"), ("left out: 'site' (text)",))


def test_a_column_of_words_beside_many_numbers_may_be_dropped(tmp_path):
    rows = pd.concat([WIDE.assign(time=range(20)), WIDE.assign(time=range(20), a=WIDE["a"] + 1)])
    path = write(tmp_path, rows.sort_values("time", kind="stable").assign(quality=["raw", "checked"] * 20))
    with pytest.raises(InputError, match=r"per 'time' and 'quality'; .* or --drop quality to ignore it with --dupl"):
        read_series(path)
    mean = read_series(path, drop=["quality"], duplicates="mean")
    assert np.allclose(mean.values[:, 0, 0], WIDE["a"] + 0.5)

"""Long tables whose columns have other names, columns that count rows, and columns that describe a wide table."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from tacit.data import read_frame, read_series

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


def test_several_columns_of_values_are_asked_about(tmp_path, refused):
    panel = VISITS.pivot_table(index=["patient", "day"], columns="measure", values="value").reset_index()
    path = write(tmp_path, panel)
    refused(read_series, path)
    named = read_series(path, series="patient", time="day")
    found = read_series(path, series="patient")
    assert (found.nodes, found.lengths, found.settled) == (("pulse", "sugar"), (10, 10, 10), {"time": "day"})
    assert np.array_equal(found.values, named.values)
    assert read_frame(panel, series="patient").nodes == ("pulse", "sugar")


def test_names_that_do_not_decide_are_asked_about(tmp_path, refused):
    wards = VISITS.rename(columns={"patient": "ward", "measure": "unit"})
    refused(read_series, write(tmp_path, wards))
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


def test_a_column_called_like_nodes_in_a_wide_table(tmp_path, refused):
    table = WIDE.assign(time=range(20), site=["x", "y"] * 10)
    refused(read_series, write(tmp_path, table))
    assert read_series(write(tmp_path, table), drop=["site"]).nodes == ("a", "b", "c")
    assert read_series(write(tmp_path, table), layout="long").nodes == ("x", "y")
    one = read_series(write(tmp_path, table.assign(site="Zurich")))
    assert (one.nodes, one.notes) == (("a", "b", "c"), ("left out: 'site' (text)",))


def test_a_column_of_words_beside_many_numbers_may_be_dropped(tmp_path, refused):
    rows = pd.concat([WIDE.assign(time=range(20)), WIDE.assign(time=range(20), a=WIDE["a"] + 1)])
    path = write(tmp_path, rows.sort_values("time", kind="stable").assign(quality=["raw", "checked"] * 20))
    refused(read_series, path)
    mean = read_series(path, drop=["quality"], duplicates="mean")
    assert np.allclose(mean.values[:, 0, 0], WIDE["a"] + 0.5)


# ---------------------------------------------------------------- numbers with a decimal comma, and dates that begin wi


def write_notations(folder, text):
    path = folder / "table.csv"
    path.write_text(text)
    return path


COMMA = "time;a;b;c\n0;1,5;2;1e3\n1;-0,25;3,0;2\n2;;4,125;,5\n3;2,5;1;7\n"


def test_a_decimal_comma(tmp_path):
    path = write_notations(tmp_path, COMMA)
    series = read_series(path, decimal=",")
    expected = read_series(write_notations(tmp_path, COMMA.replace(",", ".")))
    assert np.array_equal(series.values, expected.values, equal_nan=True)
    quoted = read_series(write_notations(tmp_path, 'time,a,b\n0,"1,5",2\n1,"2,5",3\n'), decimal=",")
    assert quoted.values[:, 0, 0].tolist() == [1.5, 2.5]
    frame = pd.DataFrame({"a": ["1,5", "2", 2.5], "b": [1.5, 2.5, 0.5]})  # numbers that are no text stay
    assert read_frame(frame, decimal=",").values[:, 0, 0].tolist() == [1.5, 2, 2.5]
    times = read_series(write_notations(tmp_path, "time;a;b\n0,5;1;2\n1,0;2;1\n1,5;4;4\n"), decimal=",")
    assert times.times.tolist() == [0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (COMMA, {}),
        ("time;a;b\n0;1,5;2\n1;2;3\n2;3;4\n", {}),
        ("time;a;b\n0,5;1;2\n1,5;2;3\n", {}),
        ("time;a;b\n0;1.234,5;2\n1;2,5;3\n", {"decimal": ","}),
        ("time;a;b\n0;1.5;2\n1;2.5;3\n", {"decimal": ","}),
        ("time;a;b\n0;1,234,567;2\n1;2,000,000;3\n", {}),
        ("time;a;b\n0;1'234;2\n1;2'000;3\n", {}),
    ],
)
def test_other_notations_are_refused(text, options, tmp_path, refused):
    refused(read_series, write_notations(tmp_path, text), **options)


def days(form, first="2021-04-01", periods=20, **step):
    return pd.date_range(first, periods=periods, **step).strftime(form).tolist()


def table(dates):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"date": dates, "a": rng.normal(size=len(dates)), "b": rng.normal(size=len(dates))})


FORMS = {
    "%d/%m/%Y": True,
    "%d.%m.%Y": True,
    "%d-%m-%Y %H:%M": True,
    "%m/%d/%Y": False,
    "%m-%d-%Y %H:%M:%S": False,
    "%m/%d/%Y %I:%M %p": False,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("given", [True, False])
def test_one_reading_for_the_whole_column(form, given, tmp_path):
    rows = table(days(form))  # the first twelve days could be read both ways
    rows.to_csv(tmp_path / "t.csv", index=False)
    options = {"dayfirst": FORMS[form]} if given else {}
    for series in (read_series(tmp_path / "t.csv", **options), read_frame(rows, **options)):
        assert series.times.astype("datetime64[D]").astype(str).tolist() == days("%Y-%m-%d")
        assert series.settled == {"dayfirst": FORMS[form]}
        first = "day" if FORMS[form] else "month"
        note = f"dates of column 'date' were read with the {first} first, as in '{rows['date'][12]}'"
        assert series.notes == (() if given else (note,))


def test_dates_with_two_readings_are_refused(tmp_path, refused):
    rows = table(days("%d/%m/%Y", periods=8))
    rows.to_csv(tmp_path / "t.csv", index=False)
    refused(read_series, tmp_path / "t.csv")
    refused(read_frame, rows)
    day = read_series(tmp_path / "t.csv", dayfirst=True)
    assert day.times.astype("datetime64[D]").astype(str).tolist() == days("%Y-%m-%d", periods=8)
    month = read_series(tmp_path / "t.csv", dayfirst=False)
    assert month.times[0].astype(str).startswith("2021-01-04")
    same = table(["01/01/2021", "02/02/2021", "03/03/2021"])  # both readings agree
    same.to_csv(tmp_path / "t.csv", index=False)
    assert read_series(tmp_path / "t.csv").times[1].astype(str).startswith("2021-02-02")


@pytest.mark.parametrize(
    ("dates", "options"),
    [
        (days("%d/%m/%y"), {}),
        (days("%m/%d/%Y"), {"dayfirst": True}),
        (days("%d/%m/%Y"), {"dayfirst": False}),
        (["13/04/2021", "04/14/2021"], {}),
        (["03/04/2021", "2021-04-05"], {}),
        (["2021-04-05", "06/04/2021"], {}),
        (["31/01/2021", "30/02/2021"], {}),
    ],
)
def test_dates_that_cannot_be_read(dates, options, tmp_path, refused):
    rows = table(dates)
    rows.to_csv(tmp_path / "t.csv", index=False)
    refused(read_series, tmp_path / "t.csv", **options)


def test_iso_dates_do_not_ask_for_a_reading(tmp_path):
    table(days("%Y-%m-%d", periods=8)).to_csv(tmp_path / "t.csv", index=False)
    for given in (None, True, False):
        series = read_series(tmp_path / "t.csv", dayfirst=given)
        assert series.times.astype("datetime64[D]").astype(str).tolist() == days("%Y-%m-%d", periods=8)
        assert (series.notes, series.settled) == ((), {})

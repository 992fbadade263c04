"""Numbers with a decimal comma, and dates that begin with the day or with the month."""

import numpy as np
import pandas as pd
import pytest

from tacit.data import read_frame, read_series
from tacit.errors import InputError


def write(folder, text):
    path = folder / "table.csv"
    path.write_text(text)
    return path


COMMA = "time;a;b;c\n0;1,5;2;1e3\n1;-0,25;3,0;2\n2;;4,125;,5\n3;2,5;1;7\n"


def test_a_decimal_comma(tmp_path):
    path = write(tmp_path, COMMA)
    series = read_series(path, decimal=",")
    expected = read_series(write(tmp_path, COMMA.replace(",", ".")))
    assert np.array_equal(series.values, expected.values, equal_nan=True)
    quoted = read_series(write(tmp_path, 'time,a,b\n0,"1,5",2\n1,"2,5",3\n'), decimal=",")
    assert quoted.values[:, 0, 0].tolist() == [1.5, 2.5]
    frame = pd.DataFrame({"a": ["1,5", "2", 2.5], "b": [1.5, 2.5, 0.5]})  # numbers that are no text stay
    assert read_frame(frame, decimal=",").values[:, 0, 0].tolist() == [1.5, 2, 2.5]
    times = read_series(write(tmp_path, "time;a;b\n0,5;1;2\n1,0;2;1\n1,5;4;4\n"), decimal=",")
    assert times.times.tolist() == [0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (COMMA, {}, "column 'a' must have numbers, got '1,5' in row 1 .*; use --decimal , where the comma is the"),
        ("time;a;b\n0;1,5;2\n1;2;3\n2;3;4\n", {}, "column 'a' must have numbers, got '1,5' in row 1; use --decimal ,"),
        ("time;a;b\n0,5;1;2\n1,5;2;3\n", {}, "column 'time' must have numbers, got '0,5' in row 1 .*; use --decimal ,"),
        ("time;a;b\n0;1.234,5;2\n1;2,5;3\n", {"decimal": ","}, "column 'a' .*got '1.234,5' in row 1; write ',' as the"),
        (
            "time;a;b\n0;1.5;2\n1;2.5;3\n",
            {"decimal": ","},
            "column 'a' .*got '1.5' in row 1 .*nothing between thousands",
        ),
        ("time;a;b\n0;1,234,567;2\n1;2,000,000;3\n", {}, "column 'a' .*got '1,234,567' in row 1 .*nothing between"),
        ("time;a;b\n0;1'234;2\n1;2'000;3\n", {}, "column 'a' .*got \"1'234\" in row 1 .*nothing between thousands"),
    ],
)
def test_other_notations_are_refused(text, options, message, tmp_path):
    with pytest.raises(InputError, match=message) as refusal:
        read_series(write(tmp_path, text), **options)
    assert "\n" not in str(refusal.value)


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


def test_dates_with_two_readings_are_refused(tmp_path):
    rows = table(days("%d/%m/%Y", periods=8))
    rows.to_csv(tmp_path / "t.csv", index=False)
    message = (
        r"got '01/04/2021', in which day and month .*; use --dayfirst, or --set data.dayfirst=false for month first$"
    )
    for call in (lambda: read_series(tmp_path / "t.csv"), lambda: read_frame(rows)):
        with pytest.raises(InputError, match=message):
            call()
    day = read_series(tmp_path / "t.csv", dayfirst=True)
    assert day.times.astype("datetime64[D]").astype(str).tolist() == days("%Y-%m-%d", periods=8)
    month = read_series(tmp_path / "t.csv", dayfirst=False)
    assert month.times[0].astype(str).startswith("2021-01-04")
    same = table(["01/01/2021", "02/02/2021", "03/03/2021"])  # both readings agree
    same.to_csv(tmp_path / "t.csv", index=False)
    assert read_series(tmp_path / "t.csv").times[1].astype(str).startswith("2021-02-02")


@pytest.mark.parametrize(
    ("dates", "options", "message"),
    [
        (days("%d/%m/%y"), {}, "must have years of four digits, got '01/04/21' in row 1; write YYYY-MM-DD"),
        (days("%m/%d/%Y"), {"dayfirst": True}, "must have dates with the day first, got '04/13/2021' in row 13; --set"),
        (days("%d/%m/%Y"), {"dayfirst": False}, "with the month first, got '13/04/2021' in row 13; use --dayfirst"),
        (["13/04/2021", "04/14/2021"], {}, "with the day first, got '04/14/2021' in row 2; correct it, or write YYYY"),
        (["03/04/2021", "2021-04-05"], {}, "dates of one form, got '03/04/2021' in row 1 and '2021-04-05' in row 2"),
        (["2021-04-05", "06/04/2021"], {}, "must have times, got '06/04/2021' in row 2; write times as numbers or as"),
        (["31/01/2021", "30/02/2021"], {}, "must have times, got '30/02/2021' in row 2"),
    ],
)
def test_dates_that_cannot_be_read(dates, options, message, tmp_path):
    rows = table(dates)
    rows.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=message) as refusal:
        read_series(tmp_path / "t.csv", **options)
    assert "\n" not in str(refusal.value)


def test_iso_dates_do_not_ask_for_a_reading(tmp_path):
    table(days("%Y-%m-%d", periods=8)).to_csv(tmp_path / "t.csv", index=False)
    for given in (None, True, False):
        series = read_series(tmp_path / "t.csv", dayfirst=given)
        assert series.times.astype("datetime64[D]").astype(str).tolist() == days("%Y-%m-%d", periods=8)
        assert (series.notes, series.settled) == ((), {})

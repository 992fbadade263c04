"""Conditions on rows: against Python's own evaluation of the same text, and what is refused."""

import numpy as np
import pytest

from tacit.data.conditions import Condition
from tacit.errors import InputError

MONTHS = np.arange(1.0, 13.0)
REGIMES = np.array(["wet", "dry", None] * 4, dtype=object)
TIMES = np.arange("2026-01", "2027-01", dtype="datetime64[M]").astype("datetime64[s]")
COLUMNS = {"month": MONTHS, "regime": REGIMES, "time": TIMES, "PM 2.5": np.where(MONTHS > 10, np.nan, MONTHS / 2)}


def holds(text):
    return Condition.read(text).holds(COLUMNS.__getitem__).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "month in (6, 7, 8)",
        "month not in [1, 2] and month != 5",
        "3 <= month < 7 or month == 12",
        "not (month > 4 or month == 2)",
        "month % 3 == 0",
        "-month + 2 * month / 4 - 1 < -3.5",
        "month in {1, 2} or not month < 11",
        "month in ()",
        "regime == 'wet'",
        "regime != 'wet' and month > 2",
        'regime in ("wet", "snow")',
        "not regime == 'dry'",
    ],
)
def test_conditions_hold_where_python_says_so(text):
    for month, regime, found in zip(MONTHS, REGIMES, holds(text), strict=True):
        missing = "regime" in text and regime is None
        expected = not missing and eval(text, {}, {"month": month, "regime": regime})  # the oracle
        assert found == expected


def test_times_are_compared_with_texts():
    assert sum(holds("time >= '2026-06'")) == 7
    assert sum(holds("'2026-02-15 12:00' < time < '2026-05-01T00:00:00'")) == 2
    assert sum(holds("time in ('2026-02', '2026-02-02')")) == 1


def test_names_in_backticks_and_missing_numbers():
    assert Condition.read("`PM 2.5` > 3 and month < 12").names == ("PM 2.5", "month")
    assert np.flatnonzero(holds("`PM 2.5` > 4")).tolist() == [8, 9]
    assert np.flatnonzero(holds("not `PM 2.5` > 4")).tolist() == list(range(8))  # NaN is in neither


def test_nothing_is_executed():
    for text in ("__import__('os').abort()", "month.real == 1", "[m for m in month]", "f'{month}' == '1'", "month[0]"):
        with pytest.raises(InputError, match=r"which cannot be read at character \d+"):
            Condition.read(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("month = 6", r"at character 7, '= 6' \(equal is written ==\)"),
        ("(month == 6", r"at character 1, '\(month == 6' \('\(' was never closed\)"),
        ("month == 6 and", r"at its end \(invalid syntax\)"),
        ("", r"got '', which cannot be read at its end"),
        ("month is 6", r"only comparisons, and, or, not, in and \+ - \* / % are known"),
        ("-" * 500 + "month < 3", "nested too deeply"),
        ("1 == 1", "where must name a column or a part of the date"),
        ("month == 1" + " " * 3000 + "0", "at most 2000 characters, got 3,011"),
        ("month", "must be true or false, got month; compare it, for example month == 1"),
        ("month and regime == 'wet'", "join comparisons with and, or, not, got month"),
        ("month == 'june'", r"compare month \(1 to 12\) with a number, got 'june'"),
        ("6 == regime", "compare regime with a word in quotes, got 6"),
        ("regime < 'wet'", "compare words with ==, != or in"),
        ("month in 6", r"a list after in, got 6; write in \(6,\)"),
        ("time > 'now'", "times as YYYY-MM-DD HH:MM:SS, got 'now'"),
        ("time > '2026-13-01'", "times as YYYY-MM-DD HH:MM:SS, got '2026-13-01'"),
        ("time > 3", 'compare time with a time such as "2026-03-01", got 3'),
        ("regime + 1 == 2", "must compute with numbers, got regime"),
        ("month == (1 == 1)", "compare month .* with a number, got a comparison"),
        ("month == 1" + "0" * 400, "numbers that fit in double precision"),
    ],
)
def test_what_cannot_be_read_or_compared(text, words):
    with pytest.raises(InputError, match=words):
        holds(text)

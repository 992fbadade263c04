"""Tables as text: wide and long, ragged and quoted, with odd names, times and numbers, gzipped, or no tables at all."""

import csv
import gzip
import io
from typing import Any

from fuzz_configs import QUICK
from fuzz_judge import Case
from fuzz_words import damaged, number_texts, odd_words, perhaps_damaged, sane, toml_value
from hypothesis import strategies as st

TIME_NAMES = ("time", "date", "Timestamp", "datetime", "", "t", "hour")
NODE_NAMES = ("a", "b", "c", "d", " a", "a ", "A", "a:x", "a:y", "b:x", "b:y", "<b>", "=1+1", "é", "e\u0301")
TIMES = {
    "numbers": lambda row: str(row),
    "tenths": lambda row: f"{row / 10}",
    "days": lambda row: f"2024-{row // 28 % 12 + 1:02d}-{row % 28 + 1:02d}",
    "hours": lambda row: f"2024-01-{row // 24 % 28 + 1:02d} {row % 24:02d}:00:00",
    "zoned": lambda row: f"2024-01-{row // 24 % 28 + 1:02d}T{row % 24:02d}:00:00+02:00",
    "summer": lambda row: f"2024-03-31T{row % 24:02d}:00:00+0{1 + row % 2}:00",
    "american": lambda row: f"{row // 28 % 12 + 1}/{row % 28 + 1}/2024",
    "german": lambda row: f"{row % 28 + 1}.{row // 28 % 12 + 1}.2024 00:00",
    "late": lambda row: f"{2261 + row // 12}-{row % 12 + 1:02d}-01",
    "far": lambda row: f"{9998 + row // 12}-{row % 12 + 1:02d}-01",
    "huge": lambda row: str(10**18 * (row + 1)),
    "floats": lambda row: repr(1e300 * (row + 1)),
    "tiny": lambda row: repr(5e-324 * row),
    "back": lambda row: str(-row),
    "same": lambda _row: "7",
    "squares": lambda row: str(row * row),
    "jump": lambda row: str(row if row < 10 else row + 10**9),
    "words": lambda row: f"week {row}",
    "clock": lambda row: f"{row % 24}:00",
}
time_cells = st.one_of(
    st.sampled_from(("", "NaT", "2024-13-01", "2024-02-30", "now", "0", "-1", "nan", "1e999")), odd_words
)


@st.composite
def cells(draw: Any, rows: int, kind: str) -> list[str]:
    """Return a column of numbers, most of them right."""
    base = [draw(sane) for _ in range(5)]
    column = [repr(base[row % 5] + row % 7 + 0.1 * (row % 3)) for row in range(rows)]
    match kind:
        case "constant":
            return ["3.5"] * rows
        case "empty":
            return [""] * rows
        case "huge":
            return [f"{float(cell) * 1e300!r}" for cell in column]
        case "wide":
            return [f"{float(cell) * 10.0 ** (row % 600 - 300)!r}" for row, cell in enumerate(column)]
        case "offset":
            return [repr(1e15 + row % 3) for row in range(rows)]
        case "nearly":
            return [repr(1.0 + (row == rows // 2) * 1e-15) for row in range(rows)]
        case "tiny":
            return [f"{float(cell) * 1e-310!r}" for cell in column]
        case "late":
            return ["1"] * (rows - rows // 5) + column[rows - rows // 5 :]
        case "gaps":
            return [cell if row % 3 else "" for row, cell in enumerate(column)]
        case "comma":
            return [cell.replace(".", ",") for cell in column]
        case "bool":
            return ["True" if row % 2 else "False" for row in range(rows)]
    return column


kinds = st.sampled_from(
    ("plain",) * 12 + ("constant", "empty", "huge", "wide", "offset", "nearly", "tiny", "late", "gaps", "comma", "bool")
)


TWISTS = ("none", "names", "numbers", "times", "cells", "rows", "size", "long", "bytes", "file")


@st.composite
def twists(draw: Any) -> set[str]:
    """Return what is odd about a table: mostly one thing or two, so that the others are reached; sometimes all."""
    wild = draw(st.integers(1, 6)) == 1
    return set(TWISTS) if wild else set(draw(st.lists(st.sampled_from(TWISTS), min_size=1, max_size=2)))


@st.composite
def columns(draw: Any, odd: set[str]) -> tuple[list[str], list[list[str]]]:
    """Return a header and rows of cells: wide, or long where a column of names is among them."""
    rows = draw(st.sampled_from((0, 1, 2, 3, 5, 12, 30))) if "size" in odd else 30
    times = TIMES[draw(st.sampled_from(tuple(TIMES) if "times" in odd else ("numbers", "hours", "days")))]
    names, first = ["a", "b", "c"][: draw(st.integers(2, 3))], "time"
    if "names" in odd:
        names = draw(st.lists(st.one_of(st.sampled_from(NODE_NAMES), odd_words), max_size=4))
        first = draw(st.one_of(st.sampled_from(TIME_NAMES), odd_words))
    kind = kinds if "numbers" in odd else st.just("plain")
    table = [[times(row) for row in range(rows)], *(draw(cells(rows, draw(kind))) for _ in names)]
    header = [first, *names]
    if "long" in odd:
        word = st.sampled_from("abc")
        stations = draw(st.lists(st.one_of(word, word, odd_words), min_size=1, max_size=3, unique=draw(st.booleans())))
        header.insert(1, draw(st.sampled_from(("node", "station", "Sensor", "who"))))
        spread = ["", *(f"{place}" for place in range(1, len(stations)))]  # each station has values of its own
        table = [
            [cell + (end if number else "") for cell in column for end in spread] for number, column in enumerate(table)
        ]
        table.insert(1, [station for _ in range(rows) for station in stations])
    lines = [list(line) for line in zip(*table, strict=True)]
    if "cells" in odd and lines:
        for _ in range(draw(st.integers(1, 3))):
            line = draw(st.sampled_from(lines))
            place = draw(st.integers(0, max(len(line) - 1, 0)))
            line[place] = draw(time_cells if place == 0 else st.one_of(number_texts, odd_words))
    if "rows" in odd and lines:  # ragged, in another order, twice, left out
        what, place = (
            draw(st.sampled_from(("short", "long", "swap", "twice", "gone"))),
            draw(st.integers(0, len(lines) - 1)),
        )
        match what:
            case "short":
                lines[place] = lines[place][:-1]
            case "long":
                lines[place] = [*lines[place], "9", "9"]
            case "swap":
                lines[place], lines[-1] = lines[-1], lines[place]
            case "twice":
                lines.insert(place, lines[place])
            case _:
                del lines[place]
    return header, lines


@st.composite
def texts(draw: Any) -> tuple[str, bytes]:
    """Return the name of a file and its bytes."""
    odd = draw(twists())
    header, lines = draw(columns(odd))
    separator = draw(st.sampled_from((",", ",", ",", ";", "\t", "|", " "))) if "file" in odd else ","
    text = io.StringIO()
    quoting = draw(st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)))
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    data = text.getvalue().encode("utf-8", "replace")
    data = draw(damaged(data)) if "bytes" in odd else data
    endings = (".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".npz", ".dat", "")
    ending = draw(st.sampled_from(endings)) if "file" in odd else ".csv"
    if ending.endswith(".gz"):
        data = draw(perhaps_damaged(gzip.compress(data, mtime=0), share=2))
    return f"t{ending}", data


def quick(*sections: str) -> list[str]:
    """Return what makes a training short, as options."""
    return [
        word
        for section, entries in QUICK.items()
        if section in (sections or QUICK)
        for key, value in entries.items()
        for word in ("--set", f"{section}.{key}={toml_value(value)}")
    ]


@st.composite
def tables(draw: Any) -> Case:
    """A table, and perhaps words on how to read it."""
    name, data = draw(texts())
    words = quick("model", "training", "assessment", *draw(st.sampled_from((["data"], ["data"], []))))
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
        key = draw(st.sampled_from(("time", "node", "value", "separator", "covariates", "targets", "layout")))
        word = draw(st.sampled_from(("a", "b", "x", ":", "time", "node", "wide", "long", "station", "value")))
        words += ["--set", f"data.{key}={word}"]
    arguments = ("fit", name, "--out", "run", "--quiet", *words)
    return Case(arguments, {name: data}, trains=draw(st.integers(1, 8)) == 1)


def cases() -> st.SearchStrategy[Case]:
    """All of them."""
    return tables()

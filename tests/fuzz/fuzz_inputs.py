"""``tacit predict`` and ``tacit evaluate`` on data that fits the run, or does not: other nodes, lengths, units."""

import functools
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_arrays import archives
from fuzz_configs import TABLE
from fuzz_judge import Case, contents, run
from fuzz_tables import quick, texts
from fuzz_words import damaged, odd_words, typed
from hypothesis import strategies as st


@functools.cache
def finished(kind: str) -> dict[str, bytes | None]:
    """Return the files of a run that was trained in a second: on a series, on one with gaps, or on pairs."""
    folder, before = Path(tempfile.mkdtemp(prefix="fuzz-run-")), Path.cwd()
    rows = np.arange(40 * 3 * 2, dtype=float).reshape(40, 3, 2) * 7 % 11 + np.arange(2)
    archive = io.BytesIO()
    np.savez(archive, x=rows, y=rows[:, :, 0] + rows[:, [1, 2, 0], 1] * 0.5)
    sources = {
        "series": ("t.csv", TABLE),
        "gaps": ("t.csv", TABLE.replace(b",3,", b",,")),
        "pairs": ("p.npz", archive.getvalue()),
    }
    name, data = sources[kind]
    try:
        (folder / name).write_bytes(data)
        os.chdir(folder)
        window = [] if kind == "pairs" else ["data"]
        ended = run(("fit", name, "--out", "run", "--quiet", *quick("model", "training", "assessment", *window)))
        assert ended.code == 0, ended.err
        return {f"run/{path}": stored for path, stored in contents(folder / "run").items()}
    finally:
        os.chdir(before)
        shutil.rmtree(folder)


def changed(text: bytes, kind: str, draw: Any) -> bytes:
    """Return the table of training after what people do to theirs."""
    lines = [line.split(",") for line in text.decode().strip().split("\n")]
    place = draw(st.integers(1, 3))
    match kind:
        case "order":
            lines = [[line[0], *line[:0:-1]] for line in lines]
        case "renamed":
            lines[0][place] = draw(odd_words).encode("utf-8", "replace").decode().replace("\n", " ").replace(",", ";")
        case "gone":
            lines = [line[:place] + line[place + 1 :] for line in lines]
        case "more":
            lines = [[*line, str(row % 4)] for row, line in enumerate(lines)]
            lines[0][-1] = "d"
        case "short":
            lines = lines[: draw(st.integers(0, 5))]
        case "empty":
            for line in lines[1:]:
                line[place] = ""
        case "all empty":
            lines = [lines[0], *([line[0], "", "", ""] for line in lines[1:])]
        case "constant":
            for line in lines[1:]:
                line[place] = "2"
        case "units":
            for line in lines[1:]:
                line[place] = repr(
                    float(line[place] or 0) * draw(st.sampled_from((1e3, 1e9, 1e14, 1e16, 1e300, 1e-300)))
                )
        case "gap":
            for line in lines[5:9]:
                line[place] = ""
        case "times":
            for row, line in enumerate(lines[1:]):
                line[0] = f"2024-01-{row % 28 + 1:02d}"
        case "back":
            lines[1:] = lines[:0:-1]
    return "\n".join(",".join(line) for line in lines).encode() + b"\n"


KINDS = (
    "same",
    "order",
    "renamed",
    "gone",
    "more",
    "short",
    "empty",
    "all empty",
    "constant",
    "units",
    "gap",
    "times",
    "back",
)


@st.composite
def new_data(draw: Any) -> Case:
    """A finished run and new data for it."""
    kind = draw(st.sampled_from(("series", "series", "gaps", "pairs")))
    source = draw(st.sampled_from(("fitting",) * 6 + ("table", "archive", "other")))
    files = dict(finished(kind))
    if source == "table":
        name, data = draw(texts())
    elif source == "archive" or (source == "fitting" and kind == "pairs"):
        name, data = "p.npz", draw(archives())
        if source == "fitting" and draw(st.booleans()):
            shape = draw(st.sampled_from(((5, 3, 2), (1, 3, 2), (0, 3, 2), (5, 2, 2), (5, 3, 3), (5, 3))))
            name, data = "p.npz", _zipped(x=np.ones(shape) * draw(st.sampled_from((1.0, 1e14, np.nan))))
    elif source == "fitting":
        name, data = "t.csv", changed(TABLE, draw(st.sampled_from(KINDS)), draw)
        data = draw(damaged(data)) if draw(st.integers(1, 8)) == 1 else data
    else:
        name, data = draw(st.sampled_from(("missing.csv", "run", "run/record.json", "beijing-air", ""))), None
    if data is not None:
        files[name] = data
    command = draw(st.sampled_from(("predict", "evaluate")))
    words = [command, "run", name, "--quiet"]
    if command == "predict":
        words += draw(st.sampled_from(([],) * 6 + (["--samples", "3"], ["--samples", "-1"], ["--json"])))
        words += draw(
            st.sampled_from(
                ([],) * 8 + (["--out", "f.csv"], ["--out", "f.parquet"], ["--out", "f.txt"], ["--out", "run"])
            )
        )
    elif draw(st.booleans()):
        words += ["--json"]
    return Case(tuple(typed(words)), files)


def _zipped(**arrays: np.ndarray) -> bytes:
    data = io.BytesIO()
    np.savez(data, **arrays)
    return data.getvalue()


def make_runs() -> None:
    """Train what is used again and again: a strategy is no place for it."""
    for kind in ("series", "gaps", "pairs"):
        finished(kind)


def cases() -> st.SearchStrategy[Case]:
    """All of them."""
    make_runs()
    return new_data()

"""Edge rules and coordinates: files with every kind of row, for nodes that are there or not."""

import csv
import io
import os
from pathlib import Path
from typing import Any

from fuzz_configs import TABLE, toml_text, with_quick
from fuzz_judge import Case
from fuzz_words import damaged, number_texts, odd_words, plain_words
from hypothesis import strategies as st

NODES = ("a", "b", "c")
KINDS = ("forbidden", "required", "candidate", "prior")
nodes = st.one_of(
    st.sampled_from(NODES),
    st.sampled_from(NODES),
    st.sampled_from(NODES),
    st.sampled_from((" a ", "A", "d")),
    odd_words,
)


@st.composite
def rules(draw: Any) -> bytes:
    """Return a file of rules."""
    tidy = draw(st.integers(1, 3)) > 1
    ends = st.sampled_from(NODES) if tidy else nodes
    kinds = (
        st.sampled_from(KINDS)
        if tidy
        else st.one_of(st.sampled_from(KINDS), st.sampled_from(("prio", "known", "")), odd_words)
    )
    header = ["source", "target", "kind", "probability"]
    if not tidy:
        header = draw(
            st.one_of(
                st.just(header),
                st.permutations(header),
                st.lists(st.one_of(st.sampled_from(header), odd_words), max_size=5),
            )
        )
    rows = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(kinds)
        belief = draw(st.floats(0.01, 0.99).map(repr)) if tidy else draw(st.one_of(st.just("0.9"), number_texts))
        source, target = draw(st.permutations(NODES))[:2] if tidy else (draw(ends), draw(ends))
        row = {
            "source": source,
            "target": target,
            "kind": kind,
            "probability": belief if kind == "prior" or not tidy else "",
        }
        rows.append([row.get(name, "x") for name in header])
        if not tidy and draw(st.integers(1, 6)) == 1:
            rows[-1] = draw(st.sampled_from((rows[-1][:-1], [*rows[-1], "y"], [])))
    return _csv(header, rows, draw)


@st.composite
def places(draw: Any) -> bytes:
    """Return a file of coordinates."""
    tidy = draw(st.integers(1, 3)) > 1
    header = ["node", "latitude", "longitude"] if tidy else draw(st.lists(odd_words, max_size=5))
    names = list(NODES) if tidy else draw(st.lists(nodes, max_size=5))
    number = draw(
        st.sampled_from(
            (st.floats(-90, 90).map(repr), number_texts, st.sampled_from(("1e300", "-1e300", "91", "1e-320")))
        )
    )
    rows = [[name, *(draw(number) for _ in range(max(len(header) - 1, 0)))] for name in names]
    return _csv(header, rows, draw)


def _csv(header: list[str], rows: list[list[str]], draw: Any) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", delimiter=draw(st.sampled_from((",",) * 30 + (";", "\t"))))
    writer.writerow(header)
    writer.writerows(rows)
    data = text.getvalue().encode("utf-8", "replace")
    return draw(damaged(data)) if draw(st.integers(1, 12)) == 1 else data


def pipe(folder: Path) -> None:
    """Put a pipe where a file is expected: nobody ever writes to it."""
    (folder / "e.csv").unlink()
    os.mkfifo(folder / "e.csv")


@st.composite
def with_rules(draw: Any) -> Case:
    """A table and what is known of its edges."""
    graph: dict[str, Any] = {}
    if draw(st.integers(1, 4)) == 1:
        graph["coordinates"] = "p.csv"
        graph["metric"] = draw(st.sampled_from(("great_circle", "euclidean")))
    for key in draw(
        st.lists(
            st.sampled_from(
                (
                    "nearest",
                    "correlated",
                    "symmetric",
                    "self_loops",
                    "density",
                    "forbidden",
                    "required",
                    "candidates",
                    "priors",
                )
            ),
            max_size=2,
            unique=True,
        )
    ):
        pair = st.lists(st.sampled_from(NODES) if draw(st.integers(1, 4)) > 1 else plain_words, min_size=2, max_size=2)
        graph[key] = draw({
            "nearest": st.integers(1, 3),
            "correlated": st.integers(1, 3),
            "symmetric": st.just(True),
            "self_loops": st.just(True),
            "density": st.floats(0.01, 0.99),
            "priors": st.lists(st.tuples(pair, st.floats()).map(lambda both: [*both[0], both[1]]), max_size=2),
        }.get(key, st.lists(pair, max_size=3)))  # fmt: skip
    files = {
        "t.csv": TABLE,
        "e.csv": draw(rules()),
        "p.csv": draw(places()),
        "c.toml": toml_text(with_quick({"graph": graph})).encode("utf-8", "replace"),
    }
    edges = draw(st.sampled_from(("e.csv",) * 40 + ("missing.csv", "folder", "t.csv", "p.csv", "")))
    arguments = ["fit", "t.csv", "--config", "c.toml", "--out", "run", "--quiet", "--edges", edges]
    setup = pipe if draw(st.integers(1, 40)) == 1 else None
    return Case(tuple(arguments), {**files, "folder": None}, setup=setup, trains=draw(st.integers(1, 8)) == 1)


def cases() -> st.SearchStrategy[Case]:
    """All of them."""
    return with_rules()

"""The most likely edges as rows of a table."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from tacit.edges import EdgeTable, schema
from tacit.records import Run


def strongest_edges(
    run: Run, count: int, edges: EdgeTable | None = None, among: Bool[np.ndarray, " edge"] | None = None
) -> list[dict[str, Any]]:
    """Return the most likely edges, the first the highest, with their values by column; None: it is not known.

    ``among`` selects edges; by default those that may be drawn. The source of a group of copies is the group.
    """
    edges = run.edges.each_once() if edges is None else edges
    chosen = edges.at(edges.strongest(count, edges.drawable if among is None else among))
    source, target = chosen.index.ends()
    if "group" in chosen:
        source = np.where(chosen["group"] == "", source, chosen["group"])
    rows = [
        {"source": start, "target": end, "undirected": bool(no_arrow)}
        for start, end, no_arrow in zip(source, target, chosen.undirected, strict=True)
    ]
    for one in schema.COLUMNS[2:]:
        if one.kind == "flag":
            continue
        values = [None] * len(chosen) if one.name not in chosen else chosen[one.name].tolist()
        for row, value in zip(rows, values, strict=True):
            unknown = value is None or (one.kind == "number" and value != value)
            row[one.name] = (
                ("" if one.kind == "text" else None) if unknown else one.words[value] if one.words else value
            )
    return rows


def page_row(row: dict[str, Any], columns: list[str]) -> list[str]:
    """Return the cells of a row of :func:`strongest_edges` as the page shows them."""
    cells = [row["source"], row["target"]]
    for name in columns[2:]:
        one, value = schema.column(name), row[name]
        if name == "direction" and value == "open":
            cells.append("open (no arrow)" if row["undirected"] else "later effect")
        elif value is None:
            cells.append(schema.UNKNOWN)
        else:
            cells.append(one.label(one.words.index(value) if one.words else value))
    return cells

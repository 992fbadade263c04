"""Data and scripts inside a page, and the strongest edges as rows of a table."""

import base64
import hashlib
import json
import math
from typing import Any

import numpy as np
from jaxtyping import Bool
from markupsafe import Markup

from tacit.edges import EdgeTable, schema
from tacit.records import Run

FLOATS, SMALL, WHOLE, CODE = "<f4", "<u2", "<u4", "<u1"  # little-endian, as browsers read them


def packed(values: Any, kind: str) -> dict[str, str]:
    """Return numbers as base64 of their bytes, with the kind of number.

    >>> packed([1, 2], SMALL)
    {'kind': '<u2', 'data': 'AQACAA=='}
    """
    data = np.ascontiguousarray(values, dtype=kind).tobytes()
    return {"kind": kind, "data": base64.b64encode(data).decode()}


def packed_edges(edges: EdgeTable) -> dict[str, dict[str, str]]:
    """Return the columns that are known; a table of all ordered pairs needs no nodes."""
    kinds = {"number": FLOATS, "word": CODE, "flag": CODE}
    found = {
        one.name: packed(edges[one.name], kinds[one.kind])
        for one in schema.embedded_columns()
        if one.kind in kinds and one.name in edges
    }
    if not edges.index.has_all_pairs:
        largest = max(edges.index.source.max(initial=0), edges.index.target.max(initial=0))
        kind = SMALL if largest < 2**16 else WHOLE
        found |= {"source": packed(edges.index.source, kind), "target": packed(edges.index.target, kind)}
    return found


def packed_texts(edges: EdgeTable) -> dict[str, list[list[Any]]]:
    """Return place and text of each edge that has one, for the columns of texts that are known."""
    return {
        one.name: [[place, edges[one.name][place]] for place in np.flatnonzero(edges[one.name] != "").tolist()]
        for one in schema.embedded_columns()
        if one.kind == "text" and one.name in edges
    }


def as_json(value: Any) -> Markup:
    """Return data as JSON that cannot end the script element that it stands in.

    >>> as_json({"name": "</script>"})
    Markup('{"name":"\\\\u003c/script>"}')
    """
    return Markup(json.dumps(_finite(value), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


def script_hash(script: str) -> str:
    """Return what a page's policy calls this script; a script that it does not name is not run."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def _finite(value: Any) -> Any:
    """Return null for numbers that JSON does not have, at any depth."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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

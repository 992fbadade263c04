"""Data and scripts inside a page: small, and unable to end the element they stand in or to run anything else."""

import base64
import hashlib
import json
import math
from typing import Any

import numpy as np
from markupsafe import Markup

from tacit.edges import EdgeTable, schema

FLOATS, SMALL, WHOLE, CODE = "<f4", "<u2", "<u4", "<u1"  # little-endian, as browsers read them


def packed(values: Any, kind: str) -> dict[str, str]:
    """Return numbers as base64 of their bytes, with the kind of number.

    >>> packed([1, 2], SMALL)
    {'kind': '<u2', 'data': 'AQACAA=='}
    """
    data = np.ascontiguousarray(values, dtype=kind).tobytes()
    return {"kind": kind, "data": base64.b64encode(data).decode()}


def packed_edges(edges: EdgeTable, *, dense: bool) -> dict[str, dict[str, str]]:
    """Return the columns that are known; a table of all ordered pairs needs no nodes."""
    kinds = {"number": FLOATS, "word": CODE, "flag": CODE}
    found = {
        one.name: packed(edges[one.name], kinds[one.kind])
        for one in schema.embedded_columns()
        if one.kind in kinds and one.name in edges
    }
    if not dense:
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

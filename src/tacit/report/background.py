"""The background of the nodes over time, as the page embeds it."""

from typing import Any

import numpy as np

from tacit.records import Run
from tacit.report.embedding import FLOATS, SMALL, packed


def packed_background(run: Run) -> dict[str, Any] | None:
    """Return observed values and background by node, point and column; None if no node has a background."""
    table = run.background
    if table is None or not table.times:
        return None
    said = [run.record.background[run.record.node_names[node]] for node in table.nodes]
    return {
        "times": table.times,
        "rows": packed(np.minimum(table.rows, 2**16 - 1), SMALL),
        "series": table.series,
        "nodes": table.nodes,
        "terms": [one["terms"] for one in said],
        "shares": [one["share"] for one in said],
        "numbers": packed(np.moveaxis(table.numbers, 0, 1), FLOATS),
    }


def background_options(run: Run) -> dict[str, Any] | None:
    """Return what can be chosen: nodes by name, series, and the parts of the table."""
    table = run.background
    if table is None or not table.times:
        return None
    series = list(dict.fromkeys(table.series))
    rows, several = np.array(table.rows), len(series) > 1
    size, single = int(rows.max()), int((rows == 1).sum())
    last = f"the last {single // max(1, len(series)):,} rows" + (" of each series" if several else "")
    parts = [(size, f"all rows, as means of {size:,}"), (1, last)] if size > 1 else []
    return {
        "nodes": [run.record.node_names[node] for node in table.nodes],
        "series": series,
        "parts": parts,
        "of": len(run.record.background),
    }

"""The most likely edges as rows of a table."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from tacit.assessment.evidence import DIRECTIONS
from tacit.assessment.identification import FLAGS
from tacit.records import VARIES, Run
from tacit.report.edge_columns import EdgeColumns, edge_columns

NUMBERS = ("exists", "probability", "std_error", "low", "high", "effect", "lag", "within_step", "truth")


def strongest_edges(
    run: Run, count: int, columns: EdgeColumns | None = None, among: Bool[np.ndarray, " edge"] | None = None
) -> list[dict[str, Any]]:
    """Return the most likely edges, the first the highest; a number that is not known is None.

    ``among`` selects edges; by default those that may be drawn.
    """
    columns = edge_columns(run) if columns is None else columns
    names = run.record.node_names
    chosen = columns[columns.strongest(count, columns.drawable if among is None else among)]
    groups = [""] * len(chosen) if chosen.group is None else chosen.group
    return [
        {
            "source": groups[row] or names[chosen.source[row]],
            "target": names[chosen.target[row]],
            **{name: _number(getattr(chosen, name), row) for name in NUMBERS},
            "identifiable": None if chosen.identifiable is None else FLAGS[int(chosen.identifiable[row])],
            "direction": None if chosen.direction is None else DIRECTIONS[int(chosen.direction[row])],
            "varies": None if chosen.varies is None else VARIES[int(chosen.varies[row])],
            "changed": "" if chosen.changed is None else chosen.changed[row],
            "undirected": chosen.undirected is not None and bool(chosen.undirected[row]),
        }
        for row in range(len(chosen))
    ]


def _number(values: Any, row: int) -> float | None:
    return None if values is None or np.isnan(values[row]) else float(values[row])

"""How often edges act by situation or regime: the rows of ``edges_by.csv`` as a table per variable."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from tacit.edges import REGIME, EdgeTable
from tacit.records import Run
from tacit.report.embedding import FLOATS, WHOLE, packed

NUMBERS = ("probability", "std_error", "low", "high")
ORDERED = ("periodic", "number")  # kinds whose values have an order: a slider chooses one, a line joins them
MOST_LISTED = 40  # rows of the table on the page
Numbers = Float[np.ndarray, "edge value"]


@dataclass(frozen=True)
class SituationTable:
    """How often edges act at each value of one variable, or in each regime; NaN where a number is not known.

    ``by`` is the name of the variable or ``regime``, ``kind`` is ``category``, ``periodic``, ``number`` or ``regime``,
    and ``labels`` are the values in their order.
    """

    by: str
    kind: str
    labels: list[str]
    source: Int[np.ndarray, " edge"]
    target: Int[np.ndarray, " edge"]
    probability: Numbers
    std_error: Numbers
    low: Numbers
    high: Numbers

    @property
    def ordered(self) -> bool:
        """Have the values an order?"""
        return self.kind in ORDERED

    @property
    def positions(self) -> list[float] | None:
        """The values as numbers; None where they are no numbers, or have no order."""
        try:
            return [float(label) for label in self.labels] if self.ordered else None
        except ValueError:
            return None

    @property
    def spread(self) -> Float[np.ndarray, " edge"]:
        """The largest minus the smallest probability of each edge."""
        return np.asarray(np.nanmax(self.probability, 1) - np.nanmin(self.probability, 1))

    def named(self, place: int) -> str:
        """Return a value with the name of the variable: "hour = 3", "regime 1"."""
        label = self.labels[place]
        return f"regime {label}" if self.kind == REGIME else f"{self.by} = {label}"


def situation_tables(run: Run) -> list[SituationTable]:
    """Return a table per variable, in the order of ``edges_by.csv``; none where no edge varies."""
    rows = run.edges.by
    if rows is None or not len(rows):
        return []
    variables = {one["name"]: one for one in run.record.situations.get("variables", [])}
    by, value = np.array(rows.by, dtype=object), np.array(rows.value, dtype=object)
    ends = np.stack([np.array(rows.target), np.array(rows.source)], 1)
    numbers = {name: np.array(getattr(rows, name), dtype=float) for name in NUMBERS}
    found = []
    for name in dict.fromkeys(rows.by):
        own = by == name
        edges, edge = np.unique(ends[own], axis=0, return_inverse=True)
        labels = list(dict.fromkeys([*variables.get(name, {}).get("values", []), *value[own]]))
        place = np.array([labels.index(label) for label in value[own]])
        cells = {key: np.full((len(edges), len(labels)), np.nan) for key in NUMBERS}
        for key, matrix in cells.items():
            matrix[edge.ravel(), place] = numbers[key][own]
        kind = REGIME if name == REGIME and name not in variables else variables.get(name, {}).get("kind", "category")
        found.append(SituationTable(name, kind, labels, edges[:, 1], edges[:, 0], **cells))
    return found


def varying_rows(run: Run, tables: list[SituationTable]) -> list[dict[str, Any]]:
    """Return the edges that vary most, a row per edge and variable: where they act least and most often."""
    names = run.record.node_names
    rows = []
    for table, edge in most_varying(tables, MOST_LISTED):
        probs = table.probability[edge]
        ends = {"lowest": int(np.nanargmin(probs)), "highest": int(np.nanargmax(probs))}
        rows.append(
            {"source": names[table.source[edge]], "target": names[table.target[edge]]}
            | {end: {"probability": float(probs[place]), "at": table.named(place)} for end, place in ends.items()}
        )
    return rows


def most_varying(tables: list[SituationTable], count: int) -> list[tuple[SituationTable, int]]:
    """Return tables and rows of the edges with the largest spread, the largest first."""
    found = [(float(spread), number, edge) for number, one in enumerate(tables) for edge, spread in _spreads(one)]
    return [(tables[number], edge) for _, number, edge in sorted(found, key=lambda one: -one[0])[:count]]


def packed_situations(tables: list[SituationTable], columns: EdgeTable) -> list[dict[str, Any]]:
    """Return the tables as the page embeds them, with the place of each edge in the page."""
    return [_packed(table, columns.index.find(table.source, table.target)) for table in tables]


def _packed(table: SituationTable, place: Int[np.ndarray, " edge"]) -> dict[str, Any]:
    shown = place >= 0
    return {
        "by": table.by,
        "kind": table.kind,
        "labels": table.labels,
        "named": [table.named(value) for value in range(len(table.labels))],
        "positions": table.positions,
        "edge": packed(place[shown], WHOLE),
        **{name: packed(getattr(table, name)[shown], FLOATS) for name in NUMBERS},
    }


def _spreads(table: SituationTable) -> list[tuple[int, float]]:
    return list(enumerate(table.spread.tolist()))

"""The edges of a run as columns of numbers, whether its file lists all ordered pairs or candidates.

``exists`` decides which edges are drawn and listed; of a run without evidence ``probability`` does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.records import Run

FIXED, TOLD, UNTOLD = 0, 1, 2  # codes of "identifiable": not learned; can be told from the data; cannot be
CODES = {"": FIXED, "yes": TOLD, "no": UNTOLD}
Numbers = Float[np.ndarray, " edge"]


@dataclass(frozen=True)
class EdgeColumns:
    """Source, target and probability of each edge, and what else is known of all of them; None where nothing is.

    The probability of an edge that is not kept is NaN. ``listed_from`` is the least ``exists`` of a listed edge.
    """

    source: Int[np.ndarray, " edge"]
    target: Int[np.ndarray, " edge"]
    probability: Numbers
    std_error: Numbers | None = None
    low: Numbers | None = None
    high: Numbers | None = None
    identifiable: Int[np.ndarray, " edge"] | None = None
    truth: Numbers | None = None
    exists: Numbers | None = None
    effect: Numbers | None = None
    listed_from: float | None = None
    required: Bool[np.ndarray, " edge"] | None = None

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def between(self) -> Bool[np.ndarray, " edge"]:
        """Which go from one node to another."""
        return np.asarray(self.source != self.target)

    @property
    def acts(self) -> Numbers:
        """How often each edge acts; 0 for one that is not kept."""
        return np.asarray(np.nan_to_num(self.probability))

    @property
    def decides(self) -> Numbers:
        """What decides whether an edge is shown: the probability that it exists, or else how often it acts."""
        return self.acts if self.exists is None else np.asarray(np.nan_to_num(self.exists))

    @property
    def drawable(self) -> Bool[np.ndarray, " edge"]:
        """Which go from one node to another and, without evidence, can be told from the data as far as is known."""
        if self.identifiable is None or self.exists is not None:
            return self.between
        return np.asarray(self.between & (self.identifiable != UNTOLD))

    @property
    def found(self) -> Bool[np.ndarray, " edge"]:
        """Which are listed and not required: these the data show."""
        return self.listed if self.required is None else np.asarray(self.listed & ~self.required)

    @property
    def listed(self) -> Bool[np.ndarray, " edge"]:
        """Which are listed, or required; none without evidence."""
        if self.exists is None:
            return np.zeros(len(self), dtype=bool)
        least = 1.0 if self.listed_from is None else self.listed_from  # required edges surely exist
        return np.asarray(self.between & (self.decides >= least))

    def __getitem__(self, places: Any) -> "EdgeColumns":
        """Return the edges at these places."""
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "listed_from"}
        return replace(self, **{name: values[places] for name, values in found.items() if values is not None})

    def strongest(self, count: int, among: Bool[np.ndarray, " edge"] | None = None) -> Int[np.ndarray, " place"]:
        """Return the places of the most likely edges, the most likely first; of equals the more probable, the earlier.

        >>> EdgeColumns(np.array([1, 2, 0]), np.array([0, 0, 0]), np.array([0.3, 0.8, 1.0])).strongest(2)
        array([2, 1])
        """
        places = np.arange(len(self)) if among is None else np.flatnonzero(among)
        return places[np.lexsort((-self.acts[places], -self.decides[places]))[:count]]


def is_symmetric(run: Run) -> bool:
    """Have the edges of a run no direction?"""
    graph = run.record.config.get("graph")
    return isinstance(graph, dict) and graph.get("symmetric") is True and run.listed is None


def edge_columns(run: Run) -> EdgeColumns:
    """Return the edges of a run in the order of ``edges.csv``; of edges without direction each once."""
    truth = run.record.true_edge_probs
    if run.listed is not None:
        source, target = np.array(run.listed.source, dtype=int), np.array(run.listed.target, dtype=int)
        known = {"probability": run.listed.probability, "exists": run.listed.exists, "effect": run.listed.effect}
        columns: dict[str, Any] = {
            name: np.array(values, dtype=float) for name, values in known.items() if values is not None
        }
        true = None if truth is None else np.array(truth, dtype=float)[target, source]
        return _decided(EdgeColumns(source, target, **columns, truth=true), run)
    nodes = len(run.record.node_names)
    target, source = (indices.ravel() for indices in np.indices((nodes, nodes)))
    found = run.edges
    numbers = {
        "probability": run.edge_probs,
        "std_error": found.std_error,
        "low": found.low,
        "high": found.high,
        "truth": truth,
        "exists": found.exists,
        "effect": found.effect,
    }
    columns = {name: np.array(matrix, dtype=float).ravel() for name, matrix in numbers.items() if matrix is not None}
    flags = None if found.identifiable is None else _codes(found.identifiable)
    all_pairs = _decided(EdgeColumns(source, target, **columns, identifiable=flags), run)
    return all_pairs[source <= target] if is_symmetric(run) else all_pairs


def _decided(columns: EdgeColumns, run: Run) -> EdgeColumns:
    """Add from where on edges are listed, and which are required."""
    evidence, nodes = run.record.evidence, len(run.record.node_names)
    ends = np.array(evidence.get("required", []), dtype=int).reshape(-1, 2)
    ends = np.concatenate([ends, ends[:, ::-1]]) if is_symmetric(run) else ends
    required = np.isin(columns.target * nodes + columns.source, ends[:, 1] * nodes + ends[:, 0])
    return replace(columns, listed_from=evidence.get("listed_from"), required=required)


def _codes(flags: Sequence[Sequence[str]]) -> Int[np.ndarray, " edge"]:
    return np.array([CODES[flag] for row in flags for flag in row], dtype=int)

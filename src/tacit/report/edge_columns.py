"""The edges of a run as columns of numbers, whether its file lists all ordered pairs or candidates."""

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
    """Source, target and probability of each edge, and what else is known of all of them; None where nothing is."""

    source: Int[np.ndarray, " edge"]
    target: Int[np.ndarray, " edge"]
    probability: Numbers
    std_error: Numbers | None = None
    low: Numbers | None = None
    high: Numbers | None = None
    identifiable: Int[np.ndarray, " edge"] | None = None
    truth: Numbers | None = None

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def between(self) -> Bool[np.ndarray, " edge"]:
        """Which go from one node to another."""
        return np.asarray(self.source != self.target)

    @property
    def drawable(self) -> Bool[np.ndarray, " edge"]:
        """Which go from one node to another and can be told from the data, as far as that was looked at."""
        return self.between if self.identifiable is None else self.between & (self.identifiable != UNTOLD)

    def __getitem__(self, places: Any) -> "EdgeColumns":
        """Return the edges at these places."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: values[places] for name, values in found.items() if values is not None})

    def strongest(self, count: int, among: Bool[np.ndarray, " edge"] | None = None) -> Int[np.ndarray, " place"]:
        """Return the places of the most probable edges, the most probable first; of equals the earlier first.

        >>> EdgeColumns(np.array([1, 2, 0]), np.array([0, 0, 0]), np.array([0.3, 0.8, 1.0])).strongest(2)
        array([2, 1])
        """
        places = np.arange(len(self)) if among is None else np.flatnonzero(among)
        return places[np.argsort(-self.probability[places], kind="stable")[:count]]


def is_symmetric(run: Run) -> bool:
    """Have the edges of a run no direction?"""
    graph = run.record.config.get("graph")
    return isinstance(graph, dict) and graph.get("symmetric") is True and run.listed is None


def edge_columns(run: Run) -> EdgeColumns:
    """Return the edges of a run in the order of ``edges.csv``; of edges without direction each once."""
    truth = run.record.true_edge_probs
    if run.listed is not None:
        source, target = np.array(run.listed.source, dtype=int), np.array(run.listed.target, dtype=int)
        probability = np.array(run.listed.probability, dtype=float)
        true = None if truth is None else np.array(truth, dtype=float)[target, source]
        return EdgeColumns(source, target, probability, truth=true)
    nodes = len(run.record.node_names)
    target, source = (indices.ravel() for indices in np.indices((nodes, nodes)))
    found = run.edges
    numbers = {
        "probability": run.edge_probs,
        "std_error": found.std_error,
        "low": found.low,
        "high": found.high,
        "truth": truth,
    }
    columns = {name: np.array(matrix, dtype=float).ravel() for name, matrix in numbers.items() if matrix is not None}
    flags = None if found.identifiable is None else _codes(found.identifiable)
    all_pairs = EdgeColumns(source, target, **columns, identifiable=flags)
    return all_pairs[source <= target] if is_symmetric(run) else all_pairs


def _codes(flags: Sequence[Sequence[str]]) -> Int[np.ndarray, " edge"]:
    return np.array([CODES[flag] for row in flags for flag in row], dtype=int)

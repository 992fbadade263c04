"""A run directory, read back."""

from typing import Any

from pydantic import BaseModel, model_validator

from tacit.records.edges import EdgeFindings, ListedEdges, Matrix, read_candidates, read_edges
from tacit.records.record import Record

HISTORY = "history.jsonl"


class Run(BaseModel):
    """A run directory, read back; with candidates ``edge_probs`` has no rows, and they are in ``listed``."""

    record: Record
    edge_probs: Matrix
    edges: EdgeFindings
    history: list[dict[str, Any]]
    listed: ListedEdges | None = None

    @classmethod
    def of(cls, record: Record, edges: str, history: list[dict[str, Any]]) -> "Run":
        """Return the run of a record, the text of ``edges.csv`` and the lines of the history."""
        if record.candidates is not None:
            listed = read_candidates(edges, record.node_names, record.candidates.count, record.keep)
            return cls(record=record, edge_probs=[], edges=EdgeFindings(), history=history, listed=listed)
        probs, found = read_edges(edges, record.node_names, record.keep)
        return cls(record=record, edge_probs=probs, edges=found, history=history)

    @model_validator(mode="after")
    def _regular(self) -> "Run":
        """Hold an entry per replica in every line of the history."""
        replicas = len(self.record.replicas)
        for number, line in enumerate(self.history, 1):
            lists = [value for value in line.values() if isinstance(value, list)]
            if "epoch" not in line or not lists or any(len(value) != replicas for value in lists):
                raise ValueError(f"history.jsonl line {number} is not that of an epoch of {replicas} replicas")
        return self

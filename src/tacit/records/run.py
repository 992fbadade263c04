"""The content of a run directory."""

from typing import Any

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, model_validator

from tacit.records.background_csv import BackgroundTable, read_background
from tacit.records.edges_by_csv import EdgesBy, read_edges_by
from tacit.records.edges_csv import EdgeTable, read_edges
from tacit.records.forecasts_csv import ForecastTable, read_forecasts
from tacit.records.lags_csv import LagTable, read_lags
from tacit.records.record import Record

HISTORY = "history.jsonl"


class Run(BaseModel):
    """The content of a run directory; ``edges`` is the table of ``edges.csv``, with numbers for source and target.

    ``lags`` is ``lags.csv``; None without lags, as for pairs without time. ``edges_by`` is ``edges_by.csv``; None if it
    was not tested, or not found, that edges depend on the situation. ``forecasts`` is ``forecasts.csv``; None if no
    forecasts were kept. ``background`` is ``background.csv``; None if no node has a background.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    record: Record
    edges: EdgeTable
    history: list[dict[str, Any]]
    lags: LagTable | None = None
    edges_by: EdgesBy | None = None
    forecasts: ForecastTable | None = None
    background: BackgroundTable | None = None

    @classmethod
    def of(
        cls,
        record: Record,
        edges: str,
        history: list[dict[str, Any]],
        lags: str | None = None,
        edges_by: str | None = None,
        forecasts: str | None = None,
        background: str | None = None,
    ) -> "Run":
        """Return the run of a record, the lines of the history and the texts of the CSV files."""
        count = None if record.candidates is None else record.candidates.count
        table = read_edges(edges, record.node_names, count, record.keep)
        profiles = None if lags is None else read_lags(lags, record.node_names)
        by = None if edges_by is None else read_edges_by(edges_by, record.node_names)
        shown = None if forecasts is None else read_forecasts(forecasts, record.node_names)
        beside = None if background is None else read_background(background, record.node_names)
        return cls(
            record=record,
            edges=table,
            history=history,
            lags=profiles,
            edges_by=by,
            forecasts=shown,
            background=beside,
        )

    @property
    def has_candidates(self) -> bool:
        """Whether ``edges.csv`` lists candidates instead of all ordered pairs."""
        return self.record.candidates is not None

    def matrix(self, column: str) -> Float[np.ndarray, "node node"]:
        """Return a column of all ordered pairs as a matrix: rows are targets, columns are sources."""
        nodes = len(self.record.node_names)
        return np.asarray(self.edges[column]).reshape(nodes, nodes)

    @model_validator(mode="after")
    def _regular(self) -> "Run":
        """Check that every line of the history has an entry per replica."""
        replicas = len(self.record.replicas)
        for number, line in enumerate(self.history, 1):
            lists = [value for value in line.values() if isinstance(value, list)]
            if "epoch" not in line or not lists or any(len(value) != replicas for value in lists):
                raise ValueError(f"history.jsonl line {number} is not that of an epoch of {replicas} replicas")
        return self

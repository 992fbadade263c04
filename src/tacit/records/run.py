"""The content of a run directory."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from tacit.edges import EDGES, EDGES_BY, LAGS, EdgeTable, read_edges, read_edges_by, read_lags
from tacit.records.background_csv import BACKGROUND, BackgroundTable, read_background
from tacit.records.forecasts_csv import FORECASTS, ForecastTable, read_forecasts
from tacit.records.record import Record

HISTORY = "history.jsonl"


class Run(BaseModel):
    """The content of a run directory.

    ``edges``       the table of ``edges.csv``, with ``lags.csv`` and ``edges_by.csv`` where the run has them
    ``forecasts``   ``forecasts.csv``; None if no forecasts were kept
    ``background``  ``background.csv``; None if no node has a background
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    record: Record
    edges: EdgeTable
    history: list[dict[str, Any]]
    forecasts: ForecastTable | None = None
    background: BackgroundTable | None = None

    @classmethod
    def of(cls, record: Record, history: list[dict[str, Any]], texts: Mapping[str, str]) -> "Run":
        """Return the run of a record, the lines of the history and the texts of the CSV files by their names."""
        count, names = None if record.candidates is None else record.candidates.count, record.node_names
        table = read_edges(texts[EDGES], names, count, record.keep, symmetric=record.is_symmetric)
        table = replace(
            table,
            lags=read_lags(texts[LAGS], names) if LAGS in texts else None,
            by=read_edges_by(texts[EDGES_BY], names) if EDGES_BY in texts else None,
        )
        return cls(
            record=record,
            edges=listed_in(record, table),
            history=history,
            forecasts=read_forecasts(texts[FORECASTS], names) if FORECASTS in texts else None,
            background=read_background(texts[BACKGROUND], names) if BACKGROUND in texts else None,
        )

    @model_validator(mode="after")
    def _regular(self) -> "Run":
        """Check that every line of the history has an entry per replica."""
        replicas = len(self.record.replicas)
        for number, line in enumerate(self.history, 1):
            lists = [value for value in line.values() if isinstance(value, list)]
            if "epoch" not in line or not lists or any(len(value) != replicas for value in lists):
                raise ValueError(f"history.jsonl line {number} is not that of an epoch of {replicas} replicas")
        return self


def listed_in(record: Record, table: EdgeTable) -> EdgeTable:
    """Return a table from a file with which edges the record lists and requires, and the truth."""
    evidence, index = record.evidence, table.index
    required = np.zeros(len(table), dtype=bool)
    source, target = np.array(evidence.get("required", []), dtype=int).reshape(-1, 2).T
    places = np.concatenate([index.find(source, target), *([index.find(target, source)] * index.symmetric)])
    required[places[places >= 0]] = True
    truth = None if record.true_edge_probs is None else index.vector(np.array(record.true_edge_probs, dtype=float))
    error = None if truth is None else np.abs(truth - table.acts)
    table = table.updated(required=required, truth=truth, error=error)
    listed_from = evidence.get("listed_from")
    return replace(table, listed_from=math.inf if listed_from is None else listed_from)

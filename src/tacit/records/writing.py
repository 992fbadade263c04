"""Write the files of a run: all of them or none, the record last."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from tacit.atomic_files import made, write_together
from tacit.edges import EDGES, EDGES_BY, LAGS, EdgeTable, edges_text
from tacit.records.reading import HISTORY, Run
from tacit.records.record import MODEL, RECORD, Record, checksum, pack_model, sealed
from tacit.records.tables_csv import BACKGROUND, FORECASTS, BackgroundTable, ForecastTable
from tacit.training import Epoch, LatentGraphModel


def write_run(
    directory: Path,
    record: Record,
    model: LatentGraphModel,
    history: Sequence[Mapping[str, Any]],
    edges: EdgeTable | None = None,
    forecasts: ForecastTable | None = None,
    background: BackgroundTable | None = None,
    further: Mapping[str, Tensor] | None = None,
) -> None:
    """Write the files of a run; the record is written last, and marks the directory as a complete run.

    ``edges``    by default the probabilities of the graph
    ``further``  tensors that are stored beside those of the model
    """
    lines = "".join(json.dumps(line) + "\n" for line in history)
    edges = model.graph.described(EdgeTable(model.graph.index(record.node_names))) if edges is None else edges
    files = {HISTORY: lines.encode(), MODEL: pack_model(model, record, further or {})}
    files |= {name: text.encode() for name, text in _tables(record, edges, forecasts, background).items()}
    whole = record.model_copy(update={"sha256": "", "files": {name: checksum(data) for name, data in files.items()}})
    files[RECORD] = sealed(whole.model_dump_json(indent=2) + "\n")
    with made(directory):
        write_together(directory, files)


def run_of(
    record: Record,
    edges: EdgeTable,
    history: Sequence[Mapping[str, Any]],
    forecasts: ForecastTable | None = None,
    background: BackgroundTable | None = None,
) -> Run:
    """Return the run as it would be read from a run directory, without writing one."""
    return Run.of(record, [dict(line) for line in history], _tables(record, edges, forecasts, background))


def _tables(
    record: Record, edges: EdgeTable, forecasts: ForecastTable | None, background: BackgroundTable | None
) -> dict[str, str]:
    """Return the texts of the CSV files of a run by their names."""
    further = {LAGS: edges.lags, EDGES_BY: edges.by, FORECASTS: forecasts, BACKGROUND: background}
    texts = {name: one.text(record.node_names) for name, one in further.items() if one is not None}
    return {EDGES: edges_text(edges), **texts}


def history_line(epoch: Epoch) -> dict[str, Any]:
    """Return an epoch as a line of ``history.jsonl``."""
    line = asdict(epoch)
    return {**{key: value for key, value in line.items() if key != "monitored"}, **line["monitored"]}

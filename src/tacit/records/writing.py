"""Write the files of a run: all of them or none, the record last."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tacit.atomic_files import made, write_together
from tacit.graph import GraphDistribution
from tacit.records.background_csv import BACKGROUND, BackgroundTable
from tacit.records.checksums import checksum, sealed
from tacit.records.edges_by_csv import EDGES_BY
from tacit.records.edges_csv import EDGES, EdgeFindings, candidates_text, edges_text
from tacit.records.forecasts_csv import FORECASTS, ForecastTable
from tacit.records.lags_csv import LAGS
from tacit.records.model_file import MODEL, pack_model
from tacit.records.record import RECORD, Record
from tacit.records.run import HISTORY, Run
from tacit.training import Epoch, LatentGraphModel


def write_run(
    directory: Path,
    record: Record,
    model: LatentGraphModel,
    history: Sequence[Mapping[str, Any]],
    edges: EdgeFindings | None = None,
    forecasts: ForecastTable | None = None,
    background: BackgroundTable | None = None,
) -> None:
    """Write the files of a run; the record is written last, and marks the directory as a complete run."""
    lines = "".join(json.dumps(line) + "\n" for line in history)
    listed = _edges_of(model.graph, record, edges)
    files = {EDGES: listed.encode(), HISTORY: lines.encode(), MODEL: pack_model(model, record)}
    names = (LAGS, EDGES_BY, FORECASTS, BACKGROUND)
    further = dict(zip(names, _further(record, edges, forecasts, background), strict=True))
    files |= {name: text.encode() for name, text in further.items() if text is not None}
    whole = record.model_copy(update={"sha256": "", "files": {name: checksum(data) for name, data in files.items()}})
    files[RECORD] = sealed(whole.model_dump_json(indent=2) + "\n")
    with made(directory):
        write_together(directory, files)


def run_of(
    record: Record,
    graph: GraphDistribution,
    history: Sequence[Mapping[str, Any]],
    edges: EdgeFindings | None = None,
    forecasts: ForecastTable | None = None,
    background: BackgroundTable | None = None,
) -> Run:
    """Return the run as it would be read from a run directory, without writing one."""
    further = _further(record, edges, forecasts, background)
    return Run.of(record, _edges_of(graph, record, edges), [dict(line) for line in history], *further)


def _edges_of(graph: GraphDistribution, record: Record, edges: EdgeFindings | None) -> str:
    candidates, probs = graph.candidates, graph.edge_probs.detach().cpu()
    if candidates is None:
        return edges_text(probs, record.node_names, edges, record.keep)
    return candidates_text(probs, candidates.to("cpu"), record.node_names, edges, record.keep)


def _further(
    record: Record, edges: EdgeFindings | None, forecasts: ForecastTable | None, background: BackgroundTable | None
) -> list[str | None]:
    """Return the texts of lags, edges by situation, forecasts and background; None for one that is not there."""
    lags, by = (None, None) if edges is None else (edges.lags, edges.by)
    return [None if one is None else one.text(record.node_names) for one in (lags, by, forecasts, background)]


def history_line(epoch: Epoch) -> dict[str, Any]:
    """Return an epoch as a line of ``history.jsonl``."""
    line = asdict(epoch)
    return {**{key: value for key, value in line.items() if key != "monitored"}, **line["monitored"]}

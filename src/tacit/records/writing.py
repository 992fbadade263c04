"""Write the files of a run: all of them or none, the record last."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tacit.records.checksums import checksum, sealed
from tacit.records.edges import EDGES, EdgeFindings, candidates_text, edges_text
from tacit.records.model_file import MODEL, pack_model
from tacit.records.record import RECORD, Record
from tacit.records.run import HISTORY
from tacit.training import Epoch, FitResult
from tacit.whole_files import made, write_together


def write_run(directory: Path, record: Record, result: FitResult, edges: EdgeFindings | None = None) -> None:
    """Write the files of a run; the record comes last, and a directory without one is no run."""
    slots, probs = result.model.graph.slots, result.model.graph.edge_probs.detach().cpu()
    if slots is None:
        listed = edges_text(probs, record.node_names, edges)
    else:
        listed = candidates_text(probs, slots.to("cpu"), record.node_names)
    history = "".join(json.dumps(_history_line(epoch)) + "\n" for epoch in result.history)
    files = {EDGES: listed.encode(), HISTORY: history.encode(), MODEL: pack_model(result.model, record)}
    whole = record.model_copy(update={"sha256": "", "files": {name: checksum(data) for name, data in files.items()}})
    files[RECORD] = sealed(whole.model_dump_json(indent=2) + "\n")
    with made(directory):
        write_together(directory, files)


def _history_line(epoch: Epoch) -> dict[str, Any]:
    line = asdict(epoch)
    return {**{key: value for key, value in line.items() if key != "monitored"}, **line["monitored"]}

"""The content of a run directory, and how it is read and written.

Files that are missing, damaged, changed or of another version raise an InputError. Each reader checks only the files
that it reads: a run whose ``edges.csv`` was edited still predicts, but its report cannot be drawn. All files of a run
are written or none, the record last.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from torch import Tensor

from tacit.atomic_files import made, read_file, write_together
from tacit.edges import EDGES, EDGES_BY, LAGS, EdgeTable, edges_text, read_edges, read_edges_by, read_lags
from tacit.errors import InputError
from tacit.records.directories import CALL, resuming
from tacit.records.record import (
    FORMAT,
    MODEL,
    RECORD,
    ChangedError,
    Record,
    checksum,
    pack_model,
    read_object,
    read_sealed,
    sealed,
)
from tacit.records.tables_csv import (
    BACKGROUND,
    FORECASTS,
    BackgroundTable,
    ForecastTable,
    read_background,
    read_forecasts,
)
from tacit.training import Epoch, LatentGraphModel

HISTORY = "history.jsonl"
DEMO_RUNS = {"known": "psi known", "joint": "psi learned"}  # the runs of a demo: directory, title


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


RUN_AGAIN = "run the command again"
PUT_BACK = f"restore it and change a copy, or {RUN_AGAIN}"


def read_record(directory: Path) -> Record:
    """Read ``record.json`` only."""
    with _said_in_one_line(directory):
        data = read_file(directory / RECORD)
        found = read_object(data).get("format")
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise ValueError(f"{RECORD} has no format")
        if found != FORMAT:
            raise InputError(
                f"{directory} has format {found}, this tacit reads format {FORMAT}; use the version that wrote it, or "
                f"{RUN_AGAIN}"
            )
        return Record.model_validate(read_sealed(data))


def read_run(directory: Path) -> Run:
    """Read record, edges, lags, edges by situation, forecasts, background and history."""
    record = read_record(directory)
    with _said_in_one_line(directory):
        history = [json.loads(line) for line in _belonging(directory, HISTORY, record).splitlines()]
        present = [EDGES, *(name for name in (LAGS, EDGES_BY, FORECASTS, BACKGROUND) if name in record.files)]
        return Run.of(record, history, {name: _belonging(directory, name, record) for name in present})


def is_demo(directory: Path) -> bool:
    """Does a directory hold runs of a demo?"""
    return any((directory / name).is_dir() for name in DEMO_RUNS)


def read_one_run(directory: Path, what: str = "RUN") -> Run:
    """Read a run directory; for a demo, one of its two runs must be chosen. ``what`` names the argument."""
    if is_demo(directory):
        paths = " or ".join(str(directory / name) for name in DEMO_RUNS)
        raise InputError(f"{what} must be one run, got {directory}, which contains the runs of a demo; pass {paths}")
    return read_run(directory)


def _belonging(directory: Path, name: str, record: Record) -> str:
    """Return the text of a file of the run, after checking its checksum."""
    data = read_file(directory / name)
    if record.files.get(name) != checksum(data):
        raise ChangedError(name)
    return data.decode("utf-8")


@contextmanager
def _said_in_one_line(directory: Path) -> Iterator[None]:
    """Turn errors in reading a run directory into an :class:`InputError` of one line with a remedy."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        if (directory / CALL).is_file():
            raise InputError(f"{directory} is not finished; resume with {resuming(directory)}") from None
        if isinstance(error, OSError):
            raise InputError(
                f"{directory} must be a run directory, but {Path(str(error.filename)).name} cannot be read "
                f"({error.strerror}); pass the directory that a tacit command wrote"
            ) from None
        if isinstance(error, ChangedError):
            raise InputError(
                f"{directory / str(error)} has changed since the run wrote it (its checksum does not match); {PUT_BACK}"
            ) from None
        damage = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            damage = f"{where}{': ' if where else ''}{first['msg']}"
        raise InputError(f"{directory} is a damaged run ({damage}); {RUN_AGAIN}") from None


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

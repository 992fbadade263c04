"""Run directories: one JSON record per run, edges, history and model beside it; each file whole, the record last."""

import csv
import io
import json
import platform
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from tacit.errors import InputError
from tacit.graph import Slots
from tacit.tensor_files import save
from tacit.training import Epoch, FitResult
from tacit.whole_files import write_together

FORMAT = 1
RECORD, CALL = "record.json", "call.json"  # a finished run has the first, an unfinished one the second
SLOTS, SLOT_PARTS = "graph.slots", ("row_node", "senders", "used")  # in model.safetensors, where there is a table
EDGE_NUMBERS = ("std_error", "low", "high", "bagged")
EDGE_COLUMNS = ("source", "target", "probability", "std_error", "low", "high", "identifiable", "bagged")
Matrix = list[list[float]]
Flags = list[list[str]]  # "yes", "no", or nothing for an edge that is not learned
PAGE_METRICS = {"point_mae", "point_mse", "distribution_loss"}
PAGE_TIMINGS = {"train_seconds", "steps"}
LIBRARIES = ("tacit", "torch", "numpy", "safetensors")


class CandidateCount(BaseModel):
    """How many edges can be, and the probability of all others."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int
    others: float = 0.0


class Record(BaseModel):
    """What ``record.json`` holds: everything a table, figure or page is drawn from, besides edges and history."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    title: str
    command: str
    config: dict[str, Any]
    seed: int
    versions: dict[str, str]
    device: str
    timings: dict[str, float]
    metrics: dict[str, float]
    optimal: dict[str, float] = {}
    paper: dict[str, float] = {}
    replicas: list[dict[str, Any]]
    best_replica: int
    node_names: list[str]
    true_edge_probs: list[list[float]] | None = None
    warnings: list[str] = []
    choices: list[str] = []
    references: dict[str, dict[str, float]] = {}
    preparation: dict[str, Any] = {}
    coordinates: list[list[float]] | None = None
    findings: list[str] = []
    goodness: dict[str, Any] = {}
    uncertainty: dict[str, float] = {}
    candidates: CandidateCount | None = None  # where edges.csv lists candidates instead of all ordered pairs

    @model_validator(mode="after")
    def _complete(self) -> "Record":
        """Hold what every table and page shows."""
        for name, values, needed in (("metrics", self.metrics, PAGE_METRICS), ("timings", self.timings, PAGE_TIMINGS)):
            if not needed <= set(values):
                raise ValueError(f"{name} lacks {', '.join(sorted(needed - set(values)))}")
        nodes = len(self.node_names)
        truth = self.true_edge_probs
        if truth is not None and [len(row) for row in truth] != [nodes] * nodes:
            raise ValueError(f"true_edge_probs is not {nodes} x {nodes}")
        return self


class EdgeFindings(BaseModel):
    """What is known of each edge besides its probability; None where it was not computed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    std_error: Matrix | None = None
    low: Matrix | None = None
    high: Matrix | None = None
    bagged: Matrix | None = None
    identifiable: Flags | None = None


class ListedEdges(BaseModel):
    """Source, target and probability of each candidate, by the numbers of the nodes, in the order of ``edges.csv``."""

    source: list[int]
    target: list[int]
    probability: list[float]


class Run(BaseModel):
    """A run directory, read back; with candidates ``edge_probs`` has no rows, and they are in ``listed``."""

    record: Record
    edge_probs: Matrix
    edges: EdgeFindings
    history: list[dict[str, Any]]
    listed: ListedEdges | None = None

    @model_validator(mode="after")
    def _regular(self) -> "Run":
        """Hold an entry per replica in every line of the history."""
        replicas = len(self.record.replicas)
        for number, line in enumerate(self.history, 1):
            lists = [value for value in line.values() if isinstance(value, list)]
            if "epoch" not in line or not lists or any(len(value) != replicas for value in lists):
                raise ValueError(f"history.jsonl line {number} is not that of an epoch of {replicas} replicas")
        return self


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def describe_device(device: torch.device, processes: int = 1) -> str:
    """Return the device in words, and how many processes had one each."""
    times = f"{processes} x " if processes > 1 else ""
    if device.type == "cuda":
        return f"{times}cuda ({torch.cuda.get_device_name(device)})"
    return f"{times}cpu ({torch.get_num_threads()} threads)"


def make_directory(directory: Path, *, besides: tuple[str, ...] = ()) -> bool:
    """Make a directory for results, and return whether it was not there before.

    One that holds anything, besides names that begin as given, is refused: a run is never written over.
    """
    try:
        made = not directory.exists()
        if not made and (
            not directory.is_dir() or any(not path.name.startswith(besides) for path in directory.iterdir())
        ):
            remedy = f"go on with {resuming(directory)}, or choose" if (directory / CALL).is_file() else "choose"
            raise InputError(
                f"out needs a new or empty directory, got {directory}, which exists; {remedy} another --out"
            )
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out needs a directory that can be made, got {directory} ({error.strerror})") from None
    return made


@contextmanager
def new_directory(directory: Path) -> Iterator[None]:
    """Make a directory for results before the work begins; take it away again if the work fails and left it empty."""
    made = make_directory(directory)
    try:
        yield
    except BaseException:
        if made:
            with suppress(OSError):  # it holds something
                directory.rmdir()
        raise


def resuming(directory: Path) -> str:
    """Return the command that goes on with an unfinished run."""
    return f"'{shlex.join(['tacit', 'fit', '--resume', str(directory)])}'"


def write_run(directory: Path, record: Record, result: FitResult, edges: EdgeFindings | None = None) -> None:
    """Write the files of a run; the record comes last, and a directory without one is no run."""
    model, slots = result.model, result.model.graph.slots
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    probs = model.graph.edge_probs.detach().cpu()
    if slots is None:
        listed = edges_text(probs, record.node_names, edges)
    else:
        listed = candidates_text(probs, slots.to("cpu"), record.node_names)
        parts = {name: getattr(slots, name).cpu().contiguous() for name in SLOT_PARTS}
        tensors |= {f"{SLOTS}.{name}": value for name, value in parts.items()}
    history = "".join(json.dumps(_history_line(epoch)) + "\n" for epoch in result.history)
    files = {
        "edges.csv": listed.encode(),
        "history.jsonl": history.encode(),
        "model.safetensors": save(tensors, {"format": str(FORMAT), "tacit": version("tacit")}),
        RECORD: (record.model_dump_json(indent=2) + "\n").encode(),
    }
    made = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        write_together(directory, files)
    except BaseException:
        if made:
            with suppress(OSError):
                directory.rmdir()
        raise


def edges_text(
    edge_probs: Float[torch.Tensor, "node node"],
    node_names: Sequence[str],
    edges: EdgeFindings | None = None,
) -> str:
    """Return ``edges.csv``: a row per ordered pair; columns that were not computed are there and empty."""
    found = (edges or EdgeFindings()).model_dump()
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(EDGE_COLUMNS)
    for i, target in enumerate(node_names):
        for j, source in enumerate(node_names):
            values = {name: "" if matrix is None else _cell(matrix[i][j]) for name, matrix in found.items()}
            values |= {"source": source, "target": target, "probability": _cell(edge_probs[i, j].item())}
            rows.writerow([values[name] for name in EDGE_COLUMNS])
    return text.getvalue()


def candidates_text(edge_probs: Float[torch.Tensor, "row slot"], slots: Slots, node_names: Sequence[str]) -> str:
    """Return ``edges.csv`` of a table: a row per candidate, by target and then source; other columns are empty."""
    source, target = slots.edges()
    empty = [""] * (len(EDGE_COLUMNS) - 3)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(EDGE_COLUMNS)
    for j, i, probability in zip(source.tolist(), target.tolist(), edge_probs[slots.used].tolist(), strict=True):
        rows.writerow([node_names[j], node_names[i], _cell(probability), *empty])
    return text.getvalue()


def read_run(directory: Path) -> Run:
    """Read a run directory back; a missing or foreign file is an :class:`InputError`."""
    try:
        text = (directory / RECORD).read_text(encoding="utf-8")
        found = json.loads(text).get("format", FORMAT)
        if found != FORMAT:
            raise InputError(f"{directory} has format {found}, this tacit reads format {FORMAT}; run it again")
        record = Record.model_validate_json(text)
        lines = (directory / "history.jsonl").read_text(encoding="utf-8").splitlines()
        history = [json.loads(line) for line in lines]
        if record.candidates is not None:
            listed = _read_listed(directory / "edges.csv", record.node_names, record.candidates.count)
            return Run(record=record, edge_probs=[], edges=EdgeFindings(), history=history, listed=listed)
        edge_probs, edges = _read_edges(directory / "edges.csv", record.node_names)
        return Run(record=record, edge_probs=edge_probs, edges=edges, history=history)
    except OSError as error:
        if (directory / CALL).is_file():
            raise InputError(f"{directory} is not finished; go on with {resuming(directory)}") from None
        raise InputError(
            f"{directory} needs to be a run directory, but {Path(str(error.filename)).name} cannot be read "
            f"({error.strerror}); pass the directory that a tacit command wrote"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{directory} holds a damaged run ({where}{': ' if where else ''}{first['msg']}); run the command again"
        ) from None
    except InputError:
        raise
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise InputError(f"{directory} holds a damaged run ({error}); run the command again") from None


def _read_edges(path: Path, node_names: Sequence[str]) -> tuple[Matrix, EdgeFindings]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = {(row["target"], row["source"]): row for row in csv.DictReader(file)}
    missing = [
        f"{source} -> {target}" for target in node_names for source in node_names if (target, source) not in rows
    ]
    if missing:
        raise ValueError(f"edges.csv lacks {len(missing)} edges, the first {missing[0]}")

    def column(name: str) -> list[list[str]]:
        return [[rows[target, source].get(name) or "" for source in node_names] for target in node_names]

    def numbers(name: str) -> Matrix | None:
        texts = column(name)
        return None if not any(any(row) for row in texts) else [[float(text) for text in row] for row in texts]

    probability = [[float(text) for text in row] for row in column("probability")]
    flags = column("identifiable")
    found = {name: numbers(name) for name in EDGE_NUMBERS}
    return probability, EdgeFindings(**found, identifiable=flags if any(any(row) for row in flags) else None)


def _read_listed(path: Path, node_names: Sequence[str], count: int) -> ListedEdges:
    number = {name: place for place, name in enumerate(node_names)}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            (number[row["source"]], number[row["target"]], float(row["probability"])) for row in csv.DictReader(file)
        ]
    if len(rows) != count:
        raise ValueError(f"edges.csv has {len(rows)} edges, {count} are in record.json")
    names = ("source", "target", "probability")
    return ListedEdges(**{name: [row[place] for row in rows] for place, name in enumerate(names)})


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _history_line(epoch: Epoch) -> dict[str, Any]:
    line = asdict(epoch)
    return {**{key: value for key, value in line.items() if key != "monitored"}, **line["monitored"]}

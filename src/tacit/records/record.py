"""The record of a run, checksums of its files, and the learned tensors.

The record of a run: the content of ``record.json``.

Checksums of a record and of the files of its run, so that changed files are detected.

A sealed text is JSON with ``"sha256": "..."`` near its start: the checksum of the text with an empty value there.
``sed 's/"sha256": "[0-9a-f]*"/"sha256": ""/' record.json | sha256sum`` gives the same number.
"""

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, model_validator
from torch import Tensor

from tacit.atomic_files import read_file
from tacit.errors import InputError, require
from tacit.graph import Sigmoid
from tacit.tensor_files import Kind
from tacit.training import LatentGraphModel
from tacit.version import __version__
from tacit.words import Choice, Finding

FORMAT = 5  # docs/reference/files.md has the table
RECORD = "record.json"
PAGE_METRICS = {"point_mae", "point_mse", "distribution_loss"}
PAGE_TIMINGS = {"train_seconds", "steps"}
LIBRARIES = ("torch", "numpy", "safetensors")


class CandidateCount(BaseModel):
    """The number of candidate edges, and the probability of all other edges."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int
    others: float = 0.0

    @classmethod
    def of(cls, count: int | None) -> "CandidateCount | None":
        """Return the field of a record; None for a graph over all pairs of nodes."""
        return None if count is None else cls(count=count)


class Record(BaseModel):
    """All results of a run from which tables, figures and the report are drawn, besides edges and history.

    ``evidence`` is empty for a run that did not test which edges exist; edges are then listed by ``probability``.

    ``sha256`` is the checksum of the record itself, and ``files`` has those of the other files of the run; both are set
    when the record is written, see :mod:`tacit.records.record`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    sha256: str = ""
    files: dict[str, str] = {}
    title: str
    command: str
    config: dict[str, Any]
    seed: int
    versions: dict[str, str]
    device: str
    timings: dict[str, float]
    metrics: dict[str, float]
    by_node: dict[str, dict[str, float]] = {}  # score -> node -> number, of the test part
    by_series: dict[str, dict[str, float]] = {}  # score -> series -> number, if there are several
    optimal: dict[str, float] = {}
    paper: dict[str, float] = {}
    replicas: list[dict[str, Any]]
    best_replica: int
    node_names: list[str]
    true_edge_probs: list[list[float]] | None = None
    converged: bool = True  # false if training stopped too early
    warnings: list[str] = []
    choices: list[Choice] = []  # the options that were chosen from the data
    references: dict[str, dict[str, float]] = {}
    preparation: dict[str, Any] = {}
    coordinates: list[list[float]] | None = None
    findings: list[Finding] = []  # of the assessment
    goodness: dict[str, Any] = {}
    uncertainty: dict[str, float | str] = {}
    answer: list[str] = []  # the first lines of the printed output and of the report
    evidence: dict[str, Any] = {}  # how edges were tested, and which are listed or required
    node_gains: dict[str, float] = {}  # node -> how much the edges improve its forecast, a share of its scaled CRPS
    stages: dict[str, float] = {}  # stage -> seconds, in order, from reading to scoring
    situations: dict[str, Any] = {}  # how edges depend on the situation, or the regimes; see docs/reference/files.md
    background: dict[str, Any] = {}  # node -> its terms in words, and the share of its variance that they explain
    candidates: CandidateCount | None = None  # if edges.csv lists candidates instead of all ordered pairs

    @property
    def keep(self) -> float:
        """The lowest ``exists`` of an edge that was learned; other edges have no probability."""
        return float(self.evidence.get("keep", 0.0))

    @property
    def is_symmetric(self) -> bool:
        """Whether edges have no direction."""
        graph = self.config.get("graph")
        return isinstance(graph, dict) and graph.get("symmetric") is True

    @model_validator(mode="after")
    def _complete(self) -> "Record":
        """Check that the values are present that every table and report shows."""
        for name, values, needed in (("metrics", self.metrics, PAGE_METRICS), ("timings", self.timings, PAGE_TIMINGS)):
            if not needed <= set(values):
                raise ValueError(f"{name} lacks {', '.join(sorted(needed - set(values)))}")
        nodes = len(self.node_names)
        truth = self.true_edge_probs
        if truth is not None and [len(row) for row in truth] != [nodes] * nodes:
            raise ValueError(f"true_edge_probs is not {nodes} x {nodes}")
        return self


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on."""
    libraries = {name: version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), "tacit": __version__, **libraries}


def describe_device(device: torch.device, processes: int = 1) -> str:
    """Return a description of the device, with the number of processes if each had one."""
    times = f"{processes} x " if processes > 1 else ""
    if device.type == "cuda":
        return f"{times}cuda ({torch.cuda.get_device_name(device)})"
    return f"{times}cpu ({torch.get_num_threads()} threads)"


OPEN = '"sha256": ""'


def checksum(data: bytes) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(data).hexdigest()


def sealed(text: str) -> bytes:
    r"""Return a text with its empty checksum filled in.

    >>> data = sealed('{"sha256": "", "a": 1}')
    >>> read_sealed(data)["a"]
    1
    >>> read_sealed(data.replace(b"1}", b"2}"))
    Traceback (most recent call last):
    ...
    tacit.records.record.ChangedError: record.json
    """
    if OPEN not in text:
        raise ValueError("the text must have a place for its checksum")
    return text.replace(OPEN, _filled(checksum(text.encode())), 1).encode()


class ChangedError(ValueError):
    """A file that was changed; the message is its name."""


def read_sealed(data: bytes) -> dict[str, Any]:
    """Return the content of a sealed text; raise :class:`ChangedError` if its checksum does not match."""
    fields = read_object(data)
    found = fields.get("sha256")
    if not isinstance(found, str) or checksum(data.replace(_filled(found).encode(), OPEN.encode(), 1)) != found:
        raise ChangedError(RECORD)
    return fields


def read_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in a file; raise :class:`ValueError` if there is none."""
    try:
        fields = json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")
    return fields


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a number of JSON")


def _filled(checksum: str) -> str:
    return f'"sha256": "{checksum}"'


MODEL = "model.safetensors"
KIND = Kind("model", 3, "put back the file that the run wrote, or run the command again")
CANDIDATES = "graph.candidates"  # prefix of the names of the tensors of a table of candidates
INFINITE = (f"graph.{Sigmoid.parameter}",)  # the logit of an edge with probability 0 or 1


def pack_model(model: LatentGraphModel, record: Record, further: Mapping[str, Tensor]) -> bytes:
    """Return the bytes of a model file; its text describes the run, for people who find the file alone."""
    return KIND.pack({"title": record.title, "node_names": record.node_names}, {**model_tensors(model), **further})


def model_tensors(model: LatentGraphModel) -> dict[str, Tensor]:
    """Return the learned tensors, and the table of candidates if the graph has one."""
    layout = model.graph.layout
    return {**model.state_dict(), **{f"{CANDIDATES}.{name}": getattr(layout, name) for name in layout.stored}}


def read_model(directory: Path, record: Record) -> dict[str, Tensor]:
    """Return the tensors of the model of a record; raise :class:`InputError` if the file is another one or damaged."""
    path = directory / MODEL
    try:
        data = read_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); {KIND.remedy}") from None
    _, tensors = KIND.unpack(data, str(path))
    require(
        record.files.get(MODEL) == checksum(data),
        f"{path} is not the model of this run: its checksum differs from that in record.json; {KIND.remedy}",
    )
    KIND.require_finite(tensors, str(path), INFINITE)
    return tensors

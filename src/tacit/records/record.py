"""The record of a run: what ``record.json`` holds."""

import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, model_validator

FORMAT = 4  # docs/reference/files.md has the table
RECORD = "record.json"
PAGE_METRICS = {"point_mae", "point_mse", "distribution_loss"}
PAGE_TIMINGS = {"train_seconds", "steps"}
LIBRARIES = ("tacit", "torch", "numpy", "safetensors")


class CandidateCount(BaseModel):
    """How many edges can be, and the probability of all others."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int
    others: float = 0.0


class Record(BaseModel):
    """Everything a table, figure or page is drawn from, besides edges and history.

    ``evidence`` is empty for a run that did not ask which edges exist; its decisions are by ``probability``.

    ``sha256`` is the checksum of the record itself and ``files`` are those of the files that belong to the run: both
    are filled in when it is written, see :mod:`tacit.records.checksums`.
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
    by_series: dict[str, dict[str, float]] = {}  # score -> series -> number, where there are several
    optimal: dict[str, float] = {}
    paper: dict[str, float] = {}
    replicas: list[dict[str, Any]]
    best_replica: int
    node_names: list[str]
    true_edge_probs: list[list[float]] | None = None
    converged: bool = True  # false where training stopped too early
    warnings: list[str] = []
    choices: list[str] = []
    references: dict[str, dict[str, float]] = {}
    preparation: dict[str, Any] = {}
    coordinates: list[list[float]] | None = None
    findings: list[str] = []
    goodness: dict[str, Any] = {}
    uncertainty: dict[str, float] = {}
    answer: list[str] = []  # the first lines of the terminal and the page, in order
    evidence: dict[str, Any] = {}  # how it was found which edges exist, and which are listed or required
    node_gains: dict[str, float] = {}  # node -> how much the edges improve its forecast, a share of its scaled CRPS
    stages: dict[str, float] = {}  # stage -> seconds, in order, from reading to scoring
    situations: dict[
        str, Any
    ] = {}  # how edges depend on the situation, or the regimes; docs/reference/files.md has the keys
    candidates: CandidateCount | None = None  # where edges.csv lists candidates instead of all ordered pairs

    @property
    def keep(self) -> float:
        """The least ``exists`` of an edge that was learned: others have no probability."""
        return float(self.evidence.get("keep", 0.0))

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


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}}


def _version(library: str) -> str:
    """Return the installed version; a library that runs from its sources has none, and says its own."""
    try:
        return version(library)
    except PackageNotFoundError:
        return str(getattr(import_module(library), "__version__", "unknown"))


def describe_device(device: torch.device, processes: int = 1) -> str:
    """Return the device in words, and how many processes had one each."""
    times = f"{processes} x " if processes > 1 else ""
    if device.type == "cuda":
        return f"{times}cuda ({torch.cuda.get_device_name(device)})"
    return f"{times}cpu ({torch.get_num_threads()} threads)"

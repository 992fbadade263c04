"""The record of a run: the content of ``record.json``."""

import platform
from importlib.metadata import version
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, model_validator

from tacit.version import __version__

FORMAT = 4  # docs/reference/files.md has the table
RECORD = "record.json"
PAGE_METRICS = {"point_mae", "point_mse", "distribution_loss"}
PAGE_TIMINGS = {"train_seconds", "steps"}
LIBRARIES = ("torch", "numpy", "safetensors")


class CandidateCount(BaseModel):
    """The number of candidate edges, and the probability of all other edges."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int
    others: float = 0.0


class Record(BaseModel):
    """All results of a run from which tables, figures and the report are drawn, besides edges and history.

    ``evidence`` is empty for a run that did not test which edges exist; edges are then listed by ``probability``.

    ``sha256`` is the checksum of the record itself, and ``files`` has those of the other files of the run; both are set
    when the record is written, see :mod:`tacit.records.checksums`.
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
    choices: list[str] = []
    references: dict[str, dict[str, float]] = {}
    preparation: dict[str, Any] = {}
    coordinates: list[list[float]] | None = None
    findings: list[str] = []
    goodness: dict[str, Any] = {}
    uncertainty: dict[str, float] = {}
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
        return isinstance(graph, dict) and graph.get("symmetric") is True and self.candidates is None

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

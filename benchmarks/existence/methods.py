"""The methods of the studies by name, each from several series to a number per edge; some give probabilities.

``evidence`` is what ``tacit fit`` finds with its defaults, before any training.
"""

import importlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from benchmarks.existence.design import Scores
from benchmarks.existence.peers import PEERS
from benchmarks.existence.stability import Recalibration, stability_selection
from benchmarks.existence.systems import System

from tacit.errors import InputError
from tacit.pipeline.evidence import RegressionEvidence

RESULTS = Path(__file__).parents[1] / "results" / "existence"
RECALIBRATION = RESULTS / "recalibration.json"
STABILITY, EVIDENCE = "stability selection", "evidence"
LEVELS_DIFFER = ("panels",)  # kinds whose series the other methods see less their means

Method = Callable[[System], Scores]


def method(name: str) -> Method:
    """Return a method by its name, or a function of series as ``module:function``."""
    if name == EVIDENCE:
        return evidence
    peers = {**PEERS, STABILITY: stability_selection}
    if name in peers:
        return lambda system: peers[name](system.series, system.kind in LEVELS_DIFFER)
    if ":" not in name:
        known = ", ".join([EVIDENCE, *peers])
        raise InputError(f"--method must be one of {known} or module:function, got '{name}'; correct it")
    module, function = name.split(":")
    found = getattr(importlib.import_module(module), function)
    return lambda system: np.asarray(found(list(system.series)), dtype=float)


def evidence(system: System) -> Scores:
    """Return ``exists`` of every edge as the plan of a fit with defaults has it."""
    return existing(planned(system))


def existing(found: RegressionEvidence) -> Scores:
    """Return ``exists`` of every edge of some evidence, 0 where there is none."""
    return np.nan_to_num(np.asarray(found.table.matrix("exists"), dtype=float), nan=0.0)


def planned(system: System) -> RegressionEvidence:
    """Return the evidence of the plan of a fit with defaults."""
    from tacit.config import FitConfig, PredictorOptions
    from tacit.data import Series
    from tacit.pipeline.plan import resolve
    from tacit.pipeline.sources import Source

    nodes = system.nodes or tuple(f"v{node}" for node in range(system.num_nodes))
    parts = [Series(np.ascontiguousarray(one)[:, :, None], nodes, times=system.times) for one in system.series]
    series = Series.joined(parts) if len(parts) > 1 else parts[0]
    config = FitConfig(predictor=PredictorOptions(kind="filter"))  # the evidence is the same for every kind
    plan = resolve(Source("series", series), config, seed=0, device=torch.device("cpu"), command="benchmark")
    assert plan.evidence is not None
    return plan.evidence


def is_probability(name: str) -> bool:
    """Whether the answer of a method can be scored as a probability; peers but one give scores alone."""
    return name not in PEERS


def probabilities(name: str, scores: Scores) -> Scores:
    """Return the answer of a method as probabilities: shares of stability selection are recalibrated."""
    if name != STABILITY:
        return scores
    if not RECALIBRATION.is_file():
        raise InputError(f"{RECALIBRATION} is missing; run evidence_study with --recalibrate first")
    return Recalibration(**json.loads(RECALIBRATION.read_text(encoding="utf-8")))(scores)

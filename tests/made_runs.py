"""Runs of any size without a training: records as a fit would leave them, from numbers drawn with a seed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from run_files import write_fields
from tacit.edges import FLAGS, EdgeIndex, EdgeTable, edges_text
from tacit.records import FORECAST_NUMBERS, BackgroundTable, CandidateCount, ForecastTable, Record, Run, listed_in
from tacit.words import FindingKind, choose, find

GOODNESS = {
    "fits": False,
    "verdict": "the model does not fit at the 5% level",
    "tests": "(kernel test p = 0.004, ranks p = 0.010, 500 pairs)",
    "sentences": ["the model does not fit at the 5% level (kernel test p = 0.004, ranks p = 0.010, 500 pairs)"],
    "coverage": [
        {"level": level, "nominal": level, "overall": level - 0.02, "by_number": [level - 0.05, level, None]}
        for level in (0.5, 0.8, 0.95)
    ],
}


KEEP = 0.1


def make_run(
    nodes=12,
    *,
    names=None,
    truth=False,
    errors=False,
    flags=False,
    coordinates=False,
    candidates=None,
    replicas=3,
    seed=0,
    loops=0.9,
    evidence=False,
    **changes,
):
    """A run whose edges are mostly improbable and some sure, as of a fit; ``candidates`` are listed for each target.

    With ``evidence`` it says which edges exist; edges that most likely do not have no probability.
    """
    rng = np.random.default_rng(seed)
    names = [f"node {node}" for node in range(nodes)] if names is None else names
    record = Record(
        **{
            "title": "a made run",
            "command": "tacit fit made.csv --seed 0",
            "config": {"graph": {"metric": "great_circle"}, "training": {"epochs": 5}},
            "seed": seed,
            "versions": {"tacit": "0.1.0"},
            "device": "cpu",
            "timings": {"train_seconds": 1.5, "steps": 20},
            "replicas": [{"seed": replica} for replica in range(replicas)],
            "best_replica": 0,
            "node_names": names,
            "metrics": {"point_mae": 0.1, "point_mse": 0.2, "distribution_loss": 0.3},
            "references": {"the last value": {"point_mae": 0.2, "point_mse": 0.3}},
            "preparation": {"kind": "series"},
            "choices": [choose("window", 12, "usual")],
            "findings": [
                find(FindingKind.FIT_DETAIL, "does not fit"),
                find(FindingKind.IDENTIFICATION, "All edges are identifiable."),
            ],
            "warnings": ["a made run means nothing"],
            "goodness": GOODNESS | {"names": names, "ranks": [_ranks(rng) for _ in names]},
            "coordinates": _coordinates(nodes, rng) if coordinates else None,
            "true_edge_probs": _sparse(nodes, rng).round(1).tolist() if truth else None,
            "candidates": None if candidates is None else CandidateCount(count=nodes * candidates),
        }
        | (_answered(names, rng) if evidence else {})
        | changes
    )
    history = [
        {
            "epoch": epoch,
            "train_loss": [1 / epoch + k for k in range(replicas)],
            "validation_loss": [0.9 / epoch if k == 0 or epoch < 3 else None for k in range(replicas)],
        }
        for epoch in range(1, 6)
    ]
    edges = _edges(nodes, rng, loops) if candidates is None else _candidates(nodes, candidates, rng)
    probs = edges.probability.to_numpy()
    if errors:
        edges = edges.assign(std_error=0.1 * probs, low=0.8 * probs, high=np.minimum(1, 1.2 * probs))
    if evidence:
        exists, effect = _existing(probs, rng)
        edges.insert(2, "exists", np.where(edges.source == edges.target, 0, exists))
        edges["effect"] = effect
    if candidates is None:
        drawn = rng.choice(["yes", "yes", "yes", "no"], size=(nodes, nodes)).ravel()
        if flags:
            flags = pd.Categorical(np.where(edges.source == edges.target, "", drawn), categories=FLAGS)
            edges["identifiable"] = flags.codes.astype(np.uint8)
    if evidence:
        acting = edges.columns.intersection(["probability", "std_error", "low", "high"])
        edges.loc[edges.exists < KEEP, acting] = np.nan
    index = EdgeIndex(edges.source.to_numpy(), edges.target.to_numpy(), tuple(names), tuple(names), record.is_symmetric)
    table = EdgeTable(index, keep=record.keep)
    table = table.updated(**{name: edges[name].to_numpy() for name in edges.columns[2:]})
    return Run(record=record, edges=listed_in(record, table), history=history)


def with_record(run, **changes):
    """The run with another record, which says what is listed, required and true."""
    record = run.record.model_copy(update=changes)
    return run.model_copy(update={"record": record, "edges": listed_in(record, run.edges)})


def with_forecasts(run, *, rows=200, nodes=50, row_name="time", variables=("level",), series=()):
    """The run with forecasts of the last rows, whose bands have the right width: errors are standard normal."""
    rng = np.random.default_rng(1)
    nodes = list(range(min(nodes, len(run.record.node_names))))
    median = rng.normal(size=(rows, len(nodes), len(variables), 1)).cumsum(0)
    spread = np.array([-1.96, -1.2816, -0.6745, 0, 0.6745, 1.2816, 1.96])
    numbers = np.concatenate([median + spread, median + rng.normal(size=median.shape)], -1)
    numbers[3, 0, 0, FORECAST_NUMBERS.index("actual")] = np.nan
    hours = np.datetime64("2026-01-01T00", "s") + np.arange(rows) * np.timedelta64(1, "h")
    labels = hours.astype(str).tolist() if row_name == "time" else [str(row) for row in range(rows)]
    each = [name for name in series for _ in range(rows // len(series))] if series else []
    table = ForecastTable(row_name, labels, each, nodes, list(variables), numbers)
    return run.model_copy(update={"forecasts": table})


def with_background(run, *, rows=96, means=8, nodes=2, series=()):
    """The run with a daily cycle of some nodes: means of four rows over the whole table, then its last rows."""
    hours = np.datetime64("2026-01-01T00", "s") + np.arange(rows) * np.timedelta64(1, "h")
    curve = np.sin(2 * np.pi * np.arange(rows)[:, None] / 24 + np.arange(nodes))
    actual = curve + np.random.default_rng(2).normal(size=curve.shape)
    actual[-1, 0] = np.nan
    groups = [range(first, first + 4) for first in range(0, 4 * means, 4)] + [[row] for row in range(rows // 2, rows)]
    numbers = np.stack([np.stack([actual[group].mean(0), curve[group].mean(0)], -1) for group in map(list, groups)])
    every, sizes = series or [""], [4 if len(group) > 1 else 1 for group in groups]
    table = BackgroundTable(
        [str(hours[group[len(group) // 2]]) for group in groups] * len(every),
        sizes * len(every),
        [name for name in series for _ in groups],
        list(range(nodes)),
        np.concatenate([numbers + k for k in range(len(every))]),
    )
    said = {name: {"terms": ["slow trend", "daily cycle"], "share": 0.25} for name in run.record.node_names[:nodes]}
    record = run.record.model_copy(update={"background": said})
    return run.model_copy(update={"background": table, "record": record})


def with_edges(run, **columns):
    """The run with some columns replaced, each a matrix [target][source]; words are text."""
    made = EdgeTable.of_matrices(run.record.node_names, **columns)
    edges = run.edges.updated(**made.columns)
    return run.model_copy(update={"edges": listed_in(run.record, edges)})


def run_of_matrices(record, history=(), **columns):
    """A run whose columns are matrices [target][source]."""
    table = EdgeTable.of_matrices(record.node_names, symmetric=record.is_symmetric, **columns)
    edges = listed_in(record, replace(table, keep=record.keep))
    return Run(record=record, edges=edges, history=list(history))


def edge_matrix(nodes, **columns):
    """A table of all ordered pairs from matrices [target][source]."""
    target, source = np.indices((nodes, nodes)).reshape(2, -1)
    table = pd.DataFrame({"source": source, "target": target})
    for name, matrix in columns.items():
        table[name] = np.array(matrix).ravel()
    return table


def write_directory(run: Run, directory: Path) -> Path:
    """Write a run directory, with all that ``tacit report`` reads."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in run.history))
    (directory / "edges.csv").write_text(edges_text(run.edges))
    files = dict.fromkeys(("edges.csv", "history.jsonl"), "")
    write_fields(directory, run.record.model_dump(mode="json") | {"files": files})
    return directory


def _sparse(nodes, rng):
    """Chains of neighbours with high probabilities among many low ones."""
    probs = rng.beta(0.5, 12, size=(nodes, nodes))
    for step in (1, 2):
        places = np.arange(nodes)
        probs[places, (places + step) % nodes] = rng.uniform(0.3, 1.0, size=nodes)
    return probs.round(5)


def _edges(nodes, rng, loops):
    probs = _sparse(nodes, rng)
    np.fill_diagonal(probs, loops)
    return edge_matrix(nodes, probability=probs)


def _candidates(nodes, candidates, rng):
    target = np.repeat(np.arange(nodes), candidates)
    offsets = np.tile(np.arange(1, candidates + 1), nodes)
    source = (target + offsets * rng.integers(1, 4, size=nodes).repeat(candidates)) % nodes
    probs = np.where(offsets <= 2, rng.uniform(0.2, 1.0, size=len(target)), rng.beta(0.5, 12, size=len(target)))
    return pd.DataFrame({"source": source, "target": target, "probability": probs.round(5)})


def _existing(probs, rng):
    """What is probable exists, almost surely; effects of either sign."""
    exists = np.where(probs >= 0.3, rng.uniform(0.9, 1.0, size=probs.shape), rng.beta(1, 30, size=probs.shape))
    effect = np.where(probs >= 0.3, rng.choice([-1, 1], size=probs.shape) * rng.uniform(0.2, 0.8, probs.shape), 0.01)
    return exists.round(5), effect.round(5)


def _answered(names, rng):
    return {
        "answer": ["A graph was found: it lowers the forecast error (scaled CRPS) by 8.6% +- 0.9% against no graph."],
        "evidence": {"method": "regression", "prior": {"density": 0.1}, "keep": KEEP, "fdr": 0.1, "listed_from": 0.9},
        "node_gains": dict(zip(names, rng.uniform(-0.02, 0.3, size=len(names)).round(4).tolist(), strict=True)),
    }


def _coordinates(nodes, rng):
    return np.stack([rng.uniform(39.5, 40.5, nodes), rng.uniform(115.5, 117.5, nodes)], axis=1).round(4).tolist()


def _ranks(rng):
    return {"counts": rng.integers(80, 120, size=20).tolist(), "expected": [100.0] * 20}

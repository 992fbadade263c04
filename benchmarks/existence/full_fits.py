"""``tacit fit`` with its defaults on systems with a known graph, scored by its ``edges.csv``.

    python -m benchmarks.existence.full_fits --only nonlinear_var --count 10 --seed-set test

Each data set is one line in ``benchmarks/results/existence/full_fits/NAME.jsonl``, written at once; data sets that are
there are skipped. Edges are ranked by ``exists`` where the file has it, else by ``probability``.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from benchmarks.existence.evidence_study import collection, read_lines
from benchmarks.existence.known import NAMES
from benchmarks.existence.methods import RESULTS
from benchmarks.existence.scores import calibration_error, listed, off_diagonal, ranking
from benchmarks.existence.systems import SEEDS, System
from joblib import Parallel, delayed

from tacit.config import FitConfig
from tacit.config.fit import DataOptions
from tacit.pipeline.job import run_fit

# How many data sets of each the targets of docs/results/EXISTENCE.md ask for.
COUNTS = {
    "nonlinear_var": 10,
    "wide": 20,
    "mixed_signs": 20,
    "independent": 20,
    "river": 1,
    "var": 20,
    "gates": 20,
    "panels": 5,
    "gpvar": 5,
}
FOLDER = RESULTS / "full_fits"
MOST_NODES = 40  # up to here a record keeps ``exists`` of every pair, for pooled calibration


def write_data(system: System, folder: Path) -> tuple[Path, FitConfig]:
    """Write a system as a user would have it: a table (with a column that names the series, if several), or pairs."""
    if system.inputs is not None and system.targets is not None:
        path = folder / "pairs.npz"
        np.savez(path, x=system.inputs, y=system.targets)
        return path, FitConfig()
    frames = []
    for number, values in enumerate(system.series):
        frame = pd.DataFrame(values, columns=list(names(system)))
        frame.insert(0, "time", np.arange(len(frame)) if system.times is None else system.times)
        if len(system.series) > 1:
            frame.insert(0, "series", f"s{number}")
        frames.append(frame)
    path = folder / "table.csv"
    pd.concat(frames).to_csv(path, index=False)
    return path, FitConfig(data=DataOptions(series="series" if len(frames) > 1 else None))


def names(system: System) -> tuple[str, ...]:
    """Return the names of the nodes; those of pairs are their numbers."""
    if system.inputs is not None:
        return tuple(str(node) for node in range(system.num_nodes))
    return system.nodes or tuple(f"v{node}" for node in range(system.num_nodes))


def fitted(name: str, system: System, seed: int, keep: Path | None = None) -> dict[str, Any]:
    """Fit one system and return its record."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if keep is None else keep / name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        path, config = write_data(system, folder)
        began = time.perf_counter()
        job = run_fit(str(path), config, folder / "run", seed=seed, device=torch.device("cpu"))
        seconds = time.perf_counter() - began
        table = pd.read_csv(folder / "run" / "edges.csv", dtype={"source": str, "target": str})
        about = json.loads((folder / "run" / "record.json").read_text(encoding="utf-8"))
        assert job is not None
    return {
        "name": name,
        "kind": system.kind,
        "nodes": system.num_nodes,
        "rows": system.num_rows,
        "seed": seed,
        "seconds": round(seconds, 2),
        **_about(about),
        **edge_scores(table, system),
    }


def edge_scores(table: pd.DataFrame, system: System) -> dict[str, Any]:
    """Return the scores of a table of edges; an empty ``probability`` counts as 0."""
    places = {node: place for place, node in enumerate(names(system))}
    columns = {}
    for column in ("exists", "probability", "low", "high", "std_error", "effect"):
        matrix = np.full(system.truth.shape, np.nan)
        if column in table:
            matrix[table["target"].map(places), table["source"].map(places)] = table[column]
        columns[column] = matrix
    by = "exists" if not np.isnan(off_diagonal(columns["exists"])).all() else "probability"
    exists, truth = np.nan_to_num(off_diagonal(columns[by])), off_diagonal(system.truth)
    chosen, theta = listed(exists), off_diagonal(system.theta)
    probs, low, high = (off_diagonal(columns[column]) for column in ("probability", "low", "high"))
    counted = chosen & truth & ~np.isnan(low)
    error = np.abs(np.nan_to_num(probs) - theta)
    found: dict[str, Any] = {
        "by": by,
        **ranking(exists, truth),
        "listed": int(chosen.sum()),
        "false": int((chosen & ~truth).sum()),
        "edges": int(truth.sum()),
        "mean_exists": float(exists.mean()),
        "largest_without_edge": float(exists[~truth].max(initial=0.0)),
        "smallest_on_edge": float(exists[truth].min()) if truth.any() else None,
        "calibration_error": calibration_error(exists, truth),
        "theta_mae": float(error.mean()),
        "theta_largest_error_on_edges": float(error[truth].max()) if truth.any() else None,
        "intervals": int(counted.sum()),
        "covered": int((counted & (low <= theta) & (theta <= high)).sum()),
        "true_edges": _true_edges(columns, system),
    }
    if len(places) <= MOST_NODES:
        found["pairs"] = {"exists": exists.tolist(), "truth": np.flatnonzero(truth).tolist()}
    return {key: _rounded(value) for key, value in found.items()}


def _true_edges(columns: dict[str, np.ndarray], system: System) -> list[dict[str, Any]]:
    """Return what the file says of each true edge, beside how often it acts in truth."""
    label = names(system)
    return [
        {
            "edge": f"{label[source]} -> {label[target]}",
            "theta": float(system.theta[target, source]),
            **{key: float(values[target, source]) for key, values in columns.items()},
        }
        for target, source in np.argwhere(system.truth)
    ]


def _about(record: dict[str, Any]) -> dict[str, Any]:
    """Return what the record of the run says first, and how it was made."""
    kept: dict[str, Any] = {key: record[key] for key in ("answer", "evidence", "timings", "choices") if key in record}
    return kept


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    if isinstance(value, float):
        return None if np.isnan(value) else round(value, 5)
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=[*COUNTS, *NAMES], default=list(COUNTS))
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed-set", choices=list(SEEDS), default="choose")
    parser.add_argument("--seeds", type=int, default=1, help="fits of each data set, with seeds 0, 1, ...")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the records")
    parser.add_argument("--keep", type=Path, help="folder that keeps the data and the runs")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        label = name if name in NAMES else f"{name}-{options.seed_set}"
        path = options.out / f"{label}.jsonl"
        done = {(row["name"], row["seed"]) for row in read_lines(path)}
        count = options.count or COUNTS.get(name)
        work = (
            delayed(fitted)(own, system, seed, options.keep)
            for own, system in collection(name, options.seed_set, count, options.data)
            for seed in range(options.seeds)
            if (own, seed) not in done
        )
        for row in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work):
            with path.open("a", encoding="utf-8") as file:
                print(json.dumps(row), file=file)
            shown = {key: row[key] for key in ("name", "auroc", "aupr", "listed", "false", "edges", "seconds")}
            print("  ".join(f"{key} {value}" for key, value in shown.items()), flush=True)


if __name__ == "__main__":
    main()

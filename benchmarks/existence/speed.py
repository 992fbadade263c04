"""Seconds and memory of the evidence stage, from 10 nodes up to 10,000 nodes with 50 candidates each.

    python -m benchmarks.existence.speed [--nodes 10 100 10000]

Each size runs in a process of its own, on one thread; the records are ``benchmarks/results/existence/speed.json``. The
data are linear VARs of 1,000 rows in which every node reads two others. With ``--table FOLDER`` the largest size is
written there as ``data.csv`` and ``edges.csv`` instead, to be given to ``tacit fit``.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.existence.records import RESULTS, speed
from benchmarks.existence.scores import ranking
from benchmarks.existence.systems import BURN_IN, OWN, Values
from jaxtyping import Bool, Int

from tacit.config import FitConfig
from tacit.data import Series
from tacit.graph import CandidateEdges
from tacit.pipeline.dataset import Dataset, longest_window
from tacit.pipeline.evidence import find_evidence
from tacit.pipeline.known_edges import read_rules
from tacit.pipeline.sources import Source

SIZES, ROWS, WIDTH, PARENTS, WEIGHT = (10, 100, 10_000), 1_000, 50, 2, 0.25
PATH = RESULTS / "speed.json"
Sources = Int[np.ndarray, "node candidate"]


def sparse_var(nodes: int, seed: int = 0) -> tuple[Values, Sources, Bool[np.ndarray, "node candidate"]]:
    """Return a series, the candidates of each node (all others up to ``WIDTH``), and which of them it reads."""
    rng = np.random.default_rng(seed)
    width = min(WIDTH, nodes - 1) if nodes > 100 else nodes - 1
    sources = np.stack([rng.choice(nodes - 1, width, replace=False) for _ in range(nodes)])
    sources = np.sort(sources + (sources >= np.arange(nodes)[:, None]), 1)
    read = np.stack([rng.choice(width, PARENTS, replace=False) for _ in range(nodes)])
    parents = np.take_along_axis(sources, read, 1)
    weights = WEIGHT * rng.choice([-1.0, 1.0], parents.shape)  # |OWN| + |weights| < 1: stable
    values = rng.normal(size=(ROWS + BURN_IN, nodes))
    for now in range(1, len(values)):
        values[now] += OWN * values[now - 1] + (weights * values[now - 1][parents]).sum(1)
    truth = np.zeros(sources.shape, dtype=bool)
    np.put_along_axis(truth, read, True, 1)
    return values[BURN_IN:], sources, truth


def measure(nodes: int) -> dict[str, Any]:
    """Run the evidence stage of a fit with defaults on one size."""
    values, sources, truth = sparse_var(nodes)
    series, config = Series(values[:, :, None], tuple(f"v{node}" for node in range(nodes))), FitConfig()
    data = config.data.model_copy(update={"window": longest_window(series)})
    dataset = Dataset.prepare(Source("series", series), data, seed=0, scaled=True)
    targets = np.repeat(np.arange(nodes), sources.shape[1])
    candidates = CandidateEdges.from_edges(torch.from_numpy(sources.ravel()), torch.from_numpy(targets), nodes)
    rules = read_rules(dataset, config.graph, candidates if nodes > 100 else None)
    began = time.process_time()
    found = find_evidence(dataset, rules, config, 0, index=rules.index("table" if nodes > 100 else "matrix"))
    return {
        "nodes": nodes,
        "candidates": int(truth.size),
        "rows": ROWS,
        "columns": found.form.words(),
        "seconds": round(found.seconds, 2),
        "core_seconds": round(time.process_time() - began, 2),
        "gigabytes": round(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9, 2),
        "auroc": ranking(found.found.probs.numpy()[found.found.candidates.used], truth.ravel())["auroc"],
        "torch": torch.__version__,
    }


def write_table(nodes: int, folder: Path) -> None:
    """Write a table and its list of candidates."""
    values, sources, _ = sparse_var(nodes)
    folder.mkdir(parents=True, exist_ok=True)
    head = ",".join(["time", *(f"v{node}" for node in range(nodes))])
    rows = np.column_stack([np.arange(len(values)), values])
    np.savetxt(folder / "data.csv", rows, "%.5g", ",", header=head, comments="")
    edges = [f"v{source},v{node},candidate" for node, row in enumerate(sources) for source in row]
    (folder / "edges.csv").write_text("\n".join(["source,target,kind", *edges]) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds and memory of the evidence stage.")
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--table", type=Path, metavar="FOLDER", help="write the data of the last size, measure nothing")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.table:
        write_table(args.nodes[-1], args.table)
        return
    if args.one:
        torch.set_num_threads(1)
        print(json.dumps(measure(args.nodes[0])))
        return
    rows = {row["nodes"]: row for row in speed(RESULTS)}  # of sizes that are not asked for
    for nodes in args.nodes:
        call = [sys.executable, "-m", "benchmarks.existence.speed", "--one", "--nodes", str(nodes)]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{nodes} nodes failed:\n{done.stderr[-2000:]}")
        rows[nodes] = json.loads(done.stdout.splitlines()[-1])
        print(rows[nodes], flush=True)
        PATH.write_text(json.dumps([rows[size] for size in sorted(rows)], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

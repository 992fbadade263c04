"""The paper's system through ``tacit fit``: does the model itself say which edges exist, and how often they act?

    python -m benchmarks.existence.paper_system --count 5

35,000 pairs of 12 nodes, influences over two hops, self-loops learned, no noise. Each data set is one line in
``benchmarks/results/existence/full_fits/paper_system.jsonl``, with the joint run of ``tacit demo`` on the same pairs
beside it; data sets that are there are skipped.
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
from benchmarks.existence.evidence_study import read_lines
from benchmarks.existence.methods import RESULTS

from tacit.config import DemoConfig, FitConfig
from tacit.experiments.demo import run_demo
from tacit.pipeline.job import run_fit
from tacit.systems import CommunitySystem

SEEDS = range(10, 15)  # none of them was used to choose anything
NUM_PAIRS = 35_000
PATH = RESULTS / "full_fits" / "paper_system.jsonl"
CONFIG = FitConfig.model_validate(
    {
        "data": {"train_fraction": 0.8, "shuffle": False},  # the parts of the demo
        "graph": {"self_loops": True},
        "predictor": {"kind": "hops", "num_hops": 2},
        "observation": {"kind": "none"},
    }
)


def scored(seed: int) -> dict[str, Any]:
    """Fit one data set and return its record."""
    torch.set_num_threads(1)
    system = CommunitySystem()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pairs = system.generate(NUM_PAIRS, seed)
        np.savez(folder / "pairs.npz", x=pairs.inputs.numpy(), y=pairs.targets.numpy())
        began = time.perf_counter()
        run_fit(str(folder / "pairs.npz"), CONFIG, folder / "run", seed=seed, device=torch.device("cpu"))
        seconds = time.perf_counter() - began
        table = pd.read_csv(folder / "run" / "edges.csv")
        record = json.loads((folder / "run" / "record.json").read_text(encoding="utf-8"))
        demo = run_demo(DemoConfig(), folder / "demo", seed=seed, device=torch.device("cpu"))
        joint = demo.runs["joint"].record.metrics["edge_prob_mae"]
    found = edge_scores(table, system.true_edge_probs.double().numpy())
    return {
        "name": f"paper_system {seed}",
        "seed": seed,
        "seconds": round(seconds, 2),
        "evidence_seconds": round(record["evidence"]["seconds"], 2),
        "timings": record["timings"],
        "evidence": record["evidence"],
        "answer": record["answer"],
        **found,
        "demo_edge_prob_mae": joint,
        "mae_ratio": found["edge_prob_mae"] / joint,
    }


def edge_scores(table: pd.DataFrame, truth: np.ndarray) -> dict[str, Any]:
    """Return the scores of a table of edges; an empty ``probability`` counts as 0."""
    columns = {}
    for column in ("exists", "probability", "low", "high"):
        matrix = np.full(truth.shape, np.nan)
        matrix[table["target"], table["source"]] = table[column]
        columns[column] = matrix
    apart, there = ~np.eye(len(truth), dtype=bool), truth > 0
    exists, probs = columns["exists"], np.nan_to_num(columns["probability"])
    covered = (columns["low"] <= truth) & (truth <= columns["high"])
    return {
        "smallest_on_edge": float(exists[there & apart].min()),
        "smallest_on_loop": float(exists[there & ~apart].min()),
        "largest_without_edge": float(exists[~there].max()),
        "edge_prob_mae": float(np.abs(probs - truth).mean()),
        "intervals": int((there & ~np.isnan(columns["low"])).sum()),
        "covered": int((there & covered).sum()),
    }


def main() -> None:
    """Score the data sets that are not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=len(SEEDS))
    parser.add_argument("--out", type=Path, default=PATH)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = {row["seed"] for row in read_lines(options.out)}
    for seed in SEEDS[: options.count]:
        if seed in done:
            continue
        row = scored(seed)
        with options.out.open("a", encoding="utf-8") as file:
            print(json.dumps(row), file=file)
        shown = ("smallest_on_edge", "largest_without_edge", "edge_prob_mae", "demo_edge_prob_mae", "evidence_seconds")
        print(f"{row['name']}  " + "  ".join(f"{key} {row[key]:.4g}" for key in shown), flush=True)


if __name__ == "__main__":
    main()

"""Do intervals of how often edges act hold the truth? Known edges and a few false ones, on systems of one kind.

    python -m benchmarks.acting gates --first 10000 --sets 20 --options '{"rows": 4300}'
    python -m benchmarks.acting                                         # the stored results

Prints one JSON object per data set and a last one with the shares over all true edges, and appends that to
``benchmarks/results/acting.json``. *held* is the share of intervals with the truth, *reach_1* of those with 1;
*middle_at_times* is the share of gates of .3 to .7 that are said to act at times, and *always_at_times* that of edges
that always act. *groups* counts sets of edges that are said to act together, *false_groups* those whose edges do not
have the same gate, and *together* the edges of the others.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from benchmarks.acting_systems import KINDS
from benchmarks.existence.systems import System

from tacit.assessment.uncertainty import estimate_acting
from tacit.config import DataOptions, FitConfig, override
from tacit.edges import ACTS
from tacit.pipeline.plan import resolve
from tacit.pipeline.preparation import block_length
from tacit.pipeline.sources import Source, read_source, read_table
from tacit.pipeline.state import Fit

RESULTS = Path(__file__).parent / "results" / "acting.json"
FALSE_SHARE, REPLICAS = 0.03, 16
MIDDLE = (0.3, 0.7)  # probabilities of gates that should be found
Figures = dict[str, Any]


def plan_of(system: System, keep: np.ndarray, folder: Path) -> Fit:
    """Return the plan of a linear filter that may read the kept edges alone."""
    candidates = [(int(source), int(target)) for target, source in zip(*np.nonzero(keep), strict=True)]
    values = {
        "graph": {"candidates": candidates, "layout": "matrix"},
        "predictor": {"kind": "filter"},
        "training": {"compile": False},
        "assessment": {"enabled": False},
    }
    config = override(FitConfig(), values)
    return resolve(_source(system, folder), config, seed=0, device=torch.device("cpu"), command="acting")


def one(system: System, seed: int, folder: Path) -> Figures:
    """Return counts over the true edges of one data set."""
    rng, nodes = np.random.default_rng([seed, 1]), system.num_nodes
    keep = system.truth | ((rng.random((nodes, nodes)) < FALSE_SHARE) & ~np.eye(nodes, dtype=bool))
    plan = plan_of(system, keep, folder)
    train = plan.dataset.split.train
    block = block_length(plan.config.assessment, plan.dataset.preparation, len(train))
    began = time.perf_counter()
    found = estimate_acting(plan.model, train, replicas=REPLICAS, block=block, seed=seed)
    seconds = time.perf_counter() - began
    around, theta, true = found.intervals(), torch.from_numpy(system.theta), torch.from_numpy(system.truth)
    held = (around.low <= theta + 1e-6) & (theta <= around.high + 1e-6)
    words = {word: found.acting == code for code, word in enumerate(ACTS) if word}
    groups = [found.together == number for number in found.together[~found.together.isnan()].unique()]
    false = [bool((theta[group] == 1).any()) or len(theta[group].unique()) > 1 for group in groups]
    gates, middle = true & (theta < 1), true & (theta >= MIDDLE[0]) & (theta <= MIDDLE[1])
    return {
        "seed": seed,
        "noise": plan.model.observation.__class__.__name__,
        "edges": int(true.sum()),
        "held": int(held[true].sum()),
        "reach_1": int((around.high[true] == 1).sum()),
        **{word: int(mask[true].sum()) for word, mask in words.items()},
        "error": float((found.edge_probs - theta)[true].abs().sum()),
        "width": float((around.high - around.low)[true].sum()),
        "middle": int(middle.sum()),
        "middle_at_times": int(words["at times"][middle].sum()),
        "always_acting": int((true & ~gates).sum()),
        "always_at_times": int((words["at times"] & true & ~gates).sum()),
        "groups": len(groups),
        "false_groups": sum(false),
        "together": sum(int(group.sum()) for group, wrong in zip(groups, false, strict=True) if not wrong),
        "seconds": seconds,
    }


def main() -> None:
    """Run one kind of system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", choices=KINDS, help="if it is missing, print the stored results")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--options", type=json.loads, default={})
    chosen = parser.parse_args()
    earlier = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    if chosen.kind is None:
        for line in earlier:
            print(json.dumps(line))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(chosen.first, chosen.first + chosen.sets):
            system = KINDS[chosen.kind](seed, **chosen.options)
            if system.truth.any():
                rows.append(one(system, seed, Path(folder)))
                print(json.dumps(rows[-1]), flush=True)
    count = {key: sum(row[key] for row in rows) for key in rows[0] if key not in ("seed", "noise")}
    shares = ("held", "reach_1", "always", "at times", "undecided", "error", "width")
    total: Figures = {"kind": chosen.kind, "options": chosen.options, "first": chosen.first, "sets": len(rows)}
    total |= {"edges": count["edges"], **{key: count[key] / count["edges"] for key in shares}}
    for key, of in (("middle_at_times", "middle"), ("always_at_times", "always_acting")):
        total[key] = count[key] / count[of] if count[of] else None
    total |= {key: count[key] for key in ("groups", "false_groups", "together")}
    total["noise"] = dict(Counter(row["noise"] for row in rows))
    total["seconds"] = count["seconds"] / len(rows)
    print(json.dumps(total))
    same = ("kind", "options", "first", "sets")
    kept = [line for line in earlier if any(line[key] != total[key] for key in same)]
    RESULTS.write_text(json.dumps([*kept, total], indent=1) + "\n")


def _source(system: System, folder: Path) -> Source:
    if system.inputs is not None:
        np.savez(folder / "pairs.npz", x=system.inputs, y=system.targets)
        return read_source(str(folder / "pairs.npz"), DataOptions())
    names = [f"v{node}" for node in range(system.num_nodes)]
    frames = [pd.DataFrame(values, columns=names) for values in system.series]
    return read_table(frames if len(frames) > 1 else frames[0], DataOptions())


if __name__ == "__main__":
    main()

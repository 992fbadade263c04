"""How well does each loss learn? The eight rows of the paper's loss table on its 12-node system, psi known and learned.

    python benchmarks/losses.py [--seed N] [--rows NAME ...] [--json FILE]

Ten epochs, 35,000 pairs. psi learned: eight replicas, the worse half dropped after the first epochs, the best kept by
validation loss. ELBO: of 3 priors and 6 standard deviations the one with the lowest validation loss.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from tacit.assessment.evaluation import edge_prob_errors, predictive_metrics
from tacit.config import ModelConfig
from tacit.experiments.losses import elbo_grid
from tacit.experiments.replication import PAPER_SETTINGS, predictor_for
from tacit.experiments.study import LOSS_TABLE
from tacit.graph import BernoulliGraph
from tacit.randomness import generator_for, replica_seeds
from tacit.systems import CommunitySystem
from tacit.training import FitSettings, fit

PAPER = {name: tuple(mean for mean, _ in row) for name, row in LOSS_TABLE.items()}
# What has to be reached: edge_prob_mae between two bounds, by how psi is.
TARGETS = {
    "learned": {
        "mmd": (0, 0.012),
        "energy": (0, 0.012),
        **{name: (0.08, 0.095) for name in PAPER if name.startswith("literature")},
    },
    "known": {"mmd": (0, 0.011), "energy": (0, 0.011), "point_mse": (0, 0.035)},
}
JOINT = {"scope": "joint", "num_graphs": 64, "share_graphs": True}
ROWS = {
    **{name: ModelConfig(loss=name) for name in PAPER if name.startswith("literature")},
    "point_mse": ModelConfig(loss="point_mse", **JOINT),
    "energy": ModelConfig(loss="energy", **JOINT),
    "mmd": ModelConfig(loss="mmd", **JOINT),
}
POINT_TOLERANCE = 0.005
REPLICAS = 8


def settings(replicas: int) -> FitSettings:
    """The paper's schedule for every row; ours (cosine from 0.1) suits the distribution losses better, but drives point
    MSE along a valley where psi grows and theta shrinks (edge_prob_mae 0.05 instead of 0.02)."""
    return replace(PAPER_SETTINGS, halve_after=(1, 2, 3) if replicas > 1 else ())


def train(config: ModelConfig, system: CommunitySystem, pairs, psi: str, seed: int, replicas: int):
    graph = BernoulliGraph.uniform(system.num_nodes, generator=generator_for(seed, psi), link=config.build_link())
    model = config.build(graph, predictor_for(system, psi, seed), pairs.train.targets)
    return fit(model, pairs.train, pairs.validation, settings(replicas), seeds=replica_seeds(seed, replicas))


def measure(name: str, system: CommunitySystem, pairs, psi: str, seed: int) -> dict:
    """Train one row and score it."""
    start = time.perf_counter()
    replicas = REPLICAS if psi == "learned" else 1
    chosen = ""
    if name == "elbo":
        grid = elbo_grid(system.true_edge_probs)
        results = {key: train(config, system, pairs, psi, seed, replicas) for key, config in grid.items()}
        chosen = min(results, key=lambda key: results[key].replicas[results[key].best].validation_loss)
        result = results[chosen]
    else:
        result = train(ROWS[name], system, pairs, psi, seed, replicas)
    model = result.model
    scores = predictive_metrics(model, pairs.test, model.loss, generator=generator_for(seed, "score"))
    probs = model.graph.edge_probs.detach()
    return {
        "loss": name,
        "psi": psi,
        "seed": seed,
        "chosen": chosen,
        **edge_prob_errors(probs, system.true_edge_probs),
        "point_mae": scores["point_mae"],
        "point_mse": scores["point_mse"],
        "undecided": ((probs > 0.05) & (probs < 0.95)).float().mean().item(),
        "seconds": time.perf_counter() - start,
    }


def verdict(row: dict) -> str:
    """Say whether a row reached what it has to reach; nothing if it has no target."""
    low, high = TARGETS[row["psi"]].get(row["loss"], (None, None))
    if low is None:
        return "reported"
    reached = low <= row["edge_prob_mae"] <= high
    if row["psi"] == "learned" and row["loss"].startswith("literature"):
        metric = 1 if row["loss"].endswith("mae") else 2
        reached &= abs(row[("", "point_mae", "point_mse")[metric]] - PAPER[row["loss"]][metric]) <= POINT_TOLERANCE
    return "reached" if reached else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--psi", nargs="*", choices=["known", "learned"], default=["known", "learned"])
    parser.add_argument("--rows", nargs="*", choices=list(PAPER), default=list(PAPER))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    system = CommunitySystem()
    pairs = system.generate(35_000, arguments.seed).split()
    rows = []
    print(
        f"{'loss':18}{'psi':9}{'theta':>8}{'max':>7}{'paper':>7}{'MAE':>8}{'paper':>7}{'MSE':>8}{'paper':>7}",
        flush=True,
    )
    for psi in arguments.psi:
        for name in arguments.rows:
            row = measure(name, system, pairs, psi, arguments.seed)
            rows.append(row | {"verdict": verdict(row)})
            paper = PAPER[name] if psi == "learned" else ("-", "-", "-")
            print(
                f"{name:18}{psi:9}{row['edge_prob_mae']:8.4f}{row['edge_prob_max_error']:7.2f}{paper[0]:>7}"
                f"{row['point_mae']:8.4f}{paper[1]:>7}{row['point_mse']:8.4f}{paper[2]:>7}  "
                f"{verdict(row)}, {row['undecided']:.0%} undecided, {row['seconds']:.0f} s {row['chosen']}",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(any(row["verdict"] == "MISSED" for row in rows))


if __name__ == "__main__":
    main()

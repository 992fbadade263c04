"""Which defaults for pairs without time: those that the command had, those that the estimator had, or a mixture?

Before there was one path, the two front ends had different defaults. Here both sets, and the first with one choice of
the second at a time, learn the same systems. Scored: the error of the edge probabilities, the energy score on the test
part, and the time of training. ``python benchmarks/defaults.py --jobs 2 --out FILE``
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

from tacit.config import AssessmentOptions, FitConfig, override
from tacit.data import pairs_from_arrays
from tacit.pipeline import Source, building, conclude, learn, resolve, state

SEEDS = range(3)  # of the data; the fit has the same


@dataclass(frozen=True)
class Choice:
    """Defaults that differ: sections of the config, where edges start, and when the worse half stops."""

    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    start: tuple[float, float] = (0.05, 0.15)
    halvings: tuple[float, ...] = (0.1, 0.2)
    steps: int = 1500


CHOICES = {
    "command": Choice(),
    "estimator": Choice(
        {
            "predictor": {"hidden": 8},
            "model": {"num_graphs": 16},
            "training": {"replicas": 8, "predictor_learning_rate": 0.01, "batch_size": 128},
        },
        (0.0, 0.1),
        (0.1, 0.2, 0.3),
        2000,
    ),
    "hidden 8": Choice({"predictor": {"hidden": 8}}),
    "16 graphs": Choice({"model": {"num_graphs": 16}}),
    "8 replicas": Choice({"training": {"replicas": 8}}),
    "predictor rate .01": Choice({"training": {"predictor_learning_rate": 0.01}}),
    "edges start at 0 to .1": Choice(start=(0.0, 0.1)),
    "2,000 steps": Choice(steps=2000),
    "batches of 128": Choice({"training": {"batch_size": 128}}),
    "third halving": Choice(halvings=(0.1, 0.2, 0.3)),
}


def gates(rng: np.random.Generator, rows: int, nodes: int, *, signs: bool, noise: float) -> tuple[Any, ...]:
    """Each node shows half of itself and what it reads at the moment; about a fifth of the edges are there at times."""
    truth = np.where(rng.random((nodes, nodes)) < 0.2, rng.choice([0.3, 0.6, 0.9], (nodes, nodes)), 0.0)
    np.fill_diagonal(truth, 0)
    weights = rng.choice([-1.0, 1.0], (nodes, nodes)) if signs else np.ones((nodes, nodes))
    x = rng.normal(size=(rows, nodes))
    graphs = rng.random((rows, nodes, nodes)) < truth
    y = 0.5 * x + np.einsum("pij,ij,pj->pi", graphs, weights, x) + noise * rng.normal(size=(rows, nodes))
    return x, y, truth


def tanh_hops(rng: np.random.Generator, rows: int) -> tuple[Any, ...]:
    """Two hops through a random graph of six nodes, as in the paper, with a little noise."""
    truth = np.where(rng.random((6, 6)) < 0.35, 0.75, 0.0)
    np.fill_diagonal(truth, 0)
    x = rng.normal(size=(rows, 6, 2))
    graphs = (rng.random((rows, 6, 6)) < truth).astype(float)
    one = np.einsum("pij,pjc->pic", graphs, x)
    two = np.einsum("pij,pjc->pic", graphs, one)
    y = np.tanh(0.5 * x[..., 0] + one @ [0.6, -0.4] + two @ [-0.3, 0.2]) + 0.05 * rng.normal(size=(rows, 6))
    return x, y, truth


SYSTEMS = {
    "gates, 300 rows, 4 nodes": lambda rng: gates(rng, 300, 4, signs=False, noise=0.2),
    "gates, 2,000 rows, 8 nodes": lambda rng: gates(rng, 2000, 8, signs=False, noise=0.2),
    "gates of both signs, 1,000 rows": lambda rng: gates(rng, 1000, 6, signs=True, noise=0.2),
    "two hops, 3,000 rows": lambda rng: tanh_hops(rng, 3000),
}


def score(system: str, choice: str, seed: int) -> dict[str, Any]:
    """Fit one system with one set of choices."""
    torch.set_num_threads(1)
    x, y, truth = SYSTEMS[system](np.random.default_rng(1000 + seed))
    one = CHOICES[choice]
    building.START, state.HALVINGS = one.start, one.halvings
    from tacit.pipeline import choices

    choices.STEPS = one.steps
    config = override(FitConfig(assessment=AssessmentOptions(enabled=False)), one.sections)
    config = override(config, {"training": {"compile": False}})
    began = time.process_time()
    plan = resolve(
        Source("pairs", pairs_from_arrays(x, y)), config, seed=seed, device=torch.device("cpu"), command="defaults"
    )
    learned = learn(plan)
    seconds = time.process_time() - began
    fitted = conclude(learned)
    probs = fitted.model.graph.edge_probs.detach().numpy()
    off = ~np.eye(len(truth), dtype=bool)
    return {
        "system": system,
        "choice": choice,
        "seed": seed,
        "edge_prob_mae": float(np.abs(probs - truth)[off].mean()),
        "energy_score": fitted.record.metrics["energy_score"],
        "cpu_seconds": seconds,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return mean and deviation over the seeds, a line for each system and choice, as ratios to the command's."""
    lines = [f"{'system':34} {'choice':24} {'edge_prob_mae':>18} {'energy score':>18} {'cpu s':>8}"]
    for system in SYSTEMS:
        for choice in CHOICES:
            own = [row for row in rows if (row["system"], row["choice"]) == (system, choice)]
            if own:
                cells = [
                    f"{mean(row[key] for row in own):.4f} +- {stdev(row[key] for row in own):.4f}"
                    for key in ("edge_prob_mae", "energy_score")
                ]
                seconds = mean(row["cpu_seconds"] for row in own)
                lines.append(f"{system:34} {choice:24} {cells[0]:>18} {cells[1]:>18} {seconds:8.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/results/defaults/figures.json"))
    arguments = parser.parse_args()
    tasks = [(system, choice, seed) for system in SYSTEMS for choice in CHOICES for seed in SEEDS]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    results = []
    for result in Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")(
        delayed(score)(*task) for task in tasks
    ):
        results.append(result)
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))

"""How near to the truth does each estimator and each link end? The paper's 12-node system, psi known, ten epochs.

    python benchmarks/final_error.py [--seeds N] [--ways NAME ...] [--json FILE]

Energy score at node scope, 16 graphs for each pair, cosine decay from the rate named (0.1 if none).
"""

import argparse
import json
from pathlib import Path

import torch

from tacit.assessment.evaluation import edge_prob_errors
from tacit.estimators import Concrete, DisARM, StraightThrough
from tacit.graph import BernoulliGraph, SineSquared
from tacit.losses import EnergyScore
from tacit.systems import CommunitySystem
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit

# name: link, estimator, learning rate
WAYS = {
    "score function": (None, None, 0.1),
    "DisARM": (None, DisARM(), 0.1),
    "straight-through": (None, StraightThrough(), 0.1),
    "concrete, 1 to 0.1": (None, Concrete(), 0.1),
    "sine-squared, 0.1": (SineSquared(), None, 0.1),
    "sine-squared, 0.03": (SineSquared(), None, 0.03),
    "sine-squared, 0.01": (SineSquared(), None, 0.01),
}


def measure(name: str, seed: int) -> dict:
    link, estimator, rate = WAYS[name]
    system = CommunitySystem()
    pairs = system.generate(35_000, seed).split()
    graph = BernoulliGraph.uniform(12, generator=torch.Generator().manual_seed(seed), link=link)
    model = LatentGraphModel(graph, system.true_predictor(), EnergyScore(), estimator=estimator)
    settings = FitSettings(epochs=10, schedule=CosineDecay(rate))
    result = fit(model, pairs.train, pairs.validation, settings, seeds=[seed])
    milliseconds = 1000 * result.train_seconds / result.steps
    errors = edge_prob_errors(model.graph.edge_probs, system.true_edge_probs)
    return {"way": name, "seed": seed, **errors, "milliseconds_per_step": milliseconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.ways:
        for seed in range(arguments.seeds):
            rows.append(measure(name, seed))
            row = rows[-1]
            print(
                f"{name:22} seed {seed}: error {row['edge_prob_mae']:.4f}, largest {row['edge_prob_max_error']:.3f}, "
                f"{row['milliseconds_per_step']:.2f} ms a step",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

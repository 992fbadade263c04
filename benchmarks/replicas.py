"""Replicas: what do 8 fits cost together, against one and against 8 one after another?

One epoch of the paper's 12-node system (batch 128, 16 graphs per pair, node-scope energy score), compiled, first
compilation aside. Turns alternate so that noise meets all alike; ratios are medians over turns.

Targets: on a CPU, 8 together cost no more than 8 one after another; on a GPU, less than 3 times one.

Run ``python benchmarks/replicas.py [--device cpu] [--rounds 5] [--json FILE]``.
"""

import argparse
import json
from pathlib import Path
from statistics import median

import torch

from tacit.data import Split
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.randomness import generator_for
from tacit.systems import CommunitySystem
from tacit.training import FitSettings, LatentGraphModel, fit

REPLICAS = 8


def seconds(system: CommunitySystem, pairs: Split, seeds: range, *, lift: str, train_psi: bool, epochs: int) -> float:
    """Return the training time of one fit of these seeds, its compilation aside."""
    generator = generator_for(0, "benchmark")
    predictor = HopPredictor.random(2, 4, generator=generator) if train_psi else system.true_predictor()
    model = LatentGraphModel(BernoulliGraph.uniform(system.num_nodes, generator=generator), predictor, EnergyScore())
    model.to(pairs.train.inputs.device)
    result = fit(model, pairs.train, pairs.validation, FitSettings(epochs=epochs), seeds=seeds, lift=lift)
    if result.warnings:
        raise SystemExit(f"this comparison requires the compiler: {result.warnings[0]}")
    return result.train_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="8 replicas together, against one fit and against 8 fits in turn.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    args = parser.parse_args()
    on_gpu = args.device.startswith("cuda")
    system = CommunitySystem()
    pairs = system.generate(35_000).to(args.device).split()
    lifts = ("vmap",) if on_gpu else ("loop", "vmap")
    epochs = 5 if on_gpu else 1
    results = []
    device = torch.cuda.get_device_name() if on_gpu else f"cpu, {torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}  {device}  rounds {args.rounds}")
    print(f"{'psi':<9}{'lift':<6}{'one, ms/step':>13}{'8, ms/step':>12}{'8 / one':>9}{'8 / 8 in turn':>15}  target")
    for train_psi in (False, True):
        for lift in lifts:
            times: dict[str, list[float]] = {"one": [], "turn": [], "together": []}
            choices = {"lift": lift, "train_psi": train_psi, "epochs": epochs}
            seconds(system, pairs, range(1), **choices)  # compilers and caches warm up
            for _ in range(args.rounds):
                alone = [seconds(system, pairs, range(seed, seed + 1), **choices) for seed in range(REPLICAS)]
                times["one"].append(median(alone))
                times["turn"].append(sum(alone))
                times["together"].append(seconds(system, pairs, range(REPLICAS), **choices))
            steps = epochs * (len(pairs.train) // 128)
            to_one = median(t / o for t, o in zip(times["together"], times["one"], strict=True))
            to_turn = median(t / o for t, o in zip(times["together"], times["turn"], strict=True))
            met = to_one < 3 if on_gpu else to_turn <= 1.0
            target = ("< 3 of one" if on_gpu else "<= 1 of 8 in turn") if lift == lifts[0] else ""
            verdict = f"{target}: {'met' if met else 'NOT met'}" if target else "(not the default here)"
            figures = {
                "psi": "trained" if train_psi else "known",
                "lift": lift,
                "one_ms_per_step": 1e3 * median(times["one"]) / steps,
                "together_ms_per_step": 1e3 * median(times["together"]) / steps,
                "together_over_one": to_one,
                "together_over_turn": to_turn,
            }
            results.append(figures)
            print(
                f"{figures['psi']:<9}{lift:<6}{figures['one_ms_per_step']:>13.2f}"
                f"{figures['together_ms_per_step']:>12.2f}{to_one:>9.2f}{to_turn:>15.2f}  {verdict}",
                flush=True,
            )
    if args.json:
        args.json.write_text(json.dumps({"device": device, "rounds": args.rounds, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()

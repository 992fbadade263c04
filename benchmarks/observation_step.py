"""What a training step costs with each observation model, as a ratio to Gaussian noise in the same run.

    python benchmarks/observation_step.py --json benchmarks/results/observation_step.json

Twelve nodes, batches of 128, forward and backward of one step, on whatever device there is. Counts have a mean of 5 and
tables up to 30; ``--largest`` gives other sizes. The kinds take turns, round after round, and the least time of each
counts: load of the machine only adds to it.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import MixedObservation, TargetValues
from tacit.predictors import GraphFilter, HopPredictor
from tacit.randomness import draw_uniforms
from tacit.registry import OBSERVATIONS
from tacit.training import LatentGraphModel
from tacit.training.gradient import LiftedGradient
from tacit.training.state import initial_stacks

NODES, BATCH, LAGS, MEAN = 12, 128, 4, 5.0
KINDS = ("gaussian", "poisson", "negative_binomial", "bernoulli", "ordered", "log_normal", "student_t", "mixed")


def observation(kind: str, largest: int) -> Any:
    """Return a kind for all nodes, or all kinds in turn."""
    values = TargetValues(torch.full((NODES, 1), MEAN), torch.ones(NODES, 1), (0.0, 1.0, 2.0, 3.0, 4.0), largest)
    if kind == "mixed":
        names = [name for name in KINDS[:-1] if name != "student_t"]
        parts = [(name, list(range(number, NODES, len(names)))) for number, name in enumerate(names)]
        return MixedObservation([(_made(name, values.chosen(nodes)), nodes) for name, nodes in parts])
    return _made(kind, values)


def _made(kind: str, values: TargetValues) -> Any:
    sizes = {"num_nodes": len(values.unit), "in_channels": LAGS, "channels": 1}
    return OBSERVATIONS[kind].for_sizes(**sizes, values=values)


def step(kind: str, predictor: str, num_graphs: int, *, compiled: bool, largest: int, device: str) -> Callable[[], Any]:
    """Return a step of one replica, after the first: compiled where asked for."""
    rng = torch.Generator().manual_seed(0)
    graph = BernoulliGraph.uniform(NODES, generator=rng, low=0.2, high=0.8)
    made = GraphFilter(NODES, LAGS, 1) if predictor == "filter" else HopPredictor.random(2, LAGS, generator=rng)
    loss, noise = EnergyScore(scope="node"), observation(kind, largest)
    model = LatentGraphModel(graph, made, loss, observation=noise, num_graphs=num_graphs).to(device)
    lifted = LiftedGradient(model, compile=compiled, lift="loop")
    stacks = initial_stacks(model, (0,))
    inputs, targets = torch.randn(BATCH, NODES, LAGS, generator=rng), torch.zeros(BATCH, NODES, 1)
    uniforms = draw_uniforms(*model.uniforms_shape(BATCH), generator=rng)
    batch = tuple(part.to(device) for part in (inputs, targets, uniforms))

    def one() -> None:
        lifted(*stacks, [batch], (0,))
        if device == "cuda":
            torch.cuda.synchronize()

    one()
    if compiled and lifted.fallback is not None:
        raise RuntimeError(lifted.fallback)
    return one


def least_times(steps: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the least milliseconds of each step over rounds in which they take turns."""
    least = dict.fromkeys(steps, float("inf"))
    for _ in range(rounds):
        for name, one in steps.items():
            start = time.perf_counter()
            one()
            least[name] = min(least[name], 1000 * (time.perf_counter() - start))
    return least


def main() -> None:
    """Print and keep the times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--largest", type=int, nargs="*", default=[30])
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--predictors", nargs="*", default=["filter", "hops"])
    parser.add_argument("--graphs", type=int, nargs="*", default=[16, 8])
    parser.add_argument("--eager", action="store_true", help="leave the compiled steps out")
    options = parser.parse_args()
    device, found = "cuda" if torch.cuda.is_available() else "cpu", []
    for largest in options.largest:
        for predictor in options.predictors:
            for num_graphs in options.graphs:
                for compiled in (False,) if options.eager else (True, False):
                    steps = {
                        kind: step(kind, predictor, num_graphs, compiled=compiled, largest=largest, device=device)
                        for kind in dict.fromkeys(["gaussian", *options.kinds])
                    }
                    times = least_times(steps, options.rounds)
                    ratios = {kind: round(value / times["gaussian"], 2) for kind, value in times.items()}
                    setting = {"predictor": predictor, "graphs": num_graphs, "compiled": compiled, "largest": largest}
                    found.append(setting | {"gaussian_ms": round(times["gaussian"], 3), "ratios": ratios})
                    print(json.dumps(found[-1]), flush=True)
    if options.json:
        record = {"device": device, "nodes": NODES, "batch": BATCH, "rounds": options.rounds, "steps": found}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Which gradient estimator is the least noisy for its time? On the paper's 12-node system, psi known.

    python benchmarks/gradient_variance.py [--draws N] [--json FILE]

At three places of a training (its sparse start, half way, the truth) each estimator draws the gradient for the logits
of theta many times on one batch of 128 pairs, with 16 graphs a pair. Reported are

var   the trace of its covariance, relative to that of the score function with leave-one-out baseline, global credit
time  of a compiled step, relative to the same (rounds of all estimators in turn, medians)
cost  var x time: how long one has to average for the same noise, so the variance at equal cost
bias  |mean - exact| / |exact|, exact from the least noisy unbiased estimator with more draws; their noise is taken
      off, and what is within three standard errors of it is shown as 0
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from torch.func import functional_call, grad, vmap

from tacit.estimators import Concrete, DisARM, ScoreFunction, StraightThrough
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore, ExpectedError, PointMSE
from tacit.randomness import draw_uniforms, generator_for
from tacit.systems import CommunitySystem
from tacit.training import LatentGraphModel
from tacit.training.gradient import LiftedGradient
from tacit.training.state import initial_stacks

BATCH, NUM_GRAPHS, CHUNK = 128, 16, 4  # chunk: draws at once
LOSSES = {
    "energy, node": lambda baseline: EnergyScore(scope="node", baseline=baseline),
    "energy, joint": lambda baseline: EnergyScore(scope="joint", baseline=baseline),
    "point MSE": lambda baseline: PointMSE(baseline=baseline),
    "literature 1 MSE": lambda baseline: ExpectedError("mse", baseline=baseline),
}
# name: estimator, baseline, credit
ESTIMATORS = {
    "score, no baseline, global": (ScoreFunction(), "none", "global"),
    "score, paper's baseline, global": (ScoreFunction(), "paper", "global"),
    "score, moving average, global": (ScoreFunction(), "moving_average", "global"),
    "score, leave-one-out, global": (ScoreFunction(), "leave_one_out", "global"),
    "DisARM, global": (DisARM(), "none", "global"),
    "score, leave-one-out, receptive field": (ScoreFunction(), "leave_one_out", "receptive_field"),
    "DisARM, receptive field": (DisARM(), "none", "receptive_field"),
    "straight-through": (StraightThrough(), "none", "auto"),
    "concrete, 1.0": (Concrete(1.0, 1.0), "none", "auto"),
    "concrete, 0.3": (Concrete(0.3, 0.3), "none", "auto"),
    "concrete, 0.1": (Concrete(0.1, 0.1), "none", "auto"),
}
REFERENCE = "score, leave-one-out, global"
SHARP = {  # for the exact gradient
    "node": "score, leave-one-out, receptive field",
    "joint": "score, leave-one-out, global",
}


def build(system: CommunitySystem, probs: torch.Tensor, loss, estimator, credit: str) -> LatentGraphModel:
    graph = BernoulliGraph(probs.clamp(1e-4, 1 - 1e-4))
    choices = {"estimator": estimator, "credit": credit, "num_graphs": NUM_GRAPHS}
    return LatentGraphModel(graph, system.true_predictor(), loss, **choices)


def places(system: CommunitySystem) -> dict[str, torch.Tensor]:
    start = BernoulliGraph.uniform(system.num_nodes, generator=generator_for(0, "start")).edge_probs.detach()
    return {"start": start, "half way": (start + system.true_edge_probs) / 2, "truth": system.true_edge_probs}


def moments(model: LatentGraphModel, pairs, draws: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of the gradient for the logits over independent draws of the graphs."""
    constants = {**dict(model.named_buffers()), "predictor.hop_weights": model.predictor.hop_weights.detach()}
    if model.average_cost is not None:  # what it is in the middle of a training: the mean cost
        constants["average_cost"] = settled_average(model, pairs)
    generator = generator_for(seed, "draws")

    def objective(logits, uniforms):
        state = {**constants, "graph.edge_logits": logits}
        return functional_call(model, state, (pairs.inputs, pairs.targets, uniforms))[0]

    gradient = vmap(grad(objective), in_dims=(None, 0))
    logits = model.graph.edge_logits.detach()
    total, square = torch.zeros_like(logits, dtype=torch.float64), torch.zeros_like(logits, dtype=torch.float64)
    for _ in range(draws // CHUNK):
        uniforms = torch.stack([draw_uniforms(*model.uniforms_shape(BATCH), generator=generator) for _ in range(CHUNK)])
        values = gradient(logits, uniforms).double()
        total += values.sum(0)
        square += values.square().sum(0)
    mean = total / draws
    return mean, (square / draws - mean.square()) * draws / (draws - 1)


def settled_average(model: LatentGraphModel, pairs) -> torch.Tensor:
    generator = generator_for(2, "average")
    costs = []
    for _ in range(20):
        graphs = model.graph.sample(NUM_GRAPHS, num_pairs=BATCH, generator=generator)
        costs.append(model.loss(model.predictor(pairs.inputs, graphs), pairs.targets).cost.mean((0, 1)))
    return torch.stack(costs).mean(0).detach()


def visible_bias(mean, mean_noise, exact, exact_noise) -> float:
    """The distance of two means relative to the second, less what their noise explains; 0 if that may be all."""
    expected = mean_noise + exact_noise
    excess = (mean - exact).square().sum() - expected.sum()
    if excess < 3 * (2 * expected.square().sum()).sqrt():
        return 0.0
    return (excess.sqrt() / exact.norm()).item()


def step_times(models: dict[str, LatentGraphModel], pairs, rounds: int = 15, steps: int = 20) -> dict[str, float]:
    """Seconds of a compiled step, uniforms included: medians over rounds in which all take turns."""
    generator, calls = generator_for(3, "times"), {}
    for name, model in models.items():
        stacks, gradient = initial_stacks(model, (0,), fresh=False), LiftedGradient(model)

        def call(model=model, stacks=stacks, gradient=gradient) -> None:
            uniforms = draw_uniforms(*model.uniforms_shape(BATCH), generator=generator)
            gradient(*stacks, [(pairs.inputs, pairs.targets, uniforms)], (0,))

        call()
        calls[name] = call
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(steps):
                call()
            times[name].append((time.perf_counter() - start) / steps)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=120)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.draws -= arguments.draws % CHUNK
    system = CommunitySystem()
    pairs = system.generate(BATCH, 0)
    rows = []
    for loss_name, make in LOSSES.items():
        scope = make("none").scope
        usable = {n: e for n, e in ESTIMATORS.items() if scope == "node" or e[2] != "receptive_field"}
        spots = places(system)
        at_truth = {
            name: build(system, spots["truth"], make(baseline), estimator, credit)
            for name, (estimator, baseline, credit) in usable.items()
        }
        times = step_times(at_truth, pairs)
        print(
            f"\n{loss_name}{'':28}{'time':>6}" + "".join(f"{spot:>12}: var  cost  bias" for spot in spots), flush=True
        )
        results = {}
        for spot, probs in spots.items():
            for name, (estimator, baseline, credit) in usable.items():
                results[spot, name] = moments(
                    build(system, probs, make(baseline), estimator, credit), pairs, arguments.draws, seed=1
                )
            estimator, baseline, credit = ESTIMATORS[SHARP[scope]]
            sharp = build(system, probs, make(baseline), estimator, credit)
            results[spot, "exact"] = moments(sharp, pairs, 4 * arguments.draws, seed=0)
        for name in usable:
            row = {"loss": loss_name, "estimator": name, "time": times[name] / times[REFERENCE]}
            row["milliseconds"] = 1000 * times[name]
            for spot in spots:
                (mean, variance), (exact, noise) = results[spot, name], results[spot, "exact"]
                bias = visible_bias(mean, variance / arguments.draws, exact, noise / (4 * arguments.draws))
                relative = (variance.sum() / results[spot, REFERENCE][1].sum()).item()
                row[spot] = {"variance": relative, "cost": relative * row["time"], "bias": bias}
                row[spot]["noise_to_signal"] = (variance.sum().sqrt() / exact.norm()).item()
            rows.append(row)
            shown = "".join(f"{row[s]['variance']:17.3f} {row[s]['cost']:5.2f} {row[s]['bias']:5.2f}" for s in spots)
            print(f"{name:40}{row['time']:6.2f}{shown}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

r"""How close is a training step to what the machine could do at best?

The paper's 12-node system, batch 128, 16 graphs for each pair, 8 replicas, energy score at node scope. Counted are the
fewest bytes that a step must move (every input read once, every output written once, nothing in between) and the
operations that it must do; the larger of bytes over bandwidth and operations over rate is the floor. Both ceilings are
measured here: a large copy, and a large product of float32 matrices. What a step takes is the time of the compiled,
recorded and replayed program on a GPU (CUDA events), of 8 replicas in turn on a CPU; medians of repeated runs.

Also: whole fits of 10 epochs, as a user calls them, and on a GPU what share of them is the replayed steps.

Target: on an H200, 8 replicas and 10 epochs within 0.3 s after warm-up.

Run ``python benchmarks/limit.py [--device cpu] [--rounds 7] [--json FILE]``.
"""

import argparse
import json
import time
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
from tacit.training.gradient import LiftedGradient
from tacit.training.processes import Processes
from tacit.training.settings import StepPlan
from tacit.training.state import TrainingState
from tacit.training.step import TrainingStep

REPLICAS, BATCH, GRAPHS, EPOCHS = 8, 128, 16, 10
MOST_SECONDS = 0.3  # for 10 epochs of 8 replicas on an H200


def counted(nodes: int, channels: int, hops: int) -> dict[str, float]:
    """Return bytes and operations of one step of all replicas, psi known."""
    pairs, graphs = REPLICAS * BATCH, REPLICAS * BATCH * GRAPHS
    moved = {
        "random bits": graphs * nodes**2 + 4 * REPLICAS * GRAPHS * nodes**2,
        "inputs, targets, places": pairs * (4 * nodes * (channels + 1) + 8),
        "theta, moments, average: read and written": 8 * 4 * REPLICAS * nodes**2,
        "losses": 4 * 2 * pairs,
    }
    done = {
        "uniforms and comparison": 3 * graphs * nodes**2,
        "walks, rows as words": 3 * graphs * nodes**2 * (hops - 1),
        "messages": 2 * pairs * nodes * channels * hops,
        "sums over neighbours": 2 * graphs * nodes**2 * hops,
        "tanh": 20 * graphs * nodes,
        "distances of pairs of graphs": 3 * graphs * GRAPHS * nodes,
        "costs and baselines": 10 * graphs * nodes,
        "credit": 2 * graphs * nodes**2,
        "gradient": 2 * graphs * nodes**2,
    }
    return {"bytes": float(sum(moved.values())), "operations": float(sum(done.values()))}


def ceilings(device: torch.device) -> tuple[float, float]:
    """Return bytes per second of a large copy and operations per second of a large float32 product."""
    on_gpu = device.type == "cuda"
    values = torch.rand((256 if on_gpu else 64) * 2**20, device=device)
    other = torch.empty_like(values)
    size = 8192 if on_gpu else 2048
    one, two = torch.rand(2, size, size, device=device)
    copy = seconds_of(lambda: other.copy_(values), device)
    product = seconds_of(lambda: one @ two, device)
    return 2 * values.nbytes / copy, 2 * size**3 / product


def seconds_of(work, device: torch.device, rounds: int = 7, calls: int = 3, before=lambda: None) -> float:
    """Return the median time of a call, after a warm-up."""
    before()
    work()
    found = []
    for _ in range(rounds):
        before()
        if device.type == "cuda":
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(calls):
                work()
            end.record()
            torch.cuda.synchronize()
            found.append(start.elapsed_time(end) / 1e3 / calls)
        else:
            before = time.perf_counter()
            for _ in range(calls):
                work()
            found.append((time.perf_counter() - before) / calls)
    return median(found)


def a_model(system: CommunitySystem, device: torch.device, *, train_psi: bool) -> LatentGraphModel:
    generator = generator_for(0, "benchmark")
    predictor = HopPredictor.random(2, 4, generator=generator) if train_psi else system.true_predictor()
    graph = BernoulliGraph.uniform(system.num_nodes, generator=generator)
    return LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=GRAPHS).to(device)


def step_seconds(model: LatentGraphModel, pairs: Split, rounds: int) -> float:
    """Return the time of one step of all replicas: of the recorded program on a GPU, of the loop on a CPU."""
    device, seeds = pairs.train.inputs.device, range(REPLICAS)
    gradient, settings = LiftedGradient(model), FitSettings(epochs=EPOCHS, batch_size=BATCH)
    plan = StepPlan.of(settings, model, len(pairs.train))
    state = TrainingState.create(model, seeds, plan)
    step = TrainingStep(model, pairs.train, settings, state, gradient, Processes())
    step.begin_epoch(torch.randint(len(pairs.train), (plan.steps_per_epoch, REPLICAS, BATCH), device=device))
    for _ in range(8):
        step.take(seeds)
    if gradient.fallback or step.fallback:
        raise SystemExit(f"this comparison requires the compiled step: {gradient.fallback or step.fallback}")
    if device.type == "cuda":
        counter = step._buffers.counter  # so many replays stay within the bits that are in place
        return seconds_of(step._recorded._graph.replay, device, rounds, calls=50, before=counter.zero_)

    def again() -> None:
        state.log.steps_done = 8
        step.take(seeds)

    return seconds_of(again, device, rounds, calls=20)


def fit_seconds(model: LatentGraphModel, pairs: Split, rounds: int) -> list[float]:
    """Return the training times of whole fits, compilation aside, the first one left out."""
    settings = FitSettings(epochs=EPOCHS, batch_size=BATCH)
    times = []
    for _ in range(rounds + 1):
        result = fit(model, pairs.train, pairs.validation, settings, seeds=range(REPLICAS))
        times.append(result.train_seconds)
    return times[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description="A training step beside the least that the machine could take.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    args = parser.parse_args()
    device, system = torch.device(args.device), CommunitySystem()
    pairs = system.generate(35_000).to(device).split()
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    bandwidth, rate = ceilings(device)
    hops, channels, _ = system.hop_weights.shape
    count = counted(system.num_nodes, channels, hops)
    floor = max(count["bytes"] / bandwidth, count["operations"] / rate)
    print(f"torch {torch.__version__}  {name}: {bandwidth / 1e9:,.0f} GB/s, {rate / 1e12:.2f} Tflop/s measured")
    print(f"a step moves {count['bytes'] / 1e6:.2f} MB and does {count['operations'] / 1e6:.0f} M operations at least:")
    bound = "operations" if count["operations"] / rate > count["bytes"] / bandwidth else "bytes"
    print(f"floor {floor * 1e6:.1f} us, by the {bound}")
    figures = {"device": name, "bandwidth": bandwidth, "rate": rate, **count, "floor_us": floor * 1e6, "bound": bound}
    for train_psi in (False, True):
        model = a_model(system, device, train_psi=train_psi)
        step = step_seconds(model, pairs, args.rounds)
        fits = fit_seconds(a_model(system, device, train_psi=train_psi), pairs, args.rounds if floor < 1e-4 else 1)
        psi = "trained" if train_psi else "known"
        steps = EPOCHS * (len(pairs.train) // BATCH)
        figures[psi] = {
            "step_us": step * 1e6,
            "over_floor": step / floor,
            "fit_seconds": median(fits),
            "fit_least": min(fits),
            "fit_most": max(fits),
            "replayed_share": step * steps / median(fits),
        }
        print(
            f"psi {psi:<8} step {step * 1e6:8.1f} us = {step / floor:6.1f} floors;  {EPOCHS} epochs of {REPLICAS} "
            f"replicas {median(fits):.3f} s ({min(fits):.3f} to {max(fits):.3f}), steps alone {step * steps:.3f} s",
            flush=True,
        )
        if args.json:
            args.json.write_text(json.dumps(figures, indent=2) + "\n")
    if device.type == "cuda":
        met = figures["known"]["fit_seconds"] <= MOST_SECONDS
        print(f"<= {MOST_SECONDS} s, psi known: {'met' if met else 'NOT met'}")


if __name__ == "__main__":
    main()

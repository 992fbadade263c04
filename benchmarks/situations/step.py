"""What a training step costs where the graph depends on the situation or has regimes: a ratio to the constant graph.

    python -m benchmarks.situations.step

Forward and backward of one step with graphs per pair, on whatever device there is: 12 nodes (two hops, batches of 128,
16 graphs) and 1,000 nodes with 50 candidates each (a linear filter over the table, batches of 32, 8 graphs). Steps take
turns, round after round, and the least time of each counts: load of the machine only adds to it. On a GPU a step is
recorded and replayed, as in training. Target: at most 2.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from benchmarks.situations.records import RESULTS, Figures, write

from tacit.data import Pairs
from tacit.graph import (
    BernoulliGraph,
    CandidateEdges,
    Category,
    ConditionalBernoulliGraph,
    Context,
    CovariatePhase,
    GraphDistribution,
    MixtureGraph,
    OwnInput,
    Periodic,
    SeriesNumber,
    Smooth,
)
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import GraphFilter, HopPredictor
from tacit.training import FitSettings, LatentGraphModel, Processes
from tacit.training.gradient import LiftedGradient
from tacit.training.settings import StepPlan
from tacit.training.state import TrainingState
from tacit.training.step import TrainingStep

KINDS = ("constant", "category", "hour", "own input", "network", "regimes by row", "regimes of all")
SIZES = {12: (128, 16), 1000: (32, 8)}  # batch, graphs per pair
CANDIDATES, CHANNELS, RANK, HOURS = 50, 4, 4, 24
TARGET = 2.0


def graph_of(kind: str, start: BernoulliGraph, context: Context) -> GraphDistribution:
    """Return a graph of one kind with the edges of a constant one."""
    if kind == "constant":
        return start
    if kind.startswith("regimes"):
        return MixtureGraph(start, 2, "rows" if kind.endswith("row") else "all")
    if kind == "category":
        variable: Any = Category("category", SeriesNumber(), labels=("a", "b", "c"))
    elif kind == "own input":
        variable = Smooth.of("source", OwnInput("source", 0), context)
    else:
        reading = CovariatePhase((0, 1), (0.0, 0.0), (1.0, 1.0))
        variable = Periodic("hour", reading, [hour / HOURS for hour in range(HOURS)], [str(h) for h in range(HOURS)])
    return ConditionalBernoulliGraph(start, [variable], context, rank=RANK if kind == "network" else None)


def step(kind: str, num_nodes: int, device: str, *, compiled: bool) -> Callable[[], Any]:
    """Return a step of one replica, after the first ones."""
    batch, num_graphs = SIZES[num_nodes]
    rng = torch.Generator().manual_seed(0)
    angle = 2 * torch.pi * torch.rand(4 * batch, generator=rng)
    pairs = Pairs(
        torch.randn(4 * batch, num_nodes, CHANNELS, generator=rng),
        torch.randn(4 * batch, num_nodes, 1, generator=rng),
        series=torch.randint(0, 3, (4 * batch,), generator=rng),
        covariates=torch.stack([angle.sin(), angle.cos()], 1),
    ).to(device)
    candidates = None
    if num_nodes > min(SIZES):
        sources = torch.rand(num_nodes, num_nodes - 1, generator=rng).argsort(1)[:, :CANDIDATES]
        nodes = torch.arange(num_nodes)[:, None]
        sources = sources + (sources >= nodes)  # nobody reads itself
        candidates = CandidateEdges.from_edges(sources.flatten(), nodes.repeat(1, CANDIDATES).flatten(), num_nodes)
    start = BernoulliGraph.uniform(num_nodes, generator=rng, low=0.2, high=0.8, candidates=candidates).to(device)
    graph = graph_of(kind, start, Context.of(pairs))
    if candidates is None:
        model = LatentGraphModel(
            graph, HopPredictor.random(2, CHANNELS, generator=rng), EnergyScore(scope="node"), num_graphs=num_graphs
        )
    else:
        model = LatentGraphModel(
            graph,
            GraphFilter(num_nodes, CHANNELS, 1, candidates=candidates),
            EnergyScore(scope="node"),
            observation=GaussianNoise(num_nodes),
            num_graphs=num_graphs,
        )
    model = model.to(device)
    settings = FitSettings(epochs=1000, batch_size=batch, average_fraction=0.0)
    state = TrainingState.create(model, (0,), StepPlan.of(settings, model, len(pairs)))
    training = TrainingStep(model, pairs, settings, state, LiftedGradient(model, compile=compiled), Processes.current())
    training.begin_epoch(torch.arange(4 * batch, device=device).view(4, 1, batch))
    taken = [0]

    def one() -> None:
        if taken[0] % 4 == 0:
            state.log.steps_done = 0
            training.begin_epoch(torch.arange(4 * batch, device=device).view(4, 1, batch))
        training.take((0,))
        taken[0] += 1
        if device == "cuda":
            torch.cuda.synchronize()

    for _ in range(8):
        one()
    for fallback in (training.gradient.fallback if compiled else None, training.fallback):
        if fallback is not None:
            raise RuntimeError(fallback)
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
    """Print and keep the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--nodes", type=int, nargs="*", default=list(SIZES))
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for num_nodes in options.nodes:
        compiled = device == "cpu" and num_nodes == min(SIZES)
        steps = {kind: step(kind, num_nodes, device, compiled=compiled) for kind in KINDS}
        times = least_times(steps, options.rounds)
        ratios = {kind: round(value / times["constant"], 2) for kind, value in times.items()}
        found: Figures = {"constant_ms": round(times["constant"], 3), "compiled": compiled, "ratios": ratios}
        print(device, num_nodes, found, flush=True)
        write(RESULTS / "step.json", f"{device}, {num_nodes} nodes", found)


if __name__ == "__main__":
    main()

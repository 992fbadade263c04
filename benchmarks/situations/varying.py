"""Which edges depend on the situation, and how near do their probabilities come to the truth? 28,000 pairs, 12 nodes.

    python -m benchmarks.situations.varying --kind hour category input --psi known learned --sets 5
    python -m benchmarks.situations.varying --kind constant --sets 100 --jobs 6

Each data set has a seed of its own. A constant graph is fitted first; then the edges with a probability inside (0, 1)
are tested, and those that are called varying depend on the variable
(:func:`tacit.assessment.situations.vary_by_training`). Errors are over the test pairs and the edges that truly vary,
coverage is over the places of the grid. Seeds from 1,000 on are the test seeds; nothing was chosen on them. Writes
``benchmarks/results/situations/varying.json``.
"""

import time
from dataclasses import replace

import torch
from benchmarks.situations.records import RESULTS, Figures, run_study
from benchmarks.situations.systems import NUM_PAIRS, SituationSystem

from tacit.assessment.situations import VaryingEdges, vary_by_training
from tacit.data import Split
from tacit.graph import BernoulliGraph, Context
from tacit.losses import EnergyScore
from tacit.randomness import generator_for
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit

RECORD = RESULTS / "varying.json"
NUM_GRAPHS, SETTINGS = 16, FitSettings(epochs=10, schedule=CosineDecay(0.1))
STARTS = 6  # of the constant fit with psi learned: some end in poor local minima
HALVE_AFTER = (1, 2, 3)  # epochs after which the worse half of the starts is dropped, as a fit does by default
INSIDE = 0.05  # edges nearer to 0 or 1 are not tested


def constant_fit(system: SituationSystem, pairs: Split, psi: str) -> LatentGraphModel:
    """Return the fit of a graph that does not depend on the situation."""
    graph = BernoulliGraph.uniform(pairs.train.num_nodes, generator=generator_for(system.seed, "graph"))
    model = LatentGraphModel(graph, system.predictor(psi), EnergyScore(scope="node"), num_graphs=NUM_GRAPHS)
    seeds = range(1 if psi == "known" else STARTS)
    compile = pairs.train.inputs.device.type == "cpu"
    settings = replace(SETTINGS, halve_after=HALVE_AFTER)
    return fit(model, pairs.train, pairs.validation, settings, seeds=seeds, compile=compile).model


def one(kind: str, psi: str, seed: int, device: str, num_pairs: int = NUM_PAIRS) -> Figures:
    """Return the figures of one data set."""
    began, system = time.perf_counter(), SituationSystem(kind, seed)
    pairs = system.generate(num_pairs)[0].split().to(device)
    model = constant_fit(system, pairs, psi)
    probs = model.graph.edge_probs.detach()
    tested = (probs > INSIDE) & (probs < 1 - INSIDE)
    middle = time.perf_counter()
    found = vary_by_training(
        model,
        system.variables(Context.of(pairs.train)),
        pairs.train,
        pairs.validation,
        SETTINGS,
        tested,
        seed=seed,
        compile=device == "cpu",
    )
    varies, truly = found.varies.cpu(), system.varying
    theta = system.theta(Context.of(pairs.train)[:4096]).mean(0).cpu() if kind != "constant" else system.marginals()
    final = found.model.graph.edge_probs.detach() if found.model is not None else probs
    return {
        "seed": seed,
        "tested": int(tested.sum()),
        "found": int((varies & truly).sum()),
        "false": int((varies & ~truly).sum()),
        "constant_mae": float((probs.cpu() - theta).abs().mean()),
        "average_mae": float((final.cpu() - theta).abs().mean()),
        **(errors(system, pairs, found, probs) if kind != "constant" else {}),
        "least_p": float(found.p_values[~found.p_values.isnan()].min()),
        "constant_seconds": middle - began,
        "seconds": time.perf_counter() - middle,
    }


@torch.no_grad()
def errors(system: SituationSystem, pairs: Split, found: VaryingEdges, constant: torch.Tensor) -> Figures:
    """Return errors over the test pairs and the edges that truly vary, and how many intervals hold the truth."""
    test, truly = Context.of(pairs.test), system.varying
    truth = system.theta(test)
    model = found.model
    probs = constant.expand_as(truth)
    if model is not None:
        probs = torch.sigmoid(found.graph.logits_of(found.graph.features(test)))
    off = (probs - truth).abs()[:, truly]
    figures = {"mae": float(off.mean()), "constant_graph_mae": float((constant - truth).abs()[:, truly].mean())}
    if model is None or system.kind == "input":
        return figures
    variable = system.variables(Context.of(pairs.train))[0]
    grid = system.theta(_grid_context(system, len(variable.grid)))[:, found.varies.cpu()].mT  # (edge, place)
    by = found.by_situation(found.graph._variables[0])
    held = ((grid >= by.low.cpu()) & (grid <= by.high.cpu()))[truly[found.varies.cpu()]]
    return figures | {"coverage": float(held.float().mean()), "width": float((by.high - by.low).mean())}


def _grid_context(system: SituationSystem, count: int) -> Context:
    """Return a pair at each place of the grid of hours or levels."""
    angle = 2 * torch.pi * torch.arange(count) / count
    hours = torch.stack([angle.sin(), angle.cos()], 1)
    nodes = system.base.num_nodes
    return Context(
        torch.zeros(count, nodes, 4), hours, torch.arange(count) % 3, torch.zeros(count, dtype=torch.float64)
    )


def summary(rows: list[Figures]) -> Figures:
    """Return means, deviations and shares over the data sets."""
    found: Figures = {"sets": len(rows), "with_false": sum(row["false"] > 0 for row in rows)}
    truly = SituationSystem("hour", 0).varying.sum().item()
    found["found_share"] = sum(row["found"] for row in rows) / (truly * len(rows))
    for key in ("mae", "constant_graph_mae", "coverage", "constant_mae", "average_mae"):
        values = torch.tensor([row[key] for row in rows if key in row])
        if len(values):
            found[key] = float(values.mean())
            found[f"{key}_deviation"] = float(values.std()) if len(values) > 1 else None
    return found


def main() -> None:
    """Run the settings, and keep a record of each."""
    run_study(__doc__, ["hour", "category", "input", "constant"], one, summary, RECORD)


if __name__ == "__main__":
    main()

"""Can the answer be trusted? Coverage of intervals, level and power of the fit test, flags, and what it all costs.

Each part writes its figures to a JSON file; ``trust_page.py`` makes ``docs/results/TRUST.md`` from them:

``coverage``  independent data sets of the 12-node system, psi known and learned: a fit, a bootstrap, a sandwich
``level``     how often the kernel test rejects the true model
``power``     how often it rejects three wrong ones
``flags``     edges of a generic GNN that cannot be learned
``cost``      time of the standard errors over that of the fit

Run ``python benchmarks/trust.py PART ... [--device cuda] [--sets N] [--out DIRECTORY]``.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from tacit.assessment.fit_tests import kernel_test
from tacit.assessment.identification import identify
from tacit.assessment.uncertainty import bootstrap, sandwich
from tacit.config import ModelConfig
from tacit.data import Pairs, Split
from tacit.experiments.replication import OUR_MODEL, OUR_SETTINGS, predictor_for
from tacit.graph import BernoulliGraph
from tacit.predictors import ConvolutionStack
from tacit.randomness import generator_for, replica_seeds
from tacit.records import describe_device
from tacit.systems import CommunitySystem
from tacit.training import CosineDecay, FitResult, FitSettings, LatentGraphModel, fit

RESULTS = Path(__file__).parent / "results"
LEVELS = (0.95, 0.8)
TEST_PAIRS = 3_500
SANDWICHES = 5  # data sets with psi learned, where it takes seconds
Figures = dict[str, Any]


def trained(pairs: Split, psi: str, seed: int, config: ModelConfig = OUR_MODEL) -> FitResult:
    """Fit the paper's system with our defaults: one start where psi is known, eight where it is learned."""
    system, seeds = CommunitySystem(), replica_seeds(seed, 1 if psi == "known" else 8)
    graph = BernoulliGraph.uniform(system.num_nodes, generator=generator_for(seed, "graph"))
    model = config.build(graph, predictor_for(system, psi, seed), pairs.train.targets)
    settings = FitSettings(**{**vars(OUR_SETTINGS), "halve_after": () if psi == "known" else (1, 2, 3)})
    return fit(model, pairs.train, pairs.validation, settings, seeds=seeds)


def coverage(device: torch.device, sets: int, first: int = 0) -> Figures:
    """Count how often intervals hold the 50 true probabilities, and those of the 94 pairs without an edge."""
    system, rows = CommunitySystem(), []
    truth = system.true_edge_probs.to(device)
    edge = truth > 0
    for number in range(first, first + sets):
        pairs = system.generate(35_000, seed=10_000 + number).to(device).split()
        for psi in ("known", "learned"):
            result = trained(pairs, psi, number)
            model = result.model
            found = bootstrap(model, pairs.train, pairs.validation, OUR_SETTINGS, seed=number)
            errors = {
                "fit": model.graph.edge_probs.detach() - truth,
                "bagged": found.edge_probs - truth,
            }
            row: Figures = {"set": number, "psi": psi, "rho": found.rho}
            row |= {f"{name}_rmse": _rms(error[edge]) for name, error in errors.items()}
            row["mean_std_error"] = _rms(found.std_errors[edge])
            for level in LEVELS:
                around = found.intervals(level)
                held = (around.low <= truth) & (truth <= around.high)
                row[f"held_{level}"], row[f"held_none_{level}"] = int(held[edge].sum()), int(held[~edge].sum())
            every = found.intervals(0.95, simultaneous=True)
            row["all_held"] = bool(((every.low <= truth) & (truth <= every.high)).all())
            if psi == "known" or number < first + SANDWICHES:
                row |= _sandwich(model, pairs.train, errors["bagged"], found.std_errors, edge, number)
            row["fit_seconds"], row["bootstrap_seconds"] = result.train_seconds, found.train_seconds
            rows.append(row)
            print(json.dumps({key: round(v, 5) if isinstance(v, float) else v for key, v in row.items()}), flush=True)
    return {"sets": sets, "first": first, "rows": rows}


def _sandwich(
    model: LatentGraphModel,
    train: Pairs,
    errors: torch.Tensor,
    std_errors: torch.Tensor,
    edge: torch.Tensor,
    number: int,
) -> Figures:
    """Return the sandwich's errors beside the bootstrap's, and how often they hold the truth around the same answer."""
    start = time.perf_counter()
    found = sandwich(model, train, generator=generator_for(number, "sandwich", edge.device))
    seconds = time.perf_counter() - start
    inside = edge & found.interior
    deviations = (errors / found.std_errors)[inside].abs()
    held = {
        f"sandwich_held_{level}": int((deviations <= statistics.NormalDist().inv_cdf((1 + level) / 2)).sum())
        for level in LEVELS
    }
    ratio = float((found.std_errors / std_errors)[inside].median())
    return {"sandwich_seconds": seconds, "sandwich_ratio": ratio, "sandwich_edges": int(inside.sum()), **held}


def level(device: torch.device, sets: int) -> Figures:
    """Test the true model on many data sets."""
    system = CommunitySystem()
    model = OUR_MODEL.build(system.true_graph(), system.true_predictor(), system.generate(50, 0).targets).to(device)
    values = []
    for number in range(sets):
        pairs = system.generate(TEST_PAIRS, seed=20_000 + number).to(device)
        values.append(kernel_test(model, pairs, generator=generator_for(number, "test", device)).p_value)
    return {"sets": sets, "p_values": values}


def power(device: torch.device, sets: int) -> Figures:
    """Test three wrong models, each on many data sets."""
    system = CommunitySystem()
    truth, some = system.true_edge_probs, system.generate(50, 0).targets
    literature = ModelConfig(loss="literature_1_mae", scope="joint")
    community = torch.zeros_like(truth, dtype=torch.bool)
    community[:6, :6] = truth[:6, :6] > 0
    trained_graph = trained(system.generate(35_000, 30_000).to(device).split(), "known", 0, literature).model.graph
    wrong = {
        "trained with literature 1 (MAE)": trained_graph.edge_probs.detach().cpu(),
        "every true edge at 0.65": torch.where(truth > 0, 0.65, 0.0),
        "one community at 0.25": torch.where(community, 0.25, truth),
    }
    found = {}
    for name, probs in wrong.items():
        model = OUR_MODEL.build(BernoulliGraph(probs), system.true_predictor(), some).to(device)
        found[name] = [
            kernel_test(
                model,
                system.generate(TEST_PAIRS, seed=40_000 + number).to(device),
                generator=generator_for(number, "test", device),
            ).p_value
            for number in range(sets)
        ]
    return {"sets": sets, "p_values": found}


def flags(device: torch.device, sets: int) -> Figures:
    """Look for edges that cannot be learned in trained stacks of convolutions, which set self-loops themselves."""
    rows = []
    config = ModelConfig(loss="energy", scope="joint", num_graphs=16, share_graphs=True)
    for number in range(sets):
        system = CommunitySystem()
        pairs = system.generate(35_000, seed=50_000 + number).to(device).split()
        for widths in ((4, 8, 1), (4, 16, 8, 1)):
            stack = ConvolutionStack.random(list(widths), self_loops=True, generator=generator_for(number, "stack"))
            graph = BernoulliGraph.uniform(system.num_nodes, generator=generator_for(number, "graph"))
            model = config.build(graph, stack, pairs.train.targets)
            settings = FitSettings(
                epochs=10, schedule=CosineDecay(0.05), predictor_learning_rate=0.01, halve_after=(1, 2, 3)
            )
            fit(model, pairs.train, pairs.validation, settings, seeds=range(8))
            found = identify(
                model,
                pairs.train.inputs,
                pairs.train.targets,
                generator=generator_for(number, "identify", device),
                num_pairs=len(pairs.train),
            )
            no = found.learned & ~found.identifiable
            diagonal = torch.eye(system.num_nodes, dtype=torch.bool, device=no.device)
            row = {"widths": list(widths), "set": number, "diagonal": int(no[diagonal].sum())}
            row |= {"elsewhere": int(no[~diagonal].sum()), "says": found.sentences()}
            rows.append(row)
            print(json.dumps(row), flush=True)
    return {"rows": rows}


def cost(device: torch.device, sets: int) -> Figures:
    """Time fit and standard errors on the same data, compilation aside."""
    rows = []
    for number in range(sets):
        pairs = CommunitySystem().generate(35_000, seed=60_000 + number).to(device).split()
        for psi in ("known", "learned"):
            result = trained(pairs, psi, number)
            found = bootstrap(result.model, pairs.train, pairs.validation, OUR_SETTINGS, seed=number)
            start = time.perf_counter()
            sandwich(result.model, pairs.train, generator=generator_for(number, "sandwich", device))
            row = {"psi": psi, "fit": result.train_seconds, "bootstrap": found.train_seconds}
            row["sandwich"] = time.perf_counter() - start
            rows.append(row)
            print(json.dumps(row), flush=True)
    return {"rows": rows}


PARTS = {"coverage": coverage, "level": level, "power": power, "flags": flags, "cost": cost}
USUAL_SETS = {"coverage": 20, "level": 1000, "power": 200, "flags": 2, "cost": 2}


def _rms(values: torch.Tensor) -> float:
    return float(values.double().square().mean().sqrt())


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage, level, power, flags and cost.")
    parser.add_argument("part", nargs="+", choices=[*PARTS], help="which parts to run")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sets", type=int, help="independent data sets")
    parser.add_argument("--first", type=int, default=100, help="first data set of the coverage")
    parser.add_argument("--out", type=Path, default=RESULTS, help="directory for the JSON files")
    args = parser.parse_args()
    device = torch.device(args.device)
    for part in args.part:
        start = time.perf_counter()
        given = {"first": args.first} if part == "coverage" else {}
        figures = PARTS[part](device, args.sets or USUAL_SETS[part], **given)
        figures |= {"device": describe_device(device), "torch": torch.__version__}
        figures["seconds"] = time.perf_counter() - start
        name = f"trust_{part}_{device.type}.json" if part == "cost" else f"trust_{part}.json"
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / name).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print(f"{part}: {figures['seconds']:.0f} s, {args.out / name}", flush=True)


if __name__ == "__main__":
    main()

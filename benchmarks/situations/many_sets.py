r"""Rows that come together, in many data sets: errors of the marginals, and the fit test on 2,000 test pairs.

    python -m benchmarks.situations.many_sets --sets 100 --jobs 5
    python -m benchmarks.situations.many_sets --psi learned --epochs 20 --first 3000 --sets 100 --jobs 2

The graph has two regimes, which start around the constant fit of their data set, as in
:func:`tacit.assessment.regimes.fit_regimes`. With psi known, the pairs of ten data sets are put one after another, and
each replica draws from its own: ten fits in one program. With psi learned, each data set is fitted by itself. The
constant fit is the best of several starts, its edges near 0 are fixed there if the validation loss permits it, and the
regimes are trained together with its predictor, as in a fit. Writes ``benchmarks/results/situations/many_sets.json``.
"""

import argparse
import copy
from dataclasses import replace

import torch
from benchmarks.situations.records import FIRST_TEST_SEED, RESULTS, Figures, write
from benchmarks.situations.regimes import TEST_PAIRS, summary
from benchmarks.situations.systems import NUM_PAIRS, SituationSystem
from benchmarks.situations.varying import NUM_GRAPHS, SETTINGS, constant_fit
from joblib import Parallel, delayed
from torch import Tensor

from tacit.assessment.fit_tests import goodness_of_fit
from tacit.assessment.regimes.at_boundary import put_at_boundary
from tacit.assessment.uncertainty import rounded_at_boundary
from tacit.data import Pairs, Split
from tacit.graph import BernoulliGraph, MixtureGraph
from tacit.losses import EnergyScore
from tacit.randomness import generator_for
from tacit.training import FitResult, FitSettings, LatentGraphModel, fit, with_graph

AT_ONCE = 10  # data sets; as many as a fit has epochs
RECORD = RESULTS / "many_sets.json"


def batch(seeds: range, device: str, num_pairs: int = NUM_PAIRS, epochs: int = 10) -> list[Figures]:
    """Return the figures of some data sets."""
    systems = [SituationSystem("rows", seed) for seed in seeds]
    parts = [system.generate(num_pairs)[0].split().to(device) for system in systems]
    start = BernoulliGraph.uniform(parts[0].train.num_nodes, generator=generator_for(0, "graph"))
    constant = LatentGraphModel(start, systems[0].predictor("known"), EnergyScore(scope="node"), num_graphs=NUM_GRAPHS)
    first = together(constant, parts, seeds, epochs)
    probs = constant.graph.probs_of({"edge_logits": first.parameters["graph.edge_logits"]}).detach()
    mixture = copy.deepcopy(constant)
    mixture.graph = MixtureGraph(start.to(device), 2, "rows")
    starts = [
        MixtureGraph(BernoulliGraph(one), 2, "rows").initial_parameters(generator_for(seed, "regimes"))
        for seed, one in zip(seeds, probs, strict=True)
    ]
    second = together(
        mixture, parts, seeds, epochs, {f"graph.{key}": torch.stack([s[key] for s in starts]) for key in starts[0]}
    )
    return [
        figures(system, part, of_replica(constant, first, place), of_replica(mixture, second, place))
        for place, (system, part) in enumerate(zip(systems, parts, strict=True))
    ]


def together(
    model: LatentGraphModel, parts: list[Split], seeds: range, epochs: int, starts: dict[str, Tensor] | None = None
) -> FitResult:
    """Fit a replica on each data set; an epoch over all of them is as many epochs of each."""
    train = Pairs(*(torch.cat([getattr(part.train, name) for part in parts]) for name in ("inputs", "targets")))
    each = len(parts[0].train)
    rows = torch.arange(each, device=train.inputs.device)
    resamples = torch.stack([(rows + number * each).repeat(len(parts)) for number in range(len(parts))])
    settings = FitSettings(epochs=max(1, epochs // len(parts)), schedule=SETTINGS.schedule)
    return fit(
        model,
        train,
        parts[0].validation,
        settings,
        seeds=list(seeds),
        compile=train.inputs.device.type == "cpu",
        start_at_model=starts is not None,
        starts=starts,
        resamples=resamples,
    )


def alone(seed: int, device: str, num_pairs: int = NUM_PAIRS, epochs: int = 10) -> Figures:
    """Return the figures of one data set, the predictor learned."""
    system, settings = SituationSystem("rows", seed), replace(SETTINGS, epochs=epochs)
    pairs = system.generate(num_pairs)[0].split().to(device)
    constant = constant_fit(system, pairs, "learned", settings)
    held = rounded_at_boundary(constant, pairs.validation)
    start = MixtureGraph(BernoulliGraph(held.graph.edge_probs.detach(), held.graph.fixed), 2, "rows")
    start.load_state_dict(start.initial_parameters(generator_for(seed, "regimes")), strict=False)
    mixture = fit(
        with_graph(held, start),
        pairs.train,
        pairs.validation,
        settings,
        seeds=[seed],
        compile=device == "cpu",
        start_at_model=True,
    ).model
    return figures(system, pairs, constant, mixture)


def of_replica(model: LatentGraphModel, result: FitResult, place: int) -> LatentGraphModel:
    """Return the model of one data set."""
    own = copy.deepcopy(model)
    own.load_state_dict({key: value[place] for key, value in result.parameters.items()}, strict=False)
    return own


def figures(system: SituationSystem, pairs: Split, constant: LatentGraphModel, mixture: LatentGraphModel) -> Figures:
    """Return errors and fit tests of one data set."""
    found: Figures = {"seed": system.seed, "regimes": 2}
    test, edges = pairs.test[:TEST_PAIRS], system.edges
    for name, model in (("constant", constant), ("mixture", put_at_boundary(mixture, pairs.validation))):
        off = (model.graph.edge_probs.detach().cpu() - system.marginals()).abs()
        verdict = goodness_of_fit(model, test, generator=generator_for(system.seed, "fit test", test.inputs.device))
        found |= {
            f"{name}_mae": float(off.mean()),
            f"{name}_mae_edges": float(off[edges].mean()),
            f"{name}_p": float(verdict.p_value),
        }
    return found


def main() -> None:
    """Run all data sets, and keep the record, with psi learned after every few of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--psi", choices=["known", "learned"], default="known")
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--first", type=int, default=FIRST_TEST_SEED)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=NUM_PAIRS)
    parser.add_argument("--epochs", type=int, default=SETTINGS.epochs)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    seeds, key = range(options.first, options.first + options.sets), f"rows, psi {options.psi}, {options.epochs} epochs"
    parallel = Parallel(n_jobs=options.jobs, return_as="generator")
    if options.psi == "known":
        batches = [seeds[low : low + AT_ONCE] for low in range(0, len(seeds), AT_ONCE)]
        done = parallel(delayed(batch)(part, device, options.pairs, options.epochs) for part in batches)
    else:
        done = (
            [row] for row in parallel(delayed(alone)(seed, device, options.pairs, options.epochs) for seed in seeds)
        )
    rows, found = list[Figures](), Figures()
    for part in done:
        rows += part
        found = {"device": device, "pairs": options.pairs * 4 // 5, **summary(rows), "rows": rows}
        write(RECORD, key, found)
    print({key: value for key, value in found.items() if key != "rows"}, flush=True)


if __name__ == "__main__":
    main()

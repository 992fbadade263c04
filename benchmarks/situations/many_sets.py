r"""Rows that come together in many data sets at once: each data set is a replica of one training.

    python -m benchmarks.situations.many_sets --sets 100 --jobs 5

The pairs of ten data sets are put one after another, and each replica draws from its own: ten fits in one program. The
predictor is known, regimes are two and start around the constant fit of their data set, as in
:func:`tacit.assessment.regimes.fit_regimes`. For each data set: errors of the marginals, and the fit test of both
models on 2,000 test pairs. Writes ``benchmarks/results/situations/many_sets.json``.
"""

import argparse
import copy

import torch
from benchmarks.situations.records import FIRST_TEST_SEED, RESULTS, Figures, write
from benchmarks.situations.regimes import TEST_PAIRS, summary
from benchmarks.situations.systems import NUM_PAIRS, SituationSystem
from benchmarks.situations.varying import NUM_GRAPHS, SETTINGS
from joblib import Parallel, delayed
from torch import Tensor

from tacit.assessment.fit_tests import goodness_of_fit
from tacit.assessment.regimes.at_boundary import put_at_boundary
from tacit.data import Pairs, Split
from tacit.graph import BernoulliGraph, MixtureGraph
from tacit.losses import EnergyScore
from tacit.randomness import generator_for
from tacit.training import FitResult, FitSettings, LatentGraphModel, fit

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
        figures(systems[place], parts[place], [constant, mixture], [first, second], place)
        for place in range(len(seeds))
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


def figures(
    system: SituationSystem, pairs: Split, models: list[LatentGraphModel], results: list[FitResult], place: int
) -> Figures:
    """Return errors and fit tests of one data set."""
    found: Figures = {"seed": system.seed, "regimes": 2}
    test, edges = pairs.test[:TEST_PAIRS], system.edges
    for name, model, result in zip(("constant", "mixture"), models, results, strict=True):
        own = copy.deepcopy(model)
        own.load_state_dict({key: value[place] for key, value in result.parameters.items()}, strict=False)
        if isinstance(own.graph, MixtureGraph):
            own = put_at_boundary(own, pairs.validation)
        off = (own.graph.edge_probs.detach().cpu() - system.marginals()).abs()
        verdict = goodness_of_fit(own, test, generator=generator_for(system.seed, "fit test", test.inputs.device))
        found |= {
            f"{name}_mae": float(off.mean()),
            f"{name}_mae_edges": float(off[edges].mean()),
            f"{name}_p": float(verdict.p_value),
        }
    return found


def main() -> None:
    """Run all data sets, and keep the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--first", type=int, default=FIRST_TEST_SEED)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=NUM_PAIRS)
    parser.add_argument("--epochs", type=int, default=SETTINGS.epochs)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    last = options.first + options.sets
    batches = [range(low, min(low + AT_ONCE, last)) for low in range(options.first, last, AT_ONCE)]
    done = Parallel(n_jobs=options.jobs)(
        delayed(batch)(seeds, device, options.pairs, options.epochs) for seeds in batches
    )
    rows = [row for part in done for row in part]
    found = {"device": device, "pairs": options.pairs * 4 // 5, **summary(rows), "rows": rows}
    print({key: value for key, value in found.items() if key != "rows"}, flush=True)
    write(RECORD, f"rows, psi known, {options.epochs} epochs", found)


if __name__ == "__main__":
    main()

"""How near to the truth do edge probabilities come? The paper's system with counts and with yes or no, 28,000 pairs.

    python -m benchmarks.observation.theta --kind poisson bernoulli --psi known learned --sets 5

Each data set has a seed of its own. The record has, beside the errors, the bound that no unbiased estimator goes below,
the p-value of the fit test on the test part, and the edges that ``identify`` warns about. ``gaussian`` is the same with
Gaussian noise instead of the right kind. Writes ``benchmarks/results/observation/theta.json``.
"""

import argparse
import time

import torch
from benchmarks.observation.paper_system import CommunityCounts, error_bound, observation_of
from benchmarks.observation.records import RESULTS, Figures, read, rounded, write

from tacit.assessment.fit_tests import goodness_of_fit
from tacit.assessment.identification import identify
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.randomness import generator_for
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit

RECORD = RESULTS / "theta.json"
NUM_PAIRS = 35_000  # four of five train, as in the paper
TEST_PAIRS = 2_000  # of the test part, in the fit test
NUM_GRAPHS, SETTINGS = 8, FitSettings(epochs=10, schedule=CosineDecay(0.1))
STARTS = 1


def one(kind: str, psi: str, seed: int) -> Figures:
    """Return the errors of one training, and what the assessment says of it."""
    noise, kind = kind, "poisson" if kind == "gaussian" else kind
    system, known = CommunityCounts(kind), psi == "known"
    pairs, truth = system.generate(NUM_PAIRS, seed=seed).split(), system.true_edge_probs
    observation = observation_of(kind) if noise == kind else GaussianNoise(12, initial_sigma=2.0)
    model = LatentGraphModel(
        BernoulliGraph.uniform(12, generator=generator_for(seed, "graph")),
        system.predictor(known=known, seed=seed),
        EnergyScore(scope="node"),
        observation=observation,
        num_graphs=NUM_GRAPHS,
    )
    began = time.process_time()
    seeds = [seed] if known else [100 * seed + start for start in range(STARTS)]
    fit(model, pairs.train, pairs.validation, SETTINGS, seeds=seeds, compile=False)
    seconds = time.process_time() - began
    probs = model.graph.edge_probs.detach()
    errors = (probs - truth).abs()
    test, generator = pairs.test, generator_for(seed, "assessment")
    fits = goodness_of_fit(model, test[:TEST_PAIRS], generator=generator)
    found = identify(
        model,
        pairs.train.inputs,
        pairs.train.targets,
        generator=generator,
        num_pairs=len(pairs.train),
        injectivity=False,
    )
    row: Figures = {
        "seed": seed,
        "error": float(errors[truth > 0].mean()),
        "bias": float((probs - truth)[truth > 0].mean()),
        "error_none": float(errors[truth == 0].mean()),
        "p_value": fits.p_value,
        "coverage_gap": fits.coverage_gap,
        "identifiable": sum(found.flag(i, j) == "yes" for i, j in (truth > 0).nonzero().tolist()),
        "reasons": [reason[:200] for reason in found.reasons],
    }
    if not known:
        right = system.predictor()
        row["psi"] = [round(float(v), 4) for value in model.predictor.parameters() for v in value.detach().flatten()]
        row["true_psi"] = [round(float(v), 4) for value in right.parameters() for v in value.flatten()]
    return row | {"seconds": seconds}


def main() -> None:
    """Run the chosen systems, a record for each at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kind", nargs="+", choices=("poisson", "bernoulli", "gaussian"), default=["poisson", "bernoulli"]
    )
    parser.add_argument("--psi", nargs="+", choices=("known", "learned"), default=["known", "learned"])
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    for kind in options.kind:
        for psi in options.psi:
            name = f"{kind}, psi {psi}"
            earlier = [row for row in read(RECORD).get(name, {}).get("runs", []) if row["seed"] < options.first]
            rows = list(earlier)
            for seed in range(options.first, options.first + options.sets):
                rows.append(one(kind, psi, seed))
                errors = torch.tensor([row["error"] for row in rows])
                bound = error_bound(CommunityCounts("poisson" if kind == "gaussian" else kind), NUM_PAIRS * 4 // 5)
                found = {
                    "bound": bound["mean_absolute_error"],
                    "error": float(errors.mean()),
                    "deviation": float(errors.std()) if len(rows) > 1 else None,
                    "number": len(rows),
                    "runs": rows,
                }
                write(RECORD, name, rounded(found))
                print(name, rounded({key: value for key, value in rows[-1].items() if key != "reasons"}), flush=True)


if __name__ == "__main__":
    main()

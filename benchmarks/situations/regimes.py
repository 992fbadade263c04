"""Edges that come together: marginals, fit tests and regimes of observations. 28,000 pairs, 12 nodes.

    python -m benchmarks.situations.regimes --kind rows --first 5000 --sets 100 --jobs 2
    python -m benchmarks.situations.regimes --kind regimes --sets 4

A constant graph is fitted first, then a graph with regimes (:func:`tacit.assessment.regimes.fit_regimes`): two for each
row, or regimes of all edges, whose number is chosen by validation. The fit test uses 2,000 test pairs; ``true_p`` is
its p-value for the true model. The regime of each test pair is the more likely one given x and y; ``accuracy`` is the
share of pairs where that is right, ``best_accuracy`` the same with the true graph and predictor. Writes
``benchmarks/results/situations/regimes.json``.
"""

import time

import torch
from benchmarks.situations.records import RESULTS, Figures, run_study
from benchmarks.situations.systems import NUM_PAIRS, SituationSystem
from benchmarks.situations.varying import NUM_GRAPHS, SETTINGS, constant_fit

from tacit.assessment.fit_tests import goodness_of_fit
from tacit.assessment.regimes import fit_regimes, regime_posterior
from tacit.data import Pairs
from tacit.losses import EnergyScore
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel

RECORD = RESULTS / "regimes.json"
TEST_PAIRS = 2000


def one(kind: str, psi: str, seed: int, device: str, num_pairs: int = NUM_PAIRS) -> Figures:
    """Return the figures of one data set."""
    began, system = time.perf_counter(), SituationSystem(kind, seed)
    made, regimes = system.generate(num_pairs)
    pairs, test_regimes = made.split().to(device), regimes[-(num_pairs - round(0.9 * num_pairs)) :]
    model = constant_fit(system, pairs, psi)
    found = fit_regimes(
        model,
        pairs.train,
        pairs.validation,
        SETTINGS,
        num_regimes=2 if kind == "rows" else "auto",
        blocks="rows" if kind == "rows" else "all",
        replicas=0,
        seed=seed,
        compile=device == "cpu",
    )
    final, truth, edges = found.model or model, system.marginals(), system.edges
    true_model = LatentGraphModel(
        system.true_graph(), system.base.true_predictor(), EnergyScore(scope="node"), num_graphs=NUM_GRAPHS
    ).to(device)
    if kind == "regimes":  # of the training pairs: regimes last for a hundred pairs, so that their shares vary
        share = regimes[: len(pairs.train)].bincount(minlength=2) / len(pairs.train)
        truth = torch.einsum("k,kij->ij", share, system.true_graph().regime_probs.detach())
    test = pairs.test[:TEST_PAIRS]
    figures: Figures = {"seed": seed, "regimes": found.num_regimes}
    for name, fitted in (("constant", model), ("mixture", final), ("true", true_model)):
        off = (fitted.graph.edge_probs.detach().cpu() - truth).abs()
        verdict = goodness_of_fit(fitted, test, generator=generator_for(seed, "fit test", device))
        figures[f"{name}_p"] = float(verdict.p_value)
        if fitted is not true_model:
            figures |= {f"{name}_mae": float(off.mean()), f"{name}_mae_edges": float(off[edges].mean())}
    if kind == "regimes":
        for name, fitted in (("accuracy", final), ("best_accuracy", true_model)):
            figures[name] = accuracy(seed, fitted, pairs.test, test_regimes)
    return figures | {"seconds": time.perf_counter() - began}


def accuracy(seed: int, model: LatentGraphModel, test: Pairs, regimes: torch.Tensor) -> float:
    """Return how often the more likely regime is the right one; 0 if the model does not have two."""
    if getattr(model.graph, "num_regimes", 1) != 2:
        return 0.0
    generator = generator_for(seed, "posterior", test.inputs.device)
    likely = regime_posterior(model, test, generator=generator)[:, 0].argmax(-1).cpu()
    right = float((likely == regimes).float().mean())
    return max(right, 1 - right)  # regimes have no names: the order by weight can be the other one


def summary(rows: list[Figures]) -> Figures:
    """Return means, deviations and shares over the data sets."""
    found: Figures = {"sets": len(rows), "two_regimes": sum(row["regimes"] == 2 for row in rows)}
    for name in ("constant", "mixture", "true"):
        found[f"{name}_rejected"] = sum(row[f"{name}_p"] <= 0.05 for row in rows)
    for key in ("constant_mae", "constant_mae_edges", "mixture_mae", "mixture_mae_edges", "accuracy", "best_accuracy"):
        values = torch.tensor([row[key] for row in rows if key in row])
        if len(values):
            found[key] = float(values.mean())
            found[f"{key}_deviation"] = float(values.std()) if len(values) > 1 else None
    if "accuracy" in rows[0]:
        found["least_ratio"] = min(row["accuracy"] / row["best_accuracy"] for row in rows)
    return found


def main() -> None:
    """Run the settings, and keep a record of each."""
    run_study(__doc__, ["rows", "regimes"], one, summary, RECORD)


if __name__ == "__main__":
    main()

r"""Regimes of a linear filter with noise, by the exact likelihood: errors, coverage, and how many are chosen.

Four nodes drive four others, each of which reads three of them with weights of .9; the noise has a standard deviation
of .35.

``rows``      each of the four nodes has two regimes of its own, of weights .6 and .4, drawn anew in each row
``all``       the graph has two regimes that last for 20 rows on average
``pairs``     as ``rows``, but each node reads two drivers: regimes of two edges are not identifiable
``none``      all edges act with .6, independently; the number of regimes is chosen

    python -m benchmarks.situations.filter_regimes [--kind rows all] [--sets 50] [--rows 3000]

Writes ``benchmarks/results/situations/filter_regimes.json``.
"""

import argparse
import time

import torch
from benchmarks.situations.records import RESULTS, Figures, write
from joblib import Parallel, delayed

from tacit.assessment.regimes import RegimeFit, regime_posterior, regimes_by_likelihood
from tacit.assessment.uncertainty import estimate_acting
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, MixtureGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import GraphFilter
from tacit.training import LatentGraphModel

NODES, DRIVERS, ROWS = 8, 4, 3000
WEIGHT, NOISE, STAY = 0.9, 0.35, 0.95
WEIGHTS = (0.6, 0.4)
CORRELATED = 60  # neighbouring pairs, where regimes last
FIRST_SEED = 6000  # seeds below it served to choose starts and sizes
RECORD = RESULTS / "filter_regimes.json"
KINDS = ("rows", "all", "pairs", "none")


def truth(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the probabilities of each regime, and which edges exist."""
    present, probs = torch.zeros(NODES, NODES, dtype=torch.bool), torch.zeros(2, NODES, NODES)
    levels = {
        "pairs": torch.tensor([[0.9, 0.8], [0.15, 0.3]]),
        "none": torch.full((2, 3), 0.6),
    }.get(kind, torch.tensor([[0.9, 0.8, 0.95], [0.15, 0.3, 0.1]]))
    for place, node in enumerate(range(DRIVERS, NODES)):
        sources = torch.arange(place, place + levels.shape[1]) % DRIVERS
        present[node, sources], probs[:, node, sources] = True, levels
        if kind == "all" and place % 2:  # half of the nodes act in the other regime
            probs[:, node] = probs[:, node].flip(0)
    return probs, present


def simulate(kind: str, rows: int, seed: int) -> tuple[Pairs, torch.Tensor]:
    """Return pairs, and the regime of each pair and node."""
    rng = torch.Generator().manual_seed(seed)
    probs, present = truth(kind)
    drawn = torch.multinomial(torch.tensor(WEIGHTS), (rows + 1) * NODES, True, generator=rng).view(-1, NODES)
    if kind == "all":
        stays = torch.rand(rows + 1, generator=rng) < STAY
        stays[0] = False
        last = torch.where(stays, -1, torch.arange(rows + 1)).cummax(0).values
        drawn = drawn[last][:, :1].expand(-1, NODES)
    signs = torch.randint(0, 2, (NODES, NODES), generator=rng) * 2.0 - 1
    weights, driver = WEIGHT * signs * present, torch.arange(NODES) < DRIVERS
    own, sigma = torch.where(driver, 0.5, 0.2), torch.where(driver, 1.0, NOISE)
    acts = torch.rand(rows + 1, NODES, NODES, generator=rng) < probs[drawn, torch.arange(NODES)]
    noise, values = sigma * torch.randn(rows + 1, NODES, generator=rng), torch.zeros(rows + 1, NODES)
    for row in range(1, rows + 1):
        values[row] = own * values[row - 1] + (acts[row] * weights) @ values[row - 1] + noise[row]
    return Pairs(values[:-1, :, None], values[1:, :, None]), drawn[1:]


def constant_fit(kind: str, train: Pairs) -> LatentGraphModel:
    """Return the model with the edges that are there, fitted with constant probabilities."""
    present = truth(kind)[1]
    graph = BernoulliGraph(torch.where(present, 0.5, 0.0), fixed=~present)
    predictor = GraphFilter(NODES, 1, 1, residual=False)
    model = LatentGraphModel(graph, predictor, EnergyScore(scope="node"), observation=GaussianNoise(NODES))
    model.load_state_dict(estimate_acting(model, train, replicas=0).parameters, strict=False)
    return model


def fitted(kind: str, train: Pairs, validation: Pairs, seed: int) -> RegimeFit:
    """Return the regimes: two, or as many as are chosen where there are none."""
    blocks, count = "all" if kind == "all" else "rows", "auto" if kind == "none" else 2
    model, block = constant_fit(kind, train), CORRELATED if kind == "all" else 1
    return regimes_by_likelihood(model, train, validation, num_regimes=count, blocks=blocks, seed=seed, block=block)


def one(kind: str, seed: int, rows: int) -> Figures:
    """Return the figures of one data set; regimes are compared after matching them with the true ones."""
    pairs, regime = simulate(kind, rows + 500, seed)
    train, validation = pairs[:rows], pairs[rows:]
    began = time.perf_counter()
    found = fitted(kind, train, validation, seed)
    figures: Figures = {"seed": seed, "regimes": found.num_regimes, "seconds": time.perf_counter() - began}
    if found.num_regimes == 1:
        return figures
    (probs, present), graph = truth(kind), found.graph
    order = matched(graph, probs)
    of_row = order[graph.block_of_row].mT[..., None].expand_as(probs)
    regimes = [numbers.gather(0, of_row)[:, present] for numbers in found.regime_probs]
    blocks = [0] if kind == "all" else list(range(DRIVERS, NODES))
    first = torch.stack([order[block][0] for block in blocks])
    weights = [numbers[blocks, first] for numbers in found.weights]
    marginal = torch.einsum("k,kij->ij", torch.tensor(WEIGHTS), probs)[present]
    posterior = regime_posterior(found.model, validation, generator=torch.Generator().manual_seed(seed))
    likely = torch.stack([posterior[:, block][:, order[block]].argmax(-1) for block in blocks], 1)
    right = likely == regime[rows:, [DRIVERS] if kind == "all" else blocks]
    return figures | {
        **_held("", regimes, probs[:, present]),
        "width": float((regimes[3] - regimes[2]).mean()),
        **_held("weight_", weights, torch.tensor(WEIGHTS[0])),
        **_held("marginal_", [numbers[present] for numbers in found.marginals], marginal),
        "accuracy": float(right.float().mean()),
    }


def matched(graph: MixtureGraph, probs: torch.Tensor) -> torch.Tensor:
    """Return the regime of the fit that is nearest to each true one, (block, regime)."""
    both = [(graph.regime_probs.detach() - each).abs().sum((0, 2)) for each in (probs, probs.flip(0))]  # (row)
    apart = torch.zeros(2, graph.num_blocks).index_add(1, graph.block_of_row, torch.stack(both))
    return torch.where(apart.argmin(0)[:, None] == 0, torch.tensor([0, 1]), torch.tensor([1, 0]))


def _held(name: str, estimate: list[torch.Tensor], true: torch.Tensor) -> Figures:
    """Return the mean error, and the share of intervals that contain the truth."""
    value, _, low, high = estimate
    inside = (low <= true) & (true <= high)
    return {f"{name}error": float((value - true).abs().mean()), f"{name}coverage": float(inside.float().mean())}


def summary(rows: list[Figures]) -> Figures:
    """Return means and deviations over the data sets."""
    found: Figures = {"sets": len(rows), "one_regime": sum(row["regimes"] == 1 for row in rows)}
    for key in rows[0]:
        if key not in ("seed", "regimes") and any(key in row for row in rows):
            values = torch.tensor([row[key] for row in rows if key in row])
            found[key], found[f"{key}_deviation"] = (
                float(values.mean()),
                float(values.std()) if len(values) > 1 else None,
            )
    return found


def main() -> None:
    """Run the kinds, and keep a record of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="*", default=list(KINDS))
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for kind in options.kind:
        seeds = range(options.first, options.first + options.sets)
        jobs = (delayed(one)(kind, seed, options.rows) for seed in seeds)
        rows = Parallel(n_jobs=options.jobs)(jobs)
        found = {"rows_of_data": options.rows, **summary(rows), "rows": rows}
        name = f"{kind}, likelihood"
        print(name, {key: value for key, value in found.items() if key != "rows"}, flush=True)
        write(RECORD, name, found)


if __name__ == "__main__":
    main()

r"""Edges that depend on the situation, found by the exact likelihood of a linear filter, with the truth known.

Four nodes drive four others. Each of these reads an edge that always acts, one that acts at times whatever the
situation, and one whose probability follows it:

``hour``      $\theta = .5 + .4 \sin 2 \pi (h - h_0)$
``category``  $\theta$ = .2, .5 or .85
``source``    $\theta$ = .85 where the source is above its mean, .25 below
``none``      $\theta$ = .6: data without dependence, the hour is asked

    python -m benchmarks.situations.likelihood [--data-sets 20] [--none 100] [--noise poisson] [--kinds hour none]

A kind that is run again replaces its row in ``benchmarks/results/situations/likelihood.json``.
"""

import argparse
import json
import time
from pathlib import Path

import torch

from tacit.assessment.situations import situation_probs, vary_by_likelihood
from tacit.assessment.uncertainty import estimate_acting
from tacit.data import Pairs
from tacit.graph import (
    BernoulliGraph,
    Category,
    Context,
    CovariateLevel,
    CovariatePhase,
    OwnInput,
    Periodic,
    Smooth,
)
from tacit.local import LocalModel, fit_gated, fit_gates
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise, PoissonCounts
from tacit.predictors import GraphFilter
from tacit.training import LatentGraphModel

NODES, DRIVERS, ROWS, SMALL = 8, 4, 2500, 1500
LEVELS = torch.tensor([0.2, 0.5, 0.85])
SITUATIONS = 200  # rows over which errors and coverage are taken
FIRST_SEED = 3000  # seeds below it served to choose sizes and tests
OUT = Path(__file__).parents[1] / "results" / "situations" / "likelihood.json"


def edges(kind):
    """Return which edges vary, which act at times, and all that are there; rows receive."""
    varying, constant, always = (torch.zeros(NODES, NODES, dtype=torch.bool) for _ in range(3))
    for place, node in enumerate(range(DRIVERS, NODES)):
        varying[node, place] = kind != "none"
        constant[node, place] = kind == "none"
        constant[node, (place + 1) % DRIVERS] = True
        always[node, (place + 2) % DRIVERS] = True
    return varying, constant, varying | constant | always


def probs_at(kind, values, phase):
    """Return the probability of an edge that varies at some values."""
    if kind == "hour":
        return 0.5 + 0.4 * torch.sin(2 * torch.pi * (values - phase))
    if kind == "category":
        return LEVELS.roll(int(3 * phase))[values.long()]
    return torch.where(values > 0, 0.85, 0.25)


def simulate(kind, noise, rows, generator):
    """Return pairs, and the phase of each node's edge."""
    varying, constant, present = edges(kind)
    counts = noise == "poisson"
    phases = torch.rand(NODES, generator=generator)
    hours, levels = (torch.arange(rows + 1) % 24) / 24, torch.randint(3, (rows + 1,), generator=generator)
    signs = torch.randint(0, 2, (NODES, NODES), generator=generator) * 2.0 - 1
    weights = present * signs * (3.5 if counts else 0.9)
    own = torch.where(torch.arange(NODES) < DRIVERS, 0.5, 0.2) * (2.8 if counts else 1.0)
    sigma = torch.where(torch.arange(NODES) < DRIVERS, 1.0, 0.35)
    known = torch.zeros(rows + 1, NODES)  # of an edge that varies, the probability in each row
    if kind in ("hour", "category"):
        situations = hours if kind == "hour" else levels
        known = torch.stack([probs_at(kind, situations, float(phase)) for phase in phases], 1)
    values = torch.zeros(rows + 1, NODES)
    inputs = torch.zeros(NODES)
    for row in range(1, rows + 1):
        theta = torch.where(inputs > 0, 0.85, 0.25) if kind == "source" else known[row - 1][:, None]
        probs = torch.where(varying, theta, torch.where(constant, 0.6, present.float()))
        acts = (torch.rand(NODES, NODES, generator=generator) < probs).float()
        outputs = own * inputs + (acts * weights) @ inputs
        if counts:
            values[row] = torch.poisson(torch.nn.functional.softplus(outputs + 8), generator=generator)
            inputs = (values[row] - 8) / 3
        else:
            values[row] = outputs + sigma * torch.randn(NODES, generator=generator)
            inputs = values[row]
    read = (values[:-1] - 8) / 3 if counts else values[:-1]
    angle = 2 * torch.pi * hours[:-1]
    level = torch.nn.functional.one_hot(levels[:-1], 3)[:, 1:]
    covariates = torch.cat([angle.sin()[:, None], angle.cos()[:, None], level], 1)
    return Pairs(read[1:, :, None], values[2:, :, None], covariates=covariates[1:].float()), phases


def variable_of(kind, train):
    """Return what is asked."""
    if kind == "category":
        return Category("level", CovariateLevel((2, 3), (0.0, 0.0), (1.0, 1.0)), labels=("a", "b", "c"))
    if kind == "source":
        return Smooth.of("source", OwnInput("source"), Context.of(train))
    grid = [hour / 24 for hour in range(24)]
    return Periodic("hour", CovariatePhase((0, 1), (0.0, 0.0), (1.0, 1.0)), grid, [f"{24 * at:.0f}" for at in grid])


def constant_fit(kind, noise, train):
    """Return the model with the edges that are there, fitted with constant probabilities."""
    present = edges(kind)[2]
    graph = BernoulliGraph(torch.where(present, 0.5, 0.0), fixed=~present)
    observation = PoissonCounts(NODES) if noise == "poisson" else GaussianNoise(NODES)
    predictor = GraphFilter(NODES, 1, 1, residual=False)
    model = LatentGraphModel(graph, predictor, EnergyScore(scope="node"), observation=observation)
    if noise == "gaussian":
        found = estimate_acting(model, train, replicas=0)
        model.load_state_dict(found.parameters, strict=False)
        return model, present & (found.edge_probs < 1)
    gated = edges(kind)[0] | edges(kind)[1]  # which edges act at times is taken as known: finding them takes longer
    data = LocalModel.of(model, train)
    nodes = [data.node(node) for node in range(NODES)]
    masks = [gated[node, data.sources(node)] for node in range(NODES)]
    fits = fit_gates(nodes, masks, fit_gated(nodes, [one.start() for one in nodes]))
    probs = data.matrix([fit.edge_probs for fit in fits], model.graph.edge_probs)
    every = torch.ones(NODES, dtype=torch.bool)
    model.load_state_dict(data.parameters(fits, probs, every), strict=False)
    return model, gated


def one(kind, noise, rows, seed):
    """Return the figures of one data set."""
    train, phases = simulate(kind, noise, rows, torch.Generator().manual_seed(seed))
    model, tested = constant_fit(kind, noise, train)
    varying, variable, began = edges(kind)[0], variable_of(kind, train), time.perf_counter()
    found = vary_by_likelihood(model, [variable], train, tested)
    figures = {
        "seconds": time.perf_counter() - began,
        "varying": int(varying.sum()),
        "tested": int((tested & varying).sum()),
        "found": int((found.varies & varying).sum()),
        "wrong": int((found.varies & ~varying).sum()),
        "p_values": found.p_values[found.tested & ~varying].tolist(),
    }
    if kind == "none":
        return figures
    errors, inside = [], []
    rows = torch.linspace(0, len(train) - 1, SITUATIONS).long()
    situations = variable.reading(Context.of(train[rows]))  # of each pair, or of each pair and source
    for node, source in varying.nonzero().tolist():
        values = situations if situations.ndim == 1 else situations[:, source]
        truth = probs_at(kind, values, float(phases[node]))
        if not found.varies[node, source]:
            errors.append((model.graph.edge_probs[node, source].detach() - truth).abs().mean().item())
            continue
        place = found.varies.nonzero().tolist().index([node, source])
        by = situation_probs(
            found.graph.raw.detach()[node, source][None],
            found.graph.weights().detach()[node, source][None],
            found.covariances[place][None],
            variable.at(values),
        )
        errors.append((by.probability[0] - truth).abs().mean().item())
        inside.append(((by.low[0] <= truth) & (truth <= by.high[0])).double().mean().item())
    return figures | {"errors": errors, "inside": inside}


def table(kind, noise, rows, seeds):
    """Return the figures over data sets."""
    all_sets = [one(kind, noise, rows, seed) for seed in seeds]

    def total(name):
        return sum(figures[name] for figures in all_sets)

    null = torch.tensor([value for figures in all_sets for value in figures["p_values"]])
    row = {
        "kind": kind,
        "noise": noise,
        "rows": rows,
        "data_sets": len(all_sets),
        "seconds": round(total("seconds") / len(all_sets), 2),
        "sets_with_a_wrong_edge": sum(figures["wrong"] > 0 for figures in all_sets) / len(all_sets),
        "constant_edges_tested": len(null),
        "p_below_0.05": round((null < 0.05).double().mean().item(), 4) if len(null) else None,
    }
    if kind == "none":
        return row
    errors, inside = (torch.tensor([x for one in all_sets for x in one[name]]) for name in ("errors", "inside"))
    return row | {
        "tested": round(total("tested") / total("varying"), 3),
        "found": round(total("found") / total("varying"), 3),
        "mean_absolute_error": round(errors.mean().item(), 4),
        "coverage": round(inside.mean().item(), 3),
    }


def main():
    """Print a table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=20)
    parser.add_argument("--none", type=int, default=100)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--noise", nargs="+", default=["gaussian", "poisson"], choices=["gaussian", "poisson"])
    parser.add_argument("--kinds", nargs="+", default=["hour", "category", "source", "none"])
    chosen = parser.parse_args()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    for noise in chosen.noise:
        for kind in chosen.kinds:
            count = chosen.none if kind == "none" else chosen.data_sets
            size = SMALL if kind == "none" else ROWS
            row = table(kind, noise, size, range(chosen.first, chosen.first + count))
            print(json.dumps(row), flush=True)
            before = json.loads(OUT.read_text()) if OUT.exists() else []
            kept = [one for one in before if (one["kind"], one["noise"]) != (kind, noise)]
            OUT.write_text(
                json.dumps(sorted([*kept, row], key=lambda one: (one["noise"], one["kind"])), indent=1) + "\n"
            )


if __name__ == "__main__":
    main()

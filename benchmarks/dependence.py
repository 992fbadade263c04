r"""Do intervals of how often edges act contain the truth where rows depend on each other? Known edges, four noises.

Four nodes drive four others, each of which reads three of them; the twelve gates have probabilities from .2 to .8.

``series``  one series; drivers are AR(1) with .8, and gates stay as they are with .6, so that spells are 2.5 rows long
            on average where a gate is open in half of the rows
``panel``   20 series; the probability of each gate differs between series, with a standard deviation of .15

    python -m benchmarks.dependence [--kind series panel] [--noise poisson bernoulli] [--sets 20] [--first 10000]

Coverage is the share of 95% intervals that contain the probability that the data were made with, the mean over series
in panels. Seeds below 1,000 served to choose. Writes ``benchmarks/results/dependence.json``.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from tacit.assessment.uncertainty import acting_by_likelihood
from tacit.data import Pairs, usual_block
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import BernoulliTargets, GaussianNoise, ObservationModel, PoissonCounts, StudentTNoise
from tacit.predictors import GraphFilter
from tacit.training import LatentGraphModel

RECORD = Path(__file__).parent / "results" / "dependence.json"
NODES, DRIVERS, SERIES, REACH = 8, 4, 20, 2
DRIVEN, STAY, SPREAD = 0.8, 0.6, 0.15
LEVELS = (0.2, 0.35, 0.5, 0.65, 0.8)
KINDS = ("series", "panel")
# rows, weight of an edge, and the model of each kind of noise
NOISES: dict[str, tuple[int, float, type[ObservationModel]]] = {
    "gaussian": (1500, 1.0, GaussianNoise),
    "student_t": (1500, 1.0, StudentTNoise),
    "poisson": (1500, 2.0, PoissonCounts),
    "bernoulli": (4000, 4.0, BernoulliTargets),
}
Figures = dict[str, Any]


def truth() -> torch.Tensor:
    """Return the probability of each gate, 0 where there is no edge."""
    probs = torch.zeros(NODES, NODES)
    for place, node in enumerate(range(DRIVERS, NODES)):
        for number in range(3):
            probs[node, (place + number) % DRIVERS] = LEVELS[(3 * place + number) % len(LEVELS)]
    return probs


def simulate(kind: str, noise: str, seed: int) -> Pairs:
    """Return the pairs of one data set."""
    rng, (rows, weight, _) = torch.Generator().manual_seed(seed), NOISES[noise]
    count = SERIES if kind == "panel" else 1
    length, probs = rows // count, truth()
    inputs, drawn = torch.zeros(count, length, NODES), torch.randn(count, length, NODES, generator=rng)
    inputs[:, 0] = drawn[:, 0]
    for row in range(1, length):
        inputs[:, row] = DRIVEN * inputs[:, row - 1] + (1 - DRIVEN**2) ** 0.5 * drawn[:, row]
    own, stay = probs.expand(count, -1, -1), STAY
    if kind == "panel":
        away = SPREAD * 3**0.5 * (2 * torch.rand(count, NODES, NODES, generator=rng) - 1)
        own, stay = torch.where(probs > 0, (probs + away).clamp(0, 1), 0.0), 0.0
    gates = torch.zeros(count, length, NODES, NODES)
    for row in range(length):
        fresh = (torch.rand(count, NODES, NODES, generator=rng) < own).float()
        keeps = torch.rand(count, NODES, NODES, generator=rng) < stay
        gates[:, row] = torch.where(keeps, gates[:, row - 1], fresh) if row else fresh
    signs = torch.where((torch.arange(NODES)[:, None] + torch.arange(NODES)) % 2 == 0, 1.0, -1.0)
    outputs = torch.einsum("stij,stj->sti", gates * weight * signs, inputs).flatten(0, 1)
    size, tails = outputs.shape, torch._standard_gamma(torch.full(outputs.shape, 2.0), generator=rng) / 2
    targets = {
        "gaussian": lambda: outputs + 0.5 * torch.randn(size, generator=rng),
        "student_t": lambda: outputs + 0.5 * torch.randn(size, generator=rng) / tails.sqrt(),
        "poisson": lambda: torch.poisson(torch.nn.functional.softplus(outputs + 3), generator=rng),
        "bernoulli": lambda: (torch.rand(size, generator=rng) < torch.sigmoid(outputs)).float(),
    }[noise]()
    number = torch.arange(count).repeat_interleave(length) if count > 1 else None
    return Pairs(inputs.flatten(0, 1)[..., None], targets[..., None], series=number)


def one(kind: str, noise: str, seed: int) -> Figures:
    """Return the figures of one data set."""
    train, probs = simulate(kind, noise, seed), truth()
    graph = BernoulliGraph(torch.where(probs > 0, 0.5, 0.0), fixed=probs == 0)
    model = LatentGraphModel(
        graph, GraphFilter(NODES, 1, 1, residual=False), EnergyScore(scope="node"), observation=NOISES[noise][2](NODES)
    )
    began = time.perf_counter()
    found = acting_by_likelihood(model, train, block=usual_block(len(train), REACH))
    seconds, edges = time.perf_counter() - began, probs > 0
    around = found.intervals()
    low, high, theta = (values[edges] for values in (around.low, around.high, probs))
    return {
        "seed": seed,
        "edges": int(edges.sum()),
        "held": int(((low <= theta + 1e-6) & (theta <= high + 1e-6)).sum()),
        "below": int((theta < low - 1e-6).sum()),
        "width": float((high - low).mean()),
        "seconds": seconds,
    }


def main() -> None:
    """Run the study, and keep a record of each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="*", default=list(KINDS))
    parser.add_argument("--noise", nargs="*", default=list(NOISES))
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--first", type=int, default=10000)
    parser.add_argument("--name", default="dependent rows", help="of the record; empty: no record")
    options = parser.parse_args()
    for kind in options.kind:
        for noise in options.noise:
            rows = [one(kind, noise, seed) for seed in range(options.first, options.first + options.sets)]
            edges = sum(row["edges"] for row in rows)
            figures = {
                "sets": len(rows),
                "edges": edges,
                "coverage": round(sum(row["held"] for row in rows) / edges, 4),
                "below": round(sum(row["below"] for row in rows) / edges, 4),
                "width": round(sum(row["width"] for row in rows) / len(rows), 4),
                "seconds": round(sum(row["seconds"] for row in rows) / len(rows), 2),
            }
            print(kind, noise, figures, flush=True)
            if options.name:
                records = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
                records.setdefault(options.name, {})[f"{kind}, {noise}"] = figures
                RECORD.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

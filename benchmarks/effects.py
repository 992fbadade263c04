r"""Do intervals of effects hold the truth? Simulated interventions on known systems.

    python -m benchmarks.effects var --first 20000 --sets 20
    python -m benchmarks.effects                                        # the stored results

Fits have the defaults, without the assessment, on which effects do not depend. A pulse of one standard deviation
(``SIZES``) is given to every node in turn. The true response is that of the system itself, with and without the pulse
and with the same noise, averaged. In the linear systems the noise cancels and the average over the gates is a product
of mean matrices; the nonlinear ones are run ``RUNS`` times from states of their own, and two standard errors of this
average are allowed for. Their response to a large pulse is not that to a small one, and the answer of a linear model is
for small ones.

Prints one JSON object per system and a last one, and stores that in ``benchmarks/results/effects.json``. *present* are
responses that are not 0 because a path of the true graph leads there in time, *absent* the others. Both count, for each
step, how many there are and how many intervals of 90% hold the truth. An absent response is 0, and so is its interval
where no drawn graph has a path.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.existence import systems
from benchmarks.existence.systems import BURN_IN, OWN, System, random_weights, stable
from jaxtyping import Float

from tacit import LatentGraphForecaster
from tacit.config import AssessmentOptions

RESULTS = Path(__file__).parent / "results" / "effects.json"
NODES, ROWS, STEPS, LEVEL = 10, 1_000, 24, 0.9
RUNS = 10_000
SIZES = {"var": (1.0,), "gates": (1.0,), "nonlinear_var": (1.0, 0.5)}  # of the pulse, in standard deviations
KINDS = {"var": systems.var, "gates": systems.gates, "nonlinear_var": systems.nonlinear_var}
Figures = dict[str, Any]
Responses = Float[np.ndarray, "step node source"]  # of a pulse of 1 to each source


def truth(kind: str, seed: int, system: System, sizes: Float[np.ndarray, " source"]) -> tuple[Responses, Responses]:
    """Return the mean responses to a pulse of the given size to each node, and their standard errors."""
    rng = np.random.default_rng(seed)
    low, high = {"var": (0.2, 0.6), "gates": (0.4, 0.8), "nonlinear_var": (0.5, 1.5)}[kind]
    weights = random_weights(rng, NODES, 0.15 if kind == "gates" else 0.12, low, high)
    if kind != "nonlinear_var":
        theta = np.where(weights != 0, rng.uniform(0.3, 0.9, weights.shape), 0.0) if kind == "gates" else None
        mean = stable(weights, theta) * (1 if theta is None else theta) + OWN * np.eye(NODES)
        assert ((mean - OWN * np.eye(NODES) != 0) == system.truth).all()
        powers = [np.diag(sizes)]
        for _ in range(STEPS):
            powers.append(mean @ powers[-1])
        return np.stack(powers), np.zeros((STEPS + 1, NODES, NODES))
    weights, rng = stable(weights), np.random.default_rng([seed, 1])
    assert ((weights != 0) == system.truth).all()

    def following(values: np.ndarray, noise: np.ndarray) -> np.ndarray:
        return np.asarray(OWN * values + np.tanh(values @ weights.T) + 0.3 * noise)

    without = np.zeros((RUNS, 1, NODES))
    for _ in range(BURN_IN):
        without = following(without, rng.normal(size=without.shape))
    changed = without + np.diag(sizes)  # (run, source, node)
    means, errors = [np.diag(sizes)], [np.zeros((NODES, NODES))]
    for _ in range(STEPS):
        noise = rng.normal(size=without.shape)
        without, changed = following(without, noise), following(changed, noise)
        away = changed - without
        means.append(away.mean(0).T)
        errors.append(away.std(0).T / RUNS**0.5)
    return np.stack(means), np.stack(errors)


def one(kind: str, seed: int) -> list[Figures]:
    """Return counts by step of one system, for every size of the pulse."""
    system = KINDS[kind](seed, nodes=NODES, rows=ROWS)
    table = pd.DataFrame(system.series[0], columns=[f"v{node}" for node in range(NODES)])
    began = time.process_time()
    model = LatentGraphForecaster(assessment=AssessmentOptions(enabled=False)).fit(table)
    fitted, spread = time.process_time() - began, table.std().to_numpy()
    reached, paths = [np.eye(NODES, dtype=bool)], system.truth | np.eye(NODES, dtype=bool)
    for _ in range(STEPS):
        reached.append(paths @ reached[-1])
    began = time.process_time()
    ends = np.zeros((2, STEPS + 1, NODES, NODES))
    for source in range(NODES):
        found = model.effect({f"v{source}": float(spread[source])}, steps=STEPS, level=LEVEL)
        ends[:, :, :, source] = found[["low", "high"]].to_numpy().T.reshape(2, STEPS + 1, NODES)
    present, effect_seconds = np.stack(reached), (time.process_time() - began) / NODES
    exists = model.exists_[~np.eye(NODES, dtype=bool)]
    missed = system.truth & ~(np.nan_to_num(model.exists_) >= 0.02)

    def by_step(values: np.ndarray) -> list[int]:
        return [int(value) for value in values.sum((1, 2))[1:]]

    rows = []
    for size in SIZES[kind]:
        true, errors = truth(kind, seed, system, size * spread)
        slack = 2 * errors + 1e-12  # of the simulated truth
        held = (size * ends[0] - slack <= true) & (true <= size * ends[1] + slack)
        rows.append(
            {
                "seed": seed,
                "size": size,
                "present": by_step(present),
                "present_held": by_step(present & held),
                "absent": by_step(~present),
                "absent_held": by_step(~present & held),
                "edges": int(system.truth.sum()),
                "missed": int(missed.sum()),
                "uncertain": int(((exists >= 0.02) & (exists < 0.98)).sum()),
                "seconds_fit": fitted,
                "seconds_effect": effect_seconds,
            }
        )
    return rows


def total(kind: str, size: float, first: int, rows: list[Figures]) -> Figures:
    """Return the sums over systems, and the standard deviation over systems of the share that is held."""
    summed: Figures = {"kind": kind, "size": size, "first": first, "sets": len(rows)}
    for name in ("present", "present_held", "absent", "absent_held"):
        summed[name] = np.sum([row[name] for row in rows], axis=0).tolist()
    shares = [sum(row["present_held"]) / sum(row["present"]) for row in rows]
    summed |= {"deviation": float(np.std(shares, ddof=1)) if len(rows) > 1 else None, "lowest": min(shares)}
    summed |= {name: sum(row[name] for row in rows) for name in ("edges", "missed", "uncertain")}
    return summed | {name: sum(row[name] for row in rows) / len(rows) for name in ("seconds_fit", "seconds_effect")}


def main() -> None:
    """Run one kind of system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", choices=KINDS, help="if it is missing, print the stored results")
    parser.add_argument("--first", type=int, default=600)
    parser.add_argument("--sets", type=int, default=4)
    chosen = parser.parse_args()
    earlier = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    if chosen.kind is None:
        for line in earlier:
            print(json.dumps(line))
        return
    rows = []
    for seed in range(chosen.first, chosen.first + chosen.sets):
        rows += one(chosen.kind, seed)
        print(json.dumps(rows[-1]), flush=True)
    for size in SIZES[chosen.kind]:
        found = total(chosen.kind, size, chosen.first, [row for row in rows if row["size"] == size])
        print(json.dumps(found))
        same = ("kind", "size", "first")
        earlier = [line for line in earlier if any(line[key] != found[key] for key in same)] + [found]
    RESULTS.write_text(json.dumps(earlier, indent=1) + "\n")


if __name__ == "__main__":
    main()

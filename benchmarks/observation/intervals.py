"""Do intervals of ``probability`` hold the truth? Complete fits of VARs with heavy tails, and of gated networks.

    python -m benchmarks.observation.intervals --kind gaussian student_t --rows 1000 --seed-set choose --count 10
    python -m benchmarks.observation.intervals --kind poisson --system "counts, gated" --rows 2000 --count 10

With heavy tails half of the edges always act, the others with a probability between .4 and .9. Intervals are counted
over the true edges that the fit keeps; an edge that is not kept has none. ``gaussian`` has intervals from regressions
of mean and variance, ``gaussian_likelihood`` those that ``student_t`` has, with Gaussian noise. Seconds are those of
the processor. Writes ``benchmarks/results/observation/SEEDS-intervals.json``.
"""

import argparse
import time

import numpy as np
import torch
from benchmarks.existence.scores import listed, off_diagonal, ranking
from benchmarks.observation.records import RESULTS, Figures, rounded, write
from benchmarks.observation.systems import KINDS as MAKERS
from benchmarks.observation.systems import SEEDS, Observed, heavy_tails
from joblib import Parallel, delayed

LIKELIHOOD = "gaussian_likelihood"  # no option of a fit: the intervals of Student t, with Gaussian noise
KINDS = ("gaussian", "student_t", LIKELIHOOD, "poisson", "bernoulli", "negative_binomial")
TAILS = "heavy tails"
SYSTEMS = {TAILS: heavy_tails, **{name: maker for name, maker in MAKERS.items() if ", gated" in name}}
PARTS = ("gated", "always")
COUNTED = ("edges", "held", "below", "width", "error", "distance")


def one(name: str, kind: str, rows: int, seed: int) -> Figures:
    """Return what a complete fit says of the edges of one data set."""
    system = SYSTEMS[name](seed, rows=rows)
    began = time.process_time()
    try:
        edges = fitted_edges(system, kind)
    except Exception as error:  # counted on the page
        return {"seed": seed, "failed": f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - began
    exists, probability, low, high = (edges[name] for name in ("exists", "probability", "low", "high"))
    apart = ~np.eye(len(exists), dtype=bool)
    chosen, truth = listed(np.nan_to_num(exists[apart])), off_diagonal(system.truth)
    row: Figures = {"seed": seed, "auroc": ranking(np.nan_to_num(exists[apart]), truth)["auroc"]}
    row |= {"listed": int(chosen.sum()), "false": int((chosen & ~truth).sum())}
    known = system.truth & np.isfinite(low) & np.isfinite(high)
    for part in PARTS:
        mask = known & ((system.theta < 1) == (part == "gated"))
        theta = system.theta[mask]
        held = (low[mask] <= theta + 1e-6) & (theta <= high[mask] + 1e-6)
        row |= {
            f"{part}_edges": int(mask.sum()),
            f"{part}_held": int(held.sum()),
            f"{part}_below": int((theta < low[mask] - 1e-6).sum()),
            f"{part}_width": float((high - low)[mask].sum()),
            f"{part}_error": float((probability[mask] - theta).sum()),
            f"{part}_distance": float(np.abs(probability[mask] - theta).sum()),
        }
    return row | {"seconds": seconds}


def fitted_edges(system: Observed, kind: str) -> dict[str, np.ndarray]:
    """Return matrices of ``exists``, ``probability``, ``low`` and ``high`` of a complete fit, rows receiving."""
    from tacit.assessment.uncertainty import acting_by_likelihood
    from tacit.config import FitConfig, override
    from tacit.data import Series
    from tacit.pipeline.fitting import learn
    from tacit.pipeline.plan import resolve
    from tacit.pipeline.sources import Source

    nodes = tuple(f"v{node}" for node in range(len(system.truth)))
    series = Series(np.ascontiguousarray(system.series)[:, :, None], nodes)
    config = override(
        FitConfig(),
        {
            "predictor": {"kind": "filter"},
            "observation": {"kind": kind.removesuffix("_likelihood")},
            "assessment": {"controls": False},
        },
    )
    plan = resolve(Source("series", series), config, seed=0, device=torch.device("cpu"), command="benchmark")
    found = learn(plan)
    edges = found.result.model.graph.described(found.edges)
    given = {name: edges.matrix(name) for name in ("exists", "probability", "low", "high")}
    if kind == LIKELIHOOD:
        by_likelihood = acting_by_likelihood(found.result.model, found.split.train)
        given |= {"probability": by_likelihood.edge_probs, "low": by_likelihood.low, "high": by_likelihood.high}
    return {name: np.asarray(value, dtype=float) for name, value in given.items()}


def pooled(rows: list[Figures]) -> Figures:
    """Return coverage, width and bias over the edges of all data sets, gated ones and others apart and together.

    The standard error of the coverage takes data sets as independent, not their edges.
    """
    done: Figures = {"failed": sum("failed" in row for row in rows)}
    rows = [row for row in rows if "failed" not in row]
    for name, parts in (*((part, (part,)) for part in PARTS), ("all", PARTS)):
        table = np.array([[sum(row[f"{part}_{key}"] for part in parts) for key in COUNTED] for row in rows])
        edges, *sums = table.sum(0)
        if not edges:
            continue
        held = table[:, 1] - sums[0] / edges * table[:, 0]
        error = float(np.sqrt((held**2).sum()) / edges)
        means = {key: float(total / edges) for key, total in zip(COUNTED[1:], sums, strict=True)}
        done[name] = {"edges": int(edges), **means, "std_error": error}
    done["auroc"] = float(np.mean([row["auroc"] for row in rows]))
    return done


def main() -> None:
    """Run the chosen kinds of noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS[:3]))
    parser.add_argument("--system", choices=list(SYSTEMS), default=TAILS)
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000, 3_000])
    parser.add_argument("--seed-set", choices=list(SEEDS), default="choose")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for rows in options.rows:
        for kind in options.kind:
            seeds = SEEDS[options.seed_set][: options.count]
            found = list(
                Parallel(n_jobs=options.jobs)(delayed(one)(options.system, kind, rows, seed) for seed in seeds)
            )
            record = rounded({**pooled(found), "systems": found})
            write(RESULTS / f"{options.seed_set}-intervals.json", f"{options.system}: {kind} {rows}", record)
            print(
                options.system,
                kind,
                rows,
                {key: value for key, value in record.items() if key != "systems"},
                flush=True,
            )


if __name__ == "__main__":
    main()

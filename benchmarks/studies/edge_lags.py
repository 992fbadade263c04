r"""Is the lag that is given for an edge the right one? Vector autoregressions with lags 1 to 4, whose graph is known.

$$x_t = a\, x_{t-1} + \sum_{l=1}^{4} A^{(l)} x_{t-l} + e_t, \qquad e_t \sim N(0, I)$$

Each ordered pair of different nodes is an edge with probability .15. Its weight stands at one lag, drawn from 1 to 4,
or at two neighbouring lags, one half as large as the other. Systems whose largest eigenvalue is .95 or more in absolute
value are drawn again. The fit is that of ``tacit fit --quick`` with all options left open.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from benchmarks.studies.ranking import edge_ranking
from jaxtyping import Float

from tacit.config import AssessmentOptions, DataOptions
from tacit.experiments.replication import mean_and_deviation, quick_note
from tacit.experiments.study import Listener, Options, Records, Study, Table, Tasks, Values, Work
from tacit.sklearn import LatentGraphForecaster

NODES, ROWS, LAGS, DENSITY = 10, 2_000, 4, 0.15
DATA_SETS, FIRST_SEED = 20, 7_000  # other seeds than those with which the method was made
QUICK_ROWS, QUICK_SETS, QUICK_SEED = 300, 2, 6_000
UNSTABLE, WARM_UP = 0.95, 200
SURE = 0.9  # share of the resamples
Weights = Float[np.ndarray, "lag target source"]


@dataclass(frozen=True)
class Variant:
    """A kind of system: the weight of the own past, the size of an edge's weight, and how many lags it has."""

    words: str
    own: float = 0.4
    size: float = 0.3
    lags: int = 1


VARIANTS = {
    "one-lag": Variant("one lag"),
    "two-lags": Variant("two neighbouring lags, one half as large", lags=2),
    "slow": Variant("one lag, strong autocorrelation", own=0.8, size=0.15),
    "weak": Variant("one lag, weak effects", size=0.1),
}


def draw_weights(variant: Variant, rng: np.random.Generator) -> Weights:
    """Return the weights of the edges at each lag, the first axis from lag 1 on; the own past is not in it."""
    while True:
        weights = np.zeros((LAGS, NODES, NODES))
        for target, source in np.argwhere((rng.random((NODES, NODES)) < DENSITY) & ~np.eye(NODES, dtype=bool)):
            first, size = rng.integers(LAGS - variant.lags + 1), variant.size * rng.choice([-1, 1])
            parts = size * rng.permutation([1.0, 0.5][: variant.lags])
            weights[first : first + variant.lags, target, source] = parts
        companion = np.eye(LAGS * NODES, k=-NODES)
        companion[:NODES] = np.concatenate(weights, axis=1)
        companion[:NODES, :NODES] += variant.own * np.eye(NODES)
        if weights.any() and np.abs(np.linalg.eigvals(companion)).max() < UNSTABLE:
            return weights


def simulate(variant: Variant, weights: Weights, rows: int, rng: np.random.Generator) -> Float[np.ndarray, "row node"]:
    """Return a series of the system, without its first steps."""
    values = np.zeros((WARM_UP + rows, NODES))
    for step in range(LAGS, len(values)):
        past = values[step - LAGS : step][::-1]  # the newest first
        values[step] = variant.own * past[0] + np.einsum("lij,lj->i", weights, past) + rng.normal(size=NODES)
    return values[WARM_UP:]


class EdgeLags(Study):
    """How often the dominant lag of a listed edge is the true one."""

    name = "edge-lags"
    title = (
        f"Vector autoregressions of {NODES} nodes with lags 1 to {LAGS}, {ROWS:,} rows, fitted as by "
        "`tacit fit --quick`: is the dominant lag of each listed edge the true one?"
    )

    def tasks(self) -> Tasks:
        """One per kind of system."""
        return {name: _work(variant) for name, variant in VARIANTS.items()}

    def tables(self, records: Records) -> list[Table]:
        """Shares of right lags, overall and by how sure they are; AUROC of the edges beside."""
        rows = [_row(VARIANTS[name], records[name]["sets"]) for name in VARIANTS if name in records]
        columns = [
            "edges act at",
            "right lag",
            "of listed true edges",
            "where sure",
            "fewer lags read",
            "true edges listed",
            "AUROC",
            "sets",
        ]
        notes = [
            "right lag: the share of the listed true edges whose dominant lag is the true one; mean ± deviation over "
            "data sets",
            "where sure: the same of those whose lag is the largest in at least 90% of the resamples",
            "fewer lags read: right lags if regressions read only as many lags as were enough to detect edges "
            "(the window of the model), not 12",
            "true edges listed: their share, at a false discovery rate of 10%",
            *quick_note(list(records.values())),
        ]
        return [Table("The dominant lag of the listed edges", columns, rows, notes)] if rows else []


def _row(variant: Variant, sets: list[Values]) -> list[str]:
    shares = [one["right"] / one["listed_true"] for one in sets if one["listed_true"]]
    right, listed, edges = (sum(one[key] for one in sets) for key in ("right", "listed_true", "edges"))
    sure, sure_right = (sum(one[key] for one in sets) for key in ("sure", "sure_right"))
    return [
        variant.words,
        mean_and_deviation(shares, 3),
        f"{right} of {listed}",
        f"{sure_right} of {sure}",
        f"{sum(one['cut']['right'] for one in sets)} of {sum(one['cut']['listed_true'] for one in sets)}",
        f"{listed / edges:.2f}",
        mean_and_deviation([one["auroc"] for one in sets], 3),
        str(len(sets)),
    ]


def _work(variant: Variant) -> Work:
    def work(options: Options, listener: Listener) -> Values:
        rows, count, first = (QUICK_ROWS, QUICK_SETS, QUICK_SEED) if options.quick else (ROWS, DATA_SETS, FIRST_SEED)
        sets = []
        for seed in range(first, first + count):
            listener.stage(f"edge-lags, {variant.words}: data set {seed - first + 1} of {count}")
            sets.append({"seed": seed, **_one_set(variant, rows, seed)})
        return {"rows": rows, "sets": sets}

    return work


def _one_set(variant: Variant, rows: int, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    weights = draw_weights(variant, rng)
    table = pd.DataFrame(simulate(variant, weights, rows, rng), columns=[f"n{node}" for node in range(NODES)])
    model = _fit(table)
    window = model.record_.config["data"]["window"]
    ranking = edge_ranking(torch.tensor(model.exists_), torch.tensor(np.abs(weights).max(0) > 0).float())
    cut = _counts(_fit(table, window), weights)  # no lags beyond those by which edges are detected
    return {
        **_counts(model, weights),
        "edges": int((np.abs(weights).max(0) > 0).sum()),
        "auroc": ranking["auroc"],
        "window": window,
        "cut": {name: cut[name] for name in ("listed_true", "right")},
    }


def _fit(table: pd.DataFrame, window: int | None = None) -> LatentGraphForecaster:
    data, off = DataOptions(window=window), AssessmentOptions(enabled=False)
    return LatentGraphForecaster(data=data, assessment=off, random_state=0).fit(table)


def _counts(model: LatentGraphForecaster, weights: Weights) -> dict[str, int]:
    """Return how many true edges are listed, how many of these have the right lag, and the same of those sure."""
    is_edge, true_lag, listed = np.abs(weights).max(0) > 0, 1 + np.abs(weights).argmax(0), model.listed_edges()
    largest = model.lags_.loc[model.lags_.groupby(["source", "target"])["effect"].agg(lambda one: one.abs().idxmax())]
    share = largest.set_index(["source", "target"])["share"]
    counts = {"listed": len(listed), "listed_true": 0, "right": 0, "sure": 0, "sure_right": 0}
    for edge in listed.itertuples():
        target, source = int(edge.target[1:]), int(edge.source[1:])
        if not is_edge[target, source]:
            continue
        right, sure = edge.lag == true_lag[target, source], share.get((edge.source, edge.target), 0.0) >= SURE
        counts["listed_true"] += 1
        counts["right"] += int(right)
        counts["sure"] += int(sure)
        counts["sure_right"] += int(right and sure)
    return counts

"""Runs whose edges depend on the situation or have regimes, without a training."""

from dataclasses import replace

import numpy as np
import pandas as pd

from made_runs import make_run
from tacit.edges import VARIES, EdgesBy

HOURS = [str(hour) for hour in range(24)]
WEIGHTS = [0.6, 0.4]


def varying_run(nodes=8, *, count=3, seed=0, **changes):
    """A run in which the first listed edges follow the hour as sines, all others are constant."""
    run = make_run(nodes, **{"evidence": True, "errors": True, "seed": seed, **changes})
    phases = np.arange(count)[:, None] + 2 * np.pi * np.arange(24) / 24
    return with_curves(run, {"hour": ("periodic", HOURS, 0.5 + 0.4 * np.sin(phases))})


def category_run(labels=("dry", "wet", "snow"), by="season", **changes):
    """A run in which two edges depend on a category."""
    run = make_run(6, **{"evidence": True, "errors": True, **changes})
    return with_curves(run, {by: ("category", list(labels), np.array([[0.2, 0.5, 0.9], [0.7, 0.3, 0.1]]))})


def two_variables_run():
    """A run in which two edges depend on the hour and on a category."""
    hours = 0.5 + 0.4 * np.sin(2 * np.pi * np.arange(24) / 24 + np.arange(2)[:, None])
    seasons = np.array([[0.2, 0.5, 0.9], [0.7, 0.3, 0.1]])
    tables = {"hour": ("periodic", HOURS, hours), "season": ("category", ["dry", "wet", "snow"], seasons)}
    return with_curves(make_run(6, evidence=True, errors=True), tables)


def with_curves(run, tables):
    """The run with tables of probabilities (edge, value) of its first listed edges, by variable."""
    count = len(next(iter(tables.values()))[2])
    source, target = listed(run)[:, :count]
    codes = np.zeros(len(run.edges), dtype=np.uint8)
    places = run.edges.index.find(*listed(run))
    codes[places] = VARIES.index("no")
    codes[places[:count]] = VARIES.index("yes")
    by = EdgesBy.joined([curve_rows(name, *table[1:], source, target) for name, table in tables.items()])
    variables = [{"name": name, "kind": kind, "values": values} for name, (kind, values, _) in tables.items()]
    found = {"kind": "conditional", "variables": variables, "tested": len(places), "varying": count, "fdr": 0.1}
    return run.model_copy(
        update={
            "edges": replace(run.edges.updated(varies=codes), by=by),
            "record": run.record.model_copy(update={"situations": found}),
        }
    )


def regimes_run(nodes=6, *, own=False, times=200, series=None, **changes):
    """A run with two regimes that switch slowly; with ``own`` regimes of each node."""
    run = make_run(nodes, **{"evidence": True, "errors": True, **changes})
    source, target = listed(run)
    probs = np.stack([np.linspace(0.1, 0.5, source.size), np.linspace(0.9, 0.6, source.size)], 1).round(3)
    names = run.record.node_names
    blocks = names if own else ["all"]
    weights = [[0.6 + 0.02 * block, 0.4 - 0.02 * block] for block in range(len(blocks))]
    first = 0.5 + 0.48 * np.sin(np.arange(times) / 15)[:, None] * np.cos(np.arange(len(blocks)))
    dates = pd.date_range("2021-03-01", periods=times, freq="h").strftime("%Y-%m-%dT%H:%M:%S").tolist()
    posterior = {
        "times": dates,
        "parts": ["train"] * (times - 60) + ["validation"] * 20 + ["test"] * 40,
        "probs": np.stack([first, 1 - first], 2).round(3).tolist(),
    }
    if series is not None:
        posterior["series"] = [series[row * len(series) // times] for row in range(times)]
    found = {"kind": "mixture", "blocks": blocks, "weights": weights, "posterior": posterior}
    by = curve_rows("regime", ["1", "2"], probs, source, target)
    record = run.record.model_copy(update={"situations": found})
    return run.model_copy(update={"edges": replace(run.edges, by=by), "record": record})


def listed(run):
    """Sources and targets of the listed edges."""
    index = run.edges.at(run.edges.listed()).index
    return np.stack([index.source, index.target])


def curve_rows(name, values, probs, source, target):
    """Rows of probabilities (edge, value) with intervals of 0.06 to either side."""
    edge, place = np.indices(probs.shape).reshape(2, -1)
    flat = probs.ravel()
    return EdgesBy(
        source=source[edge].tolist(),
        target=target[edge].tolist(),
        by=[name] * len(edge),
        value=[values[at] for at in place],
        probability=flat.tolist(),
        std_error=[0.03] * len(edge),
        low=np.maximum(0, flat - 0.06).tolist(),
        high=np.minimum(1, flat + 0.06).tolist(),
    )

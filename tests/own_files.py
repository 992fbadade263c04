"""A small system as the files of a person, and quick runs on it."""

import numpy as np
import pandas as pd
import torch

from tacit.config import FitConfig, override
from tacit.pipeline import fitting, job, read_source, resolve, run_fit

NODES = ("north", "east", "south", "west")
QUICK = {
    "graph": {"evidence": "none"},  # every edge is learned; tests of the evidence ask for it
    "model": {"num_graphs": 4},
    "training": {"epochs": 1, "compile": False, "replicas": 1},
    "assessment": {"bootstrap_replicas": 0, "controls": False},
}
# north -> east -> south, and nothing else: what is left is certain, so that predictions can be made by hand.
CERTAIN = "source,target,kind\n" + "".join(
    f"{source},{target},{'required' if (source, target) in (('north', 'east'), ('east', 'south')) else 'forbidden'}\n"
    for source in NODES
    for target in NODES
    if source != target
)


def series(rows=120, seed=0):
    """Values (time, node): north -> east -> south, the second relation negative; west alone. Units differ by far."""
    rng = np.random.default_rng(seed)
    weights = np.array([[0.5, 0, 0, 0], [0.6, 0.3, 0, 0], [0, -0.6, 0.3, 0], [0, 0, 0, 0.5]])
    values = np.zeros((rows, 4))
    for row in range(1, rows):
        values[row] = weights @ values[row - 1] + 0.3 * rng.normal(size=4)
    return values * [1, 10, 100, 1] + [0, 5, -20, 3]


def write_files(folder):
    """Write tables (wide, long, with gaps, with two variables and a covariate), pairs and rules."""
    values, rng = series(), np.random.default_rng(1)
    times = pd.date_range("2024-01-01", periods=len(values), freq="h")
    wide = pd.DataFrame(values, columns=NODES).assign(time=times)[["time", *NODES]]
    wide.to_csv(folder / "wide.csv", index=False)
    wide.to_parquet(folder / "wide.parquet", index=False)
    wide.melt("time", var_name="station", value_name="pm").to_csv(folder / "long.csv", index=False)
    holes = values.copy()
    holes[rng.random(values.shape) < 0.1] = np.nan
    pd.DataFrame(holes, columns=NODES).assign(time=times).to_csv(folder / "holes.csv", index=False)
    two = {
        f"{node}:{name}": values[:, i] * scale for i, node in enumerate(NODES) for name, scale in (("a", 1), ("b", 2))
    }
    pd.DataFrame({"time": times, **two, "hour": times.hour}).to_csv(folder / "two.csv", index=False)
    x = rng.normal(size=(120, 4, 2))
    y = x[:, :, 0] + 0.5 * x[:, [1, 2, 3, 0], 0] + 0.1 * rng.normal(size=(120, 4))
    np.savez(folder / "pairs.npz", x=x, y=y, nodes=np.array(NODES))
    np.savez(folder / "x_only.npz", x=x[:7], nodes=np.array(NODES))
    np.savez(folder / "pairs_with_holes.npz", x=x, y=np.where(rng.random(y.shape) < 0.1, np.nan, y))
    (folder / "certain.csv").write_text(CERTAIN)


def quick(source, **sections):
    """The choices of a run that takes no time, and others."""
    window = {} if str(source).endswith(".npz") else {"data": {"window": 2}}
    return override(override(FitConfig(), QUICK | window), sections)


def plan_of(source, config=None, **sections):
    """What would be fitted to a file, with the model at its start; other choices than the quick ones if given."""
    config = quick(source, **sections) if config is None else config
    read = read_source(str(source), config.data)
    return resolve(read, config, seed=0, device=torch.device("cpu"), command="tests")


def learn(source, directory, **sections):
    """Run the job and return it with the result of the training; no report is drawn."""
    results = []

    def keep(*args, **kwargs):
        results.append(original(*args, **kwargs))
        return results[-1]

    original, drawn = fitting.train_model, job.draw_run
    fitting.train_model, job.draw_run = keep, lambda directory, _run: directory / "report.html"
    try:
        made = run_fit(str(source), quick(source, **sections), directory, device=torch.device("cpu"))
    finally:
        fitting.train_model, job.draw_run = original, drawn
    return made, results[0]

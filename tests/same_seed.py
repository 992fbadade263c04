"""Work whose result depends on its seed alone, as a program: ``python tests/same_seed.py DATA ORDER`` writes it here.

``ORDER`` is how the pieces of work follow each other, by their first letters; before each one global random state of
all kinds is moved, by an amount that the order decides.
"""

import contextlib
import random
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from tacit import LatentGraphRegressor
from tacit.cli import main
from tacit.config import AssessmentOptions, ModelConfig, TrainingOptions
from tacit.experiments import demo as demonstration
from tacit.pipeline import job

QUICK = ["--set", "training.compile=false", "--set", "training.epochs=2", "--set", "training.replicas=2"]
DEMO = "[system]\nnum_pairs = 100\n[model]\nnum_graphs = 4\n[training]\nepochs = 2\nreplicas = 2\ncompile = false\n"
TINY = {
    "training": TrainingOptions(replicas=2, epochs=2, batch_size=16, compile=False),
    "model": ModelConfig(num_graphs=4),
    "assessment": AssessmentOptions(bootstrap_replicas=4, controls=False),
    "point_graphs": 8,
}


def command(*arguments):
    """Run the command as a user would."""
    sys.argv = ["tacit", *map(str, arguments)]
    with contextlib.suppress(SystemExit):
        main(sys.argv[1:])


@contextlib.contextmanager
def no_pages():
    """Draw no pages and figures in this block: those of one run are enough."""
    drawn = job.draw_run, demonstration.draw_demo
    job.draw_run = demonstration.draw_demo = lambda directory, _run: directory / "report.html"
    yield
    job.draw_run, demonstration.draw_demo = drawn


def fit(data):
    """Three runs: the second with another seed, the third with a recurrent predictor; forecasts of the first."""
    command("fit", data, "--window", 2, "--std-errors", 4, *QUICK, "--out", "fit", "--quiet")
    more = ("--window", 2, "--std-errors", 0, *QUICK, "--set", "assessment.controls=false", "--quiet")
    with no_pages():
        command("fit", data, *more, "--out", "other", "--seed", 1)
        recurrent = ("--set", "predictor.kind=recurrent", "--set", "predictor.hidden=3")
        command("fit", data, *more, *recurrent, "--out", "recurrent")
    command("predict", "fit", data, "--samples", 3, "--out", "forecasts.csv", "--quiet")
    command("predict", "fit", data, "--samples", 3, "--seed", 1, "--out", "other.csv", "--quiet")


def demo(_data):
    """The main job, small."""
    Path("demo.toml").write_text(DEMO)
    with no_pages():
        command("demo", "--config", "demo.toml", "--out", "demo", "--quiet")


def estimator(data):
    """Estimators of two seeds: the files, predictions and samples."""
    rows = pd.read_csv(data).select_dtypes("number")
    for seed in (0, 1):
        model = LatentGraphRegressor(**TINY, random_state=seed).fit(rows.iloc[:-1], rows.iloc[1:])
        model.save(f"estimator-{seed}.safetensors")
        np.save(f"predicted-{seed}.npy", model.predict(rows))
        np.save(f"samples-{seed}.npy", model.sample(rows, 5))


if __name__ == "__main__":
    source, order = Path(sys.argv[1]), sys.argv[2]
    for number, letter in enumerate(order):
        random.seed(number)
        np.random.seed(number)
        torch.manual_seed(number)
        torch.rand(7 * number + 1)
        {"f": fit, "d": demo, "e": estimator}[letter](source)

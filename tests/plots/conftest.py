"""A small fitted forecaster with evidence, and its run directory, for all tests of plots."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

from tacit import LatentGraphForecaster
from tacit.config import AssessmentOptions

QUICK = AssessmentOptions(enabled=False)


def series(rows=260, seed=0):
    """Three nodes, b drives a."""
    rng, values = np.random.default_rng(seed), np.zeros((rows, 3))
    for row in range(1, rows):
        values[row] = 0.5 * values[row - 1] + [0.8 * values[row - 1, 1], 0, 0] + 0.3 * rng.normal(size=3)
    index = pd.date_range("2026-01-01", periods=rows, freq="h", name="time")
    return pd.DataFrame(values.round(3), columns=["a", "b", "<c>"], index=index)


@pytest.fixture(scope="session")
def table():
    return series()


@pytest.fixture(scope="session")
def fitted(table):
    return LatentGraphForecaster(window=1, assessment=QUICK, device="cpu").fit(table[:220])


@pytest.fixture(scope="session")
def run_directory(fitted, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run") / "three"
    fitted._fitted.write(directory)
    return directory


@pytest.fixture(autouse=True)
def _figures_closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")

"""Tables whose edges depend on the situation, and quick fits of them."""

import numpy as np
import pandas as pd

from tacit.config import FitConfig, override

NODES = ["river", "lake", "sea"]
QUICK = {"predictor": {"kind": "filter"}, "assessment": {"enabled": False}, "data": {"window": 1}}


def gated(rows=1200, seed=0, *, by="hour", constant=None):
    """river -> lake acts by the hour, by the words of a column or constantly; lake -> sea with probability .6."""
    rng, times = np.random.default_rng(seed), pd.date_range("2024-03-01", periods=rows, freq="h")
    season = np.where(np.arange(rows) // 20 % 2 == 0, "dry", "wet")
    level = 20 + 3 * np.cumsum(rng.normal(size=rows)) / np.sqrt(1 + np.arange(rows))
    values = np.zeros((rows, 3))
    for row in range(1, rows):
        chance = 0.5 + 0.45 * np.sin(2 * np.pi * (times[row - 1].hour - 8) / 24)
        chance = (0.9 if season[row - 1] == "wet" else 0.1) if by == "season" else chance
        gate, other = rng.random(2) < [chance if constant is None else constant, 0.6]
        river, lake, sea = values[row - 1]
        values[row] = [0.3 * river, 0.3 * lake + 0.9 * gate * river, 0.3 * sea + 0.9 * other * lake]
        values[row] += rng.normal(size=3) * [1, 0.2, 0.2]
    return pd.DataFrame(values, columns=NODES).assign(time=times, season=season, level=level)[
        ["time", *NODES, "season", "level"]
    ]


def options(**sections):
    """Choices of a fit that takes a second, and others."""
    return override(override(FitConfig(), QUICK), sections)

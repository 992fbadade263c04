"""Known columns of targets: covariates, waves and categories at their time, levels up to the newest input."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tacit.data import DAY, Background, Category, Level, Series, Wave, Windows
from tacit.errors import InputError

TERMS = (Wave(DAY), Level(2.0), Category("weekend"))
USED = np.array([[True, True, False], [False, True, True]])


def hourly(rows, seed=0, start="2026-01-02T20:00"):
    rng = np.random.default_rng(seed)
    times = np.datetime64(start, "s") + 3600 * np.arange(rows)
    return Series(rng.normal(size=(rows, 2, 1)), ("a", "b"), times=times)


@pytest.mark.parametrize("horizon", [1, 3])
def test_each_column_is_that_of_its_time(horizon):
    """Two series, the second shorter: every number by hand, and unused terms are 0."""
    parts = [hourly(40), hourly(30, 1, "2026-03-01T00:00")]
    windows, background = Windows(2, horizon), Background(TERMS, USED)
    made = windows.prepare(parts, background=background)
    assert (made.known, made.num_features) == (4, 1)
    pairs = windows.apply(parts, made.scaling, background).pairs
    at = 0
    for part in parts:
        scaled, level = made.scaling.scaled(part)[..., 0], None
        for row, value in enumerate(scaled):
            level = value if level is None else level + max(1 - 2**-0.5, 1 / (row + 1)) * (value - level)
            if row == 0:
                continue
            number = float(pairs.times[at])
            assert number == (part.times[row] - np.datetime64(0, "s")).astype(int) + 3600 * horizon
            angle, weekday = 2 * np.pi * number / DAY, (number // DAY + 3) % 7
            expected = [[np.sin(angle), np.cos(angle), level[0], 0.0], [0.0, 0.0, level[1], float(weekday >= 5)]]
            np.testing.assert_allclose(pairs.inputs[at, :, 2:], expected, atol=1e-5)
            at += 1
    assert at == len(pairs)
    rows = torch.isin(pairs.times, made.split.test.times)
    assert torch.equal(pairs.inputs[rows][:, :, 2:], made.split.test.inputs[:, :, 2:])


def test_a_level_ignores_gaps_and_later_rows():
    """A gap keeps the level; values after the newest input change nothing."""
    series, background = hourly(40), Background((Level(2.0),), np.array([[True], [True]]))
    gap = series.values.copy()
    gap[:3, 0], gap[10, 1] = np.nan, np.nan
    windows = Windows(1)
    series = replace(series, values=gap)
    scaling = windows.prepare(series, background=background).scaling
    levels = windows.apply(series, scaling, background).pairs.inputs[:, :, -1]
    assert (levels[:3, 0] == 0).all()
    assert levels[3, 0] == pytest.approx(scaling.scaled(series)[3, 0, 0], rel=1e-5)  # it starts at the first value
    later = gap.copy()
    later[20:] += 5.0
    moved = windows.apply(replace(series, values=later), scaling, background).pairs.inputs[:, :, -1]
    assert torch.equal(moved[:20], levels[:20])
    assert not torch.equal(moved[20:], levels[20:])


def test_a_background_of_other_nodes_is_refused():
    with pytest.raises(InputError, match=r"used of the background must have shape \(2, 3\).*got \(1, 3\)"):
        Windows(2).prepare(hourly(40), background=Background(TERMS, USED[:1]))

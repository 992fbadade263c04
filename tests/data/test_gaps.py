"""Missing inputs are forecasts from the past, so that edges are found beside gaps."""

import numpy as np
import torch

from tacit.data import Series, Windows
from tacit.data.gaps import Gaps


def chain(rows, rng):
    """a -> b -> c, slow and with little noise, so that an old value is far off."""
    values = np.zeros((rows, 3))
    for row in range(1, rows):
        noise = rng.normal(size=3) * (1.0, 0.1, 0.1)
        values[row] = (0.9, 0.6, 0.6) * values[row - 1] + (0.0, 0.4, 0.0) * values[row - 1, [0, 0, 1]] + noise
        values[row, 2] += 0.4 * values[row - 1, 1]
    return values


def test_gaps_are_forecast_from_the_past_of_all_nodes():
    """The error within a gap is near that of the true weights, and far below that of the last value."""
    rng = np.random.default_rng(0)
    whole = chain(1500, rng)
    values = whole.copy()
    for first in range(100, 1400, 100):
        values[first : first + 10, 2] = np.nan
    gone = np.isnan(values)
    filled = Gaps.learned([values], [np.ones(1500, dtype=bool)]).filled(values)
    assert np.array_equal(filled[~gone], whole[~gone])
    last = np.repeat(whole[99:1399:100, 2], 10)
    mine, theirs = (np.sqrt(np.mean((one - whole[gone]) ** 2)) for one in (filled[gone], last))
    assert mine < 0.15  # the noise of .1 that ten steps add up to is .125
    assert mine < theirs / 5


def test_a_gap_does_not_change_what_its_children_read():
    """Weights of a regression on filled values are those without gaps; on last values they are biased."""
    rng = np.random.default_rng(1)
    whole = chain(6000, rng)
    values = whole.copy()
    for first in range(60, 5900, 60):
        values[first : first + 20, 1] = np.nan
    gaps = Gaps.learned([values], [np.ones(6000, dtype=bool)])
    rows = np.arange(1, 6000)
    weights = {}
    for name, source in (("filled", gaps.filled(values)), ("last", forward(values)), ("whole", whole)):
        inputs = np.stack([source[rows - 1, 0], source[rows - 1, 1], whole[rows - 1, 2]], 1)
        weights[name] = np.linalg.lstsq(inputs, whole[rows, 2], rcond=None)[0]
    assert np.abs(weights["filled"] - weights["whole"]).max() < 0.03
    assert abs(weights["last"][0] - weights["whole"][0]) > 0.1  # the grandparent looks like a parent


def forward(values):
    filled = values.copy()
    for row in range(1, len(filled)):
        filled[row] = np.where(np.isnan(filled[row]), filled[row - 1], filled[row])
    return filled


def test_a_series_too_short_for_regressions_keeps_the_last_value():
    values = np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 4.0], [np.nan, 5.0]])
    filled = Gaps.learned([values], [np.ones(4, dtype=bool)]).filled(values)
    assert filled[:, 0].tolist() == [1.0, 1.0, 3.0, 3.0]


def test_gaps_of_new_data_are_filled_as_in_training_and_survive_storing():
    rng = np.random.default_rng(2)
    values = chain(300, rng)
    values[50:60, 1] = np.nan
    made = Windows(2).prepare(Series(values[:, :, None], nodes=("a", "b", "c")))
    assert Gaps.from_dict(made.scaling.gaps.to_dict()).to_dict() == made.scaling.gaps.to_dict()
    part = Series(values[20:80, :, None], nodes=("a", "b", "c"), piece=True)
    again = Windows(2).apply(part, made.scaling)
    assert torch.equal(again.pairs.inputs[:58], made.split.train.inputs[20:78])

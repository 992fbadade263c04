"""Units of several series: levels and deviations of each, against plain loops; known and new series; bad calls."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tacit.data import Scaling, Series, SeriesUnits, Windows, deviations_differ, levels_apart
from tacit.data.scaling import FEWEST_ROWS

NODES = ("a", "b", "c")


def panel(lengths=(30, 40, 25), spreads=(1.0, 1.0, 1.0), seed=0):
    """Noise around levels that differ by far; node c is missing in the second series."""
    rng = np.random.default_rng(seed)
    parts = [
        spread * rng.normal(size=(length, 3, 1)) + 100 * number + np.arange(3)[:, None]
        for number, (length, spread) in enumerate(zip(lengths, spreads, strict=True))
    ]
    parts[1][:, 2] = np.nan
    names = tuple(f"s{number}" for number in range(len(lengths)))
    return Series(np.concatenate(parts), NODES, lengths=tuple(lengths), series_names=names)


def test_levels_and_deviations_are_those_of_the_training_rows_of_each_series():
    series, windows = panel(), Windows(2, fractions=(0.6, 0.2))
    for by in ("level", "series"):
        made = windows.prepare(series, by=by)
        scaling = made.scaling
        assert made.notes == (
            "split in time order within each of 3 series",
            "nodes without a known level are not forecast: c in s1",
        )
        trained = [part.values[:end] for part, end in zip(series.parts, made.train_ends, strict=True)]
        for number, rows in enumerate(trained):
            for node in range(3):
                seen = rows[:, node, 0]
                if np.isnan(seen).all():  # no level, and the deviation within series
                    assert np.isnan(scaling.series_mean[number, node, 0])
                    assert scaling.series_deviation[number, node, 0] == scaling.deviation[node, 0]
                    continue
                assert scaling.series_mean[number, node, 0] == pytest.approx(seen.mean())
                own = seen.std() if by == "series" and len(seen) >= FEWEST_ROWS else scaling.deviation[node, 0]
                assert scaling.series_deviation[number, node, 0] == pytest.approx(own)
        squares = sum(((rows[:, 0, 0] - rows[:, 0, 0].mean()) ** 2).sum() for rows in trained)
        assert scaling.deviation[0, 0] == pytest.approx((squares / (sum(map(len, trained)) - 3)) ** 0.5)


def test_pairs_go_back_to_the_units_of_their_series():
    series = panel()
    made = Windows(2, fractions=(0.6, 0.2)).prepare(series, by="level")
    for part in (made.split.train, made.split.test):
        back = part.units.restored(part.targets.double(), part.series)
        draws = part.units.restored(part.targets.double()[:, None].expand(-1, 5, -1, -1), part.series)
        torch.testing.assert_close(draws[:, 3], back, equal_nan=True)
        for row in range(len(part)):
            values = series.parts[int(part.series[row])].values[int(part.times[row])]
            seen = part.observed[row].bool().numpy()
            assert np.allclose(back[row].numpy()[seen], values[seen], atol=1e-4)
    spread = made.split.train.units.spread(made.split.train.series)
    assert torch.equal(spread[0], torch.from_numpy(made.scaling.series_deviation[0]))


def test_known_series_keep_their_units_and_new_ones_are_measured():
    series, windows = panel(), Windows(2, fractions=(0.6, 0.2))
    scaling = windows.prepare(series, by="series").scaling
    stored = Scaling.from_dict(json.loads(json.dumps(scaling.to_dict())))
    assert np.array_equal(stored.series_mean, scaling.series_mean, equal_nan=True)
    new = Series.joined([series.parts[2], series.parts[0]], ["s2", "x"])
    found = stored.of_series(new)
    assert np.array_equal(found.series_mean[0], scaling.series_mean[2])
    assert found.series_mean[1, :, 0] == pytest.approx(series.parts[0].values.mean(0)[:, 0])
    made = windows.apply(new, stored)
    assert made.notes == ("one series that was not in the training data: the level is the mean of the observed rows",)
    alone = windows.apply(series.parts[2], stored)
    assert alone.pairs.units is not None
    assert (alone.series, alone.pairs.series.unique().tolist()) == (None, [0])


def test_one_series_has_one_scale():
    one = panel().parts[0]
    made = Windows(2).prepare(one, by="level")
    assert (made.scaling.by, made.split.train.units, made.split.train.series) == ("all", None, None)


def test_a_series_without_training_rows_has_no_level():
    units, pooled = SeriesUnits.measured([np.zeros((0, 1, 1)), np.full((4, 1, 1), 2.0)], "level")
    assert np.array_equal(units.mean.flatten(), [np.nan, 2.0], equal_nan=True)
    assert pooled.item() == 0


def test_counted_names_of_other_data_are_other_series():
    """The first of two tables today is not the first of two tables in training."""
    series, windows = panel((40, 40), (1.0, 1.0)), Windows(2)
    counted = Series.joined(series.parts)
    scaling = windows.prepare(counted, by="level").scaling
    new = Series.joined([replace(part, values=part.values + 7) for part in series.parts])
    assert np.allclose(scaling.of_series(new).series_mean[0], new.parts[0].values.mean(0))
    assert (
        "2 series that were not in the training data: the level is the mean of the observed rows"
        in windows.apply(new, scaling).notes
    )
    named = windows.prepare(series, by="level").scaling
    assert np.array_equal(named.of_series(series).series_mean, named.series_mean, equal_nan=True)
    assert named.of_series(counted.selected([0])).series_names == ("",)


@pytest.mark.parametrize(("spreads", "differ"), [((1, 1, 1), False), ((1, 1, 2), False), ((1, 9, 81), True)])
def test_deviations_that_differ_are_seen(spreads, differ):
    series = panel((60, 60, 60), spreads)
    assert deviations_differ(series, 0.7) is differ
    assert not deviations_differ(replace(series, values=series.values[:60], lengths=(), series_names=()), 0.7)


@pytest.mark.parametrize(("factor", "apart"), [(0.01, False), (0.05, False), (1.0, True), (1e6, True)])
def test_levels_far_apart_are_seen(factor, apart):
    """Levels 0, 100 and 200 have a deviation of 82, the noise has 1."""
    series = panel((60, 60, 60))
    levels = np.repeat([0.0, 100.0, 200.0], 60)[:, None, None]
    assert levels_apart(replace(series, values=series.values - levels + factor * levels), 0.7) is apart


def test_a_node_that_is_still_within_every_training_part_is_refused(refused):
    series = panel((40, 40), (1.0, 1.0))
    values = series.values.copy()
    values[:, 2] = np.repeat([1.0, 2.0], 40)[:, None]
    values[39, 2] = 5.0  # it moves in the test part
    moved = replace(series, values=values)
    refused(Windows(2).prepare, moved, by="level")
    assert Windows(2).prepare(moved).scaling.by == "all"


def test_series_over_different_nodes_are_joined_over_all():
    one = Series(np.arange(6.0).reshape(3, 2, 1), ("a", "b"))
    other = Series(np.arange(8.0).reshape(4, 2, 1), ("c", "a"))
    both = Series.joined([one, other])
    assert both.nodes == ("a", "b", "c")
    assert both.notes == ("2 of 2 series lack some nodes, which are missing values there: b, c",)
    assert np.array_equal(both.values[:3, :, 0], [[0, 1, np.nan], [2, 3, np.nan], [4, 5, np.nan]], equal_nan=True)
    assert np.array_equal(both.values[3:, [2, 0], 0], other.values[:, :, 0])

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tacit.data import DAY, Background, Category, Level, Scaling, Series, Wave, Windows, read_series
from tacit.data.gaps import Gaps


def make_series(time=40, node=3, channel=2, missing=0.2, covariates=0, seed=0, times=None):
    rng = np.random.default_rng(seed)
    values = 5 * rng.normal(size=(time, node, channel)).cumsum(axis=0) + 10
    values[rng.random(values.shape) < missing] = np.nan
    return Series(
        values,
        tuple("abcdef"[:node]),
        tuple("uvw"[:channel]),
        times,
        rng.normal(size=(time, covariates)) * 3 + 1 if covariates else None,
        tuple("gh"[:covariates]),
    )


def filled_by_loop(scaling, piece):
    """The scaled values of a series by row and column, gaps as the sum over their regressions."""
    values = scaling.scaled(piece)
    rows, gaps = values.reshape(len(values), -1).tolist(), scaling.gaps
    for row, numbers in enumerate(rows):
        for column, value in enumerate(numbers):
            if not np.isnan(value):
                continue
            total = gaps.intercepts[column]
            for place, weight in zip(gaps.places[column], gaps.weights[column], strict=True):
                back, other = 1 + place // len(numbers), place % len(numbers)
                total += weight * rows[row - back][other] if row >= back else 0.0
            numbers[column] = min(max(total, gaps.low[column]), gaps.high[column])
    return np.array(rows).reshape(values.shape)


def pairs_by_loop(windows, scaling, together, pieces, channels, out_channels):
    """Every pair of every series as lists of numbers in units, written as one would explain it."""
    flagged = any(np.isnan(piece.values).any() for piece in together)
    for piece in pieces:
        filled = filled_by_loop(scaling, piece) if flagged else None
        for last in range(windows.window - 1, len(piece) - windows.horizon):
            target = piece.values[last + windows.horizon][:, channels[:out_channels]]
            if np.isnan(target).all():
                continue
            inputs = []
            for node in range(piece.num_nodes):
                columns = []
                for row in range(last - windows.window + 1, last + 1):
                    for place, channel in enumerate(channels):
                        value = piece.values[row, node, channel]
                        gap = ("filled", filled[row, node, place]) if np.isnan(value) else None
                        columns.append(gap or ("value", node, channel, value))
                    if flagged:
                        columns += [("flag", float(not np.isnan(piece.values[row, node, c]))) for c in channels]
                for row in (last + windows.horizon, last + windows.horizon - 1):
                    columns += [("covariate", c, v) for c, v in enumerate(piece.covariates[row])]
                inputs.append(columns)
            yield inputs, target, piece.times[last + windows.horizon]


def number(entry, mean, deviation, covariate_mean, covariate_deviation):
    match entry:
        case ("value", node, channel, value):
            return (value - mean[node, channel]) / deviation[node, channel]
        case ("flag" | "filled", given):
            return given
        case ("covariate", column, value):
            return (value - covariate_mean[column]) / covariate_deviation[column]


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("num_pieces", [1, 3])
@pytest.mark.parametrize(("window", "horizon", "targets"), [(1, 1, None), (4, 3, ("v",)), (5, 1, ("v", "u"))])
def test_pairs_are_those_of_the_loop(missing, num_pieces, window, horizon, targets):
    pieces = [
        replace(make_series(25, 2, 2, missing, covariates=2, seed=k), times=np.arange(25) + 100 * k)
        for k in range(num_pieces)
    ]
    windows = Windows(window, horizon, fractions=(0.5, 0.2))
    made = windows.prepare(pieces if num_pieces > 1 else pieces[0], targets=targets)
    channels, out_channels = {None: ([0, 1], 2), ("v",): ([1, 0], 1), ("v", "u"): ([1, 0], 2)}[targets]
    train, validation, test, rows, known, so_far = [], [], [], [], [], 0
    for piece in pieces:
        own = list(pairs_by_loop(windows, made.scaling, pieces, [piece], channels, out_channels))
        first, second = (round((so_far + len(own)) * part) - round(so_far * part) for part in (0.5, 0.2))
        train, validation, test = (
            train + own[:first],
            validation + own[first : first + second],
            test + own[first + second :],
        )
        so_far += len(own)
        # scaling: observed values of all rows up to the last training target of each series
        rows.append(piece.values[piece.times <= own[first - 1][2]])
        known.append(piece.covariates[piece.times <= own[first - 1][2]])
    expected = train + validation + test
    rows, known = np.concatenate(rows), np.concatenate(known)
    mean, deviation = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    scale = (mean, deviation, known.mean(axis=0), known.std(axis=0))
    assert np.allclose(made.scaling.mean, mean[:, channels], rtol=1e-12)
    assert np.allclose(made.scaling.deviation, deviation[:, channels], rtol=1e-12)

    split = made.split
    parts = (split.train, split.validation, split.test)
    assert [len(part) for part in parts] == [len(train), len(validation), len(test)]
    inputs = torch.cat([part.inputs for part in parts])
    assert inputs.dtype == torch.float32
    assert inputs.shape == (len(expected), 2, window * made.num_features + 4)
    loop = [[[number(entry, *scale) for entry in node] for node in pair] for pair, _, _ in expected]
    assert torch.allclose(inputs, torch.tensor(loop, dtype=torch.float32), atol=1e-5)

    targets_by_loop = (np.stack([target for _, target, _ in expected]) - mean[:, channels[:out_channels]]) / deviation[
        :, channels[:out_channels]
    ]
    assert torch.allclose(
        torch.cat([part.targets for part in parts]), torch.from_numpy(np.nan_to_num(targets_by_loop)).float(), atol=1e-5
    )
    if missing:
        observed = torch.cat([part.observed for part in parts])
        assert torch.equal(observed, torch.from_numpy(~np.isnan(targets_by_loop)).float())
    else:
        assert split.train.observed is None
    times = np.concatenate([made.train_times, made.validation_times, made.test_times])
    assert times.tolist() == [time for _, _, time in expected]


def test_names_of_features():
    made = Windows(3).prepare(make_series(covariates=1), targets=["v"])
    assert made.feature_names == ("v", "u", "v observed", "u observed")
    assert (made.num_features, made.out_channels, made.window, made.nodes) == (4, 1, 3, ("a", "b", "c"))
    assert (made.known, made.scaling.lagged_covariates) == (2, ("g",))
    assert made.split.train.inputs.shape[2] == 3 * 4 + 2
    complete = Windows(3).prepare(make_series(missing=0))
    assert complete.feature_names == ("u", "v")


def test_a_gap_in_the_test_part_alone_has_its_flag():
    values = make_series(missing=0).values
    values[-1, 0, 0] = np.nan
    made = Windows(3).prepare(Series(values, ("a", "b", "c"), ("u", "v")))
    assert made.feature_names == ("u", "v", "u observed", "v observed")
    assert made.split.train.observed.min() == 1
    assert made.split.test.observed[-1, 0].tolist() == [0, 1]


def test_a_covariate_that_does_not_move_in_training_keeps_its_unit():
    holiday = np.zeros((40, 1))
    holiday[-3:] = 1
    made = Windows(2).prepare(replace(make_series(missing=0), covariates=holiday, covariate_names=("holiday",)))
    assert made.split.train.inputs[:, :, 4:].abs().max() == 0
    assert made.split.test.inputs[-1, 0, 4:].tolist() == [1]  # a column of zeros has no lag


def test_a_horizon_longer_than_the_new_rows():
    series = make_series(missing=0)
    windows = Windows(2, 5)
    tail = Series(series.values[-3:], series.nodes, series.channels, piece=True)
    new = windows.apply(tail, windows.prepare(series).scaling)
    assert len(new.pairs) == 2
    assert new.pairs.observed.sum() == 0
    assert new.times.tolist() == new.pairs.times.tolist() == [6, 7]


def test_later_rows_change_nothing_before_them():
    windows = Windows(4, 2)
    before = windows.prepare(series := make_series())
    changed = series.values.copy()
    changed[series.row_times > before.train_times[-1]] += 100
    after = windows.prepare(replace(series, values=changed))
    assert torch.equal(before.split.train.inputs, after.split.train.inputs)
    assert torch.equal(before.split.train.targets, after.split.train.targets)
    assert before.scaling.to_dict() == after.scaling.to_dict()
    assert not torch.equal(before.split.validation.targets, after.split.validation.targets)


def test_units_come_back(refused):
    series = make_series(missing=0)
    made = Windows(4, 2).prepare(series, targets=["v"])
    units = made.scaling.to_units(made.split.test.targets.double())
    assert np.allclose(units[..., 0], series.values[made.test_times, :, 1], rtol=1e-5)
    refused(made.scaling.to_units, torch.zeros(4, 3, 2))


def test_scaling_survives_json(refused):
    series = make_series(covariates=2)
    made = Windows(4).prepare(series)
    again = Scaling.from_dict(json.loads(json.dumps(made.scaling.to_dict())))
    assert again.to_dict() == made.scaling.to_dict()
    assert again.feature_names == made.feature_names
    assert np.array_equal(again.features(series), made.scaling.features(series))
    refused(Scaling.from_dict, {"nodes": ["a"]})


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_apply_gives_the_same_pairs_and_those_to_come(missing):
    windows, series = Windows(4, 3), make_series(missing=missing, times=np.arange(40) * 2)
    made = windows.prepare(series)
    new = windows.apply(series, made.scaling)
    pairs, times = new.pairs, new.times
    assert (new.series, new.notes, pairs.series) == (None, (), None)
    assert len(pairs) == len(times) == 40 - 3
    assert times.tolist() == list(range(2 * (3 + 3), 2 * 43, 2))
    rows = torch.from_numpy(np.searchsorted(times, made.test_times))
    assert torch.equal(pairs.inputs[rows], made.split.test.inputs)
    assert torch.equal(pairs.targets[rows], made.split.test.targets)
    assert pairs.observed[-3:].sum() == 0
    assert np.array_equal(pairs.observed[:-3].bool().numpy(), ~np.isnan(series.values[6:]))
    # only what is in the window counts: the newest rows alone give the newest input when nothing has to be filled
    if not missing:
        tail = replace(series, values=series.values[-4:], times=series.times[-4:], piece=True)
        assert torch.equal(windows.apply(tail, made.scaling).pairs.inputs[0], pairs.inputs[-1])


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_target_after_the_table_requires_its_covariates(horizon, refused):
    """Without rows of covariates the last pairs are left out; with them the covariates are those of the rows."""
    windows, series = Windows(4, horizon), make_series(covariates=2)
    made = windows.prepare(series)
    new = windows.apply(series, made.scaling)
    assert len(new.pairs) == 40 - 3 - horizon
    assert len(new.notes) == 1
    assert "covariates g, h are not known" in new.notes[0]
    later = np.array([[7.0, -4.0]] * horizon)
    ahead = np.full((horizon, 3, 2), np.nan)
    longer = replace(
        series, values=np.concatenate([series.values, ahead]), covariates=np.concatenate([series.covariates, later])
    )
    more = windows.apply(longer, made.scaling)
    assert (len(more.pairs), more.notes) == (40 - 3, ())
    assert torch.equal(more.pairs.inputs[:-horizon], new.pairs.inputs)
    scaling = made.scaling
    rows = [later[-1], longer.covariates[-2]]
    found = np.concatenate([(row - scaling.covariate_mean) / scaling.covariate_deviation for row in rows])
    assert more.pairs.inputs[-1, 0, -4:].tolist() == pytest.approx(found.tolist(), rel=1e-6)
    newest = (series.covariates[-1] - scaling.covariate_mean) / scaling.covariate_deviation
    assert more.pairs.covariates[-1].tolist() == pytest.approx(newest.tolist(), rel=1e-6)
    short = replace(series, values=series.values[:4], covariates=series.covariates[:4], piece=True)
    refused(windows.apply, short, scaling)


def test_covariates_that_follow_from_others_have_no_lag():
    """Parts of the date, a counter, sines that a user adds and a level of an alternating regime; not white noise."""
    row = np.arange(60.0)
    times = np.datetime64("2026-01-01", "h") + np.arange(60).astype("timedelta64[h]")
    names = ("hour sin", "hour cos", "counter", "wave", "other wave", "odd", "noise")
    columns = [np.sin(np.pi * row / 12), np.cos(np.pi * row / 12), row, np.sin(row), np.cos(row), row % 2]
    columns.append(np.random.default_rng(0).normal(size=60))
    series = replace(
        make_series(60, missing=0),
        times=times.astype("datetime64[s]"),
        covariates=np.stack(columns, 1),
        covariate_names=names,
    )
    assert Windows(2).prepare(series).scaling.lagged_covariates == ("noise",)


def test_apply_sorts_nodes_by_name(refused):
    series = make_series()
    made = Windows(4).prepare(series)
    turned = replace(series, values=series.values[:, ::-1], nodes=series.nodes[::-1])
    one, other = (Windows(4).apply(rows, made.scaling).pairs for rows in (turned, series))
    assert torch.equal(one.inputs, other.inputs)
    refused(Windows(4).apply, replace(series, nodes=("a", "x", "c")), made.scaling)
    refused(Windows(4).apply, make_series(covariates=1), made.scaling)


def test_times_to_come_go_on():
    days = np.arange("2020-01-01", "2020-01-11", dtype="datetime64[D]")
    series = replace(make_series(10), times=days)
    scaling = Windows(1).prepare(make_series()).scaling
    new = Windows(5, 2).apply(series, scaling)
    assert new.times.astype(str).tolist()[-2:] == ["2020-01-11", "2020-01-12"]
    assert new.pairs.times[-1] == 18273 * 24 * 3600  # in seconds
    one_row = Series(np.ones((1, 3, 2)), ("a", "b", "c"), ("u", "v"), piece=True)
    assert Windows(1, 2).apply(one_row, scaling).times.tolist() == [2]


def test_times_to_come_follow_the_calendar(tmp_path):
    """A table of months: the row beyond 2019-12-01 is 2020-01-01, in every series and at any horizon."""
    months = np.arange("2018-01", "2020-01", dtype="datetime64[M]").astype("datetime64[D]")
    rows = [f"{month},{3 * place % 7},{5 * place % 11}" for place, month in enumerate(months)]
    (tmp_path / "months.csv").write_text("\n".join(["time,a,b", *rows]))
    series = read_series(tmp_path / "months.csv")
    for horizon in (1, 2, 3):
        windows = Windows(4, horizon)
        new = windows.apply(series, windows.prepare(series).scaling)
        coming = ["2020-01-01", "2020-02-01", "2020-03-01"][:horizon]
        assert new.times.astype("datetime64[D]").astype(str).tolist()[-horizon:] == coming
        assert new.pairs.times[-1] == (np.datetime64(coming[-1], "s") - np.datetime64(0, "s")).astype(int)
    week = np.arange("2020-01-06", "2020-01-30", dtype="datetime64[D]")
    weekdays = week[np.is_busday(week)][:15]  # up to a Friday
    parts = [
        replace(series, values=series.values[:15], times=weekdays, piece=True),
        replace(series, values=series.values[:9], times=months[:9], piece=True),
    ]
    scaling = Windows(4).prepare(series).scaling
    new = Windows(4, 2).apply(Series.joined(parts), scaling)
    ends = [new.times[new.series == name].astype("datetime64[D]").astype(str).tolist()[-2:] for name in ("1", "2")]
    assert ends == [["2020-01-27", "2020-01-28"], ["2018-10-01", "2018-11-01"]]


def test_pairs_without_any_target_are_left_out():
    values = make_series(missing=0).values
    values[20:30] = np.nan
    made = Windows(2).prepare(Series(values, ("a", "b", "c"), ("u", "v")))
    times = np.concatenate([made.train_times, made.validation_times, made.test_times])
    assert times.tolist() == [*range(2, 20), *range(30, 40)]


def test_refusals(refused):
    series = make_series()
    still, gone = series.values.copy(), series.values.copy()
    still[:30, 1, 0], gone[:30, 2, 1] = 3.0, np.nan
    refused(Windows, 0)
    refused(Windows, 3, 0)
    refused(Windows, fractions=(0.8, 0.2))
    refused(Windows(41, 4).prepare, series)
    refused(Windows(51, 4).prepare, [make_series(50), series])
    refused(Windows(41, 4).apply, series, Windows(3).prepare(series).scaling)
    refused(Windows(37).prepare, make_series(missing=0))
    refused(Windows(4).prepare, replace(series, values=still))
    refused(Windows(4).prepare, replace(series, values=gone))
    refused(Windows(4).prepare, series, targets=["z"])
    refused(Windows(4).prepare, series, targets=["u", "u"])
    refused(Windows(4).prepare, series, targets=[])
    refused(Windows(4).prepare, [])


# ---------------------------------------------------------------- known columns of targets


TERMS = (Wave(DAY), Level(2.0), Category("weekend"))
USED = np.array([[True, True, False], [False, True, True]])


def hourly(rows, seed=0, start="2026-01-02T20:00"):
    rng = np.random.default_rng(seed)
    times = np.datetime64(start, "s") + 3600 * np.arange(rows)
    return Series(rng.normal(size=(rows, 2, 1)), ("a", "b"), times=times)


@pytest.mark.parametrize("horizon", [1, 3])
def test_each_column_is_that_of_its_time(horizon, unchecked):
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


def test_a_background_of_other_nodes_is_refused(refused):
    refused(Windows(2).prepare, hourly(40), background=Background(TERMS, USED[:1]))


# ---------------------------------------------------------------- missing inputs are forecasts from the past, so that e


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

"""Several series over the same nodes: read, cut into windows, split, scaled and applied, each against a plain loop."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tacit.data import FEWEST_SERIES, Series, Windows, read_series
from tacit.data.recognition import restarts
from tacit.data.series import assign_parts

GNW20 = Path(__file__).parents[2] / ".." / "shared" / "data" / "gnw20"
NODES = ("a", "b")


def make(lengths, seed=0, missing=0.0, covariates=False):
    """Random walks, each row with a value of its own; time starts again in every series."""
    rng, total = np.random.default_rng(seed), sum(lengths)
    values = rng.normal(size=(total, 2, 1)).cumsum(axis=0)
    values[rng.random(values.shape) < missing] = np.nan
    return Series(
        values,
        NODES,
        times=np.concatenate([np.arange(length) * 10 for length in lengths]),
        covariates=rng.normal(size=(total, 1)) if covariates else None,
        covariate_names=("h",) if covariates else (),
        lengths=tuple(lengths),
        series_names=tuple(f"s{number}" for number in range(len(lengths))),
    )


def csv_of(series, name="name"):
    """A wide table with a column of series names, rows of all series taken in turn."""
    lines = [f"time,{name},a,b"]
    parts = list(zip(series.series_names, series.parts, strict=True))
    for row in range(max(series.lengths)):
        for label, part in parts:
            if row < len(part):
                cells = ("" if np.isnan(v) else repr(float(v)) for v in part.values[row, :, 0])
                lines.append(",".join([str(part.times[row]), label, *cells]))
    return "\n".join(lines) + "\n"


def same(one, other):
    assert np.array_equal(one.values, other.values, equal_nan=True)
    assert np.array_equal(one.row_times, other.row_times)
    assert (one.lengths, one.series_names, one.nodes) == (other.lengths, other.series_names, other.nodes)


def write(folder, text, name="table.csv"):
    (folder / name).write_text(text)
    return folder / name


# ---------------------------------------------------------------- reading


def test_a_column_names_the_series_whatever_the_order_of_rows(tmp_path):
    series = make([5, 3, 4], missing=0.1)
    same(read_series(write(tmp_path, csv_of(series)), series="name"), series)
    same(read_series(write(tmp_path, csv_of(series, "series")), series="series"), series)  # not a node column here


def test_a_long_table_with_a_column_of_series(tmp_path):
    series = make([4, 3], missing=0.2)
    lines = ["time,node,trial,v"]
    for name, part in zip(series.series_names, series.parts, strict=True):
        for node, label in enumerate(NODES):
            cells = ("" if np.isnan(v) else repr(float(v)) for v in part.values[:, node, 0])
            lines += [f"{time},{label},{name},{cell}" for time, cell in zip(part.times, cells, strict=True)]
    found = read_series(write(tmp_path, "\n".join(lines) + "\n"), series="trial")
    same(replace(found, channels=("value",)), series)


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.gz"])
def test_a_time_that_starts_again_is_recognised_and_said(ending, tmp_path):
    series, sep = make([6, 4, 5]), "\t" if "tsv" in ending else ","
    rows = zip(series.times, series.values[:, :, 0].tolist(), strict=True)
    text = sep.join(["Time", *NODES]) + "\n" + "".join(f"{t}{sep}{a!r}{sep}{b!r}\n" for t, (a, b) in rows)
    path = tmp_path / f"table.{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    found = read_series(path)
    same(found, replace(series, series_names=("1", "2", "3")))
    assert found.notes == ("column 'Time' starts again 2 times: read as 3 series",)


def test_a_tsv_with_commas_in_its_names(tmp_path):
    assert read_series(write(tmp_path, "time\ta,1,2\tb,1,2\n0\t1\t2\n1\t2\t3\n", "t.tsv")).nodes == ("a,1,2", "b,1,2")


def test_gnw20_is_read_as_it_is():
    path = GNW20 / "Ecoli-1_timeseries.tsv.gz"
    if not path.is_file():
        pytest.skip("the GNW files are not here")
    series = read_series(path)
    assert series.lengths == (101,) * 10
    assert series.notes == ("column 'Time' starts again 9 times: read as 10 series",)
    assert series.nodes == tuple(f"G{number}" for number in range(1, 11))
    made = Windows(3).prepare(series)
    assert made.notes == ("split by whole series: 7 for training, 1 for validation, 2 for the test",)
    assert [len(part) for part in vars(made.split).values()] == [7 * 98, 98, 2 * 98]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0, 1, 2, 3], ()),
        ([0, 1, 2, 0, 1, 2], (3, 3)),
        ([0, 1, 2, 0, 1, 0, 1, 2, 3], (3, 2, 4)),
        ([5, 6, 7, 5.4, 6, 7], (3, 3)),  # starts about the same
        ([5, 6, 7, 6, 7, 8], ()),  # starts a step later
        ([0, 1, 2, 2, 3, 4], ()),  # a time that comes twice
        ([0, 0, 1, 2], ()),  # a first row that comes twice
        ([0, 1, 3, 2, 4, 5], ()),  # two rows in the wrong order
        ([0, 2, 1, 3], ()),
        ([3, 2, 1, 0], ()),  # descending
        ([2, 3, 0, 1], ()),  # two halves in the wrong order
        ([0], ()),
        ([0, 0], ()),
    ],
)
def test_times_that_start_again(times, expected):
    assert restarts(np.array(times)) == expected
    dates = np.datetime64("2020-01-01", "s") + (np.array(times) * 3600).astype("timedelta64[s]")
    assert restarts(dates) == expected


def test_accidents_stay_errors(tmp_path, refused):
    refused(read_series, write(tmp_path, "time,a\n0,1\n2,2\n1,3\n3,4\n"))
    refused(read_series, write(tmp_path, "time,a\n0,1\n1,2\n1,3\n2,4\n"))
    refused(read_series, write(tmp_path, "time,node,v\n0,a,1\n1,a,2\n0,a,3\n1,a,4\n"))
    refused(read_series, write(tmp_path, "time,s,a\n0,x,1\n0,y,2\n0,x,3\n"), series="s")
    refused(read_series, write(tmp_path, "time,s,a\n0,x,1\n1,x,2\n"), series="q")
    refused(read_series, write(tmp_path, "time,s,a\n0,1,1\n1,1,2\n"), series="s", covariates=["s"])


def test_a_column_that_only_tells_series_apart_is_no_node(tmp_path, refused):
    text = "time,trial,a,b\n0,1,5,1\n1,1,6,2\n2,1,4,5\n0,2,5,3\n1,2,3,1\n2,2,9,0\n"
    refused(read_series, write(tmp_path, text))
    assert read_series(write(tmp_path, text), series="trial").series_names == ("1", "2")
    assert read_series(write(tmp_path, text), covariates=["trial"]).nodes == ("a", "b")


def test_each_series_has_its_own_grid(tmp_path, refused):
    text = "time,s,a,h\n0,x,1,5\n1,x,2,6\n3,x,3,7\n10,y,1,1\n12,y,4,2\n0,z,1,3\n1,z,2,3\n1.5,z,3,3\n"
    series = read_series(write(tmp_path, text), series="s", covariates=["h"])
    assert series.lengths == (4, 3, 3)
    assert series.times.tolist() == [0, 1, 2, 3, 10, 11, 12, 0, 1, 1.5]
    assert np.array_equal(np.isnan(series.values[:, 0, 0]), [0, 0, 1, 0, 0, 1, 0, 0, 0, 0])
    assert series.covariates[:, 0].tolist() == [5, 6, 6, 7, 1, 1, 2, 3, 3, 3]
    assert series.notes[0].startswith(
        "2 steps without a row were added as missing values, in 2 of 3 series, one every 1"
    )
    assert series.notes[1] == "times are not evenly spaced in 1 of 3 series; each row counts as one step"
    refused(read_series, write(tmp_path, "time,s,a\n0,x,1\n1,x,2\n2,x,3\n0,y,1\n1,y,2\n991,y,3\n"), series="s")


def test_the_column_of_series_is_not_taken_for_the_times(tmp_path, refused):
    text = "trial,hour,a\n1,0,5\n2,0,6\n3,0,4\n"
    refused(read_series, write(tmp_path, text), series="trial")
    refused(read_series, write(tmp_path, "trial\n1\n2\n"), series="trial")


def test_times_as_numbers():
    months = np.arange("1970-01", "1973-05", dtype="datetime64[M]")
    for times, first in ((months, 31 * 86400), (np.arange(40) * np.timedelta64(1, "m"), 60), (np.arange(40) / 2, 0.5)):
        made = Windows(1).prepare(replace(make([40]).parts[0], times=times))
        assert made.split.train.times[0] == first


def test_variables_and_dates(tmp_path):
    text = "time,s,a:u,a:v\n2020-01-01,x,1,2\n2020-01-02,x,3,\n2020-01-01,y,5,6\n2020-01-02,y,7,8\n"
    series = read_series(write(tmp_path, text), series="s", sep=":")
    assert series.channels == ("u", "v")
    assert series.parts[1].times.astype("datetime64[D]").astype(str).tolist() == ["2020-01-01", "2020-01-02"]
    assert np.array_equal(series.parts[0].values[:, 0], [[1, 2], [3, np.nan]], equal_nan=True)


# ---------------------------------------------------------------- windows and splits


@pytest.mark.parametrize("lengths", [[9], [9, 4, 7], [6, 9, 5, 12, 7, 8, 4, 30]])
@pytest.mark.parametrize(("window", "horizon"), [(1, 1), (3, 2)])
def test_windows_never_cross_series(lengths, window, horizon):
    """The values of each pair are looked up, row by row, in the series that the pair says it is from."""
    series = make(lengths, covariates=True)
    made = Windows(window, horizon, fractions=(0.5, 0.2)).prepare(series)
    seen = []
    for part in vars(made.split).values():
        lags = part.inputs[:, :, : window * made.num_features].reshape(len(part), 2, window, made.num_features)
        values = lags[..., :1].permute(0, 2, 1, 3)
        inputs, targets = made.scaling.to_units(values.double()), made.scaling.to_units(part.targets.double())
        for pair in range(len(part)):
            own = made.used.parts[int(part.series[pair])]
            row = own.times.tolist().index(part.times[pair])
            assert np.allclose(targets[pair], own.values[row], rtol=1e-4, atol=1e-4)
            window_rows = own.values[row - horizon - window + 1 : row - horizon + 1]
            assert len(window_rows) == window
            assert np.allclose(inputs[pair], window_rows, rtol=1e-4, atol=1e-4)
            seen.append((int(part.series[pair]), row))
    used = [length for length in lengths if length >= window + horizon]
    assert made.used.lengths == tuple(used)
    expected = [(number, row) for number, n in enumerate(used) for row in range(window + horizon - 1, n)]
    assert sorted(seen) == expected  # every pair once


def test_filling_does_not_reach_into_another_series():
    series = make([8, 8])
    values = series.values.copy()
    values[8:11, 0] = np.nan
    made = Windows(2).prepare(replace(series, values=values))
    first = made.split.train[made.split.train.series == 1].inputs[0]
    assert first[0, 0] == 0  # nothing was seen before: the mean


@pytest.mark.parametrize("num_series", range(FEWEST_SERIES, 40))
@pytest.mark.parametrize("fractions", [(0.7, 0.1), (0.8, 0.1), (0.05, 0.9), (0.9, 0.05), (0.02, 0.03)])
def test_whole_series_go_to_one_part_each(num_series, fractions):
    of_pair = np.repeat(np.arange(num_series), 1 + np.arange(num_series) % 4)
    for generator in (None, torch.Generator().manual_seed(num_series)):
        part, (note,) = assign_parts(of_pair, fractions, generator)
        members = [set(of_pair[part == one].tolist()) for one in range(3)]
        assert sum(len(one) for one in members) == len(set.union(*members)) == num_series
        assert min(len(one) for one in members) >= 1
        train, validation, test = (len(one) for one in members)
        said = f"split by whole series: {train} for training, {validation} for validation, {test} for the test"
        assert note == said
        if generator is None:
            assert sorted(part.tolist()) == part.tolist()
    wanted = num_series * fractions[0]
    assert train == pytest.approx(wanted, abs=2)


def test_a_generator_takes_series_at_random():
    of_pair = np.repeat(np.arange(20), 3)
    first, again, other = (assign_parts(of_pair, (0.7, 0.1), torch.Generator().manual_seed(s))[0] for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    series = make([9] * 20)
    split = Windows(3).prepare(series, generator=torch.Generator().manual_seed(1)).split
    assert set(split.train.series.tolist()) == set(np.flatnonzero(first[::3] == 0).tolist())


def test_few_series_are_each_cut_in_time_order():
    series = make([13, 23, 8])
    made = Windows(3, fractions=(0.6, 0.2)).prepare(series)
    assert made.notes == ("split in time order within each of 3 series",)
    split = made.split
    assert [len(part) for part in vars(split).values()] == [round(0.6 * 35), round(0.2 * 35), 35 - 21 - 7]
    for number in range(3):
        times = [part.times[part.series == number] for part in vars(split).values()]
        assert all(len(one) for one in times)
        assert times[0].max() < times[1].min() <= times[1].max() < times[2].min()


@pytest.mark.parametrize("lengths", [[13, 23, 8], [9, 12, 9, 10, 11, 14]])
def test_scaling_sees_the_training_part_alone(lengths):
    series = make(lengths, covariates=True)
    made = Windows(3).prepare(series)
    rows = np.concatenate([part.values[:end] for part, end in zip(series.parts, made.train_ends, strict=True)])
    assert np.allclose(made.scaling.mean, rows.mean(axis=0), rtol=1e-12)
    changed = series.values.copy()
    for start, end, length in zip(series.starts, made.train_ends, lengths, strict=True):
        changed[start + end : start + length] += 100
    after = Windows(3).prepare(replace(series, values=changed))
    assert after.scaling.to_dict() == made.scaling.to_dict()
    assert torch.equal(after.split.train.inputs, made.split.train.inputs)
    assert torch.equal(after.split.train.targets, made.split.train.targets)
    assert not torch.equal(after.split.test.targets, made.split.test.targets)


def test_series_that_are_too_short_are_left_out_and_said(refused):
    series = make([9, 3, 9, 2, 9])
    values = series.values.copy()
    values[14:21] = np.nan  # all targets of the third
    made = Windows(3, fractions=(0.6, 0.2)).prepare(replace(series, values=values, notes=("read",)))
    assert made.notes[0] == (
        "3 of 5 series were left out: 2 shorter than the 4 rows of a window of 3 and a horizon of 1, "
        "1 without a known target"
    )
    assert made.series_names == ("s0", "s4")
    assert made.used.notes == ("read",)
    assert made.split.num_series == 2
    alone = Windows(3, fractions=(0.6, 0.2)).prepare([series.parts[0], series.parts[4]])
    assert torch.equal(
        alone.split.train.inputs, Windows(3, fractions=(0.6, 0.2)).prepare(series.selected([0, 4])).split.train.inputs
    )
    refused(Windows(20).prepare, series)
    refused(Windows(3).prepare, replace(series, values=np.full_like(values, np.nan), piece=True).selected([0]))


def test_one_series_says_nothing_and_has_no_numbers():
    made = Windows(3).prepare(make([30]).parts[0])
    assert (made.notes, made.series_names, made.split.train.series, made.split.num_series) == ((), (), None, 1)
    assert made.split.train.times[0] == 30


def test_new_data_carries_names_and_times(refused):
    windows = Windows(3, 2)
    scaling = windows.prepare(make([20] * 6)).scaling
    new = windows.apply(make([4, 2, 3], seed=1, missing=0.1), scaling)
    assert new.series.tolist() == ["s0", "s0", "s2"]
    assert new.times.tolist() == new.pairs.times.tolist() == [40, 50, 40]
    assert new.pairs.series.tolist() == [0, 0, 1]
    assert new.notes == ("1 of 3 series were left out: 1 shorter than the 3 rows of a window of 3",)
    refused(windows.apply, make([1, 2]), scaling)


# ---------------------------------------------------------------- the object itself


def test_parts_and_joined_are_inverse():
    series = make([4, 6, 5], covariates=True)
    again = Series.joined(series.parts, series.series_names)
    same(again, series)
    assert np.array_equal(again.covariates, series.covariates)
    assert series.series_of_row.tolist() == [0] * 4 + [1] * 6 + [2] * 5
    assert Series.joined([series, series.parts[0]]).series_names == ("1", "2", "3", "4")
    timeless = replace(series, times=None)
    assert timeless.row_times.tolist() == [*range(4), *range(6), *range(5)]


def test_bad_series(unchecked, refused):
    series = make([4, 6])
    refused(replace, series, lengths=(4, 5))
    refused(replace, series, series_names=("x",))
    refused(replace, series, series_names=("x", "x"))
    refused(
        Series.joined,
        [series.parts[0], replace(series.parts[0], times=np.arange("2020-01", "2020-05", dtype="datetime64[M]"))],
    )
    refused(Series.joined, [])
    refused(replace, series, times=np.array(list("abcdefghij")))

import zipfile

import numpy as np
import pandas as pd
import pytest
import torch

from tacit.data import (
    Pairs,
    covering_batches,
    epoch_batches,
    holds_pairs,
    open_table,
    pairs_from_arrays,
    read_named_pairs,
    read_pairs_table,
)

X, Y = np.arange(24.0).reshape(4, 3, 2), np.arange(12.0).reshape(4, 3)


def test_pairs(tmp_path):
    np.savez(tmp_path / "p.npz", x=X, y=Y, nodes=np.array(["a", "b", "c"]))
    read = read_named_pairs(tmp_path / "p.npz")
    assert read.nodes == ("a", "b", "c")
    assert torch.equal(read.pairs.inputs, torch.from_numpy(X).float())
    assert torch.equal(read.pairs.targets, torch.from_numpy(Y).float()[:, :, None])
    assert read.pairs.observed is None


def test_flat_inputs_whole_numbers_and_missing_targets(tmp_path):
    missing = Y.copy()
    missing[2, 1] = np.nan
    np.savez_compressed(tmp_path / "p.npz", x=X[:, :, 0].astype(int), y=missing)
    pairs = read_named_pairs(tmp_path / "p.npz").pairs
    assert pairs.inputs.shape == (4, 3, 1)
    assert (1 - pairs.observed).nonzero().tolist() == [[2, 1, 0]]
    assert read_named_pairs(tmp_path / "p.npz").nodes == ("0", "1", "2")


def with_cell(array, cell):
    changed = array.copy()
    changed.flat[5] = cell
    return changed


REFUSALS = [
    {"x": X},
    {"x": with_cell(X, np.inf), "y": Y},
    {"x": with_cell(X, 1e300), "y": Y},
    {"x": X, "y": with_cell(Y, -np.inf)},
    {"x": np.array([["a"]]), "y": Y},
    {"x": X, "y": Y[:, 0]},
    {"x": X, "y": Y[:3]},
    {"x": X[:0], "y": Y[:0]},
    {"x": X, "y": Y, "nodes": ["a", "b"]},
    {"x": X, "y": Y, "nodes": ["a", "a", "b"]},
]


@pytest.mark.parametrize("arrays", REFUSALS)
def test_bad_arrays(arrays, tmp_path, unchecked, refused):
    np.savez(tmp_path / "p.npz", **arrays)
    line = refused(read_named_pairs, tmp_path / "p.npz")
    if "y" in arrays:  # the same in memory
        assert line.endswith(f"p.npz: {refused(pairs_from_arrays, **arrays)}")


def test_bad_files(tmp_path, refused):
    np.savez(tmp_path / "objects.npz", x=np.array([{"a": 1}], dtype=object), y=Y)
    np.save(tmp_path / "one.npy", X)
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    (tmp_path / "text.npz").write_text("time,a\n")
    (tmp_path / "empty.npz").write_text("")
    np.savez(tmp_path / "broken.npz", x=X, y=Y)
    stored = bytearray((tmp_path / "broken.npz").read_bytes())
    stored[300] ^= 255  # in the numbers of x
    (tmp_path / "broken.npz").write_bytes(stored)
    for name in ("none.npz", *sorted(path.name for path in tmp_path.iterdir())):
        assert name in refused(read_named_pairs, tmp_path / name)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000, 1000)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, 3)}",
        "{'descr': '<U1000000', 'fortran_order': False, 'shape': (3,)}",
        "{" * 50,
        "",
    ],
)
def test_headers_that_lie(tmp_path, header, refused):
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(96)
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("x.npy", data)
    refused(read_named_pairs, tmp_path / "p.npz")


def test_members_that_are_no_arrays_are_passed_over(tmp_path, refused):
    np.savez(tmp_path / "p.npz", y=Y)
    with zipfile.ZipFile(tmp_path / "p.npz", "a") as archive:
        archive.writestr("x", b"not an array")
    refused(read_named_pairs, tmp_path / "p.npz")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_arrays_in_memory_give_what_a_file_gives(dtype, flat, missing, tmp_path):
    rng = np.random.default_rng(0)
    x = (10 * rng.normal(size=(6, 3) if flat else (6, 3, 2))).astype(dtype)
    y = (10 * rng.normal(size=(6, 3))).astype(dtype)
    if missing and dtype != np.int64:
        y[2, 1] = np.nan
    np.savez(tmp_path / "p.npz", x=x, y=y, nodes=np.array(["a", "b", "c"]))
    before = x.copy(), y.copy()
    read, made = read_named_pairs(tmp_path / "p.npz"), pairs_from_arrays(x, y, nodes=["a", "b", "c"])
    assert read.nodes == made.nodes
    for name in ("inputs", "targets", "observed"):
        one, other = getattr(read.pairs, name), getattr(made.pairs, name)
        assert (one is None and other is None) or torch.equal(one, other)
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1], equal_nan=True)
    made.pairs.inputs.zero_()  # they are the fit's own
    assert np.array_equal(x, before[0])


def test_no_targets_yet(tmp_path):
    np.savez(tmp_path / "p.npz", x=X)
    read, made = read_named_pairs(tmp_path / "p.npz", out_channels=2), pairs_from_arrays(X, None, out_channels=2)
    assert torch.equal(read.pairs.observed, made.pairs.observed)
    assert made.pairs.targets.shape == (4, 3, 2)
    assert made.pairs.observed.sum() == 0


def test_bad_calls_in_memory(unchecked, refused):
    refused(pairs_from_arrays, X, None)
    refused(pairs_from_arrays, X.tolist(), Y)


# ---------------------------------------------------------------- pairs in tables give what the same numbers in arrays


RNG = np.random.default_rng(0)
X_PAIR_TABLES, Y_PAIR_TABLES = RNG.normal(size=(6, 3, 2)).round(3), RNG.normal(size=(6, 3)).round(3)
X_PAIR_TABLES[2, 1, 0] = Y_PAIR_TABLES[3, 2] = np.nan
NODES = ("a", "b", "c")


def columns_of(side, values, nodes=NODES, names=("u", "v")):
    if values.ndim == 2:
        return {f"{side}:{node}": values[:, place] for place, node in enumerate(nodes)}
    places = [(node, name) for node in range(len(nodes)) for name in range(len(names))]
    return {f"{side}:{nodes[node]}:{names[name]}": values[:, node, name] for node, name in places}


TABLE = pd.DataFrame({**columns_of("x", X_PAIR_TABLES), **columns_of("y", Y_PAIR_TABLES)})


def write(folder, frame, name="pairs.csv", **options):
    frame.to_csv(folder / name, index=False, **options)
    return open_table(folder / name)


def assert_same(made, other):
    assert made.nodes == other.nodes
    for name in ("inputs", "targets", "observed"):
        one, two = getattr(made.pairs, name), getattr(other.pairs, name)
        assert (one is None and two is None) or torch.equal(one, two)
    assert (made.missing is None) == (other.missing is None)
    assert made.missing is None or np.array_equal(made.missing, other.missing)


def test_one_file(tmp_path):
    table = write(tmp_path, TABLE)
    assert holds_pairs(table)
    expected = pairs_from_arrays(X_PAIR_TABLES, Y_PAIR_TABLES, nodes=NODES)
    assert_same(read_pairs_table(table), expected)
    assert expected.missing.sum() == 1
    mixed = write(tmp_path, TABLE[[*reversed(TABLE.columns)]])  # nodes come in the order of x
    turned = pairs_from_arrays(X_PAIR_TABLES[:, ::-1, ::-1].copy(), Y_PAIR_TABLES[:, ::-1].copy(), nodes=NODES[::-1])
    assert_same(read_pairs_table(mixed), turned)
    TABLE.to_csv(tmp_path / "indexed.csv")
    indexed = read_pairs_table(open_table(tmp_path / "indexed.csv"))
    assert_same(indexed, expected)
    assert indexed.notes == ("left out: the column without a name (index of rows)",)


def test_without_y(tmp_path):
    made = read_pairs_table(write(tmp_path, TABLE.filter(like="x:")), out_channels=2)
    assert_same(made, pairs_from_arrays(X_PAIR_TABLES, None, nodes=NODES, out_channels=2))


def test_two_files(tmp_path):
    first = pd.DataFrame(X_PAIR_TABLES[:, :, 0], columns=NODES)
    second = pd.DataFrame(Y_PAIR_TABLES, columns=NODES)
    x = write(tmp_path, first.assign(time=range(6)), "x.csv")
    y = write(tmp_path, second[["c", "a", "b"]].assign(time=range(6)), "y.csv")
    made = read_pairs_table(x, y)
    assert_same(made, pairs_from_arrays(X_PAIR_TABLES[:, :, 0].copy(), Y_PAIR_TABLES, nodes=NODES))
    assert made.notes == ("left out: 'time' (index of rows)",)
    assert read_pairs_table(x, plain=True, out_channels=1).nodes == NODES
    channels = pd.DataFrame({name[2:]: cells for name, cells in columns_of("x", X_PAIR_TABLES).items()})
    two = read_pairs_table(write(tmp_path, channels, "x2.csv"), y, sep=":")
    assert_same(two, pairs_from_arrays(X_PAIR_TABLES, Y_PAIR_TABLES, nodes=NODES))


@pytest.mark.parametrize(
    ("options", "nodes"),
    [({"drop": ["b"]}, ("a", "c")), ({"columns": ["a", "b"]}, ("a", "b")), ({"drop": ["?:c*"]}, ("a", "b"))],
)
def test_some_nodes(options, nodes, tmp_path):
    assert read_pairs_table(write(tmp_path, TABLE), **options).nodes == nodes


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        (TABLE.drop(columns="y:b"), {}),
        (TABLE.drop(columns=["x:b:u", "x:b:v"]), {}),
        (TABLE.drop(columns="x:b:v"), {}),
        (TABLE.assign(id=1), {}),
        (TABLE.filter(like="x:"), {}),
        (TABLE.filter(like="y:"), {}),
        (TABLE, {"drop": ["d"]}),
        (TABLE, {"columns": ["a"], "drop": ["a"]}),
        (TABLE.assign(**{"x:a:u": "high"}), {}),
    ],
)
def test_wrong_tables(frame, options, tmp_path, refused):
    refused(read_pairs_table, write(tmp_path, frame), **options)


def test_rows_that_do_not_belong_together(tmp_path, refused):
    x = write(tmp_path, pd.DataFrame(X_PAIR_TABLES[:, :, 0], columns=NODES).assign(time=range(6)), "x.csv")
    y = write(tmp_path, pd.DataFrame(Y_PAIR_TABLES, columns=NODES).assign(time=[0, 1, 3, 2, 4, 5]), "y.csv")
    refused(read_pairs_table, x, y)
    refused(read_pairs_table, write(tmp_path, TABLE), y)
    short = write(tmp_path, pd.DataFrame(Y_PAIR_TABLES[:4], columns=NODES), "short.csv")
    refused(read_pairs_table, x, short)


def test_a_table_of_a_series_holds_no_pairs(tmp_path):
    assert not holds_pairs(write(tmp_path, pd.DataFrame({"time": [0], "x:a": [1], "y:b": [1]})))
    assert not holds_pairs(write(tmp_path, pd.DataFrame({"x:a": [0], "x:b": [1]})))


# ---------------------------------------------------------------- pairs


def test_split_keeps_every_pair_once():
    pairs = Pairs(torch.arange(25.0).view(25, 1, 1), torch.zeros(25, 1, 1))
    split = pairs.split()
    assert [len(split.train), len(split.validation), len(split.test)] == [20, 2, 3]
    together = torch.cat([split.train.inputs, split.validation.inputs, split.test.inputs])
    assert torch.equal(together, pairs.inputs)


def test_batches_of_an_epoch_hold_no_pair_twice(rng):
    batches = epoch_batches(25, 8, rng)
    assert batches.shape == (3, 8)
    assert len(batches.unique()) == 24
    assert not torch.equal(batches, epoch_batches(25, 8, rng))


def test_covering_batches_count_every_pair_once():
    seen = [index[:new] for index, new in covering_batches(25, 8)]
    assert torch.equal(torch.cat(seen), torch.arange(25))
    assert all(len(index) == 8 for index, _ in covering_batches(25, 8))


def test_errors(unchecked, refused):
    good = torch.zeros(4, 3, 2)
    bad = good.clone()
    bad[2, 1, 0] = torch.nan
    refused(Pairs, good, bad)
    refused(Pairs, good + torch.inf, good)
    refused(Pairs, good, good[:3])
    refused(Pairs, good[0], good)
    refused(Pairs, good.long(), good)
    refused(Pairs, good, good.numpy())
    refused(Pairs, good.bfloat16(), good)
    refused(Pairs, good, good.double())
    refused(Pairs(good, good).split)
    refused(Pairs, good[:0], good[:0])


def test_missing_targets_travel_with_their_pairs(rng):
    targets = torch.randn(20, 2, 1, generator=rng)
    targets[3, 1] = targets[17, 0] = torch.nan
    pairs = Pairs.with_missing(torch.zeros(20, 2, 1), targets)
    assert pairs.observed.sum() == 38
    split = pairs.split().train.to("cpu", torch.float64)
    assert split.observed.dtype == torch.float64
    assert split.observed[3].flatten().tolist() == [1.0, 0.0]
    assert torch.equal(pairs.with_mask().observed, pairs.observed)
    assert Pairs(pairs.inputs, pairs.targets).with_mask().observed.min() == 1


def test_bad_masks(unchecked, refused):
    inputs, targets = torch.zeros(4, 2, 1), torch.zeros(4, 2, 1)
    refused(Pairs, inputs, torch.full((4, 2, 1), torch.nan))
    refused(Pairs, inputs, targets, torch.ones(4, 2, 1).bool())
    refused(Pairs, inputs, targets, torch.ones(4, 2))
    refused(Pairs, inputs, targets, targets + 0.5)
    refused(Pairs.with_missing, [[1.0]], [[1.0]])
    refused(Pairs, inputs, targets, series=torch.arange(3))
    refused(Pairs, inputs, targets, times=torch.zeros(4))
    refused(Pairs, inputs, targets, times=[1.0])
    refused(Pairs, inputs, torch.full((4, 2, 1), torch.inf), torch.ones(4, 2, 1))


def test_a_generator_shuffles_the_pairs_before_they_are_split():
    pairs = Pairs(torch.arange(100.0).view(100, 1, 1), torch.zeros(100, 1, 1))
    one, again, other = (pairs.split(generator=torch.Generator().manual_seed(seed)) for seed in (3, 3, 4))
    parts = [part.inputs.flatten() for part in vars(one).values()]
    assert [len(part) for part in parts] == [80, 10, 10]
    assert torch.equal(torch.cat(parts).sort().values, pairs.inputs.flatten())  # every pair once
    assert all(torch.equal(part, part.sort().values) for part in parts)  # in their order
    assert not torch.equal(parts[2], torch.arange(90.0, 100))
    assert torch.equal(one.test.inputs, again.test.inputs)
    assert not torch.equal(one.test.inputs, other.test.inputs)


def test_series_and_times_travel_with_their_pairs():
    series, times = torch.arange(20) // 5, torch.arange(20).double() / 3
    pairs = Pairs(torch.zeros(20, 2, 1), torch.zeros(20, 2, 1), series=series, times=times)
    rows = torch.tensor([3, 19, 7])
    for found, place in (
        (pairs[rows], rows),
        (pairs[4:9], slice(4, 9)),
        (pairs.with_mask(), slice(None)),
        (pairs.to("cpu", torch.float64), slice(None)),
        (pairs.split().validation, slice(16, 18)),
        (Pairs.with_missing(pairs.inputs, pairs.targets, series, times), slice(None)),
    ):
        assert torch.equal(found.series, series[place])
        assert torch.equal(found.times, times[place])
        assert found.times.dtype == torch.float64
    assert pairs.with_mask().observed.min() == 1
    assert pairs.split().num_series == 4
    assert pairs.split().to("cpu").num_series == 4
    assert Pairs(pairs.inputs, pairs.targets).split().num_series == 1

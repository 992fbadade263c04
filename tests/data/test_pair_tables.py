"""Pairs in tables give what the same numbers in arrays give."""

import numpy as np
import pandas as pd
import pytest
import torch

from tacit.data import holds_pairs, open_table, pairs_from_arrays, read_pairs_table
from tacit.errors import InputError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3, 2)).round(3), RNG.normal(size=(6, 3)).round(3)
X[2, 1, 0] = Y[3, 2] = np.nan
NODES = ("a", "b", "c")


def columns_of(side, values, nodes=NODES, names=("u", "v")):
    if values.ndim == 2:
        return {f"{side}:{node}": values[:, place] for place, node in enumerate(nodes)}
    places = [(node, name) for node in range(len(nodes)) for name in range(len(names))]
    return {f"{side}:{nodes[node]}:{names[name]}": values[:, node, name] for node, name in places}


TABLE = pd.DataFrame({**columns_of("x", X), **columns_of("y", Y)})


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
    expected = pairs_from_arrays(X, Y, nodes=NODES)
    assert_same(read_pairs_table(table), expected)
    assert expected.missing.sum() == 1
    mixed = write(tmp_path, TABLE[[*reversed(TABLE.columns)]])  # nodes come in the order of x
    turned = pairs_from_arrays(X[:, ::-1, ::-1].copy(), Y[:, ::-1].copy(), nodes=NODES[::-1])
    assert_same(read_pairs_table(mixed), turned)
    TABLE.to_csv(tmp_path / "indexed.csv")
    indexed = read_pairs_table(open_table(tmp_path / "indexed.csv"))
    assert_same(indexed, expected)
    assert indexed.notes == ("left out: the column without a name (index of rows)",)


def test_without_y(tmp_path):
    made = read_pairs_table(write(tmp_path, TABLE.filter(like="x:")), out_channels=2)
    assert_same(made, pairs_from_arrays(X, None, nodes=NODES, out_channels=2))


def test_two_files(tmp_path):
    first = pd.DataFrame(X[:, :, 0], columns=NODES)
    second = pd.DataFrame(Y, columns=NODES)
    x = write(tmp_path, first.assign(time=range(6)), "x.csv")
    y = write(tmp_path, second[["c", "a", "b"]].assign(time=range(6)), "y.csv")
    made = read_pairs_table(x, y)
    assert_same(made, pairs_from_arrays(X[:, :, 0].copy(), Y, nodes=NODES))
    assert made.notes == ("left out: 'time' (index of rows)",)
    assert read_pairs_table(x, plain=True, out_channels=1).nodes == NODES
    channels = pd.DataFrame({name[2:]: cells for name, cells in columns_of("x", X).items()})
    two = read_pairs_table(write(tmp_path, channels, "x2.csv"), y, sep=":")
    assert_same(two, pairs_from_arrays(X, Y, nodes=NODES))


@pytest.mark.parametrize(
    ("options", "nodes"),
    [({"drop": ["b"]}, ("a", "c")), ({"columns": ["a", "b"]}, ("a", "b")), ({"drop": ["?:c*"]}, ("a", "b"))],
)
def test_some_nodes(options, nodes, tmp_path):
    assert read_pairs_table(write(tmp_path, TABLE), **options).nodes == nodes


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (TABLE.drop(columns="y:b"), {}, "x and y must have the same nodes, got 'b' in x but not in y; add it"),
        (TABLE.drop(columns=["x:b:u", "x:b:v"]), {}, "x and y must have the same nodes, got 'b' in y but not in x"),
        (TABLE.drop(columns="x:b:v"), {}, "node 'b' has no column of x for channel 'v'; every node must have every"),
        (TABLE.assign(id=1), {}, "columns x:NODE and y:NODE only, got 'id'; leave it out with --drop, or use --set"),
        (TABLE.filter(like="x:"), {}, "must have a column y:NODE for each node, got none; add them"),
        (TABLE.filter(like="y:"), {}, "pairs must have columns x:NODE, got y:a, y:b, y:c; rename them"),
        (TABLE, {"drop": ["d"]}, "drop names the column 'd', which does not exist"),
        (TABLE, {"columns": ["a"], "drop": ["a"]}, "drop names 'a', which columns names too; keep one of them"),
        (TABLE.assign(**{"x:a:u": "high"}), {}, "column 'x:a:u' must have numbers, got 'high' in row 1"),
    ],
)
def test_wrong_tables(frame, options, message, tmp_path):
    with pytest.raises(InputError, match=rf"pairs.csv: .*{message}") as refusal:
        read_pairs_table(write(tmp_path, frame), **options)
    assert "\n" not in str(refusal.value)


def test_rows_that_do_not_belong_together(tmp_path):
    x = write(tmp_path, pd.DataFrame(X[:, :, 0], columns=NODES).assign(time=range(6)), "x.csv")
    y = write(tmp_path, pd.DataFrame(Y, columns=NODES).assign(time=[0, 1, 3, 2, 4, 5]), "y.csv")
    with pytest.raises(
        InputError, match=r"y.csv: rows of x and y must belong .* 'time' in row 3 is '2' in x and '3' in y"
    ):
        read_pairs_table(x, y)
    with pytest.raises(
        InputError, match=r"x:NODE and y:NODE must be in one file, got a file of y too; leave y_file out"
    ):
        read_pairs_table(write(tmp_path, TABLE), y)
    short = write(tmp_path, pd.DataFrame(Y[:4], columns=NODES), "short.csv")
    with pytest.raises(InputError, match=r"short.csv: x and y must have the same number of rows, got 6 and 4"):
        read_pairs_table(x, short)


def test_a_table_of_a_series_holds_no_pairs(tmp_path):
    assert not holds_pairs(write(tmp_path, pd.DataFrame({"time": [0], "x:a": [1], "y:b": [1]})))
    assert not holds_pairs(write(tmp_path, pd.DataFrame({"x:a": [0], "x:b": [1]})))

"""One table of edges in every form: files, data frames, networkx, PyG, stored text; and what is listed."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tacit.edges import EdgeIndex, EdgeTable, edges_text, read_edges

NODES = ["a", "b", "c"]
PROBS = np.array([[0.0, 0.75, 0.125], [0.0, 0.25, 0.5], [0.75, 1.0, 0.0]])
EDGES = {  # (source, target), read off by column and row
    ("a", "c"): 0.75,
    ("b", "a"): 0.75,
    ("b", "b"): 0.25,
    ("b", "c"): 1.0,
    ("c", "a"): 0.125,
    ("c", "b"): 0.5,
}
LOW = np.arange(9.0).reshape(3, 3) / 16  # a number of its own for each edge, at [target, source]
FLAGS = [["yes", "", "yes"], ["yes", "yes", "yes"], ["yes", "yes", ""]]
EXISTS = np.array([[0.0, 0.2, 0.9], [np.nan, 0.6, 0.6], [0.9, 0.1, 0.0]])
SYMMETRIC = np.array([[0.0, 0.5, 0.0], [0.5, 0.25, 0.75], [0.0, 0.75, 0.0]])


def table(**columns):
    return EdgeTable.of_matrices(NODES, **{"probability": PROBS, **columns})


def ends(frame):
    return [*frame[["source", "target"]].itertuples(index=False, name=None)]


def test_an_index_of_some_edges():
    """Sources and targets may have different names; vectors and matrices hold the same numbers."""
    index = EdgeIndex(np.array([2, 0, 1]), np.array([0, 1, 1]), ("x", "y", "z"), ("u", "v"))
    vector = np.array([0.1, 0.2, 0.3])
    assert index.dense(vector, np.nan).shape == (2, 3)
    np.testing.assert_array_equal(index.vector(index.dense(vector)), vector)
    assert [part.tolist() for part in index.ends()] == [["z", "x", "y"], ["u", "v", "v"]]
    assert index.into(1).tolist() == [1, 2]
    assert index.find(np.array([1, 2, 2]), np.array([1, 0, 1])).tolist() == [2, 0, -1]
    assert not index.has_all_pairs
    assert index.moved(vector, index.at([2, 0])).tolist() == [0.3, 0.1]


def test_pairs_without_direction_are_once_in_an_index():
    index = EdgeIndex.all_pairs(NODES, symmetric=True)
    assert index.once.sum() == 6
    rng = np.random.default_rng(0)
    vector = rng.random(9)
    np.testing.assert_array_equal(index.mirrored(vector), index.vector(index.dense(vector).T))
    few = index.at(np.array([1, 3, 5]))  # b -> a, a -> b, c -> b
    assert few.reverse.tolist() == [1, 0, -1]
    assert few.mirrored(np.array([1.0, 2.0, 3.0]), np.nan)[:2].tolist() == [2.0, 1.0]


def test_a_frame_has_every_pair_the_likeliest_first():
    frame = table().frame()
    assert list(frame.columns) == ["source", "target", "probability"]
    rows = list(frame.itertuples(index=False, name=None))
    assert rows[:3] == [("b", "c", 1.0), ("a", "c", 0.75), ("b", "a", 0.75)]  # equal ones by source
    assert {(source, target): p for source, target, p in rows if p > 0} == EDGES
    assert rows[-3:] == [("a", "a", 0.0), ("a", "b", 0.0), ("c", "c", 0.0)]


def test_a_frame_with_more_columns():
    frame = table(low=LOW, identifiable=FLAGS).frame()
    assert list(frame.columns) == ["source", "target", "probability", "low", "identifiable"]
    for source, target, _, low, flag in frame.itertuples(index=False, name=None):
        i, j = NODES.index(target), NODES.index(source)
        assert (low, flag) == ((3 * i + j) / 16, FLAGS[i][j])


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_networkx_has_the_edges_above_the_threshold(threshold):
    graph = table(low=LOW, identifiable=FLAGS).to_networkx(threshold)
    assert graph.is_directed()
    assert list(graph.nodes) == NODES
    found = {(source, target): p for source, target, p in graph.edges(data="probability")}
    assert found == {edge: p for edge, p in EDGES.items() if p > threshold}
    for source, target, data in graph.edges(data=True):
        i, j = NODES.index(target), NODES.index(source)
        assert data == {"probability": PROBS[i, j], "low": (3 * i + j) / 16, "identifiable": FLAGS[i][j]}


def test_networkx_without_directions(refused):
    errors = np.where(SYMMETRIC == 0.5, np.nan, SYMMETRIC / 4)  # both entries of a pair can be missing
    edges = EdgeTable.of_matrices(NODES, symmetric=True, probability=SYMMETRIC, std_error=errors)
    graph = edges.to_networkx()
    assert not graph.is_directed()
    found = {frozenset(edge): graph.edges[edge]["probability"] for edge in graph.edges}
    assert found == {frozenset("ab"): 0.5, frozenset("b"): 0.25, frozenset("bc"): 0.75}
    assert math.isnan(graph.edges["a", "b"]["std_error"])
    assert graph.edges["c", "b"] == {"probability": 0.75, "std_error": 0.1875}
    refused(EdgeTable.of_matrices(NODES, symmetric=True, probability=SYMMETRIC, low=LOW).to_networkx)


def test_what_exists_comes_first():
    edges = replace(table(exists=EXISTS, low=LOW), keep=0.15)
    frame = edges.frame()
    assert list(frame.columns) == ["source", "target", "exists", "probability", "low"]
    assert ends(frame)[:5] == [("a", "c"), ("c", "a"), ("c", "b"), ("b", "b"), ("b", "a")]  # equals by probability
    assert ends(frame)[-1] == ("a", "b")  # nothing is known of it
    assert frame["probability"].isna().tolist() == (frame["exists"] < 0.15).tolist()
    graph = edges.to_networkx(0.5)
    assert set(graph.edges) == {("c", "a"), ("b", "b"), ("c", "b"), ("a", "c")}
    assert list(graph.edges["c", "a"]) == ["exists", "probability", "low"]
    assert edges.to_networkx(0.05).edges["b", "c"]["probability"] == 0


@pytest.mark.filterwarnings("ignore")  # what PyG warns of when it is imported is not ours
def test_pyg_has_the_same_edges():
    pytest.importorskip("torch_geometric")
    data = table(exists=EXISTS, effect=-LOW).to_pyg(0.5)
    assert data.edge_index.T.tolist() == [[0, 2], [1, 1], [2, 0], [2, 1]]
    assert data.edge_exists.tolist() == pytest.approx([0.9, 0.6, 0.9, 0.6])
    assert data.edge_effect.tolist() == [-6 / 16, -4 / 16, -2 / 16, -5 / 16]
    assert data.edge_prob.tolist() == [0.75, 0.25, 0.125, 0.5]
    data.validate(raise_on_error=True)
    for threshold in (0.0, 0.5):
        data = table().to_pyg(threshold)
        assert (data.num_nodes, data.names) == (3, NODES)
        rows = zip(data.edge_index.T.tolist(), data.edge_prob.tolist(), strict=True)
        assert {(NODES[j], NODES[i]): p for (j, i), p in rows} == {e: p for e, p in EDGES.items() if p > threshold}


def test_errors(refused):
    refused(EdgeTable.of_matrices, "ab", probability=PROBS)
    refused(table().to_networkx, 2)
    with pytest.raises(AttributeError, match="effect of the edges was not computed; leave evidence in GraphOptions"):
        table().known("effect")


def test_an_open_pair_is_one_edge_without_an_arrow():
    """Either direction has 0.5: neither is listed alone, and the pair is, once."""
    exists = np.array([[0.0, 0.45, 0.8], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]])
    within = {
        "exists_either": np.array([[0.0, 0.95, 0.8], [0.95, 0.0, 0.0], [0.8, 0.0, 0.0]]),
        "within_step": np.array([[0.0, 0.45, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        "direction": np.array([[0, 4, 1], [4, 0, 0], [1, 0, 0]], dtype=np.uint8),
    }
    probs = np.array([[0.0, np.nan, 0.4], [np.nan, 0.0, 0.0], [0.0, 0.0, 0.0]])
    edges = table(probability=probs, exists=exists, required=np.zeros((3, 3), bool), **within)
    assert ends(edges.frame(edges.listed())) == [("a", "b")]
    assert edges.named(3) == "a - b"
    graph = edges.to_networkx()
    assert all(data["undirected"] for *_, data in graph.edges(data=True))
    assert set(graph.edges) == {("a", "b"), ("b", "a")}
    assert {data["exists"] for *_, data in graph.edges(data=True)} == {0.95}
    assert all(math.isnan(data["probability"]) for *_, data in graph.edges(data=True))  # it was not estimated
    once = edges.each_once()
    assert len(once) == 8
    assert once["within_step"][once["undirected"]].tolist() == [0.95]


def test_copies_are_one_edge():
    group = [["", "b or c", "b or c"], [""] * 3, [""] * 3]
    either = np.where(np.array(group) == "", np.nan, 0.97)
    exists = np.array([[0.0, 0.5, 0.47], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    edges = table(exists=exists, exists_either=either, group=group)
    assert edges.named(1) == "b or c -> a"
    assert ends(edges.frame(edges.listed())) == [("b", "a")]
    assert edges.each_once()["exists"].tolist() == [0.0, 0.97, *[0.0] * 6]
    graph = edges.updated(required=np.zeros(9, dtype=bool)).to_networkx()
    assert list(graph.edges) == [("b", "a")]
    assert (graph.edges["b", "a"]["group"], graph.edges["b", "a"]["exists"]) == ("b or c", 0.97)


@pytest.mark.parametrize("symmetric", [False, True])
def test_files_and_stored_text_are_read_back(symmetric):
    columns = {
        "exists": SYMMETRIC,
        "std_error": SYMMETRIC / 3,
        "varies": [["", "yes", "no"], ["yes", "", ""], ["no", "", ""]],
        "changed": [["", "2024-08-01", ""], ["2024-08-01", "", ""], ["", "", ""]],
        "group": [["", "", "b or c"], ["", "", ""], ["b or c", "", ""]],
    }
    edges = EdgeTable.of_matrices(NODES, symmetric=symmetric, probability=SYMMETRIC, **columns)
    text = edges_text(edges)
    read = read_edges(text, NODES, symmetric=symmetric)
    assert edges_text(read) == text
    assert set(read.columns) == {"probability", *columns}
    stored = EdgeTable.from_dict(json.loads(json.dumps(edges.to_dict())), edges.index)
    for name, values in edges.columns.items():
        np.testing.assert_array_equal(stored[name], values)
        assert stored[name].dtype == values.dtype or values.dtype.kind == "U"


def test_a_table_moves_to_another_index():
    """Candidates become all pairs; other edges do not exist."""
    some = EdgeIndex(np.array([1, 0]), np.array([0, 1]), ("a", "b"), ("a", "b"))
    edges = EdgeTable(some, {"exists": np.array([0.9, 0.2]), "lag": np.array([2.0, 1.0])})
    moved = edges.moved(EdgeIndex.all_pairs("ab"))
    assert moved["exists"].tolist() == [0.0, 0.9, 0.2, 0.0]
    assert np.isnan(moved["lag"]).tolist() == [True, False, False, True]
    assert moved.matrix("exists").tolist() == [[0.0, 0.9], [0.2, 0.0]]

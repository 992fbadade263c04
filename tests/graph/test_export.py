"""The same edges in a table, in networkx and in PyG: source, target, probability."""

import math
import sys

import pytest
import torch

from tacit.errors import InputError
from tacit.graph import edge_table, to_networkx, to_pyg

NODES = ["a", "b", "c"]
PROBS = torch.tensor([[0.0, 0.75, 0.125], [0.0, 0.25, 0.5], [0.75, 1.0, 0.0]], requires_grad=True)
EDGES = {  # (source, target), read off by column and row
    ("a", "c"): 0.75,
    ("b", "a"): 0.75,
    ("b", "b"): 0.25,
    ("b", "c"): 1.0,
    ("c", "a"): 0.125,
    ("c", "b"): 0.5,
}


def test_a_table_has_every_pair_the_likeliest_first():
    table = edge_table(PROBS, NODES)
    assert list(table.columns) == ["source", "target", "probability"]
    rows = list(table.itertuples(index=False, name=None))
    assert rows[:3] == [("b", "c", 1.0), ("a", "c", 0.75), ("b", "a", 0.75)]  # equal ones by source
    assert {(source, target): p for source, target, p in rows if p > 0} == EDGES
    assert len(rows) == 9
    assert rows[-3:] == [("a", "a", 0.0), ("a", "b", 0.0), ("c", "c", 0.0)]


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_networkx_has_the_edges_above_the_threshold(threshold):
    graph = to_networkx(PROBS, NODES, threshold)
    assert graph.is_directed()
    assert list(graph.nodes) == NODES
    found = {(source, target): p for source, target, p in graph.edges(data="probability")}
    assert found == {edge: p for edge, p in EDGES.items() if p > threshold}


def test_networkx_without_directions():
    symmetric = torch.tensor([[0.0, 0.5, 0.0], [0.5, 0.25, 0.75], [0.0, 0.75, 0.0]])
    graph = to_networkx(symmetric, NODES, symmetric=True)
    assert not graph.is_directed()
    found = {frozenset(edge): graph.edges[edge]["probability"] for edge in graph.edges}
    assert found == {frozenset("ab"): 0.5, frozenset("b"): 0.25, frozenset("bc"): 0.75}


LOW = torch.arange(9.0).view(3, 3) / 16  # a number of its own for each edge, at [target, source]
IDENTIFIABLE = torch.tensor([[True, False, True], [True, True, True], [True, True, False]])


def test_a_table_with_more_columns():
    table = edge_table(PROBS, NODES, attributes={"low": LOW.requires_grad_(), "identifiable": IDENTIFIABLE})
    assert list(table.columns) == ["source", "target", "probability", "low", "identifiable"]
    assert table[["source", "target", "probability"]].equals(edge_table(PROBS, NODES))
    assert (table["low"].dtype, table["identifiable"].dtype) == ("float64", "bool")
    for source, target, _, low, identifiable in table.itertuples(index=False, name=None):
        i, j = NODES.index(target), NODES.index(source)
        assert (low, identifiable) == ((3 * i + j) / 16, (i, j) not in [(0, 1), (2, 2)])


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_networkx_with_more_attributes(threshold):
    graph = to_networkx(PROBS, NODES, threshold, attributes={"low": LOW, "identifiable": IDENTIFIABLE})
    plain = to_networkx(PROBS, NODES, threshold)
    assert list(graph.edges(data="probability")) == list(plain.edges(data="probability"))
    assert graph.number_of_edges() > 0
    for source, target, data in graph.edges(data=True):
        i, j = NODES.index(target), NODES.index(source)
        assert list(data) == ["probability", "low", "identifiable"]
        assert data["low"] == (3 * i + j) / 16
        assert data["identifiable"] is ((i, j) != (0, 1))


def test_networkx_without_directions_with_attributes():
    symmetric = torch.tensor([[0.0, 0.5, 0.0], [0.5, 0.25, 0.75], [0.0, 0.75, 0.0]])
    p_values = torch.where(symmetric == 0.5, torch.nan, symmetric / 4)  # both entries of a pair can be missing
    graph = to_networkx(symmetric, NODES, symmetric=True, attributes={"p_value": p_values, "there": symmetric > 0})
    assert math.isnan(graph.edges["a", "b"]["p_value"])
    assert graph.edges["c", "b"] == {"probability": 0.75, "p_value": 0.1875, "there": True}
    with pytest.raises(InputError, match=r"attributes\['low'\] must equal its transpose .*; leave symmetric out"):
        to_networkx(symmetric, NODES, symmetric=True, attributes={"low": LOW})


EXISTS = torch.tensor([[0.0, 0.2, 0.9], [torch.nan, 0.6, 0.6], [0.9, 0.1, 0.0]])


def test_what_exists_comes_first():
    probs = torch.where(EXISTS < 0.15, torch.nan, PROBS.detach())
    table = edge_table(probs, NODES, exists=EXISTS, attributes={"low": LOW})
    assert list(table.columns) == ["source", "target", "exists", "probability", "low"]
    ends = [*table[["source", "target"]].itertuples(index=False, name=None)]
    assert ends[:5] == [("a", "c"), ("c", "a"), ("c", "b"), ("b", "b"), ("b", "a")]  # equals by probability
    assert ends[-1] == ("a", "b")  # nothing is known of it
    assert table["probability"].isna().sum() == 3
    graph = to_networkx(probs, NODES, 0.5, exists=EXISTS, attributes={"low": LOW})
    assert set(graph.edges) == {("c", "a"), ("b", "b"), ("c", "b"), ("a", "c")}
    assert list(graph.edges["c", "a"]) == ["exists", "probability", "low"]
    assert to_networkx(probs, NODES, 0.05, exists=EXISTS).edges["b", "c"]["probability"] == 0
    only = torch.zeros(3, 3, dtype=torch.bool).index_put((torch.tensor(2), torch.tensor(1)), torch.tensor(True))
    assert set(to_networkx(probs, NODES, exists=EXISTS, chosen=only).edges) == {("b", "c")}


@pytest.mark.filterwarnings("ignore")  # what PyG warns of when it is imported is not ours
def test_pyg_has_what_exists():
    pytest.importorskip("torch_geometric")
    data = to_pyg(PROBS, NODES, 0.5, exists=EXISTS, effect=-LOW)
    assert data.edge_index.T.tolist() == [[0, 2], [1, 1], [2, 0], [2, 1]]
    assert data.edge_exists.tolist() == pytest.approx([0.9, 0.6, 0.9, 0.6])
    assert data.edge_effect.tolist() == [-6 / 16, -4 / 16, -2 / 16, -5 / 16]
    assert data.edge_prob.tolist() == [0.75, 0.25, 0.125, 0.5]


def test_attributes_that_do_not_fit(unchecked):
    for call in (edge_table, to_networkx):
        with pytest.raises(
            InputError, match=r"attributes\['low'\] must be a tensor of shape \(3, 3\), .* got \(2, 3\)"
        ):
            call(PROBS, NODES, attributes={"low": LOW[:2]})
        with pytest.raises(InputError, match=r"attributes\['low'\] must be .* got list; use torch.as_tensor\(values\)"):
            call(PROBS, NODES, attributes={"low": [[0.0]]})
        with pytest.raises(
            InputError, match=r"attributes must have names other than source, .* got 'target'; rename it"
        ):
            call(PROBS, NODES, attributes={"target": LOW})


@pytest.mark.filterwarnings("ignore")  # what PyG warns of when it is imported is not ours
@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_pyg_has_the_edges_above_the_threshold(threshold):
    pytest.importorskip("torch_geometric")
    data = to_pyg(PROBS, NODES, threshold)
    assert data.num_nodes == 3
    assert data.names == NODES
    edges = {
        (NODES[j], NODES[i]): p for (j, i), p in zip(data.edge_index.T.tolist(), data.edge_prob.tolist(), strict=True)
    }
    assert edges == {edge: p for edge, p in EDGES.items() if p > threshold}
    assert not data.edge_prob.requires_grad
    data.validate(raise_on_error=True)


def test_pyg_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(
        InputError, match=r"to_pyg requires torch_geometric, which is not installed; pip install 'tacit\[p"
    ):
        to_pyg(PROBS, NODES)


def test_errors(unchecked):
    with pytest.raises(
        InputError, match=r"edge_probs must be a tensor of shape \(2, 2\), .* got \(3, 3\); pass graph.ed"
    ):
        edge_table(PROBS, ["a", "b"])
    with pytest.raises(InputError, match=r"edge_probs must be a tensor of shape .* got list"):
        edge_table([[0.0]], ["a"])
    with pytest.raises(InputError, match=r"threshold must be a probability from 0 to 1, got 2; pass for example 0.5"):
        to_networkx(PROBS, NODES, 2)
    with pytest.raises(InputError, match=r"edge_probs must equal its transpose .*; leave symmetric out"):
        to_networkx(PROBS, NODES, symmetric=True)


def test_how_often_an_edge_without_an_arrow_acts_is_not_a_number():
    probs = torch.tensor([[0.0, torch.nan, 0.4], [torch.nan, 0.0, 0.0], [0.0, 0.0, 0.0]])
    exists = torch.tensor([[0.0, 0.9, 0.8], [0.9, 0.0, 0.0], [0.0, 0.0, 0.0]])
    undirected = probs.isnan()
    graph = to_networkx(probs, list("abc"), 0.5, exists=exists, attributes={"undirected": undirected})
    assert {ends: data["probability"] == data["probability"] for ends, data in _edges(graph)} == {
        ("b", "a"): False,
        ("a", "b"): False,
        ("c", "a"): True,
    }
    data = to_pyg(probs, list("abc"), 0.5, exists=exists, undirected=undirected)
    assert torch.equal(data.edge_prob.isnan(), data.edge_undirected.bool())


def _edges(graph):
    return [((source, target), data) for source, target, data in graph.edges(data=True)]

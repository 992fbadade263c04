"""The same edges in a table, in networkx and in PyG: source, target, probability."""

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
        InputError, match=r"to_pyg needs torch_geometric, which is not installed; pip install 'tacit\[p"
    ):
        to_pyg(PROBS, NODES)


def test_errors(unchecked):
    with pytest.raises(
        InputError, match=r"edge_probs needs a tensor of shape \(2, 2\), .* got \(3, 3\); pass graph.ed"
    ):
        edge_table(PROBS, ["a", "b"])
    with pytest.raises(InputError, match=r"edge_probs needs a tensor of shape .* got list"):
        edge_table([[0.0]], ["a"])
    with pytest.raises(InputError, match=r"threshold needs a probability from 0 to 1, got 2; pass for example 0.5"):
        to_networkx(PROBS, NODES, 2)
    with pytest.raises(InputError, match=r"edge_probs needs to equal its transpose .*; leave symmetric out"):
        to_networkx(PROBS, NODES, symmetric=True)

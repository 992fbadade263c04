"""Rules for edges from a file: what is read, and what is said about a file that is wrong."""

import pytest
import torch

from tacit.graph import EdgeRules, read_edge_rules

NODES = ["north", "south", "east"]


@pytest.fixture
def write(tmp_path):
    def write(text, **options):
        path = tmp_path / "edges.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_edge_rules(path, NODES, **options)

    return write


def same(one, two):
    beliefs = [rules.prior(default=0.5).probs for rules in (one, two)]
    graphs = [rules.build(generator=torch.Generator().manual_seed(0)).edge_probs for rules in (one, two)]
    return torch.equal(*beliefs) and torch.equal(*graphs)


def test_every_kind_is_read(write):
    rules = write(
        "source,target,kind,probability\n"
        "north,south,forbidden,\n"
        "east,north,required,\n"
        "\n"
        "south, north ,prior,0.9\n"
        "south,north,prior,0.9\n"
    )
    expected = EdgeRules(tuple(NODES), {("north", "south")}, {("east", "north")}, priors={("south", "north"): 0.9})
    assert same(rules, expected)
    assert rules.build(generator=torch.Generator()).edge_probs[1, 0] == 0  # row receives: south reads north


def test_candidates_and_columns_in_any_order(write):
    rules = write("\ufeffkind,target,source\ncandidate,south,north\nrequired,south,north\ncandidate,east,south\n")
    edges = {("north", "south"), ("south", "east")}
    assert same(rules, EdgeRules(tuple(NODES), required={("north", "south")}, candidates=edges))
    assert rules.allowed.nonzero().tolist() == [[2, 1]]


def test_either_way_in_a_symmetric_graph_and_self_loops(write):
    text = "source,target,kind,probability\nnorth,south,candidate,\nsouth,north,prior,0.2\neast,east,required,\n"
    rules = write(text, symmetric=True, self_loops=True)
    expected = EdgeRules(tuple(NODES), (), {(2, 2)}, True, True, {(0, 1)}, {(0, 1): 0.2})
    assert same(rules, expected)


def test_a_file_without_rules_allows_every_edge(write):
    rules = write("source,target,kind,probability\n")
    assert torch.equal(rules.allowed, ~torch.eye(3, dtype=torch.bool))
    assert rules.prior() is None


HEAD = "source,target,kind,probability\n"
WRONG = {
    "unknown node": HEAD + "north,south,required,\nnorth,soth,required,\n",
    "unknown source": HEAD + "west,south,required,\n",
    "unknown kind": HEAD + "north,south,forbiden,\n",
    "missing column": "source,target\nnorth,south\n",
    "empty file": "",
    "unknown column": "source,target,kind,probabilty\n",
    "column twice": "source,target,kind,kind\n",
    "no probability": HEAD + "north,south,prior,\n",
    "no column of probabilities": "source,target,kind\nnorth,south,prior\n",
    "no number": HEAD + "north,south,prior,high\n",
    "certain": HEAD + "north,south,prior,1\n",
    "not a number": HEAD + "north,south,prior,nan\n",
    "probability of a certainty": HEAD + "north,south,required,0.9\n",
    "contradiction": HEAD + "north,south,required,\neast,north,required,\nnorth,south,forbidden,\n",
    "two beliefs": HEAD + "north,south,prior,0.2\nnorth,south,prior,0.3\n",
    "belief in what is certain": HEAD + "north,south,required,\nnorth,south,prior,0.3\n",
    "self-loop": HEAD + "north,north,candidate,\n",
    "no candidate": HEAD + "north,south,required,\nsouth,north,candidate,\n",
    "too many cells": HEAD + "north,south,prior,0,9\n",
    "too few cells": HEAD + "north\n",
    "not text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_file_row_and_fault(name, write, refused):
    text = WRONG[name]
    refused(write, text)


def test_either_way_contradicts_in_a_symmetric_graph(write, refused):
    refused(write, HEAD + "north,south,required,\nsouth,north,forbidden,\n", symmetric=True)


def test_a_missing_file_is_named(tmp_path, refused):
    refused(read_edge_rules, tmp_path / "none.csv", NODES)

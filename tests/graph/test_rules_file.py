"""Rules for edges from a file: what is read, and what is said about a file that is wrong."""

import re

import pytest
import torch

from tacit.errors import InputError
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
    "unknown node": (
        HEAD + "north,south,required,\nnorth,soth,required,\n",
        "edges.csv, row 3: target names unknown node 'soth'; did you mean 'south'?",
    ),
    "unknown source": (HEAD + "west,south,required,\n", "row 2: source names unknown node 'west'"),
    "unknown kind": (
        HEAD + "north,south,forbiden,\n",
        "edges.csv, row 2 has unknown kind 'forbiden'; did you mean 'forbidden'?",
    ),
    "missing column": (
        "source,target\nnorth,south\n",
        "edges.csv must have the columns source, target and kind, got source, target; add kind",
    ),
    "empty file": ("", "edges.csv must have the columns source, target and kind, got none; add source"),
    "unknown column": (
        "source,target,kind,probabilty\n",
        "edges.csv has unknown column 'probabilty'; did you mean 'probability'?",
    ),
    "column twice": ("source,target,kind,kind\n", "edges.csv has column 'kind' twice; delete one"),
    "no probability": (
        HEAD + "north,south,prior,\n",
        "edges.csv, row 2: prior must be a probability; write one in the column probability",
    ),
    "no column of probabilities": ("source,target,kind\nnorth,south,prior\n", "row 2: prior must be a probability"),
    "no number": (
        HEAD + "north,south,prior,high\n",
        "edges.csv, row 2: probability must be a number, got 'high'; write for example 0.9",
    ),
    "certain": (
        HEAD + "north,south,prior,1\n",
        "row 2: probability must be strictly between 0 and 1, got 1; use kind forbidden or required",
    ),
    "not a number": (HEAD + "north,south,prior,nan\n", "probability must be strictly between 0 and 1, got nan"),
    "probability of a certainty": (
        HEAD + "north,south,required,0.9\n",
        "row 2: required takes no probability, got '0.9'; leave it empty, or use kind prior",
    ),
    "contradiction": (
        HEAD + "north,south,required,\neast,north,required,\nnorth,south,forbidden,\n",
        "edges.csv, row 4: edge 'north -> south' is forbidden here and required in row 2; delete one",
    ),
    "two beliefs": (
        HEAD + "north,south,prior,0.2\nnorth,south,prior,0.3\n",
        "row 3: edge 'north -> south' has prior 0.3 here and 0.2 in row 2; delete one",
    ),
    "belief in what is certain": (
        HEAD + "north,south,required,\nnorth,south,prior,0.3\n",
        "row 3: edge 'north -> south' is prior here and required in row 2; delete one",
    ),
    "self-loop": (
        HEAD + "north,north,candidate,\n",
        "row 2: candidate edge 'north -> north' is a self-loop, and self-loops are disabled; delete the row, or set "
        "self_l",
    ),
    "no candidate": (
        HEAD + "north,south,required,\nsouth,north,candidate,\n",
        "row 2: required edge 'north -> south' is not among the candidates; add a row that makes it one",
    ),
    "too many cells": (HEAD + "north,south,prior,0,9\n", "row 2 must have 4 cells like the header, got 5; correct it"),
    "too few cells": (HEAD + "north\n", "row 2 must have 4 cells like the header, got 1; correct it"),
    "not text": (b"\xff\xfe\x00", "edges.csv is not a CSV file in UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_file_row_and_fault(name, write):
    text, message = WRONG[name]
    with pytest.raises(InputError, match=re.escape(message)):
        write(text)


def test_either_way_contradicts_in_a_symmetric_graph(write):
    with pytest.raises(InputError, match="row 3: edge 'south -- north' is forbidden here and required in row 2"):
        write(HEAD + "north,south,required,\nsouth,north,forbidden,\n", symmetric=True)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none.csv cannot be read \(No such file or directory\); pass a CSV file of"):
        read_edge_rules(tmp_path / "none.csv", NODES)

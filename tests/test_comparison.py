"""Two fits side by side: edges matched by name, differences in standard errors, scores."""

import json

import numpy as np
import pytest

import tacit
from made_runs import make_run, with_edges, write_directory

NAMES = ["a", "b", "c"]


def run(exists, acts, errors=None, **changes):
    made = make_run(len(changes.get("names", NAMES)), **{"names": NAMES, "evidence": True} | changes)
    columns = {"exists": exists, "probability": acts}
    if errors is not None:
        columns["std_error"] = errors
    return with_edges(made, **columns)


@pytest.fixture
def two(tmp_path):
    """Both list b -> a; the first also c -> a, the second also a -> b."""
    nan = np.nan
    first = run(
        [[0, 1.0, 0.95], [0.05, 0, 0], [0, 0, 0]], [[nan, 0.5, 0.8], [nan] * 3, [nan] * 3], np.full((3, 3), 0.03)
    )
    second = run(
        [[0, 0.99, 0.05], [0.92, 0, 0], [0, 0, 0]], [[nan, 0.7, nan], [0.4, nan, nan], [nan] * 3], np.full((3, 3), 0.04)
    )
    return write_directory(first, tmp_path / "first"), write_directory(second, tmp_path / "second")


def test_edges_of_both_and_of_one(two):
    found = tacit.compare(*two)
    rows = {(row.source, row.target): row for row in found.edges.itertuples()}
    assert {edge: row.listed for edge, row in rows.items()} == {
        ("b", "a"): "both", ("c", "a"): "first", ("a", "b"): "second",
    }  # fmt: skip
    both = rows["b", "a"]
    assert both.acts_difference == pytest.approx(0.2)
    assert both.std_errors == pytest.approx(0.2 / 0.05)  # sqrt(0.03^2 + 0.04^2)
    assert both.exists_difference == pytest.approx(-0.01)
    assert np.isnan(rows["c", "a"].acts_second)
    assert found.sentences() == [
        "1 edge is listed by both, 1 only by the first, 1 only by the second.",
        "How often they act differs by more than 2 standard errors for 1 of the 1 with standard errors.",
    ]
    assert found.scores.loc["point_mae"].tolist() == [0.1, 0.1, 0.0]
    assert json.loads(json.dumps(found.to_dict()))["edges"][1]["acts_second"] is None


def test_a_fit_compared_with_itself_and_with_the_order_of_nodes_changed(two, tmp_path):
    same = tacit.compare(two[0], two[0])
    assert set(same.edges["listed"]) == {"both"}
    assert (same.edges["std_errors"] == 0).all()
    nan = np.nan
    turned = run([[0, 0, 0], [1.0, 0, 0], [0, 0, 0]], [[nan] * 3, [0.5, nan, nan], [nan] * 3], names=["b", "a", "d"])
    found = tacit.compare(two[0], write_directory(turned, tmp_path / "turned"))
    assert found.edges[found.edges["listed"] == "both"][["source", "target"]].values.tolist() == [["b", "a"]]
    assert found.nodes == (["a", "b"], ["c"], ["d"])
    assert found.sentences()[1:] == ["Only the first has the node c.", "Only the second has the node d."]


def test_edges_without_direction_do_not_depend_on_the_order_of_nodes(tmp_path):
    exists, acts = np.array([[0, 1.0, 0], [1.0, 0, 0], [0, 0, 0]]), np.array([[np.nan, 0.5, np.nan]] * 3)
    acts[1] = [0.5, np.nan, np.nan]
    order = [2, 1, 0]
    undirected = {"config": {"graph": {"symmetric": True}}}
    first = run(exists, acts, **undirected)
    second = run(exists[order][:, order], acts[order][:, order], **undirected, names=[NAMES[place] for place in order])
    found = tacit.compare(write_directory(first, tmp_path / "first"), write_directory(second, tmp_path / "second"))
    assert found.edges[["source", "target", "listed"]].values.tolist() == [["a", "b", "both"]]


def test_what_cannot_be_compared_is_said(two, tmp_path, refused):
    refused(tacit.compare, 3, two[0])
    other = write_directory(make_run(3, evidence=True), tmp_path / "other")
    refused(tacit.compare, two[0], other)
    symmetric = write_directory(make_run(3, names=NAMES, config={"graph": {"symmetric": True}}), tmp_path / "symmetric")
    refused(tacit.compare, two[0], symmetric)
    (tmp_path / "demo" / "known").mkdir(parents=True)
    refused(tacit.compare, two[0], tmp_path / "demo")

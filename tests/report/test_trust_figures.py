"""Figures and lists of trust, from a record alone; edges that cannot be told from the data are left out."""

import numpy as np
import pytest

from made_runs import run_of_matrices
from tacit.records import Record
from tacit.report import rank_shares, reliability_points, strongest_edges, write_page
from tacit.report.content import run_content
from tacit.report.figures import coverage_points, draw_ranks, draw_reliability
from tacit.report.network import draw_run_network
from tacit.words import FindingKind, find

PROBS = [[0.1, 0.72, 0.05], [0.78, 0.1, 0.6], [0.0, 0.3, 0.1]]
TRUTH = [[0.0, 0.75, 0.0], [0.75, 0.0, 1.0], [0.0, 0.0, 0.0]]
FLAGS = [["", "yes", "yes"], ["yes", "", "no"], ["yes", "yes", ""]]
RANKS = {"names": ["a", "<i>b"], "ranks": [{"counts": [10, 30], "expected": [20, 20]}, {"counts": [], "expected": []}]}


def make_run(truth=None, flags=None, goodness=None, errors=False):
    matrix = [[0.01] * 3] * 3
    found = {"std_error": matrix, "low": matrix, "high": matrix} if errors else {}
    record = Record(
        title="run", command="tacit fit", config={}, seed=0, versions={}, device="cpu",
        timings={"train_seconds": 1.0, "steps": 2}, replicas=[], best_replica=0, node_names=["a", "b", "c"],
        metrics={"point_mae": 0.1, "point_mse": 0.2, "distribution_loss": 0.3}, preparation={"kind": "series"},
        true_edge_probs=truth, goodness=goodness or {}, findings=[find(FindingKind.FIT_DETAIL, "fits: <b>well</b>")],
    )  # fmt: skip
    found |= {} if flags is None else {"identifiable": flags}
    return run_of_matrices(record, probability=PROBS, **found)


def test_reliability_by_hand():
    """0.72 and 0.78 share the bin from 0.7 to 0.8; 0.6 is alone; flagged edges and those held fixed do not count."""
    predicted, true, count = reliability_points(make_run(TRUTH))
    place = predicted.index(pytest.approx(0.75))
    assert (true[place], count[place]) == (pytest.approx(0.75), 2)
    assert sum(count) == 9
    assert 0.6 in [pytest.approx(value) for value in predicted]
    predicted, _, count = reliability_points(make_run(TRUTH, FLAGS))
    assert sum(count) == 5
    assert 0.6 not in [pytest.approx(value) for value in predicted]


def test_without_truth_or_ranks_nothing_is_drawn():
    run = make_run()
    assert reliability_points(run) is None
    assert draw_reliability(run) is None
    assert draw_ranks(run) is None
    assert not any(run_content(run)["has"].values())


def test_ranks_are_shares_over_what_is_expected():
    run = make_run(goodness=RANKS)
    assert rank_shares(run.record.goodness) == {"a": [0.5, 1.5]}  # b was not tested
    (line,) = draw_ranks(run).axes[0].lines[1:]
    assert np.array(line.get_ydata()).tolist() == [0.5, 1.5, 1.5]
    assert run_content(run)["data"]["ranks"] == [{"name": "a", "shares": [0.5, 1.5]}]


def test_flagged_edges_are_in_no_list_and_in_no_drawing():
    edges = [(edge["source"], edge["target"]) for edge in strongest_edges(make_run(flags=FLAGS), 10)]
    assert ("c", "b") not in edges
    assert ("c", "b") in [(edge["source"], edge["target"]) for edge in strongest_edges(make_run(), 10)]
    assert "3 drawn" in draw_run_network(make_run(flags=FLAGS)).axes[0].get_title()
    assert "4 drawn" in draw_run_network(make_run()).axes[0].get_title()


def test_the_page_shows_findings_as_text_and_errors_beside_probabilities(tmp_path):
    write_page([make_run(TRUTH, FLAGS, RANKS, errors=True)], tmp_path / "page.html", "t")
    page = (tmp_path / "page.html").read_text()
    assert "Fits: &lt;b&gt;well&lt;/b&gt;" in page
    for column in ("standard error", "95% from", "95% to", "identifiable", "truth"):
        assert f'<button type="button">{column}</button>' in page
    assert "<td>0.780</td><td>0.010</td><td>0.010</td><td>0.010</td><td>yes</td><td>0.750</td><td>0.030</td>" in page


def test_coverage_has_its_range_over_the_nodes():
    levels = [
        {"nominal": 0.5, "overall": 0.48, "by_number": [0.4, None, 0.55]},
        {"nominal": 0.8, "overall": None, "by_number": [None]},
    ]
    points = coverage_points(make_run(goodness={"coverage": levels}))
    assert points == [{"nominal": 0.5, "covered": 0.48, "low": 0.4, "high": 0.55}]

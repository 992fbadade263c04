"""The page: words, tables and data, from a record alone; nothing in it can be taken for markup or for a script."""

import base64
import hashlib
import json
import math
import re

import numpy as np
import pytest
import torch

from made_runs import make_run, run_of_matrices, with_edges, with_forecasts
from tacit.assessment.evaluation import oracle_edge_prob_mae
from tacit.edges import EdgeIndex, EdgeTable
from tacit.records import Record
from tacit.report import content, strongest_edges, write_page
from tacit.report.content import answer, leading_edges, run_content, shortened, start_threshold, verdict

ENDS = ("source", "target")


def two_nodes(names, history=(), **changes):
    record = Record(**{
        "title": "<b>run</b>", "command": "tacit demo", "config": {"name": "</script>"}, "seed": 0, "versions": {},
        "device": "cpu", "timings": {"train_seconds": 1.0, "steps": 2}, "replicas": [], "best_replica": 0,
        "node_names": names, "metrics": {"point_mae": 0.1, "point_mse": 0.2, "distribution_loss": 0.3},
    } | changes)  # fmt: skip
    return run_of_matrices(record, history, probability=[[0.9, 0.2], [0.7, 0.8]])


def edges_of(listed_from=None, **columns):
    """Edges of one node into as many others."""
    values = {name: np.array(one, dtype=float) for name, one in columns.items()}
    count = len(values["probability"])
    index = EdgeIndex(np.zeros(count, int), np.arange(1, count + 1), ("a",), ("b",) * (count + 1))
    return EdgeTable(index, values, listed_from=listed_from)


def page_of(run, tmp_path, title="t<i>"):
    write_page([run], tmp_path / "page.html", title)
    return (tmp_path / "page.html").read_text()


def leading_of(run):
    return leading_edges(run, run.edges.each_once())


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_strongest_edges_name_source_and_target():
    """Row receives: entry [1, 0] = 0.7 is the edge from the first node to the second. Self-loops are left out."""
    edges = strongest_edges(two_nodes(["a", "b"]), 10)
    assert [(edge["source"], edge["target"], edge["probability"]) for edge in edges] == [
        ("a", "b", 0.7),
        ("b", "a", 0.2),
    ]


def test_names_with_markup_are_shown_as_text(tmp_path):
    page = page_of(two_nodes(["<script>alert(1)</script>", "b"]), tmp_path)
    assert "<script>alert" not in page
    assert "<b>run</b>" not in page
    assert "t&lt;i&gt;" in page
    assert data_of(page)["runs"][0]["nodes"] == ["<script>alert(1)</script>", "b"]


def test_the_policy_names_every_script_and_nothing_from_elsewhere(tmp_path):
    page = page_of(two_nodes(["a", "b"]), tmp_path)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    scripts = re.findall(r'<script(?: type="module")?>(.*?)</script>', page, re.S)
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts]
    assert f"script-src {' '.join(hashes)};" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1]


def test_the_data_are_the_edges():
    """As 32-bit floats, in the order of edges.csv; of listed candidates with their nodes."""
    run = make_run(5, errors=True, truth=True, flags=True)
    edges = run_content(run)["data"]["edges"]
    probs = np.frombuffer(base64.b64decode(edges["probability"]["data"]), "<f4")
    assert probs == pytest.approx(run.edges["probability"], rel=1e-6)
    assert set(edges) == {"probability", "std_error", "low", "high", "truth", "error", "identifiable"}
    codes = np.frombuffer(base64.b64decode(edges["identifiable"]["data"]), "u1")
    assert codes.tolist() == run.edges["identifiable"].tolist()
    listed = make_run(500, candidates=4)
    edges = run_content(listed)["data"]["edges"]
    assert (
        np.frombuffer(base64.b64decode(edges["source"]["data"]), edges["source"]["kind"]).tolist()
        == listed.edges.index.source.tolist()
    )
    assert (
        np.frombuffer(base64.b64decode(edges["target"]["data"]), edges["target"]["kind"]).tolist()
        == listed.edges.index.target.tolist()
    )


def test_of_too_many_edges_the_most_probable_are_in_the_page(monkeypatch, tmp_path):
    monkeypatch.setattr(content, "MOST_EMBEDDED", 100)
    run = make_run(450, candidates=4)
    found = run_content(run)
    probs = np.frombuffer(base64.b64decode(found["data"]["edges"]["probability"]["data"]), "<f4")
    assert probs.min() == pytest.approx(sorted(run.edges["probability"])[-100])
    assert "The 100 most probable of 1,800 edges; edges.csv has all of them." in page_of(run, tmp_path)


def test_numbers_that_json_does_not_have_are_left_out(tmp_path):
    run = make_run(3, replicas=1)
    run.history[0]["train_loss"][0] = math.inf
    assert data_of(page_of(run, tmp_path))["runs"][0]["curves"][0]["lines"][0][0] is None


def test_the_slider_begins_where_something_is_drawn():
    def columns(*probs):
        return edges_of(probability=probs)

    assert start_threshold(columns(0.5, 0.01)) == 0.1
    assert start_threshold(columns(0.059, 0.041)) == 0.04
    assert start_threshold(columns()) == 0.1
    assert start_threshold(columns(*[0.0] * 30)) == 0.1
    assert start_threshold(columns(0.09, *[0.002] * 30)) == 0.01


def test_the_answer_in_words():
    run = make_run(3, flags=True)
    flags = [["", "no", "yes"], ["yes", "", "yes"], ["yes", "yes", ""]]
    probs = [[1, 0.9, 0.05], [0.6, 1, 0.2], [0.0, 0.0, 1]]
    run = with_edges(run, probability=probs, identifiable=flags)
    said = answer(run, run.edges.each_once())
    assert said[0] == (
        "3 nodes and 5 learned edges between different nodes: 2 have a probability of 0.10 or more and "
        "1 has a probability of 0.50 or more."
    )
    first = [(edge["source"], edge["target"], edge["acts"]) for edge in leading_of(run)[:2]]
    assert first == [("node 0", "node 1", "0.60"), ("node 2", "node 1", "0.20")]
    assert said[1] == "1 edge is not identifiable from the data and is not drawn."
    assert "--std-errors" in said[2]
    known = run.model_copy(update={"record": run.record.model_copy(update={"metrics": {"edge_prob_mae": 0.0123}})})
    assert (
        answer(known, run.edges.each_once())[2] == "Mean absolute error of the probabilities against the truth: 0.0123."
    )
    assert verdict(run) == (
        "misfit",
        "The model does not fit at the 5% level",
        "(kernel test p = 0.004, ranks p = 0.010, 500 pairs).",
    )
    assert verdict(make_run(3, goodness={})) == ("untested", "The fit of the model was not tested.", "")
    fits = make_run(
        3, goodness={"fits": True, "verdict": "the model fits: no evidence against it", "tests": "(p = 0.4)"}
    )
    assert verdict(fits) == ("fits", "The model fits: no evidence against it", "(p = 0.4).")


def test_edges_that_are_held_fixed_or_next_to_nothing_are_no_findings():
    run = make_run(3)
    flags = [["", "", "yes"], ["yes", "", "yes"], ["yes", "yes", ""]]
    probs = [[1, 1.0, 0.001], [0.3, 1, 0.0], [0.04, 0.0, 1]]
    run = with_edges(run, probability=probs, identifiable=flags)
    found = [(edge["source"], edge["arrow"], edge["target"], edge["acts"]) for edge in leading_of(run)]
    assert found == [("node 0", "→", "node 1", "0.30"), ("node 0", "→", "node 2", "0.04")]
    none = with_edges(run, probability=[[1, 1.0, 0.001], [0.0, 1, 0.0], [0.0, 0.0, 1]])
    assert leading_of(none) == []


def test_edges_without_direction_count_once(tmp_path):
    probs = np.array([[1, 0.9, 0.2], [0.9, 1, 0.0], [0.2, 0.0, 1]])
    run = with_edges(make_run(3, config={"graph": {"symmetric": True}}), probability=probs)
    said = answer(run, run.edges.each_once())
    assert said[0].startswith("3 nodes and 3 learned edges between different nodes without direction: 2")
    found = [(edge["source"], edge["arrow"], edge["target"]) for edge in leading_of(run)]
    assert found == [("node 0", "—", "node 1"), ("node 0", "—", "node 2")]
    page = page_of(run, tmp_path)
    assert "Edges have no direction" in page
    assert data_of(page)["runs"][0]["possible"] == {"identifiable": 3, "all": 3}


def test_names_from_right_to_left_do_not_turn_the_arrow_round(tmp_path):
    run = with_edges(make_run(2, names=["שלום", "العربية"]), probability=[[1, 0.9], [0.1, 1]])
    assert '<span dir="auto">العربية</span> → <span dir="auto">שלום</span>' in page_of(run, tmp_path)


def test_without_a_script_the_most_probable_edges_are_a_table(tmp_path):
    run = make_run(12, errors=True)
    page = page_of(run, tmp_path)
    assert "<noscript>" in page
    rows = re.findall(r"<tr><td>(.*?)</td></tr>", page)
    assert len(rows) == 25
    first = strongest_edges(run, 1)[0]
    assert rows[0].split("</td><td>") == [
        first["source"],
        first["target"],
        *(f"{first[name]:.3f}" for name in ("probability", "std_error", "low", "high")),
    ]


def test_what_the_reader_needs_is_there_in_order(tmp_path):
    page = page_of(with_forecasts(make_run(4, truth=True, errors=True, flags=True)), tmp_path)
    words = [
        "Result",
        "Checks and cautions",
        "Learned graph",
        "Edges",
        "Forecasts of the test part",
        "Matrix of probabilities",
        "Accuracy and calibration",
        "Details of the run",
    ]
    places = [page.index(f">{word}</h2>") for word in words]
    assert places == sorted(places)
    for word in ("tacit fit made.csv --seed 0", "a made run means nothing", "window = 12: usual", "the last value"):
        assert word in page


def test_long_lists_of_a_config_are_cut():
    cut = shortened({"graph": {"candidates": [[1, 2]] * 60}})["graph"]["candidates"]
    assert len(cut) == 51
    assert cut[-1] == "and 10 more, see record.json"


def test_oracle_error_against_simulation():
    """Frequencies of 2,000 seen graphs, 400 times: the mean absolute error has a standard error of 2%."""
    probs, pairs = torch.tensor([[0.75, 0.0], [0.5, 1.0]]), 2000
    generator = torch.Generator().manual_seed(0)
    seen = torch.binomial(torch.full((400, 2, 2), float(pairs)), probs.expand(400, 2, 2), generator=generator) / pairs
    simulated = (seen - probs).abs().mean().item()
    assert math.isclose(oracle_edge_prob_mae(probs, pairs), simulated, rel_tol=0.1)


def test_with_evidence_the_answer_of_the_record_comes_first(tmp_path):
    run = make_run(6, evidence=True, errors=True)
    page = page_of(run, tmp_path)
    assert page.index(run.record.answer[0]) < page.index("The model does not fit") < page.index("Learned graph</h2>")
    said = answer(run, run.edges.each_once())
    kept = int((run.edges.matrix("exists") >= 0.1).sum())
    assert said[0] == (
        f"6 nodes and 30 edges between different nodes; how often they act was estimated for the {kept} that exist "
        "with probability 0.1 or more."
    )
    best = strongest_edges(run, 1)[0]
    first = leading_of(run)[0]
    assert (first["source"], first["target"], first["exists"]) == (
        *(best[end] for end in ENDS),
        f"{best['exists']:.3f}",
    )
    assert first["interval"] == f"{best['low']:.2f} to {best['high']:.2f}"
    listed = int(run.edges.each_once().listed().sum())
    assert len(leading_of(run)) == min(8, listed)
    assert page.index('class="leading"') < page.index("The model does not fit")
    assert "Forecast improvement by node" in page
    gains = run.record.node_gains
    assert page.index(f">{max(gains, key=gains.get)}</th>") < page.index(f">{min(gains, key=gains.get)}</th>")
    rows = re.findall(r"<tr><td>(.*?)</td></tr>", page)
    assert len(rows) == 25
    assert rows[-1].split("</td><td>")[3:6] == ["–"] * 3  # how often it acts was not learned
    edges = run_content(run)["data"]["edges"]
    assert {"exists", "effect"} <= set(edges)


def test_the_slider_begins_at_the_listed_edges():
    columns = make_run(6, evidence=True).edges.each_once()
    assert start_threshold(columns) == 0.5  # no other edge is above
    near = edges_of(0.9, probability=[1, 1, 1], exists=[0.99, 0.9, 0.8123])
    assert start_threshold(near) == 0.82
    nearer = edges_of(0.9, probability=[1, 1, 1], exists=[0.99, 0.9, 0.8999])
    assert start_threshold(nearer) == 0.9
    assert columns.listed().sum() == (columns.decides >= 0.9).sum()
    assert start_threshold(edges_of(probability=[0, 0], exists=[0, 0])) == 1.0

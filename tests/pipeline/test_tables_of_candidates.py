"""``tacit fit`` over a table of candidates: the same answers as over all pairs of nodes, and what cannot be."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from commands import call
from own_files import NODES, learn, plan_of, series
from run_files import reseal
from tacit.edges import EdgeIndex, schema
from tacit.graph import CandidateEdges, EdgeRules
from tacit.graph import memory as footprint
from tacit.pipeline import Fitted

CPU = torch.device("cpu")
EVERY = [[source, target] for source in NODES for target in NODES]
SOME = [["north", "east"], ["east", "south"], ["west", "south"], ["south", "west"], ["west", "north"]]


def edges_of(made):
    with (made.directory / "edges.csv").open() as file:
        return {(row["source"], row["target"]): row for row in csv.DictReader(file)}


def probabilities(made):
    return np.array([float(row["probability"]) for row in edges_of(made).values()])


@pytest.mark.parametrize("kind", ["filter", "recurrent", "convolution"])
def test_with_every_pair_a_candidate_the_answer_is_that_of_the_matrix(kind, folder, tmp_path):
    """The table then has the layout of a matrix: the same random numbers, a required edge and a belief included."""
    graph = {
        "candidates": EVERY,
        "self_loops": True,
        "required": [["north", "west"]],
        "priors": [["east", "west", 0.9]],
    }
    predictor = {"kind": kind, **({"warm_start": False} if kind == "filter" else {"hidden": 3})}
    sections = {
        "predictor": predictor,
        "assessment": {"bootstrap_replicas": 8, "controls": True},
        "training": {"epochs": 3},
    }
    made = {
        layout: learn(folder / "wide.csv", tmp_path / layout, graph=graph | {"layout": layout}, **sections)[0]
        for layout in ("matrix", "table")
    }
    matrix, table = (edges_of(made[layout]) for layout in ("matrix", "table"))
    assert matrix.keys() == table.keys()
    for edge, row in matrix.items():
        assert row["identifiable"] == table[edge]["identifiable"]
        for column in ("probability", "std_error", "low", "high", "bagged"):
            assert float(table[edge][column]) == pytest.approx(float(row[column]), abs=1e-6), (edge, column)
    assert table["north", "west"]["probability"] == "1"
    for section in ("metrics", "references"):
        first, second = (getattr(made[layout].run.record, section) for layout in ("matrix", "table"))
        assert second == pytest.approx(first, rel=1e-4) if section == "metrics" else first.keys() == second.keys()
    first, second = (Fitted.read(made[layout].directory, CPU).model.state_dict() for layout in ("matrix", "table"))
    for name, value in first.items():
        torch.testing.assert_close(second[name], value, rtol=1e-4, atol=1e-5)


def test_a_belief_about_every_edge_holds_over_the_table(folder):
    graph = {"candidates": SOME, "density": 0.2, "priors": [["west", "south", 0.9]], "layout": "table"}
    model = plan_of(folder / "wide.csv", graph=graph).model
    candidates = model.graph.candidates
    own = candidates.positions(torch.tensor([3]), torch.tensor([2]))
    probs = model.prior.probs.flatten()
    assert probs[own].item() == pytest.approx(0.9)
    others = torch.arange(len(probs)) != own
    assert probs[others].unique().numel() == 1
    assert probs[others].max() < 0.2
    assert model.prior.weight > 0


def test_rules_hold_and_the_truth_is_found(tmp_path):
    """Five candidates, the two true relations among them; what is no candidate is 0 to the last bit."""
    graph = {"candidates": SOME, "forbidden": [["west", "north"]], "layout": "table"}
    long = tmp_path / "long.csv"
    pd.DataFrame(series(1500), columns=NODES).assign(time=range(1500)).to_csv(long, index=False)
    made, result = learn(long, tmp_path / "run", graph=graph, training={"epochs": 30, "batch_size": 64})
    found = edges_of(made)
    assert len(found) == 16
    for edge, row in found.items():
        learned = list(edge) in SOME and edge != ("west", "north")
        assert (0 < float(row["probability"]) < 1) if learned else row["probability"] == "0", edge
    true, false = [("north", "east"), ("east", "south")], [("west", "south"), ("south", "west")]
    lowest, highest = (
        pick(float(found[edge]["probability"]) for edge in edges) for pick, edges in ((min, true), (max, false))
    )
    assert lowest > 0.6 > 0.3 > highest
    assert result.model.graph.candidates is not None
    stored = Fitted.read(made.directory, CPU).model
    assert stored.graph.candidates is None
    assert stored.graph.fixed.sum() == 16 - 4
    assert made.run.record.config["graph"]["layout"] == "table"


def test_the_layout_is_chosen_by_nodes_and_candidates(tmp_path):
    rng = np.random.default_rng(0)
    for nodes, nearest, expected in ((201, 5, "table"), (201, 60, "matrix"), (200, 5, "matrix")):
        names = [f"n{node}" for node in range(nodes)]
        table, places = tmp_path / f"{nodes}.csv", tmp_path / f"places{nodes}.csv"
        pd.DataFrame(rng.normal(size=(30, nodes)), columns=names).assign(time=range(30)).to_csv(table, index=False)
        pd.DataFrame({"node": names, "x": rng.random(nodes), "y": rng.random(nodes)}).to_csv(places, index=False)
        graph = {"coordinates": str(places), "k_nearest": nearest, "metric": "euclidean"}
        plan = plan_of(table, graph=graph)
        assert plan.config.graph.layout == expected
        (chosen,) = [choice for choice in plan.choices if choice.option == "layout"]
        assert chosen.value == expected
    plain = plan_of(table)
    assert plain.config.graph.layout == "matrix"
    assert not [choice for choice in plain.choices if choice.option == "layout"]


@pytest.mark.parametrize("graph", [{}, {"candidates": SOME, "symmetric": True}])
def test_tables_that_cannot_be(graph, folder, tmp_path, refused):
    refused(learn, folder / "wide.csv", tmp_path / "run", graph=graph | {"layout": "table"})
    assert not (tmp_path / "run").exists()


def test_nodes_without_candidates_are_said_and_still_predicted(folder, tmp_path):
    graph = {"candidates": SOME[:2], "layout": "table"}
    made, _ = learn(folder / "wide.csv", tmp_path / "run", graph=graph)
    said = "nodes without candidate edges are predicted only from their own inputs: 1 of 4 nodes ('west')"
    assert said in made.run.record.warnings
    both, _ = learn(folder / "wide.csv", tmp_path / "both", graph={"candidates": SOME[:2], "symmetric": True})
    assert said in both.run.record.warnings


@pytest.mark.parametrize("graph", [{}, {"candidates": SOME, "layout": "table"}])
def test_what_memory_cannot_hold_is_refused_before_it_is_taken(graph, folder, tmp_path, monkeypatch, refused):
    monkeypatch.setattr(footprint, "free_bytes", lambda _device: 400)
    refused(learn, folder / "wide.csv", tmp_path / "run", graph=graph)
    assert not (tmp_path / "run").exists()


def test_a_fit_over_all_pairs_of_very_many_nodes_is_refused_by_the_command(tmp_path, monkeypatch, wrong_call):
    """It is refused before anything is computed for all pairs. Nothing is written."""
    monkeypatch.setattr(footprint, "free_bytes", lambda _device: 10**8)
    monkeypatch.setattr(EdgeIndex, "all_pairs", lambda *_, **__: pytest.fail("an index of all pairs was made"))
    names = [f"n{node}" for node in range(500)]
    values = np.random.default_rng(0).normal(size=(12, 500)).round(2)
    pd.DataFrame(values, columns=names).assign(time=range(12)).to_csv(tmp_path / "wide.csv", index=False)
    wrong_call("fit", tmp_path / "wide.csv", "--out", tmp_path / "run", "--quiet")
    assert not (tmp_path / "run").exists()


def screened(path, **sections):
    return plan_of(path, **sections).rules.candidate_edges


def test_correlated_candidates_come_from_the_training_part_alone(folder, tmp_path):
    """The strongest lagged correlations by numpy; rows of validation and test may say anything."""
    values = series(300)
    pd.DataFrame(values, columns=NODES).assign(time=range(300)).to_csv(tmp_path / "a.csv", index=False)
    candidates = screened(tmp_path / "a.csv", graph={"k_correlated": 2})
    rows = values[: round(0.7 * 298) + 2]  # a window of 2 and a horizon of 1: targets from row 2 on
    strength = np.abs(np.corrcoef(rows[1:].T, rows[:-1].T)[:4, 4:])
    np.fill_diagonal(strength, -1)
    assert candidates.sources.tolist() == np.sort(np.argsort(-strength, 1)[:, :2], 1).tolist()
    for other in (values[::-1], np.random.default_rng(3).normal(size=values.shape)):
        changed = np.concatenate([rows, other[len(rows) :]])
        pd.DataFrame(changed, columns=NODES).assign(time=range(300)).to_csv(tmp_path / "b.csv", index=False)
        assert torch.equal(screened(tmp_path / "b.csv", graph={"k_correlated": 2}).sources, candidates.sources)
    ahead = screened(tmp_path / "a.csv", graph={"k_correlated": 1}, data={"horizon": 5})
    rows = values[: round(0.7 * 294) + 6]
    strength = np.abs(np.corrcoef(rows[5:].T, rows[:-5].T)[:4, 4:])
    np.fill_diagonal(strength, -1)
    assert ahead.sources[:, 0].tolist() == strength.argmax(1).tolist()
    assert screened(folder / "holes.csv", graph={"k_correlated": 1}).num_edges == 4


def test_correlated_candidates_of_pairs(folder):
    """y reads channel 0 of the next node, of which the second channel says nothing."""
    candidates = screened(folder / "pairs.npz", graph={"k_correlated": 1})
    assert candidates.sources[:, 0].tolist() == [1, 2, 3, 0]
    assert screened(folder / "pairs_with_holes.npz", graph={"k_correlated": 1}).sources[:, 0].tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize(
    "graph",
    [
        {"k_correlated": 1, "k_nearest": 1},
        {"k_correlated": 1, "candidates": SOME},
        {"candidates": SOME, "edges": "rules.csv"},
        {"k_correlated": 4},
    ],
)
def test_one_source_of_candidates(graph, folder, tmp_path, refused):
    (tmp_path / "rules.csv").write_text("source,target,kind\nnorth,east,candidate\n")
    if "edges" in graph:
        graph = graph | {"edges": str(tmp_path / "rules.csv")}
    refused(screened, folder / "wide.csv", graph=graph)


def many_nodes(path, nodes, rows=40):
    """Each node reads one other, of the same number plus 7."""
    rng = np.random.default_rng(0)
    values = np.zeros((rows, nodes))
    for row in range(1, rows):
        values[row] = 0.3 * values[row - 1] + 0.8 * np.roll(values[row - 1], -7) + rng.normal(size=nodes)
    names = [f"n{node}" for node in range(nodes)]
    pd.DataFrame(values.round(3), columns=names).assign(time=range(rows)).to_csv(path, index=False)
    return names


@pytest.mark.slow
def test_fifteen_hundred_nodes_from_the_command(tmp_path, capsys, monkeypatch):
    """End to end over a table: no tensor or array of all pairs of nodes is made, and every command works on the run."""
    names, data, run = many_nodes(tmp_path / "many.csv", 1500), tmp_path / "many.csv", tmp_path / "run"
    for place in ("to_mask", "from_mask"):
        monkeypatch.setattr(CandidateEdges, place, lambda *_: pytest.fail("a mask of all pairs of nodes was made"))
    monkeypatch.setattr(EdgeRules, "allowed", property(lambda _: pytest.fail("a mask of all pairs was made")))
    tiny = ("training.epochs=1", "training.replicas=1", "training.compile=false", "model.num_graphs=4", "data.window=1")
    choices = [part for choice in ("graph.k_correlated=5", *tiny) for part in ("--set", choice)]
    assert call("fit", data, *choices, "--out", run, "--quiet") == 0
    record = json.loads((run / "record.json").read_text())
    assert record["candidates"] == {"count": 7500, "others": 0.0}
    assert record["config"]["graph"]["layout"] == "table"
    skipped = [finding for finding in record["findings"] if finding["kind"] == "not_computed"]
    assert len(skipped) == 1  # which edges are identifiable; errors and controls were not chosen, for the same reason
    chosen = [choice for choice in record["choices"] if choice["reason"] == "many nodes"]
    assert [choice["option"] for choice in chosen] == ["bootstrap_replicas", "controls"]
    assert all(finding["values"]["reason"] == "many nodes" for finding in skipped)
    assert record["goodness"]["num_pairs"] == 8
    assert set(record["references"]) == {"the last value"}
    edges = pd.read_csv(run / "edges.csv")
    assert tuple(edges.columns) == schema.names(schema.file_columns())
    assert len(edges) == 7500
    assert set(edges["source"]) <= set(names)
    tensors = load_file(run / "model.safetensors")
    assert {f"graph.candidates.{part}" for part in ("row_node", "sources", "used")} <= set(tensors)
    assert max(value.numel() for value in tensors.values()) <= 7500
    stored = Fitted.read(run, CPU)
    assert stored.run.edges["probability"].tolist() == edges["probability"].tolist()
    assert stored.model.graph.edge_probs[stored.model.graph.candidates.used].tolist() == pytest.approx(
        edges["probability"].tolist(), abs=1e-6
    )
    page = (run / "report.html").read_text()
    assert len(page) < 8_000_000
    assert page.count('<div class="plot ') == 7  # graph, matrix, histogram, two losses, ranks, coverage
    assert '<div class="plot histogram"' in page
    (run / "report.html").unlink()
    assert call("report", run) == 0
    assert (run / "report.html").stat().st_size == pytest.approx(len(page), rel=0.01)
    few = tmp_path / "few.csv"
    pd.read_csv(data).tail(4).to_csv(few, index=False)
    assert call("predict", run, few, "--out", tmp_path / "predicted.parquet") == 0
    assert len(pd.read_parquet(tmp_path / "predicted.parquet")) == 1500 * 4
    capsys.readouterr()
    assert call("evaluate", run, few, "--json") == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == 3
    text = (run / "edges.csv").read_text().splitlines()
    (run / "edges.csv").write_text("\n".join(text[:-1]) + "\n")
    reseal(run)  # so that no checksum notices it
    assert call("report", run) == 2
    assert "edges.csv has 7499 edges, 7500 are in record.json" in capsys.readouterr().err

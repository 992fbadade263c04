"""Edges by situation as the page and the figures have them: tables, words, what is embedded; nothing where none are."""

from dataclasses import replace

import numpy as np
import pytest

from made_runs import make_run
from situation_runs import HOURS, category_run, listed, regimes_run, two_variables_run, varying_run
from tacit.report import draw_figures
from tacit.report.content import run_content
from tacit.report.situations import most_varying, situation_tables, situations_said, value_words, varying_rows

NEW_KEYS = {"situations", "hasOwnRegimes", "posterior"}


def with_rows(run, rows):
    return run.model_copy(update={"edges": replace(run.edges, by=rows)})


def test_a_table_has_the_rows_of_its_variable_in_the_order_of_the_values():
    hours, seasons = situation_tables(two_variables_run())
    assert (hours.by, hours.kind, hours.labels) == ("hour", "periodic", HOURS)
    assert hours.positions == list(range(24))
    assert (seasons.by, seasons.positions, seasons.ordered) == ("season", None, False)
    run = two_variables_run()
    source, target = listed(run)[:, :2]
    assert seasons.source.tolist() == source.tolist()
    assert seasons.target.tolist() == target.tolist()
    assert seasons.probability.tolist() == [[0.2, 0.5, 0.9], [0.7, 0.3, 0.1]]
    assert np.allclose(seasons.numbers["high"] - seasons.probability, 0.06)
    assert seasons.spread.tolist() == pytest.approx([0.7, 0.6])


def test_values_that_an_edge_lacks_are_not_known():
    run = category_run()
    rows = run.edges.by
    kept = [row for row in range(len(rows)) if row != 1]  # the first edge has no "wet"
    fewer = rows.model_copy(update={name: [values[row] for row in kept] for name, values in rows})
    (table,) = situation_tables(with_rows(run, fewer))
    assert table.labels == ["dry", "wet", "snow"]
    assert np.isnan(table.probability[0]).tolist() == [False, True, False]
    assert table.spread.tolist() == pytest.approx([0.7, 0.6])


def test_a_column_of_the_data_called_regime_is_no_regime():
    (table,) = situation_tables(category_run(by="regime"))
    assert (table.kind, table.named(0)) == ("category", "regime = dry")
    (table,) = situation_tables(regimes_run())
    assert (table.kind, table.named(0)) == ("regime", "regime 1")


def test_the_edges_that_vary_most_are_first():
    run = two_variables_run()
    tables = situation_tables(run)
    spreads = [float(table.spread[edge]) for table, edge in most_varying(tables, 3)]
    assert spreads == sorted(spreads, reverse=True)
    assert len(spreads) == 3
    row = next(row for row in varying_rows(run, tables) if row["highest"]["at"] == "season = snow")
    assert row["lowest"] == {"probability": 0.2, "at": "season = dry"}
    assert row["highest"] == {"probability": 0.9, "at": "season = snow"}


def test_how_many_edges_vary_is_said():
    run = varying_run()
    tested = listed(run).shape[1]
    assert situations_said(run, situation_tables(run)) == [
        f"3 of {tested} tested edges vary with hour (false discovery rate 10%)."
    ]
    both = two_variables_run()
    said = situations_said(both, situation_tables(both))
    assert "vary with hour and season" in said[0]
    assert said[1] == "The probabilities by one variable have the other variables at their average."


def test_regimes_have_their_weights_in_words():
    run = regimes_run()
    (table,) = situation_tables(run)
    assert value_words(run, table) == ["regime 1 (60%)", "regime 2 (40%)"]
    assert situations_said(run, [table])[0].startswith("The graph has 2 regimes")
    own = regimes_run(own=True)
    (table,) = situation_tables(own)
    assert value_words(own, table) == ["regime 1 (60% to 70%)", "regime 2 (30% to 40%)"]
    assert situations_said(own, [table])[0].startswith("Each node has 2 regimes of its own")


@pytest.mark.parametrize("kind", ["pairs", "evidence", "candidates"])
def test_a_run_without_situations_has_nothing_of_them(kind):
    run = {
        "pairs": lambda: make_run(6, truth=True),
        "evidence": lambda: make_run(6, evidence=True),
        "candidates": lambda: make_run(40, candidates=4),
    }[kind]()
    content = run_content(run)
    assert content["situations"] is None
    assert not NEW_KEYS & set(content["data"])
    assert "varies" not in content["columns"]
    assert "varies" not in content["data"]["edges"]


def test_where_no_edge_varies_only_the_column_says_so():
    run = with_rows(varying_run(), None)
    content = run_content(run)
    assert content["situations"] is None
    assert not NEW_KEYS & set(content["data"])
    assert "varies" in content["data"]["edges"]
    assert "varies" in content["columns"]


def test_only_nodes_whose_edges_have_regimes_have_a_strip():
    run = regimes_run(own=True)
    rows = run.edges.by
    kept = [row for row, node in enumerate(rows.target) if node in (1, 4)]
    fewer = rows.model_copy(update={name: [values[row] for row in kept] for name, values in rows})
    content = run_content(with_rows(run, fewer))["situations"]
    assert content["blocks"] == [(1, "node 1"), (4, "node 4")]
    assert content["tables"][0]["values"] == ["regime 1 (62% to 68%)", "regime 2 (32% to 38%)"]


def test_the_figure_has_six_panels_at_most_and_is_there_only_where_edges_vary(tmp_path):
    run = varying_run(count=8)
    drawn = {path.name for path in draw_figures(run, tmp_path / "varying")}
    assert {"edges_by.png", "edges_by.pdf", "edges_by.svg"} <= drawn
    again = {path.name: path.read_bytes() for path in draw_figures(run, tmp_path / "again")}
    assert again["edges_by.pdf"] == (tmp_path / "varying" / "edges_by.pdf").read_bytes()
    assert (tmp_path / "varying" / "edges_by.svg").read_text().count('id="axes_') == 6
    assert not [path for path in draw_figures(make_run(5), tmp_path / "none") if path.name.startswith("edges_by")]


def test_the_figure_takes_any_label(tmp_path):
    labels = ("$\\frac{1}", "</svg><script>", "a very long label of a level that has no end")
    paths = draw_figures(category_run(labels, by="$x", names=[f"$n_{k}$" for k in range(6)]), tmp_path)
    assert "</svg><script>" not in next(path for path in paths if path.name == "edges_by.svg").read_text()

"""The committed page about trust is what the committed figures give, and they meet their targets."""

import statistics

import pytest

from benchmark_pages import drawing_of


@pytest.fixture(scope="module")
def drawing():
    return drawing_of("trust_page")


def test_the_page_is_drawn_from_the_figures(drawing):
    assert drawing.PAGE.read_text(encoding="utf-8") == drawing.page(drawing.RESULTS)


def test_intervals_hold_as_often_as_they_say(drawing):
    figures = drawing._read(drawing.RESULTS, "coverage")
    assert figures["sets"] >= 10
    for (psi, level), (low, high) in drawing.TARGETS.items():
        shares = [row[f"held_{level}"] / 50 for row in figures["rows"] if row["psi"] == psi]
        assert len(shares) == figures["sets"]
        assert low <= statistics.mean(shares) <= high


def test_the_kernel_test_has_its_level_and_power(drawing):
    values = drawing._read(drawing.RESULTS, "level")["p_values"]
    assert len(values) == 1000
    assert 0.035 <= drawing._rejected(values) <= 0.065
    wrong = drawing._read(drawing.RESULTS, "power")["p_values"]
    assert len(wrong) == 3
    for found in wrong.values():
        assert len(found) >= 100
        assert drawing._rejected(found) > 0.95


def test_the_diagonal_of_a_generic_gnn_is_flagged_and_nothing_else(drawing):
    for row in drawing._read(drawing.RESULTS, "flags")["rows"]:
        assert (row["diagonal"], row["elsewhere"]) == (12, 0)


@pytest.mark.parametrize(("kind", "most"), [("cuda", 4), ("cpu", 12)])
def test_standard_errors_cost_no_more_than_they_may(drawing, kind, most):
    for row in drawing._read(drawing.RESULTS, f"cost_{kind}")["rows"]:
        assert row["bootstrap"] <= most * row["fit"]

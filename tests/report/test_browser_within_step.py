"""A page with effects within a step in a real browser: a pair whose direction is open has no arrow."""

from dataclasses import replace

import pytest
import torch

from browser_waits import until
from made_runs import make_run
from tacit.edges import EdgeTable, edges_text
from tacit.pipeline.simultaneous import within_columns
from tacit.records import Run
from within_step_runs import NODES, made_within

pytestmark = pytest.mark.browser
ARROWS = "document.querySelector('.network').data.find(trace => trace.name === 'arrows')"


def within_run():
    """The run of the effects that were written by hand: a - b without an arrow, three edges with one."""
    exists, within = made_within()
    probability = torch.where(exists >= 0.1, 0.8, 0.0)
    columns = {"exists": exists.double(), "effect": torch.full((5, 5), 0.3), "probability": probability}
    edges = EdgeTable.of_matrices(NODES, **columns, **within_columns(within))
    record = make_run(5, names=list(NODES), evidence=True).record
    evidence = {**record.evidence, "listed_from": 0.98, "required": [], "keep": 0.1}
    text = edges_text(replace(edges, keep=0.1))
    return Run.of(record.model_copy(update={"evidence": evidence}), [], {"edges.csv": text})


@pytest.fixture(scope="module")
def page(shared, page_file):
    return shared(page_file("within", within_run))


def test_an_open_pair_is_drawn_once_without_an_arrow_head(page):
    until(page, f"{ARROWS}.x.length === 4")
    assert sorted(page.evaluate(f"{ARROWS}.marker.symbol")) == ["circle", *["triangle-up"] * 3]
    texts = page.evaluate(f"{ARROWS}.hovertext")
    pair = next(text for text in texts if text.startswith("a — b"))
    assert "exists 0.990, listed" in pair
    assert "acts within the step 0.990" in pair
    assert "direction open: either direction fits the data" in pair
    assert any("b → c" in text and "direction learned from non-Gaussian noise" in text for text in texts)
    assert "no arrow" in page.inner_text(".graph figcaption")


def test_the_table_says_how_directions_are_known(page):
    heads = page.locator(".edge-table th").all_inner_texts()
    direction = next(place for place, head in enumerate(heads) if head.startswith("direction"))
    rows = [row.locator("td").all_inner_texts() for row in page.locator(".edge-table tbody tr").all()]
    found = {(row[0], row[1]): row[direction] for row in rows}
    assert found["a", "b"] == "open (no arrow)"
    assert ("b", "a") not in found
    assert (found["b", "c"], found["c", "d"], found["d", "e"]) == ("learned", "lagged parents", "time")


def test_the_matrix_has_an_open_pair_in_both_cells(page):
    cells = page.evaluate("document.querySelector('[data-shows=exists]').data[0].z")
    assert cells[1][0] == cells[0][1] == pytest.approx(0.99)
    assert cells[2][1] == pytest.approx(0.99)
    assert cells[1][2] == pytest.approx(0.01)


def test_a_node_names_its_open_pairs(page):
    page.locator(".search").fill("b")
    until(page, "document.querySelector('.graph .found').textContent.includes('without an arrow a 0.99')")
    page.locator(".clear-search").click()

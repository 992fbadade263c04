"""A page with both numbers in a real browser: what is drawn, dashed and coloured; pointer, table and matrix."""

import numpy as np
import pytest

from browser_waits import until
from made_runs import make_run, with_record

pytestmark = pytest.mark.browser

NODES = 10
LINES = """() => document.querySelector('.network').data.filter(trace => trace.mode === 'lines')
    .reduce((sum, trace) => sum + trace.meta.edges, 0)"""


def evident_run(**changes):
    return make_run(NODES, evidence=True, errors=True, flags=True, **changes)


def off_diagonal(run):
    return np.where(np.eye(NODES) == 1, -1, run.edges.matrix("exists"))


@pytest.fixture(scope="module")
def page(shared, page_file):
    return shared(page_file("evidence", evident_run))


def test_the_listed_edges_are_drawn_and_others_are_dashed(page):
    run = evident_run()
    exists = off_diagonal(run)
    listed = int((exists >= 0.9).sum())
    until(page, f"({LINES})() === {listed}")
    dashes = (
        "[...new Set(document.querySelector('.network').data.filter(t => t.mode === 'lines').map(t => t.line.dash))]"
    )
    assert page.evaluate(dashes) == ["solid"]
    assert page.inner_text(".graph .count").startswith(f"{listed} edges of 90 exist with probability 0.50 or more")
    page.locator(".threshold-number").fill("0.05")
    more = int((exists >= 0.05).sum())
    assert more > listed
    until(page, f"({LINES})() === {more}")
    dashed = page.evaluate(
        "document.querySelector('.network').data.filter(t => t.line?.dash === 'dash')"
        ".reduce((sum, trace) => sum + trace.meta.edges, 0)"
    )
    assert dashed == more - listed
    page.locator(".threshold-number").fill("0.90")
    until(page, f"({LINES})() === {listed}")


def test_colours_are_the_signs_of_the_effects(page):
    run = evident_run()
    effect = np.where(off_diagonal(run) >= 0.9, run.edges.matrix("effect"), 0)
    counts = page.evaluate(
        "['0,114,178', '213,94,0'].map(hue => document.querySelector('.network').data"
        ".filter(t => t.mode === 'lines' && t.line.color.includes(hue)).reduce((sum, t) => sum + t.meta.edges, 0))"
    )
    assert counts == [int((effect > 0).sum()), int((effect < 0).sum())]
    assert min(counts) > 0
    assert page.locator(".legend .swatch").count() == 4


def test_the_pointer_says_both_numbers(page):
    run = evident_run()
    exists = off_diagonal(run)
    i, j = np.unravel_index(exists.argmax(), exists.shape)
    words = page.evaluate("document.querySelector('.network').data.find(t => t.name === 'arrows').hovertext.at(-1)")
    probability, effect = run.edges.matrix("probability")[i][j], run.edges.matrix("effect")[i][j]
    sign = "−" if effect < 0 else "+"
    assert words.split("<br>")[:3] == [
        f"node {j} → node {i}",
        f"exists {exists[i, j]:.3f}, listed",
        f"acts {probability:.3f}",
    ]
    assert f"effect {sign}{abs(effect):.3f} standard deviations of the target" in words


def test_the_table_is_sorted_by_what_exists_and_has_no_probability_of_others(page):
    run = evident_run()
    exists = off_diagonal(run)
    assert page.locator("th[data-column=exists]").get_attribute("aria-sort") == "descending"
    page.locator(".least").fill("0.0")
    first = page.evaluate("[...document.querySelector('.edge-table tbody tr').cells].map(cell => cell.innerText)")
    assert first[2] == f"{exists.max():.3f}"
    assert page.inner_text(".edges .rows").startswith("90 edges of 100, without self-loops")
    page.get_by_role("button", name="Last").click()
    last = page.evaluate("[...document.querySelector('.edge-table tbody tr:last-child').cells].map(c => c.innerText)")
    assert last[3:7] == ["–"] * 4
    page.locator("th[data-column=probability] button").click()
    acts = page.evaluate("[...document.querySelectorAll('.edge-table tbody tr')].map(row => row.cells[3].innerText)")
    assert acts == sorted(acts, key=lambda cell: -1 if cell == "–" else float(cell), reverse=True)
    page.locator(".least").fill("0.9")
    assert page.inner_text(".edges .rows").startswith(f"{(exists >= 0.9).sum()} edges of 100")
    page.locator("th[data-column=exists] button").click()


def test_the_matrix_of_how_often_edges_act_is_empty_where_they_are_not_kept(page):
    run = evident_run()
    z = page.evaluate("[...document.querySelectorAll('.matrix')].map(plot => plot.data[0].z)")
    assert len(z) == 2
    assert np.array(z[0]) == pytest.approx(run.edges.matrix("exists"), abs=1e-6)
    shown = np.array(z[1], dtype=float)
    assert np.array_equal(np.isnan(shown), run.edges.matrix("exists") < 0.1)


def test_a_search_names_listed_edges(page):
    run = evident_run()
    exists = off_diagonal(run)
    page.locator(".search").fill("node 3")
    best = int(exists[3].argmax())
    words = page.inner_text(".graph .found")
    assert words.startswith(f"node 3: listed inputs node {best} {exists[3, best]:.2f}")
    assert "orange" not in words
    page.locator(".clear-search").click()


def test_where_nothing_is_listed_nothing_is_drawn(opened, page_file):
    def nothing():
        run = evident_run(answer=["No graph found: no edge is listed."])
        return with_record(run, evidence={**run.record.evidence, "listed_from": None})

    page = opened(page_file("nothing", nothing))
    until(page, f"({LINES})() === 0")
    assert "no edge is listed: lower the probability to see candidates" in page.inner_text(".graph .count")
    assert page.inner_text(".verdict.first").startswith("No graph found: no edge is listed.")
    assert page.locator(".leading").count() == 0


def test_many_candidates(opened, page_file):
    page = opened(page_file("evident-candidates", lambda: make_run(450, candidates=4, evidence=True)))
    run = make_run(450, candidates=4, evidence=True)
    counts = page.evaluate("document.querySelector('.histogram').data[0].y")
    assert counts[-1] == sum(value >= 0.95 for value in run.edges["exists"])
    assert (
        page.evaluate("document.querySelector('.histogram').layout.title.text")
        == "probability that the candidates exist"
    )

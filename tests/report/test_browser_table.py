"""The table of edges in a real browser: sorted, filtered, page by page, and handed on as a file."""

import csv
import io

import numpy as np
import pytest

from made_runs import make_run, with_edges

pytestmark = pytest.mark.browser

NODES = 14
NAMES = [f"site {node}" for node in range(NODES - 3)] + ["=HYPERLINK(1)", 'a "b", c', "-5"]


def table_run():
    run = make_run(NODES, names=NAMES, errors=True, flags=True, truth=True)
    probs = run.edges.matrix("probability").copy()
    probs[2, 5] = 0.7  # as stored in 32 bits it is less than 0.7
    return with_edges(run, probability=probs)


def edges_of(run, loops=False):
    """Source, target and probability of every edge, the most probable first."""
    names = run.record.node_names
    found = [
        (names[j], names[i], p)
        for i, row in enumerate(run.edges.matrix("probability"))
        for j, p in enumerate(row)
        if loops or i != j
    ]
    return sorted(found, key=lambda edge: -edge[2])


def rows(page, column=None):
    """The rows that are seen, or one of their columns."""
    found = page.evaluate(
        "[...document.querySelectorAll('.edge-table tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return found if column is None else [row[column] for row in found]


@pytest.fixture(scope="module")
def page(shared, page_file):
    return shared(page_file("table", table_run), accept_downloads=True)


@pytest.fixture
def table(page):
    """The table as it was when the page was opened."""
    page.locator(".filter").fill("")
    page.locator(".least").fill("0")
    page.locator(".loops").uncheck()
    head = page.locator("th[data-column=probability]")
    while head.get_attribute("aria-sort") != "descending":
        head.get_by_role("button").click()
    return page


def test_the_most_probable_edges_are_first_with_all_that_is_known(table):
    run = table_run()
    first = edges_of(run)[0]
    i, j = NAMES.index(first[1]), NAMES.index(first[0])
    truth = run.record.true_edge_probs[i][j]
    flag = {"yes": "yes", "no": "no"}[run.edges.matrix("identifiable")[i][j]]
    numbers = (first[2], 0.1 * first[2], 0.8 * first[2], min(1, 1.2 * first[2]))
    wanted = [*first[:2], *(f"{number:.3f}" for number in numbers), flag, f"{truth:.3f}"]
    assert rows(table)[0][:8] == wanted
    assert float(rows(table)[0][8]) == pytest.approx(abs(first[2] - truth), abs=1.01e-3)
    assert [float(p) for p in rows(table, 2)] == pytest.approx([e[2] for e in edges_of(run)[:25]], abs=5.1e-4)
    assert (
        table.locator(".rows").inner_text() == f"{NODES * NODES - NODES} edges of {NODES * NODES}, without self-loops."
    )


def test_it_sorts_both_ways_by_every_column(table):
    heads = table.locator(".edge-table th")
    for place in range(heads.count()):
        head = heads.nth(place)
        seen = {}
        for _ in range(2):
            head.get_by_role("button").click()
            values = rows(table, place)
            seen[head.get_attribute("aria-sort")] = values
            assert table.locator(".edge-table th[aria-sort]").count() == 1
        assert set(seen) == {"ascending", "descending"}
        if place >= 2 and head.get_attribute("data-column") != "identifiable":
            up, down = ([float(value) for value in seen[way]] for way in ("ascending", "descending"))
            assert up == sorted(up)
            assert down == sorted(down, reverse=True)
            assert up[0] < down[0]
        else:
            assert seen["ascending"][0] != seen["descending"][0]
    heads.nth(0).get_by_role("button").click()
    order = list(dict.fromkeys(_all_pages(table, 0)))
    assert order.index("site 2") < order.index("site 10")  # numbers inside names count as numbers


def _all_pages(table, column):
    found = rows(table, column)
    while table.locator("[data-page=next]").is_enabled():
        table.locator("[data-page=next]").click()
        found += rows(table, column)
    return found


def test_it_filters_by_name_and_probability(table):
    run = table_run()
    table.locator(".filter").fill("SITE 1")
    table.locator(".least").fill("0.05")
    wanted = [e for e in edges_of(run) if ("site 1" in e[0] or "site 1" in e[1]) and e[2] >= 0.05]
    assert 0 < len(wanted) < 100
    assert list(zip(_all_pages(table, 0), strict=True)) == [(edge[0],) for edge in wanted]
    assert table.locator(".rows").inner_text().startswith(f"{len(wanted)} edges of ")
    table.locator(".filter").fill("site 10 -> site 4")
    table.locator(".least").fill("0")
    assert [row[:2] for row in rows(table)] == [["site 10", "site 4"]]
    table.locator(".filter").fill("")
    table.locator(".least").fill("0.7")
    assert ["site 5", "site 2", "0.700"] in [row[:3] for row in rows(table)]
    table.locator(".filter").fill("nobody")
    assert rows(table) == []
    assert "0 edges of" in table.locator(".rows").inner_text()


def test_loops_are_there_when_asked_for(table):
    assert all(source != target for source, target in _all_pages(table, slice(2)))
    table.locator(".loops").check()
    assert table.locator(".rows").inner_text() == f"{NODES * NODES} edges of {NODES * NODES}."


def test_pages_turn(table):
    edges, number = edges_of(table_run()), table.locator(".page-number")
    assert number.inner_text() == "Page 1 of 8"
    assert table.locator("[data-page=previous]").is_disabled()
    table.locator("[data-page=next]").click()
    assert rows(table)[0][:2] == list(edges[25][:2])
    table.locator("[data-page=last]").click()
    assert number.inner_text() == "Page 8 of 8"
    assert len(rows(table)) == len(edges) - 7 * 25
    assert table.locator("[data-page=next]").is_disabled()
    table.locator("[data-page=first]").click()
    assert rows(table)[0][:2] == list(edges[0][:2])


def download(page):
    with page.expect_download() as waiting:
        page.locator(".download").click()
    assert waiting.value.suggested_filename == "edges.csv"
    return list(csv.DictReader(io.StringIO(waiting.value.path().read_text(encoding="utf-8"), newline="")))


def test_the_file_is_what_the_table_shows(table):
    run = table_run()
    table.locator(".filter").fill("site")
    table.locator(".least").fill("0.2")
    wanted = [edge for edge in edges_of(run) if ("site" in edge[0] or "site" in edge[1]) and edge[2] >= 0.2]
    found = download(table)
    assert list(found[0]) == [
        "source", "target", "exists", "probability", "std_error", "low", "high", "effect", "lag", "identifiable",
        "within_step", "direction", "varies", "changed", "group", "acting", "gate_nats", "together", "truth",
    ]  # fmt: skip
    names = [(row["source"].removeprefix("'"), row["target"].removeprefix("'")) for row in found]
    assert names == [edge[:2] for edge in wanted]
    assert [float(row["probability"]) for row in found] == [edge[2] for edge in wanted]
    flags = {(NAMES[j], NAMES[i]): run.edges.matrix("identifiable")[i][j] for i, j in np.ndindex(NODES, NODES)}
    assert [row["identifiable"] for row in found] == [flags[edge[:2]] for edge in wanted]


def test_a_name_in_the_file_is_no_formula(table):
    """An apostrophe before what a spreadsheet would run; a plain number and a quoted text stay as they are."""
    sources = {row["source"] for row in download(table)}
    assert sources == {*NAMES} - {"=HYPERLINK(1)"} | {"'=HYPERLINK(1)"}


def test_many_candidates_show_a_few_rows_at_a_time(opened, page_file):
    """Fifty thousand rows are sorted and filtered, and a few are drawn."""
    run = make_run(1000, candidates=50)
    page = opened(page_file("candidates", lambda: run))
    assert page.locator(".rows").inner_text() == "50,000 edges of 50,000."
    page.evaluate("""() => {
        document.querySelector("th[data-column=source] button").click();
        const filter = document.querySelector(".filter");
        filter.value = "node 99";
        filter.dispatchEvent(new Event("input"));
    }""")
    nines = [
        ("99" in f"{i}"[:2]) or ("99" in f"{j}"[:2])
        for i, j in zip(run.edges.index.source, run.edges.index.target, strict=True)
    ]
    assert page.locator(".rows").inner_text() == f"{sum(nines):,} edges of 50,000."
    assert page.locator(".edge-table tbody tr").count() <= 100

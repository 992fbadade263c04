"""The export menu: files that other programs read, with the edges at the threshold of the drawing, and images."""

import csv
import io
import struct
from xml.etree import ElementTree

import networkx as nx
import pytest

from browser_waits import until
from made_runs import make_run, run_of_matrices

pytestmark = pytest.mark.browser

NAMES = ['"a" & <b>', "line\nbreak\ttab", "=1+1", "bell \x07", "größe 'x'", "plain"]


def named_run():
    return make_run(len(NAMES), names=NAMES, evidence=True, errors=True, coordinates=True)


def wanted_edges():
    """Source, target and exists of the edges at 0.9 or more."""
    run = named_run()
    rows = zip(run.edges.index.source, run.edges.index.target, run.edges["exists"], strict=True)
    return {(NAMES[i], NAMES[j]): exists for i, j, exists in rows if i != j and exists >= 0.9}


@pytest.fixture(scope="module")
def page(shared, page_file):
    found = shared(
        page_file("export", named_run), accept_downloads=True, permissions=["clipboard-read", "clipboard-write"]
    )
    found.locator(".threshold-number").fill("0.9")
    found.locator(".graph .export summary").click()
    return found


def saved(page, selector):
    with page.expect_download() as waiting:
        page.locator(selector).click()
    return waiting.value.suggested_filename, waiting.value.path()


def test_graphml_opens_in_networkx(page):
    name, path = saved(page, "[data-export=graphml]")
    assert name == "graph.graphml"
    graph = nx.read_graphml(path)
    assert graph.is_directed()
    names = [name.replace("\x07", "\ufffd") for name in NAMES]  # XML has no such character
    assert list(graph.nodes) == names
    wanted = {tuple(end.replace("\x07", "\ufffd") for end in edge): value for edge, value in wanted_edges().items()}
    assert len(wanted) > 3
    assert {edge[:2]: edge[2] for edge in graph.edges(data="exists")} == pytest.approx(wanted)
    assert set(next(iter(graph.edges(data=True)))[2]) == {"exists", "probability", "std_error", "low", "high", "effect"}
    latitude, longitude = named_run().record.coordinates[5]
    assert graph.nodes["plain"] == pytest.approx({"x": longitude, "y": latitude}, abs=1e-4)
    assert page.inner_text(".exported") == f"{len(wanted)} edges saved as graph.graphml."


def test_the_code_makes_the_graph_in_networkx(page):
    page.locator("[data-export=networkx]").click()
    until(page, "document.querySelector('.exported').textContent.includes('copied')")
    made = {}
    exec(page.evaluate("navigator.clipboard.readText()"), made)  # code that a reader would run
    graph = made["graph"]
    assert list(graph.nodes) == NAMES
    assert {edge[:2]: edge[2] for edge in graph.edges(data="exists")} == pytest.approx(wanted_edges())


def test_csv_has_the_edges_of_the_drawing(page):
    name, path = saved(page, "[data-export=csv]")
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    assert name == "edges.csv"
    found = {(row["source"].removeprefix("'"), row["target"].removeprefix("'")): row["exists"] for row in rows}
    assert {edge: float(value) for edge, value in found.items()} == pytest.approx(wanted_edges())


@pytest.mark.parametrize("part", ["graph", "matrix-exists"])
def test_images(page, part):
    buttons = {"graph": "[data-export={}]", "matrix-exists": "[data-image=exists][data-format={}]"}[part]
    if part != "graph":
        page.locator(".matrices .export summary").click()
    name, path = saved(page, buttons.format("png"))
    assert name == f"{part}.png"
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width > 600
    assert height > 600
    name, path = saved(page, buttons.format("svg"))
    assert name == f"{part}.svg"
    texts = [text for text in ElementTree.parse(path).getroot().itertext() if text.strip()]
    assert "plain" in texts
    assert '"a" & <b>' in texts


def test_edges_without_direction_make_an_undirected_graph(opened, page_file):
    def undirected():
        record = make_run(3, config={"graph": {"symmetric": True}}).record
        return run_of_matrices(record, probability=[[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])

    page = opened(page_file("export undirected", undirected), accept_downloads=True)
    page.locator(".graph .export summary").click()
    graph = nx.read_graphml(saved(page, "[data-export=graphml]")[1])
    assert not graph.is_directed()
    assert list(graph.edges(data="probability")) == [("node 0", "node 1", 0.9)]

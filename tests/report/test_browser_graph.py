"""The drawn graph in a real browser: the slider, the search, the pointer; counts are of what stands in the drawing."""

import numpy as np
import pytest

from browser_waits import point_at, until
from made_runs import make_run, with_edges

pytestmark = pytest.mark.browser

NODES = 14
COUNT = "section:nth-of-type(1) .graph .count"
# Lines are separated by a gap each; arrows and nodes are elements of their own.
LINES = """() => document.querySelector('.network').data.filter(trace => trace.mode === 'lines')
    .reduce((sum, trace) => sum + trace.x.filter(x => x === null).length, 0)"""
POINTS = "() => document.querySelectorAll('.network path.point').length"


def plain_run():
    return make_run(NODES, errors=True, flags=True)


def drawn(run, threshold):
    """How many edges are identifiable and as probable as that."""
    flags = run.edges.matrix("identifiable")
    probs = np.where(flags == "yes", run.edges.matrix("probability"), -1)
    return int((probs >= threshold).sum())


@pytest.fixture(scope="module")
def page(shared, page_file):
    return shared(page_file("graph", plain_run))


@pytest.fixture
def graph(page):
    """The page as it was when it was opened."""
    page.locator(".clear-search").click()
    page.locator(".show-hidden").uncheck()
    page.locator(".threshold-number").fill("0.10")
    page.get_by_role("button", name="Whole graph").click()
    wait_for_lines(page, drawn(plain_run(), 0.10))
    return page


def wait_for_lines(page, count):
    until(page, f"({LINES})() === {count} && ({POINTS})() === {count + NODES}")


def test_the_slider_changes_how_many_edges_are_drawn(graph):
    run = plain_run()
    wait_for_lines(graph, drawn(run, 0.10))
    slider = graph.locator(".threshold")
    slider.focus()
    for _ in range(20):
        graph.keyboard.press("ArrowRight")
    assert slider.input_value() == "0.3"
    assert graph.locator(".threshold-number").input_value() == "0.30"
    wait_for_lines(graph, drawn(run, 0.30))
    assert 0 < drawn(run, 0.30) < drawn(run, 0.10)
    identifiable = NODES * NODES - NODES - int((run.edges.matrix("identifiable") == "no").sum())
    words = f"{drawn(run, 0.3)} edges of {identifiable} with probability 0.30 or more, {drawn(run, 0.3)} drawn"
    assert graph.locator(COUNT).inner_text().startswith(words)
    graph.keyboard.press("End")
    wait_for_lines(graph, drawn(run, 1.0))


def test_the_slider_follows_the_mouse_and_the_number(graph):
    run = plain_run()
    box = graph.locator(".threshold").bounding_box()
    graph.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert float(graph.locator(".threshold").input_value()) == pytest.approx(0.5, abs=0.02)
    wait_for_lines(graph, drawn(run, float(graph.locator(".threshold").input_value())))
    graph.locator(".threshold-number").fill("0.05")
    wait_for_lines(graph, drawn(run, 0.05))
    assert graph.locator(".threshold").input_value() == "0.05"
    graph.locator(".threshold-number").fill("7")  # no probability: nothing changes before it is left
    assert graph.locator(".threshold").input_value() == "0.05"
    graph.locator(".threshold-number").press("Tab")
    assert graph.locator(".threshold-number").input_value() == "1.00"
    wait_for_lines(graph, drawn(run, 1.0))


def test_zooming_out_ends(graph):
    for _ in range(12):
        graph.get_by_role("button", name="Zoom out").first.click()
    low, high = graph.evaluate("document.querySelector('.network').layout.xaxis.range")
    graph.get_by_role("button", name="Whole graph").click()
    whole = graph.evaluate("document.querySelector('.network').layout.xaxis.range")
    assert high - low < 6 * (whole[1] - whole[0])


def test_edges_without_direction(opened, page_file):
    probs = np.array([[1, 0.9, 0.2], [0.9, 1, 0.0], [0.2, 0.0, 1]])

    def symmetric():
        run = make_run(3, config={"graph": {"symmetric": True}})
        return with_edges(run, probability=probs)

    page = opened(page_file("symmetric", symmetric))
    until(page, f"({LINES})() === 2")
    assert "2 edges of 3" in page.locator(".graph .count").inner_text()
    shown = page.evaluate("document.querySelector('.matrix').data[0].z")
    assert np.allclose(shown, probs)
    page.locator(".search").fill("node 0")
    assert page.locator(".graph .found").inner_text() == "node 0: most probable edges to node 1 0.90, node 2 0.20."


def test_a_node_that_is_not_drawn_leaves_the_others_as_they_are(opened, page_file):
    page = opened(page_file("many", lambda: make_run(1500, candidates=4)))
    run = page.evaluate("JSON.parse(document.getElementById('data').textContent).runs[0]")
    hidden = next(node for node in range(1500) if node not in set(run["places"]["node"]))
    page.locator(".search").fill(run["nodes"][hidden])
    assert "The node is not drawn." in page.locator(".graph .found").inner_text()
    faint = "document.querySelector('.network').data.filter(trace => trace.meta && trace.meta.role === 'faint').length"
    assert page.evaluate(faint) == 0


def test_edges_that_cannot_be_told_are_left_out_or_dotted(graph):
    run = plain_run()
    hidden = int(((run.edges.matrix("identifiable") == "no") & (run.edges.matrix("probability") >= 0.1)).sum())
    assert f"{hidden} more are not identifiable and not drawn" in graph.locator(COUNT).inner_text()
    graph.locator(".show-hidden").check()
    wait_for_lines(graph, drawn(run, 0.1) + hidden)
    dotted = graph.evaluate(
        "document.querySelector('.network').data.filter(t => t.mode === 'lines' && t.line.dash === 'dot')"
        ".reduce((sum, trace) => sum + trace.x.filter(x => x === null).length, 0)"
    )
    assert dotted == hidden


def test_too_many_edges_are_said_to_be_too_many(opened, page_file):
    page = opened(page_file("n120", full_run))
    page.locator(".threshold-number").fill("0")
    until(page, f"({LINES})() === 300")
    assert (
        "14,280 edges of 14,280 with probability 0.00 or more, 300 drawn; only the 300 most probable"
        in page.inner_text(COUNT)
    )


def full_run():
    return make_run(120, truth=True, errors=True)


def test_a_search_marks_the_node_and_its_edges(graph):
    run = plain_run()
    flags, probs = run.edges.matrix("identifiable"), run.edges.matrix("probability")
    shown = (flags == "yes") & (probs >= 0.1)
    search = graph.locator(".search")
    search.focus()
    graph.keyboard.type("NODE 3")
    until(graph, "document.querySelector('.network').data.some(t => t.meta?.role === 'incoming')")
    counts = graph.evaluate(
        "Object.fromEntries(['incoming', 'outgoing', 'faint'].map(role => [role, "
        "document.querySelector('.network').data.filter(t => t.meta?.role === role)"
        ".reduce((sum, t) => sum + t.meta.edges, 0)]))"
    )
    reads, sends = int(shown[3].sum()), int(shown[:, 3].sum())
    assert counts == {"incoming": reads, "outgoing": sends, "faint": int(shown.sum()) - reads - sends}
    symbols = graph.evaluate("document.querySelector('.network').data.at(-1).marker.symbol")
    assert [node for node, symbol in enumerate(symbols) if symbol == "diamond"] == [3]
    words = graph.locator(".graph .found").inner_text()
    best = max((p, j) for j, p in enumerate(probs[3]) if flags[3][j] == "yes")
    assert words.startswith(f"node 3: most probable inputs node {best[1]} {best[0]:.2f}")
    graph.keyboard.press("Escape")
    until(graph, "!document.querySelector('.network').data.some(t => t.meta?.role === 'faint')")
    assert graph.locator(".graph .found").inner_text() == ""


def test_a_search_for_part_of_a_name_or_for_none(graph):
    search, found = graph.locator(".search"), graph.locator(".graph .found")
    search.fill("zebra")
    assert found.inner_text() == "No node has a name that contains “zebra”."
    search.fill("ode 1")
    assert found.inner_text() == "5 names contain this; press Enter for node 1."
    search.press("Enter")
    assert found.inner_text().startswith("node 1: most probable inputs")
    graph.locator(".clear-search").click()
    assert search.input_value() == ""
    assert graph.locator("datalist option").count() == NODES


def test_the_pointer_on_an_edge_says_what_is_known(graph):
    run = plain_run()
    arrows = "plot.data.find(trace => trace.name === 'arrows')"
    _, said = point_at(graph, ".network", f"(({{ x, y }}) => [x.at(-1), y.at(-1)])({arrows})")
    flags, probs = run.edges.matrix("identifiable"), run.edges.matrix("probability")
    i, j = np.unravel_index(np.where(flags == "yes", probs, -1).argmax(), probs.shape)
    assert said == [
        f"node {j} → node {i}",
        f"probability {probs[i, j]:.3f}",
        f"standard error {0.1 * probs[i, j]:.3f}, 95% interval {0.8 * probs[i, j]:.3f} to "
        f"{min(1, 1.2 * probs[i, j]):.3f}",
        "identifiable from the data",
    ]


def test_the_graph_zooms_by_button_and_key_and_comes_back(graph):
    width = "(() => { const [a, b] = document.querySelector('.network').layout.xaxis.range; return b - a; })()"
    before = graph.evaluate(width)
    graph.get_by_role("group", name="Zoom of the graph").get_by_role("button", name="Zoom in").click()
    assert graph.evaluate(width) == pytest.approx(0.6 * before, rel=0.01)
    graph.locator(".network").focus()
    graph.keyboard.press("+")
    assert graph.evaluate(width) == pytest.approx(0.36 * before, rel=0.01)
    graph.keyboard.press("0")
    assert graph.evaluate(width) == pytest.approx(before, rel=0.01)


def test_coordinates_make_a_map(opened, page_file):
    page = opened(page_file("map", lambda: make_run(8, coordinates=True)))
    run = make_run(8, coordinates=True)
    nodes = page.evaluate("(({ x, y }) => ({ x, y }))(document.querySelector('.network').data.at(-1))")
    places = np.array(run.record.coordinates)
    assert nodes["x"] == pytest.approx(places[:, 1].tolist(), rel=1e-6)
    assert nodes["y"] == pytest.approx(places[:, 0].tolist(), rel=1e-6)
    assert page.evaluate("document.querySelector('.network').layout.xaxis.title.text") == "longitude"

"""The matrix in a real browser: what the pointer says, and zooms that all panels share."""

import pytest

from browser_waits import middle_of, point_at, until
from made_runs import make_run

pytestmark = pytest.mark.browser

VIEWS = (
    """() => [...document.querySelectorAll('.matrix')].map(({ layout }) => [layout.xaxis.range, layout.yaxis.range])"""
)


def matrix_run():
    return make_run(20, truth=True, errors=True, flags=True)


@pytest.fixture(scope="module")
def page(shared, page_file):
    return shared(page_file("matrix", matrix_run))


@pytest.fixture
def matrix(page):
    page.get_by_role("button", name="Whole matrix").click()
    return page


def test_three_panels_show_learned_truth_and_error(matrix):
    run = matrix_run()
    z = matrix.evaluate("[...document.querySelectorAll('.matrix')].map(plot => plot.data[0].z)")
    for i in range(20):
        assert z[0][i] == pytest.approx(run.edges.matrix("probability")[i], abs=1e-6)
        assert z[1][i] == pytest.approx(run.record.true_edge_probs[i], abs=1e-6)
    assert z[2][3][4] == pytest.approx(
        abs(run.edges.matrix("probability")[3][4] - run.record.true_edge_probs[3][4]), abs=1e-6
    )


def test_the_pointer_says_source_and_target(matrix):
    """Row 3 reads column 4; the middle of the cell is found from the axes."""
    run = matrix_run()
    _, said = point_at(matrix, ".matrix[data-shows=error]", "[4, 3]")
    learned, truth = run.edges.matrix("probability")[3][4], run.record.true_edge_probs[3][4]
    assert said[:2] == ["node 4 → node 3", f"probability {learned:.3f}"]
    assert said[3].startswith(f"truth {truth:.3f}, error ")


def test_a_dragged_part_is_shown_by_all_and_the_button_brings_the_whole_back(matrix):
    x, y = middle_of(matrix, ".matrix[data-shows=probability]")
    whole = matrix.evaluate(VIEWS)
    assert whole == [[[-0.5, 19.5], [19.5, -0.5]]] * 3
    matrix.mouse.move(x - 60, y - 60)
    matrix.mouse.down()
    matrix.mouse.move(x + 10, y + 10, steps=4)
    matrix.mouse.up()
    until(matrix, "document.querySelector('.matrices .seen').textContent.includes(' to ')")
    views = matrix.evaluate(VIEWS)
    assert views[0] == views[1] == views[2]
    (left, right), (bottom, top) = views[0]
    assert -0.5 <= left < right < 19.5
    assert bottom > top
    assert right - left < 12
    assert f"Sources {left + 1.5:.0f} to {right + 0.5:.0f} of 20" in matrix.locator(".matrices .seen").inner_text()
    matrix.get_by_role("button", name="Whole matrix").click()
    assert matrix.evaluate(VIEWS) == whole


def test_keys_zoom_move_and_bring_back(matrix):
    matrix.locator(".matrix[data-shows=truth]").focus()
    matrix.keyboard.press("+")
    assert matrix.evaluate(VIEWS) == [[[3.5, 15.5], [15.5, 3.5]]] * 3
    matrix.keyboard.press("ArrowRight")
    matrix.keyboard.press("ArrowUp")
    assert matrix.evaluate(VIEWS) == [[[6.5, 18.5], [12.5, 0.5]]] * 3
    matrix.keyboard.press("-")
    matrix.keyboard.press("0")
    assert matrix.evaluate(VIEWS) == [[[-0.5, 19.5], [19.5, -0.5]]] * 3


def test_of_many_nodes_a_cell_is_a_block_until_one_looks_closer(opened, page_file):
    page = opened(page_file("candidates", lambda: make_run(1000, candidates=50)))
    run = make_run(1000, candidates=50)
    heat = """() => {
        const { z, dx } = document.querySelector('.matrix').data[0];
        return { rows: z.length, dx, top: Math.max(...z.flat()) };
    }"""
    assert page.evaluate(heat) == {"rows": 143, "dx": 7, "top": pytest.approx(max(run.edges["probability"]), abs=1e-6)}
    for _ in range(4):
        page.get_by_role("group", name="Zoom of the matrix").get_by_role("button", name="Zoom in").click()
    assert page.evaluate(heat)["dx"] == 1
    counts = page.evaluate("document.querySelector('.histogram').data[0].y")
    assert sum(counts) == len(run.edges["probability"])
    assert counts[-1] == sum(p >= 0.95 for p in run.edges["probability"])

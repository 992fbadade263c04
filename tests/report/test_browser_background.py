"""The background of a chosen node as a curve beside the observed values, its terms in words, and its share."""

import numpy as np
import pytest

from browser_waits import until
from made_runs import make_run, with_background

pytestmark = pytest.mark.browser


def background_run():
    return with_background(make_run(3))


def points(run, node, rows):
    """Observed values and background of the points that are means of so many rows."""
    chosen = np.array(run.background.rows) == rows
    return run.background.numbers[chosen, node].T


def drawn(page, name):
    return page.evaluate(f"""() => {{
        const {{ x, y }} = document.querySelector(".beside").data.find(({{ name }}) => name === {name!r});
        return [[...x], [...y]];
    }}""")


@pytest.fixture(scope="module")
def page(shared, page_file):
    return shared(page_file("background", background_run))


def test_the_first_node_over_the_whole_table(page):
    run = background_run()
    actual, curve = points(run, 0, 4)
    times, values = drawn(page, "background")
    assert times == [time for time, rows in zip(run.background.times, run.background.rows, strict=True) if rows == 4]
    assert values == pytest.approx(curve.tolist(), abs=1e-5)
    assert drawn(page, "observed")[1] == pytest.approx(actual.tolist(), abs=1e-5)
    assert page.inner_text(".background-text") == "node 0: slow trend, daily cycle; 25% of the variance."
    assert page.locator(".background-node option").all_inner_texts() == ["node 0", "node 1"]
    assert page.locator(".background-part option").all_inner_texts() == ["all rows, as means of 4", "the last 48 rows"]


def test_single_rows_of_another_node(page):
    run = background_run()
    page.locator(".background-part").select_option("1")
    assert drawn(page, "observed")[1][-1] is None  # nothing was observed
    page.locator(".background-node").select_option("1")
    actual, curve = points(run, 1, 1)
    assert drawn(page, "background")[1] == pytest.approx(curve.tolist(), abs=1e-5)
    assert drawn(page, "observed")[1] == pytest.approx(actual.tolist(), abs=1e-5)
    assert page.inner_text(".background-text").startswith("node 1: ")


def test_a_node_of_the_graph_and_a_series_are_chosen(opened, page_file):
    run = with_background(make_run(3), series=("north", "south"))
    page = opened(page_file("background of series", lambda: run))
    page.evaluate("""() => {
        const network = document.querySelector(".network");
        network.emit("plotly_click", { points: [{ customdata: 1 }] });
    }""")
    until(page, "document.querySelector('.background-text').textContent.startsWith('node 1')")
    page.locator(".background-series").select_option("south")
    half = len(run.background.times) // 2
    chosen = np.array(run.background.rows[half:]) == 4
    assert drawn(page, "background")[1] == pytest.approx(run.background.numbers[half:][chosen, 1, 1].tolist(), abs=1e-5)


def test_without_a_background_there_is_no_figure(opened, page_file):
    page = opened(page_file("no background", lambda: make_run(3)))
    assert page.locator("figure.background").count() == 0

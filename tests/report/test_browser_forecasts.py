"""The fan chart: bands, median and observed values of a chosen node, and in words how many values the bands hold."""

import numpy as np
import pytest

from browser_waits import until
from made_runs import make_run, with_forecasts
from tacit.records import FORECAST_NUMBERS

pytestmark = pytest.mark.browser

ROWS = 120


def series_run():
    return with_forecasts(make_run(60, candidates=4), rows=ROWS)


def column(run, name, node=0):
    return run.forecasts.numbers[:, node, 0, FORECAST_NUMBERS.index(name)]


def trace(page, name):
    return page.evaluate(f"""() => {{
        const {{ x, y }} = document.querySelector(".fan").data.find(({{ name }}) => name === {name!r});
        return [[...x], [...y]];
    }}""")


@pytest.fixture(scope="module")
def page(shared, page_file):
    return shared(page_file("forecasts", series_run))


def test_the_first_node_with_its_bands(page):
    run = series_run()
    times, median = trace(page, "median")
    assert times == run.forecasts.rows
    assert median == pytest.approx(column(run, "median").tolist(), abs=1e-4)
    _, band = trace(page, "80%")
    assert band == pytest.approx([*column(run, "q90"), *column(run, "q10")[::-1]], abs=1e-4)
    _, observed = trace(page, "observed")
    assert observed[3] is None  # nothing was observed
    actual, low, high = (column(run, name) for name in ("actual", "q10", "q90"))
    inside = np.nansum((actual >= low) & (actual <= high)) / (ROWS - 1)
    said = page.inner_text(".forecast-text")
    assert said.startswith(f"node 0: {ROWS - 1} observed values, ")
    assert f"{100 * inside:.0f}% in the 80% band" in said


def test_another_node_and_fewer_rows(page):
    run = series_run()
    assert page.locator(".forecast-node option").count() == 50
    assert "50 of 60 nodes" in page.inner_text(".forecasts figcaption")
    page.locator(".forecast-node").select_option("2")
    page.get_by_role("button", name="Next node").click()
    page.locator(".forecast-count").select_option("50")
    times, median = trace(page, "median")
    assert times == run.forecasts.rows[-50:]
    assert median == pytest.approx(column(run, "median", 3)[-50:].tolist(), abs=1e-4)
    assert page.inner_text(".forecast-text").startswith("node 3: 50 observed values")
    page.locator(".forecast-node").select_option("49")
    assert page.get_by_role("button", name="Next node").is_disabled()


def test_pairs_are_sorted_by_the_median_and_series_are_chosen(opened, page_file):
    def pairs():
        return with_forecasts(make_run(3), rows=40, row_name="pair")

    def several():
        run = make_run(3, title="several series")
        return with_forecasts(run, rows=40, series=("north", "south"), variables=("a", "b"))

    page = opened(page_file("forecasts of pairs", pairs, several))
    places, median = trace(page, "median")
    assert places == list(range(1, 41))
    assert median == sorted(median)
    section = page.locator("section.run").nth(1)
    section.locator(".forecast-series").select_option("south")
    section.locator(".forecast-variable").select_option("1")
    until(page, "document.querySelectorAll('.fan')[1].data[3].x.length === 20")
    shown = page.evaluate("[...document.querySelectorAll('.fan')[1].data[3].y]")
    assert shown == pytest.approx(several().forecasts.numbers[20:, 0, 1, 3].tolist(), abs=1e-4)


def test_a_run_without_forecasts_has_no_chart(opened, page_file):
    page = opened(page_file("no forecasts", lambda: make_run(3)))
    assert page.locator(".fan").count() == 0

"""The lags of the edges in a real browser: a number, a bar per lag, and words for the pointer."""

from dataclasses import replace

import numpy as np
import pytest

from made_runs import make_run
from tacit.edges import LagTable

pytestmark = pytest.mark.browser

NODES = 5
EFFECTS = [[0.1, -0.5, 0.05], [0.2, np.nan, 0.1]]  # 0 -> 1 is largest at lag 3, 2 -> 1 at lag 2
SHARES = [[0.0, 0.9375, 0.0625], [0.5, np.nan, 0.5]]


def lagged_run():
    """A run two steps ahead, with the profiles of two edges."""
    run = make_run(NODES, evidence=True)
    lags = LagTable(source=[0, 2], target=[1, 1], first=2, effects=EFFECTS, shares=SHARES)
    lag = np.full((NODES, NODES), np.nan)
    lag[1, [0, 2]] = lags.dominant
    return run.model_copy(update={"edges": replace(run.edges.updated(lag=lag.ravel()), lags=lags)})


@pytest.fixture(scope="module")
def page(shared, page_file):
    return shared(page_file("lags", lagged_run))


def cell(page, source, target):
    """The cell with the lag of an edge."""
    page.locator(".filter").fill(f"{source} → {target}")
    return page.locator(".edge-table tbody tr td[data-column=lag]").first


def test_the_lag_and_a_bar_for_each_lag_that_was_estimated(page):
    names = lagged_run().record.node_names
    first = cell(page, names[0], names[1])
    assert first.inner_text() == "3"
    assert first.get_attribute("title") == "lag 3, the largest in 94% of resamples"
    bars = first.locator("rect")
    assert bars.count() == 3
    assert [bars.nth(place).get_attribute("class") for place in range(3)] == ["raises", "lowers largest", "raises"]
    heights = [float(bars.nth(place).get_attribute("height")) for place in range(3)]
    assert heights[0] == pytest.approx(heights[1] / 5, abs=0.01)
    assert first.locator("svg title").text_content() == "lag 2: +0.100\nlag 3: −0.500\nlag 4: +0.050"
    assert cell(page, names[2], names[1]).locator("rect").count() == 2


def test_an_edge_without_a_profile_has_none(page):
    names = lagged_run().record.node_names
    other = cell(page, names[3], names[0])
    assert other.inner_text() == "–"
    assert other.locator("svg").count() == 0


def test_a_run_without_lags_has_no_such_column(opened, page_file):
    page = opened(page_file("no lags", lambda: make_run(NODES, evidence=True)))
    assert page.locator("th[data-column=lag]").count() == 0

"""Regimes in a real browser: the control with the weights, graph and matrix of a regime, the strip over time."""

import numpy as np
import pytest

from browser_waits import until
from situation_runs import regimes_run
from tacit.report.situations import situation_tables

pytestmark = pytest.mark.browser

STATUS = "document.querySelector('.situation').textContent"
ACTS = "document.querySelector('.matrix[data-shows=probability]').data[0].z"
STRIP = "document.querySelector('.strip').data.map(({ x, y, name }) => ({ x, y, name }))"


def own_run():
    return regimes_run(own=True)


def panel_run():
    return regimes_run(series=["east", "west <b>"])


def strip_of(run, block):
    return np.array(run.record.situations["posterior"]["probs"])[:, block].T


def test_the_control_lists_regimes_with_their_weights_and_redraws(opened, page_file):
    page = opened(page_file("regimes", regimes_run))
    control = page.get_by_label("Regime", exact=True).first
    options = control.evaluate("select => [...select.options].map(one => one.text)")
    assert options == ["average", "regime 1 (60%)", "regime 2 (40%)"]
    assert page.locator(".situation").inner_text() == "Shown: the average over all regimes."
    control.select_option("regime 2 (40%)")
    (table,) = situation_tables(regimes_run())
    count = len(table.source)
    until(page, f"{STATUS} === 'Shown in regime 2: {count} edges; all others keep their average.'")
    shown = page.evaluate(ACTS)
    for source, target, probs in zip(table.source, table.target, table.probability, strict=True):
        assert shown[target][source] == pytest.approx(probs[1], abs=1e-5)
    assert page.evaluate("document.querySelector('.varying-curve').data[0].y.length") == 2
    assert page.locator("h2", has_text="Edges by regime").count() == 1
    assert page.locator("th[data-column=varies]").inner_text() == "by regime"
    page.locator("th[data-column=varies] button").click()
    cells = page.locator("td[data-column=varies]")
    assert cells.first.inner_text().strip() == "0.10 to 0.90"
    assert cells.first.locator("circle").count() == 2
    assert cells.nth(count).inner_text().strip() == "–"


def test_the_strip_has_the_posterior_of_each_regime(opened, page_file):
    page = opened(page_file("regimes", regimes_run))
    run = regimes_run()
    drawn = page.evaluate(STRIP)
    assert [one["name"] for one in drawn] == ["regime 1", "regime 2"]
    for regime, expected in enumerate(strip_of(run, 0)):
        assert drawn[regime]["y"] == pytest.approx(expected.tolist(), abs=1e-3)
        assert drawn[regime]["x"] == run.record.situations["posterior"]["times"]
    marks = page.evaluate("document.querySelector('.strip').layout.shapes.map(({ x0 }) => x0)")
    times = run.record.situations["posterior"]["times"]
    assert marks == [times[140], times[160]]
    mean = 100 * strip_of(run, 0).mean(1)
    words = f"Mean probability: regime 1 {mean[0]:.0f}%, regime 2 {mean[1]:.0f}%."
    assert page.locator(".regime-text").inner_text() == words
    assert page.locator(".regime-block").count() == 0


def test_each_node_has_its_own_regimes(opened, page_file):
    page = opened(page_file("own regimes", own_run))
    run = own_run()
    assert "Each node has 2 regimes of its own" in page.locator("section.run").inner_text()
    page.locator(".graph .situation-value").select_option("1")
    until(page, f"{STATUS}.startsWith('Shown in regime 1 of each node: ')")
    page.locator(".regime-block").select_option("node 3")
    until(page, f"Math.abs({STRIP}[0].y[10] - {strip_of(run, 3)[0][10]}) < 1e-3")
    assert page.locator(".regime-text").inner_text().startswith("Mean probability, edges into node 3: regime 1 ")
    assert page.evaluate(STRIP)[1]["y"] == pytest.approx(strip_of(run, 3)[1].tolist(), abs=1e-3)


@pytest.mark.slow
def test_of_many_observations_the_strip_has_means(opened, page_file):
    page = opened(page_file("many observations", many_run))
    run = many_run()
    assert page.locator(".regime-mean").input_value() == "16"
    assert "Each point is the mean of 16 neighbouring observations." in page.locator(".regime-text").inner_text()
    expected = strip_of(run, 0)[0]
    means = [expected[start : start + 16].mean() for start in range(0, 2000, 16)]
    assert page.evaluate(STRIP)[0]["y"] == pytest.approx(means, abs=1e-3)
    page.locator(".regime-mean").select_option("1 observation")
    until(page, f"{STRIP}[0].y.length === 2000")
    assert page.evaluate(STRIP)[0]["y"] == pytest.approx(expected.tolist(), abs=1e-3)


def many_run():
    return regimes_run(times=2000)


@pytest.mark.slow
def test_series_have_a_strip_each(opened, page_file):
    page = opened(page_file("regimes of series", panel_run))
    assert len(page.evaluate(STRIP)[0]["x"]) == 100
    page.locator(".regime-series").select_option("west <b>")
    until(page, f"{STRIP}[0].x[0] === '{panel_run().record.situations['posterior']['times'][100]}'")


@pytest.mark.slow
def test_a_run_without_a_posterior_has_no_strip(opened, page_file):
    page = opened(page_file("no posterior", without_posterior))
    assert page.locator(".strip").count() == 0
    assert page.locator(".varying-curve").count() == 1


def without_posterior():
    run = regimes_run()
    found = {key: value for key, value in run.record.situations.items() if key != "posterior"}
    return run.model_copy(update={"record": run.record.model_copy(update={"situations": found})})


@pytest.mark.slow
def test_paper_has_a_strip_as_wide_as_the_page(opened, page_file):
    page = opened(page_file("own regimes", own_run))
    page.emulate_media(media="print")
    until(page, "document.querySelector('.strip svg').clientWidth === 660")
    assert page.locator(".varying-list tbody tr").first.is_visible()

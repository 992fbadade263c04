"""Edges by situation in a real browser: the control, graph and matrix at a value, the curve of an edge, paper."""

import json
from dataclasses import replace

import numpy as np
import pytest

from browser_waits import point_at, until
from made_runs import make_run
from situation_runs import category_run, curve_rows, listed, two_variables_run, varying_run
from tacit.report.situations import situation_tables

pytestmark = pytest.mark.browser

SLIDER = ".graph .situation-value"
STATUS = "document.querySelector('.situation').textContent"
ACTS = "document.querySelector('.matrix[data-shows=probability]').data[0].z"
TEXTS = "document.querySelector('.network').data.find(trace => trace.name === 'arrows').hovertext"
OUTLINES = "document.querySelector('.network').data.find(trace => trace.name === 'arrows').marker.line.width"
AVERAGE = "Shown: the average over all situations."
NASTY = ("<img src=x onerror=alert(1)>", "$\\alpha$ & <b>bold</b>", "</script><script>alert(2)</script>")


@pytest.fixture(scope="module")
def page(shared, page_file):
    return shared(page_file("situations", varying_run))


@pytest.fixture
def hours(page):
    """The page with the average."""
    page.locator(SLIDER).fill("0")
    until(page, f"{STATUS} === {AVERAGE!r}")
    return page


def curve(run, row, by=0):
    """Source, target and probabilities of a row of a table."""
    table = situation_tables(run)[by]
    return int(table.source[row]), int(table.target[row]), table.probability[row]


def choose_hour(page, hour):
    page.locator(SLIDER).fill(str(hour + 1))
    until(page, f"{STATUS}.startsWith('Shown at hour = {hour}:')")


def test_the_average_is_shown_at_first(opened, page_file):
    page = opened(page_file("situations", varying_run))
    assert page.locator(".situation").inner_text() == AVERAGE
    assert page.locator(SLIDER).get_attribute("aria-valuetext") == "average"
    assert page.locator(".show-average").first.is_disabled()
    source, target, _ = curve(varying_run(), 0)
    assert page.evaluate(ACTS)[target][source] == pytest.approx(
        varying_run().edges.matrix("probability")[target, source]
    )
    assert all("on average" in text for text in page.evaluate(TEXTS))


def test_keys_on_the_slider_redraw_graph_and_matrix(hours):
    hours.locator(SLIDER).focus()
    for _ in range(7):
        hours.keyboard.press("ArrowRight")
    until(hours, f"{STATUS} === 'Shown at hour = 6: 3 edges (outlined arrows); all others keep their average.'")
    assert hours.locator(SLIDER).get_attribute("aria-valuetext") == "hour = 6"
    assert hours.locator(f"{SLIDER} + .value").inner_text() == "6"
    run = varying_run()
    expected = run.edges.matrix("probability").copy()
    for row in range(3):
        source, target, probs = curve(run, row)
        expected[target, source] = probs[6]
    shown = np.array([[np.nan if cell is None else cell for cell in row] for row in hours.evaluate(ACTS)])
    assert np.allclose(shown, expected, atol=1e-5, equal_nan=True)
    assert hours.evaluate("document.querySelector('.matrix[data-shows=probability]').layout.title.text") == (
        "acts at hour = 6"
    )
    assert "Shown: at hour = 6." in hours.locator(".matrices .seen").inner_text()
    assert "at hour = 6" in hours.locator(".network").get_attribute("aria-label")
    until(hours, f"{OUTLINES}.length && {OUTLINES}.filter(Boolean).length === 3")


def test_the_pointer_says_which_value_is_used(hours):
    choose_hour(hours, 3)
    run = varying_run()
    source, target, probs = curve(run, 1)
    average = run.edges.matrix("probability")[target, source]
    until(hours, f"{TEXTS}.some(text => text.includes('at hour = 3'))")
    texts = {text.split("<br>")[0]: text for text in hours.evaluate(TEXTS)}
    assert f"acts {probs[3]:.3f} at hour = 3 (average {average:.3f})" in texts[f"node {source} → node {target}"]
    assert f"95% interval {probs[3] - 0.06:.3f} to {probs[3] + 0.06:.3f}" in texts[f"node {source} → node {target}"]
    assert sum("on average" in text for text in texts.values()) == len(texts) - 3
    _, lines = point_at(hours, ".matrix[data-shows=probability]", f"[{source}, {target}]")
    assert f"acts {probs[3]:.3f} at hour = 3" in "".join(lines)


def test_both_controls_show_the_choice_and_a_button_brings_the_average_back(hours):
    hours.locator(".matrices .situation-value").fill("13")
    until(hours, f"{STATUS}.startsWith('Shown at hour = 12:')")
    assert hours.locator(SLIDER).input_value() == "13"
    hours.locator(".matrices .show-average").click()
    until(hours, f"{STATUS} === {AVERAGE!r}")
    assert [box.input_value() for box in hours.locator(".situation-value").all()] == ["0", "0"]
    assert hours.evaluate("document.activeElement.closest('.matrices') !== null")
    until(hours, f"{TEXTS}.every(text => text.includes('on average'))")


def test_the_table_keeps_the_average_and_marks_edges_that_vary(hours):
    run = varying_run()
    source, target, probs = curve(run, 0)
    choose_hour(hours, 6)
    hours.locator(".filter").fill(f"node {source} → node {target}")
    row = hours.locator(".edge-table tbody tr").first
    cell = row.locator("td[data-column=varies]")
    assert cell.inner_text().strip() == "yes"
    assert cell.locator("button").get_attribute("title") == (
        f"from {probs.min():.2f} at hour = {probs.argmin()} to {probs.max():.2f} at hour = {probs.argmax()}"
    )
    assert row.locator("td").nth(3).inner_text() == f"{run.edges.matrix('probability')[target, source]:.3f}"
    assert cell.locator("svg path").count() == 2
    cell.locator("button").click()
    assert hours.locator(".varying-edge").evaluate("select => select.selectedOptions[0].text") == (
        f"node {source} → node {target}"
    )
    assert hours.evaluate("document.activeElement.className") == "varying-edge"
    hours.locator(".filter").fill("")


def test_sorting_by_varies_puts_the_most_varying_edges_first(hours):
    head = hours.locator("th[data-column=varies] button")
    head.click()
    words = hours.evaluate(
        "[...document.querySelectorAll('td[data-column=varies]')].map(cell => cell.firstChild.textContent)"
    )
    tested = listed(varying_run()).shape[1]
    assert words[:tested] == ["yes"] * 3 + ["no"] * (tested - 3)
    assert set(words[tested:]) == {"–"}
    hours.locator("th[data-column=exists] button").click()


def test_the_curve_of_a_chosen_edge_has_its_band(hours):
    run = varying_run()
    choose_hour(hours, 2)
    for row in range(3):
        source, target, probs = curve(run, row)
        hours.locator(".varying-edge").select_option(label=f"node {source} → node {target}")
        drawn = hours.evaluate("document.querySelector('.varying-curve').data.map(({ x, y }) => ({ x, y }))")
        assert drawn[1]["y"] == pytest.approx(probs.tolist(), abs=1e-5)
        assert drawn[1]["x"] == list(range(24))
        assert max(drawn[0]["y"]) == pytest.approx(min(1, probs.max() + 0.06), abs=1e-5)
        assert min(drawn[0]["y"]) == pytest.approx(probs.min() - 0.06, abs=1e-5)
        said = hours.locator(".varying-text").inner_text()
        assert said.startswith(f"node {source} → node {target}: from {probs.min():.3f} at hour = {probs.argmin()} to ")
        assert f"{probs[2]:.3f} at hour = 2 (95% interval " in said
        lines = hours.evaluate("document.querySelector('.varying-curve').layout.shapes.map(({ x0 }) => x0)")
        assert lines == [0, 2]  # the average, and the chosen hour


def test_an_arrow_in_the_graph_chooses_its_edge(hours):
    run = varying_run()
    source, target, _ = curve(run, 2)
    hours.locator(".varying-edge").select_option(index=0)
    place, lines = point_at(
        hours,
        ".network",
        f"""(({{ x, y, hovertext }}) => {{
        const at = hovertext.findIndex(text => text.startsWith('node {source} → node {target}<br>'));
        return [x[at], y[at]];
    }})(plot.data.find(trace => trace.name === 'arrows'))""",
    )
    assert lines[0] == f"node {source} → node {target}"
    hours.mouse.click(*place)
    words = f"node {source} → node {target}: "
    until(hours, f"document.querySelector('.varying-text').textContent.startsWith({words!r})")
    assert hours.locator(".search").input_value() == ""


def test_categories_have_a_list_and_points_with_error_bars(opened, page_file):
    page = opened(page_file("category", category_run))
    control = page.get_by_label("Situation: season").first
    assert control.evaluate("select => [...select.options].map(one => one.text)") == ["average", "dry", "wet", "snow"]
    control.select_option("snow")
    until(page, f"{STATUS}.startsWith('Shown at season = snow: 2 edges')")
    source, target, _ = curve(category_run(), 0)
    assert page.evaluate(ACTS)[target][source] == pytest.approx(0.9)
    (drawn,) = page.evaluate("document.querySelector('.varying-curve').data")
    assert drawn["y"] == pytest.approx([0.2, 0.5, 0.9])
    assert drawn["error_y"]["array"] == pytest.approx([0.06] * 3, abs=1e-6)
    assert page.evaluate("document.querySelector('.varying-curve').layout.xaxis.ticktext") == ["dry", "wet", "snow"]


@pytest.mark.slow
def test_of_several_variables_one_is_chosen_at_a_time(opened, page_file):
    page = opened(page_file("two variables", two_variables_run))
    hour, season = page.locator(".graph .situation-value").all()
    hour.fill("5")
    until(page, f"{STATUS}.startsWith('Shown at hour = 4:')")
    season.select_option("wet")
    until(page, f"{STATUS}.startsWith('Shown at season = wet:')")
    assert hour.input_value() == "0"
    assert page.locator(".varying-curve").count() == 2
    assert "at hour = " in page.locator(".varying-text").inner_text()
    assert "0.500 at season = wet (95% interval 0.440 to 0.560)" in page.locator(".varying-text").inner_text()


@pytest.mark.slow
def test_without_evidence_the_value_decides_what_is_drawn(opened, page_file):
    page = opened(page_file("no evidence", plain_run))
    assert "2 edges of" in page.locator(".graph .count").inner_text()
    page.locator(SLIDER).select_option("high")
    until(page, "document.querySelector('.graph .count').textContent.startsWith('3 edges of')")
    page.locator(".search").fill("node 0")
    assert "node 1 0.90" in page.locator(".graph .found").inner_text()
    page.locator(SLIDER).select_option("low")
    until(page, "!document.querySelector('.graph .found').textContent.includes('node 1 0.90')")
    until(page, "document.querySelector('.graph .count').textContent.startsWith('2 edges of')")


def plain_run():
    """Three nodes: 0 reads 1 with probability 0.05 on average, and 0.9 at the level high."""
    run = make_run(3)
    probs = np.array([[0.9, 0.05, 0.0], [0.5, 0.9, 0.0], [0.0, 0.6, 0.9]])
    edges = run.edges.updated(probability=probs.ravel())
    by = curve_rows("level", ["low", "high"], np.array([[0.01, 0.9]]), np.array([1]), np.array([0]))
    return run.model_copy(update={"edges": replace(edges, by=by)})


@pytest.mark.slow
def test_paper_has_the_average_and_a_table_of_the_varying_edges(opened, page_file):
    page = opened(page_file("situations", varying_run))
    choose_hour(page, 6)
    page.emulate_media(media="print")
    until(page, f"{STATUS} === {AVERAGE!r}")
    until(page, f"{TEXTS}.every(text => text.includes('on average'))")
    source, target, _ = curve(varying_run(), 0)
    average = varying_run().edges.matrix("probability")[target, source]
    assert page.evaluate(ACTS)[target][source] == pytest.approx(average, abs=1e-5)
    rows = page.locator(".varying-list tbody tr")
    assert rows.first.is_visible()
    assert rows.count() == 3
    assert "hour = " in rows.first.inner_text()
    assert page.locator(".situations").first.is_hidden()
    page.emulate_media(media="screen")
    until(page, f"{STATUS}.startsWith('Shown at hour = 6:')")
    until(page, f"{TEXTS}.some(text => text.includes('at hour = 6'))")


def test_labels_and_names_are_text(opened, page_file):
    page = opened(page_file("nasty situations", nasty_run))
    control = page.locator(".graph .situation-value")
    assert control.evaluate("select => [...select.options].map(one => one.text)")[1:] == list(NASTY)
    for place, label in enumerate(NASTY, 1):
        control.select_option(str(place))
        words = json.dumps(f"Shown at <i>by</i> = {label}"[:30])
        until(page, f"{STATUS}.startsWith({words})")
        until(page, f"{TEXTS}.some(text => text.includes('at &lt;i&gt;by'))")
    ticks = page.evaluate("[...document.querySelectorAll('.varying-curve .xtick text')].map(t => t.textContent)")
    assert [tick[:13] for tick in ticks] == [label[:13] for label in NASTY]
    assert page.evaluate("document.querySelectorAll('.plot a, .plot img, .plot b, .situation *, option *').length") == 0
    assert page.locator(".varying-list tbody").text_content().count("<img src=x onerror=alert(1)>") >= 2
    assert "<i>by</i>" in page.locator("label[for$=graph-by-1]").inner_text()


def nasty_run():
    return category_run(NASTY, by="<i>by</i>", names=[*NASTY, "a", "b", "c"])


def test_a_phone_and_the_keyboard(opened, page_file):
    page = opened(
        page_file("two variables", two_variables_run),
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True,
    )  # fmt: skip
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    controls = page.locator("select, .situation-value")
    assert all(box.evaluate("e => e.labels.length === 1 && e.tabIndex === 0") for box in controls.all())
    small = page.evaluate(
        "[...document.querySelectorAll('select')].filter(e => e.getBoundingClientRect().height < 32).length"
    )
    assert small == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].filter(e => !e.closest('svg')).map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert page.evaluate("[...document.querySelectorAll('.plot')].every(e => e.role === 'img' && e.ariaLabel)")


def test_a_run_without_situations_has_no_controls(opened, page_file):
    page = opened(page_file("no situations", lambda: make_run(6, evidence=True)))
    assert page.locator(".situations, .varying, .strip, th[data-column=varies], .show-curve").count() == 0
    assert not any("average" in text for text in page.evaluate(TEXTS))
    assert "Shown" not in page.locator(".matrices .seen").inner_text()

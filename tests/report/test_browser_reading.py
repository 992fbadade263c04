"""The page in a real browser for every reader: phone, paper, dark, keyboard alone, no script; names are only text."""

import re
from itertools import pairwise

import pytest

from browser_waits import point_at, until
from made_runs import make_run, with_forecasts
from situation_runs import two_variables_run
from tacit.words import FindingKind, choose, find

pytestmark = pytest.mark.browser

NASTY = [
    "<img src=x onerror=alert(1)>", "</script><script>document.title='gone'</script>", "<b>bold</b>", "a & b &lt;",
    "$\\alpha$", "%{x}", "'\"`", "<a href='https://example.org/x'>link</a>",
]  # fmt: skip
PHONE = {"width": 360, "height": 740}
CONTRAST = """() => {
    const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
    const below = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const found = numbers(getComputedStyle(at).backgroundColor);
            if (found.length < 4 || found[3] > 0) return found;
        }
        return [255, 255, 255];
    };
    const found = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const element = walk.currentNode.parentElement;
        if (!walk.currentNode.data.trim() || !element.checkVisibility() || element.closest("script, svg")) continue;
        const [a, b] = [light(numbers(getComputedStyle(element).color)), light(below(element))];
        found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), walk.currentNode.data.trim().slice(0, 40)]);
    }
    return found;
}"""
INK = """() => [...document.querySelectorAll('.plot text')].map((text) => getComputedStyle(text).fill)"""


PAPER = {"width": 680, "height": 1000}  # A4 with margins of 15 mm


def whole_run():
    return with_forecasts(make_run(12, truth=True, errors=True, flags=True, coordinates=True))


def nasty_run():
    return make_run(
        len(NASTY), names=NASTY, truth=True, title="<i>title</i>", command="tacit fit '</script>.csv'",
        warnings=["<script>alert(2)</script>"],
        findings=[find(FindingKind.FIT_DETAIL, "<b>well</b>")], choices=[choose("window", "<u>this</u>", "usual")],
    )  # fmt: skip


@pytest.fixture(params=[whole_run, two_variables_run])
def whole(page_file, request):
    return page_file(request.param.__name__, request.param)


def test_names_are_text_everywhere(opened, page_file):
    page = opened(page_file("nasty", nasty_run, title="<script>alert(3)</script>"))
    assert page.title() == "<script>alert(3)</script>"
    shown = set(page.evaluate("[...document.querySelectorAll('.edge-table td')].map(cell => cell.textContent)"))
    assert set(NASTY) <= shown
    for name in NASTY:
        page.locator(".search").fill(name)
        page.locator(".search").press("Enter")
        assert page.locator(".graph .found").inner_text().startswith(f"{name}: most probable inputs")
        page.locator(".filter").fill(name)
        assert page.locator(".edge-table tbody tr").count() > 0
    page.locator(".clear-search").click()
    labels = page.evaluate("[...document.querySelectorAll('.network .textpoint text')].map(t => t.textContent)")
    assert {name[:21] for name in NASTY} == {label.rstrip("…")[:21] for label in labels}
    ticks = page.evaluate("[...document.querySelectorAll('.matrix .xtick text')].map(t => t.textContent)")
    assert {name[:13] for name in NASTY} == {tick.rstrip("…")[:13] for tick in ticks}
    assert page.evaluate("document.querySelectorAll('.plot a, .plot img, td *, h1 *, h2 *, li *').length") == 0
    assert page.locator("h1").inner_text() == "<script>alert(3)</script>"
    assert "</script>.csv" in page.locator(".command code").inner_text()


def test_the_pointer_shows_names_as_text(opened, page_file):
    page = opened(page_file("nasty", nasty_run, title="<script>alert(3)</script>"))
    _, lines = point_at(page, ".network", "(({ x, y }) => [x[0], y[0]])(plot.data.at(-1))")
    assert lines[0] == NASTY[0]


def test_no_sideways_scrolling_on_a_phone(opened, whole):
    page = opened(whole, viewport=PHONE, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    wide = page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && !e.closest('.wide, pre, svg, "
        "datalist, .skip') && e.getBoundingClientRect().right > 361).map(e => e.className)"
    )
    assert wide == []
    small = page.evaluate(
        "[...document.querySelectorAll('button, input, select')].filter(e => e.checkVisibility() && "
        "!e.closest('th, td, .check, .slider') && e.getBoundingClientRect().height < 32).length"
    )
    assert small == 0


def test_text_can_be_read_in_light_and_dark_and_drawings_follow(opened, whole):
    page = opened(whole, color_scheme="light")
    assert [found for found in page.evaluate(CONTRAST) if found[0] < 4.5] == []
    assert set(page.evaluate(INK)) == {"rgb(26, 28, 32)"}
    page.emulate_media(color_scheme="dark")
    until(page, f"({INK})().every(fill => fill === 'rgb(232, 234, 237)')")
    assert [found for found in page.evaluate(CONTRAST) if found[0] < 4.5] == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"


def test_paper_is_light_without_controls_and_with_all_opened(opened, whole):
    page = opened(whole, color_scheme="dark")
    assert page.locator("details").last.get_attribute("open") is None
    page.emulate_media(media="print", color_scheme="dark")
    until(page, "[...document.querySelectorAll('details')].every(details => details.open)")
    until(page, f"({INK})().every(fill => fill === 'rgb(26, 28, 32)')")
    for name in (".controls", ".buttons", ".copy"):
        assert page.locator(name).first.is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("Math.max(...[...document.querySelectorAll('.plot svg')].map(s => s.clientWidth))") <= 680
    page.emulate_media(media="screen", color_scheme="dark")
    until(page, f"({INK})().every(fill => fill === 'rgb(232, 234, 237)')")
    assert page.locator("details").last.get_attribute("open") is None


def test_nothing_is_wider_than_the_paper(opened, whole):
    page = opened(whole, viewport=PAPER)
    page.emulate_media(media="print")
    until(page, "[...document.querySelectorAll('details')].every(details => details.open)")
    wide = page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && !e.closest('svg, datalist') && "
        "e.getBoundingClientRect().right > 681).map(e => `${e.tagName} ${e.className}`)"
    )
    assert wide == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 680


def test_on_a_phone_a_layout_uses_the_height(opened, page_file):
    page = opened(page_file("layout", lambda: make_run(30)), viewport=PHONE, has_touch=True, is_mobile=True)
    spread = page.evaluate("""() => {
        const plot = document.querySelector('.network'), { xaxis, yaxis } = plot._fullLayout, nodes = plot.data.at(-1);
        const extent = (axis, values) => {
            const places = values.map((value) => axis.l2p(value));
            return Math.max(...places) - Math.min(...places);
        };
        return [plot.clientHeight, extent(xaxis, nodes.x), extent(yaxis, nodes.y)];
    }""")
    assert spread[0] == round(0.72 * PHONE["height"])
    assert spread[2] > 0.6 * spread[0]
    assert spread[1] > 0.5 * PHONE["width"]


def test_everything_can_be_reached_by_keyboard_and_the_focus_is_seen(opened, whole):
    page = opened(whole)
    everything = page.evaluate("""() => {
        window.reachable = [...document.querySelectorAll('a, button:enabled, input, select, summary, [tabindex="0"]')]
            .filter((element) => element.checkVisibility());
        return window.reachable.length;
    }""")
    reached = []
    for _ in range(everything):
        page.keyboard.press("Tab")
        place, seen = page.evaluate(
            "[window.reachable.indexOf(document.activeElement), "
            "getComputedStyle(document.activeElement).outlineStyle !== 'none']"
        )
        assert seen, f"no focus seen at {place}"
        reached.append(place)
    assert reached == list(range(everything))  # all of them, in the order of the page, the skip link first
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_labels_ids_headings_and_words_for_figures(opened, page_file):
    page = opened(page_file("two", whole_run, nasty_run))
    assert (
        page.evaluate(
            "[...document.querySelectorAll('input, select, button')].filter(e => !(e.labels?.length || e.ariaLabel || "
            "e.textContent.trim())).length"
        )
        == 0
    )
    ids = page.evaluate("[...document.querySelectorAll('[id]')].filter(e => !e.closest('svg')).map(e => e.id)")
    assert len(ids) == len(set(ids))
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    assert page.evaluate("[...document.querySelectorAll('.plot')].every(e => e.role === 'img' && e.ariaLabel)")
    targets = page.evaluate(
        "[...document.querySelectorAll('[aria-labelledby]')].filter(e => !document.getElementById("
        "e.getAttribute('aria-labelledby'))).length"
    )
    assert targets == 0
    assert page.locator("main").count() == page.locator("h1").count() == 1
    assert page.locator("[aria-live]").count() >= 10


def test_two_runs_on_a_page_have_each_their_own(opened, page_file):
    page = opened(page_file("two", whole_run, nasty_run))
    first, second = page.locator("section.run").nth(0), page.locator("section.run").nth(1)
    before = first.locator(".count").inner_text()
    second.locator(".threshold-number").fill("0.9")
    assert "with probability 0.90 or more" in second.locator(".count").inner_text()
    assert first.locator(".count").inner_text() == before
    assert page.get_by_role("link", name="a made run").get_attribute("href") == "#run-1"


def test_the_command_can_be_copied(opened, whole):
    page = opened(whole, permissions=["clipboard-read", "clipboard-write"])
    page.locator(".copy").click()
    until(page, "document.querySelector('.copied').textContent === 'Copied.'")
    assert page.evaluate("navigator.clipboard.readText()") == "tacit fit made.csv --seed 0"


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_smallest_runs_have_a_page(opened, page_file, nodes):
    """No history, no tests, hardly an edge: what there is is shown."""
    names = ["lone \ud800"] if nodes == 1 else None
    run = make_run(nodes, names=names, goodness={}, findings=[], references={}, choices=[])
    page = opened(page_file(f"small {nodes}", lambda: run.model_copy(update={"history": []})))
    assert f"{nodes * (nodes - 1)} edges of {nodes * (nodes - 1)}" in page.locator(".count").inner_text()
    page.get_by_role("button", name="Zoom in").first.click()
    page.get_by_role("group", name="Zoom of the matrix").get_by_role("button", name="Zoom out").click()
    assert "The fit of the model was not tested." in page.locator(".cautions .verdict").inner_text()


def test_without_scripts_the_strongest_edges_are_there(opened, whole):
    page = opened(whole, java_script_enabled=False, ready=None)
    assert "JavaScript is off" in page.locator("noscript").inner_text()
    assert page.locator(".edge-table tbody tr").count() == 25
    assert page.locator(".controls").first.is_hidden()
    assert re.search(r"The model does not fit", page.locator(".verdict").last.inner_text())

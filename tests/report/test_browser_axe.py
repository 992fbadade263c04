"""axe-core finds nothing on the page: demo, river and a large graph, in light and dark and on a phone.

axe-core comes with the development tools (``npm ci``); where it is not installed these tests are skipped.
"""

from pathlib import Path

import pytest

from made_runs import make_run, with_forecasts

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
}
FOUND = """async () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    const { violations, passes } = await axe.run(document, { resultTypes: ["violations"] });
    const text = ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html.slice(0, 90)).join(" | ")}`;
    return { violations: violations.map(text), passes: passes.length };
}"""


def demo_run(title="psi known"):
    return with_forecasts(make_run(12, truth=True, flags=True, title=title), row_name="pair")


def river_run():
    return with_forecasts(make_run(4, evidence=True, errors=True, flags=True))


def large_run():
    return with_forecasts(make_run(1000, candidates=8, evidence=True))


PAGES = {"demo": (demo_run, lambda: demo_run("psi learned")), "river": (river_run,), "large": (large_run,)}


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(opened, page_file, name, screen):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci installs it")
    page = opened(page_file(f"axe {name}", *PAGES[name]), **SCREENS[screen])
    page.evaluate(AXE.read_text(encoding="utf-8"))  # the page's own policy would not load it
    found = page.evaluate(FOUND)
    assert found["violations"] == []
    assert found["passes"] > 20

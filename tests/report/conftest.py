"""A real headless Chromium for the tests of the page; where there is none they are skipped, and say so."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from browser_waits import until
from tacit.report import write_page

FINDER = Path(__file__).parents[2] / "tools" / "chromium.sh"
READY = "performance.getEntriesByName('interactive').length > 0"
# No name is looked up, and nothing is asked of the browser's maker.
QUIET = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests; its own download is never used."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright: make test has it")
    found = subprocess.run([FINDER], capture_output=True, text=True, timeout=30)
    if found.returncode != 0:
        pytest.skip("the browser tests need a Chromium, and none was found; tools/chromium.sh --install gets one")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found.stdout.strip(), args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def page_file(tmp_path_factory):
    """Write the page of some runs once for all tests that ask for it under the same name."""
    written = {}

    def write(name, *runs, title="a made page"):
        if name not in written:
            written[name] = tmp_path_factory.mktemp("pages") / f"{name}.html"
            write_page([make() for make in runs], written[name], title)
        return written[name]

    return write


@pytest.fixture
def opened(chromium):
    """Open a page for one test."""
    with opening(chromium) as open_:
        yield open_


@pytest.fixture(scope="module")
def shared(chromium):
    """Open a page for all tests of a file, each of which sets what it needs."""
    with opening(chromium) as open_:
        yield open_


@contextmanager
def opening(chromium):
    """Open pages; afterwards there was no error in them, no word on a console, and nothing asked for but themselves."""
    said, asked, contexts = [], [], []

    def open_(path, *, ready=READY, **settings):
        # Smooth scrolling would move the page after a place on it was measured, even if a scroll without it follows.
        usual = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"}
        context = chromium.new_context(**usual | settings)
        contexts.append(context)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        if ready:
            until(page, ready)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert sum(url.startswith("file:") for url in asked) == len(contexts)

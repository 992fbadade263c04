"""The site: it builds without a warning, asks the network for nothing, and shows formulas and links as such."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import yaml

from doc_blocks import ROOT

pytestmark = pytest.mark.slow

# What a browser loads by itself when it opens a page; a link that a reader may follow is another thing.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
ELSEWHERE = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
NOT_LOADED = {"canonical", "next", "prev"}


def build(folder, config=ROOT / "mkdocs.yml"):
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(folder),
    ]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)


class Loads(HTMLParser):
    """Collects what a page loads, and its plain text."""

    def __init__(self):
        super().__init__()
        self.found, self.text, self._code = [], [], 0

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self._code += tag in ("code", "pre", "script", "style")
        if tag in LOADED and values.get(LOADED[tag]) and values.get("rel") not in NOT_LOADED:
            self.found.append(values[LOADED[tag]])

    def handle_endtag(self, tag):
        self._code -= tag in ("code", "pre", "script", "style")

    def handle_data(self, data):
        if not self._code:
            self.text.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    parsed = {}
    for path in site.rglob("*.html"):
        parsed[path] = Loads()
        parsed[path].feed(path.read_text(encoding="utf-8"))
    return parsed


def test_every_page_of_the_contents_is_there(site):
    def files(entry):
        if isinstance(entry, str):
            return [entry]
        return [file for part in (entry if isinstance(entry, list) else entry.values()) for file in files(part)]

    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(config[config.index("\nnav:") :])["nav"]
    named = files(nav)
    assert len(named) > 30
    assert not [name for name in named if not (site / name).with_suffix(".html").is_file()]


def test_no_page_loads_anything_from_elsewhere(pages):
    outside = {
        f"{path.name}: {address}" for path, page in pages.items() for address in page.found if ELSEWHERE.match(address)
    }
    assert not outside


def test_no_style_loads_anything_from_elsewhere(site):
    styles = list(site.rglob("*.css"))
    assert styles
    outside = [
        f"{path.name}: {found}"
        for path in styles
        for found in re.findall(r"(?:url\(|@import)[^;)]*//[^;)]*", path.read_text())
    ]
    assert not outside


def test_what_is_loaded_is_there(site, pages):
    missing = set()
    for path, page in pages.items():
        for address in page.found:
            plain = address.partition("#")[0].partition("?")[0]
            target = site / plain.lstrip("/") if plain.startswith("/") else path.parent / plain
            if plain and not plain.startswith("data:") and not target.is_file():
                missing.add(f"{path.relative_to(site)}: {address}")
    assert not missing


def test_formulas_and_roles_are_drawn_not_spelled(site, pages):
    assert (site / "concepts" / "theory.html").read_text(encoding="utf-8").count("<math") > 60
    assert "<math" in (site / "reference" / "training.html").read_text(encoding="utf-8")
    for path, page in pages.items():
        if path.name not in ("changelog.html",):
            text = "".join(page.text)
            assert not re.search(r":(?:class|func|meth|mod):`", text), path
            assert "arithmatex" not in path.read_text(encoding="utf-8"), path
            assert not re.search(r"\\[a-z]{3,}|(?<!\w)\$\$?\\?\w", text), path


def test_formulas_are_whole(site):
    """Every element has as many parts as it needs; with one too many it is drawn wrongly, and nothing says so."""
    parts = {"msub": 2, "msup": 2, "munder": 2, "mover": 2, "mfrac": 2, "msubsup": 3, "munderover": 3}
    formulas = {found for path in site.rglob("*.html") for found in re.findall(r"<math.*?</math>", path.read_text())}
    assert len(formulas) > 300
    wrong = set()
    for formula in formulas:
        for element in ElementTree.fromstring(formula).iter():
            name = element.tag.rpartition("}")[2]
            if name == "merror" or len(element) != parts.get(name, len(element)):
                wrong.add(formula)
    assert not wrong


def test_every_name_of_the_reference_is_shown(site):
    """A name that a folder exports has a heading on its page, with docstring or without."""
    missing = []
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        shown = (site / "reference" / page.name).with_suffix(".html").read_text(encoding="utf-8")
        for folder in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            names = getattr(importlib.import_module(folder), "__all__", ())
            missing += [f"{page.name}: {folder}.{name}" for name in names if f'id="{folder}.{name}"' not in shown]
    assert not missing


def test_generated_parts_are_there(site):
    """The options come from the schema, by the command."""
    options = (site / "reference" / "options.html").read_text(encoding="utf-8")
    assert "smallest_effect" in options
    assert "generated:" not in options


def test_the_search_knows_the_pages(site):
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "receptive field" in index
    assert "concepts/theory.html" in index


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[here](index.md#one) and $\\theta$", None),
        ("[gone](gone.md)", "gone.md"),
        ("[gone](index.md#gone)", "#gone"),
        ("[Gone][tacit.losses.Gone]", "tacit.losses.Gone"),
        ("$\\nosuchcommand$", "nosuchcommand"),
    ],
)
def test_a_mistake_ends_the_build(text, complaint, tmp_path):
    """The settings are those of the site; the page is one with a mistake."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# One\n\n{text}\n")
    formulas = ROOT / "tools" / "site" / "formulas.py"
    config = tmp_path / "mkdocs.yml"
    config.write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\nnav: [index.md]\nexclude_docs: ''\nnot_in_nav: ''\nextra_css: []\n"
        f"hooks: ['{formulas}']\nplugins: [search, autorefs]\n"
    )
    done = build(tmp_path / "site", config)
    assert (done.returncode == 0) == (complaint is None), done.stderr
    assert complaint is None or complaint in done.stderr


def test_the_reader_without_a_server_finds_the_pages(site):
    """Addresses end in .html, so that a folder of files is enough."""
    assert 'href="tutorials/index.html"' in (site / "index.html").read_text(encoding="utf-8")
    assert not (site / "concepts" / "theory").exists()


def test_every_tutorial_is_in_the_gallery_and_can_be_downloaded(site):
    gallery = (site / "tutorials" / "index.html").read_text(encoding="utf-8")
    for source in (ROOT / "docs" / "tutorials").glob("*.py"):
        assert f'href="{source.stem}.html"' in gallery
        assert f'src="{source.stem}/thumbnail.png"' in gallery
        notebook = json.loads((site / "tutorials" / f"{source.stem}.ipynb").read_text(encoding="utf-8"))
        assert any(cell.get("outputs") for cell in notebook["cells"])
        assert not (site / "tutorials" / source.name).exists()


@pytest.mark.browser
def test_in_a_browser(site):
    """On a phone and a desk, read from a folder: no error, nothing asked of others, no page wider than the screen."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium here to look at the site with")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        asked, wrong = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        for name in (
            "index", "tutorials/index", "tutorials/paper", "concepts/theory", "reference/training", "results/RESULTS",
        ):  # fmt: skip
            page.goto(f"{site.as_uri()}/{name}.html")
            page.wait_for_selector("h1")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        page.set_viewport_size({"width": 1300, "height": 800})
        page.goto(f"{site.as_uri()}/index.html")
        page.locator("input[name=query]").press_sequentially("receptive field")
        page.wait_for_selector(".md-search-result__item")
        browser.close()
    assert not wrong
    assert not [address for address in asked if not address.startswith((site.as_uri(), "data:", "blob:", "about:"))]

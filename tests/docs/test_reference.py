"""The reference has every public name; what pages say of names and choices is true."""

import importlib
import pkgutil
import re

import pytest

import tacit
from doc_blocks import ROOT, blocks_of
from tacit.pipeline.template import template

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\[(tacit[\w.]*)\]")
FOLDERS = [
    name
    for _, name, is_package in pkgutil.walk_packages(tacit.__path__, "tacit.")
    if is_package and hasattr(importlib.import_module(name), "__all__")
]


def resolve(path):
    """Return what a dotted name stands for."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{path} does not exist")


def listed(page):
    """Return the full names that a page of the reference shows: modules and their members."""
    found, module = set(), ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("::: "):
            module = line.removeprefix("::: ")
            found.add(module)
        elif re.match(r"^ {8}- \w+$", line):
            found.add(f"{module}.{line.strip(' -')}")
    return found


def test_folders_are_those_that_are_known():
    assert {"tacit.losses", "tacit.graph", "tacit.assessment.evidence", "tacit.config", "tacit.report"} <= set(FOLDERS)
    assert len(FOLDERS) >= 14


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_public_name_of_a_folder_is_on_its_page(folder):
    names = listed(DOCS / "reference" / f"{folder.rsplit('.', 1)[-1]}.md")
    depth = folder.count(".") + 2  # folder, file, name
    shown = {name.rsplit(".", 1)[-1]: name for name in names if name.count(".") == depth}
    public = importlib.import_module(folder).__all__
    assert sorted(shown) == sorted(public)
    for name in public:  # and the name there is the thing that the folder exports
        assert resolve(shown[name]) is getattr(importlib.import_module(folder), name)


def test_every_public_name_of_the_package_is_in_the_index():
    page = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    linked = {path.rsplit(".", 1)[-1] for path in LINK.findall(page)}
    assert linked == set(tacit.__all__) - {"__version__"}


def test_names_that_pages_link_to_exist():
    named = {path for page in DOCS.rglob("*.md") for path in LINK.findall(page.read_text(encoding="utf-8"))}
    assert "tacit.sklearn.LatentGraphForecaster" in named
    for path in sorted(named):
        resolve(path)


def test_the_choices_shown_are_those_of_the_command():
    (shown,) = (block for block in blocks_of(DOCS / "reference" / "options.md") if block.title == "as-written.toml")
    assert shown.text.strip() == template().strip()

"""The reference has every public name; what pages say of names and choices is true."""

import importlib
import pkgutil
import re

import pytest

import tacit
from doc_blocks import ROOT

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


def test_folders_are_those_that_are_known():
    assert {"tacit.losses", "tacit.graph", "tacit.assessment.evidence", "tacit.config", "tacit.report"} <= set(FOLDERS)
    assert len(FOLDERS) >= 14


@pytest.mark.parametrize("folder", [*FOLDERS, "tacit.comparison", "tacit.errors", "tacit.registry", "tacit.shapes"])
def test_every_folder_is_on_a_page_with_all_that_it_exports(folder):
    pages = [page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference").glob("*.md"))]
    assert sum(page.count(f"::: {folder}\n    options:\n      members: true\n") for page in pages) == 1


def test_every_public_name_of_the_package_is_in_the_index():
    page = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    linked = {path.rsplit(".", 1)[-1] for path in LINK.findall(page)}
    assert linked == set(tacit.__all__) - {"__version__"}


def test_names_that_pages_link_to_exist():
    named = {path for page in DOCS.rglob("*.md") for path in LINK.findall(page.read_text(encoding="utf-8"))}
    assert "tacit.sklearn.LatentGraphForecaster" in named
    for path in sorted(named):
        resolve(path)

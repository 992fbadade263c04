"""The reference has every public name; what pages say of names, equations and choices is true."""

import importlib
import pkgutil
import re

import pytest

import tacit
from doc_blocks import ROOT, blocks_of
from tacit.pipeline.template import template

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\[(tacit[\w.]*)\]")
ROOMS = [
    name
    for _, name, is_package in pkgutil.iter_modules(tacit.__path__)
    if is_package and hasattr(importlib.import_module(f"tacit.{name}"), "__all__")
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


def test_rooms_are_those_that_are_known():
    assert {"losses", "graph", "training", "sklearn", "config", "report"} <= set(ROOMS)
    assert len(ROOMS) >= 14


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_is_on_its_page(room):
    names = listed(DOCS / "reference" / f"{room}.md")
    shown = {name.rsplit(".", 1)[-1]: name for name in names if name.count(".") == 3}
    public = importlib.import_module(f"tacit.{room}").__all__
    assert sorted(shown) == sorted(public)
    for name in public:  # and the name there is the thing that the room hands out
        assert resolve(shown[name]) is getattr(importlib.import_module(f"tacit.{room}"), name)


def test_every_public_name_of_the_package_is_in_the_index():
    page = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    linked = {path.rsplit(".", 1)[-1] for path in LINK.findall(page)}
    assert linked == set(tacit.__all__) - {"__version__"}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_names_that_a_page_links_to_exist(page):
    for path in LINK.findall(page.read_text(encoding="utf-8")):
        resolve(path)


def test_every_equation_of_the_paper_is_there():
    """Its 24 numbered ones, in order; each but a definition and a remark names what computes it."""
    text = (DOCS / "theory.md").read_text(encoding="utf-8")
    numbers = []
    for first, last in re.findall(r"\*\*\((\d+)\)(?: to \((\d+)\))?", text):
        numbers += range(int(first), int(last or first) + 1)
    assert numbers == list(range(1, 25))
    assert len(set(LINK.findall(text))) > 45


def test_files_that_pages_name_exist():
    pages = [ROOT / "README.md", *DOCS.glob("*.md")]
    named = {
        path for page in pages for path in re.findall(r"`((?:tests|benchmarks|tools)/[\w/.-]+\.\w+)`", page.read_text())
    }
    assert len(named) > 10
    assert not [path for path in named if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "benchmarks/README.md"])
def test_links_outside_of_the_site_hold(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text)]
    assert not [target for target in targets if target and not ((ROOT / page).parent / target).exists()]


def test_the_choices_shown_are_those_of_the_command():
    (shown,) = (block for block in blocks_of(DOCS / "own-data.md") if block.title == "as-written.toml")
    assert shown.text.strip() == template().strip()


def test_the_readme_is_short_and_has_what_it_promises():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 130
    for part in (
        "docs/images/report.png",
        "make demo",
        "make test",
        "## Ten lines of Python",
        "## Beside other packages",
    ):
        assert part in text


def test_figures_of_the_readme_are_those_of_the_results():
    """The rows of the losses that tacit and the paper share, as the page of results has them."""
    results = (DOCS / "results" / "losses" / "table.md").read_text(encoding="utf-8").replace("**", "")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, words in (
        ("point mse", "point MSE"),
        ("energy", "energy score"),
        ("mmd", "MMD"),
        ("ours: energy, node", "node scope"),
    ):
        row = next(line for line in results.splitlines() if line.startswith(f"| {name} |"))
        ours = row.split("|")[3].strip()
        line = next(
            line for line in readme.splitlines() if line.startswith("|") and f"{words} |" in line and "0.0" in line
        )
        assert line.split("|")[3].strip() == ours, name


def test_figures_of_the_page_on_choosing_are_those_of_the_results():
    def cells(line):
        return [cell.strip() for cell in line.split("|")[1:-1]]

    results = (DOCS / "results" / "losses" / "table.md").read_text(encoding="utf-8").replace("**", "")
    measured = {}
    for line in results.split("psi frozen")[0].splitlines():
        if " ± " in line and line.startswith("|"):
            name, _, theta, _, mae, _, mse, *_ = cells(line)
            measured[name] = [value.split(" ")[0] for value in (theta, mae, mse)]
    names = {"ELBO": "elbo", "point MSE": "point mse", "energy, joint": "energy", "MMD, joint": "mmd"}
    names["energy, node (default)"] = "ours: energy, node"
    page = (DOCS / "choosing.md").read_text(encoding="utf-8").replace("**", "")
    rows = [cells(line) for line in page.splitlines() if re.match(r"\| (literature|ELBO|point MSE|energy|MMD)", line)]
    assert len(rows) == len(measured) == 9
    for name, theta, _, mae, mse, _ in rows:
        assert [theta, mae, mse] == measured[names.get(name, name)], name

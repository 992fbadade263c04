"""Check that the pages drawn from committed records are what the records give, and that the records meet their targets.

    python tools/check_pages.py

``make docs`` runs it. These checks compare committed files with committed files, so they cannot fail because of a
change of the package's code alone and are no tests. Each complaint is one line; the exit code is 1 if there is any.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "fuzz"), str(ROOT / "tools")]

import edge_columns  # noqa: E402
import fuzz_page  # noqa: E402
from benchmarks.existence import page as existence_page  # noqa: E402
from benchmarks.figures import how_many_rows, two_numbers  # noqa: E402
from benchmarks.observation import page as observation_page  # noqa: E402
from benchmarks.robustness import page as robustness_page  # noqa: E402
from benchmarks.simultaneous import page as simultaneous_page  # noqa: E402
from benchmarks.situations import page as situations_page  # noqa: E402
from benchmarks.studies import STUDIES as OWN_STUDIES  # noqa: E402
from benchmarks.studies import __main__ as own_studies  # noqa: E402
from benchmarks.targets import __main__ as targets_page  # noqa: E402

from benchmarks import acting_page, effects_page, speed_page, trust_page  # noqa: E402
from tacit.experiments import runner  # noqa: E402
from tacit.experiments.runner import STUDIES  # noqa: E402

Complaints = Iterator[str]


def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


def drawn_pages() -> Complaints:
    """Each page is what its script draws from the records."""
    for path, text, how in (
        (RESULTS / runner.PAGE, runner.results_page(RESULTS, STUDIES.values()), "tacit reproduce"),
        (
            RESULTS / own_studies.PAGE,
            runner.results_page(RESULTS, OWN_STUDIES.values(), own_studies.WORDS, own_studies.TITLE),
            "python -m benchmarks.studies",
        ),
        (speed_page.PAGE, speed_page.page(speed_page.RESULTS), "python benchmarks/speed_page.py"),
        (trust_page.PAGE, trust_page.page(trust_page.RESULTS), "python benchmarks/trust_page.py"),
        (existence_page.PAGE, existence_page.page(), "python -m benchmarks.existence.page"),
        (observation_page.PAGE, observation_page.page(), "python -m benchmarks.observation.page"),
        (robustness_page.PAGE, robustness_page.page(), "python -m benchmarks.robustness.page"),
        (situations_page.PAGE, situations_page.page(), "python -m benchmarks.situations.page"),
        (simultaneous_page.PAGE, simultaneous_page.page(), "python -m benchmarks.simultaneous.page"),
        (targets_page.PAGE, targets_page.page(), "python -m benchmarks.targets"),
        (edge_columns.PAGE, edge_columns.page(), "python tools/edge_columns.py"),
        *(
            (drawn.PAGE, drawn.page(json.loads(read(drawn.RESULTS))), f"python -m {drawn.__name__}")
            for drawn in (acting_page, effects_page)
        ),
        *((path, text, "python tests/fuzz/fuzz_page.py") for path, text in fuzz_page.pages().items()),
    ):
        if read(path) != text:
            yield f"{path.relative_to(ROOT)} must be what its records give, got another text; draw it by {how}"


FEWEST_SEEDS = 8  # of a study: the default of the commands


def studies() -> Complaints:
    """Each study has all its records, of full size, and its figures."""
    for name, study in (STUDIES | OWN_STUDIES).items():
        records = runner.read_records(RESULTS / name)
        options = [values["options"] for values in records.values()]
        seeds = {one["seeds"] for one in options}
        if any(one["quick"] for one in options) or len(seeds) != 1 or min(seeds) < FEWEST_SEEDS:
            yield f"docs/results/{name} must hold runs of full size with {FEWEST_SEEDS} seeds or more, all with as many"
        if set(study.tasks()) != set(records):
            yield f"docs/results/{name} must hold a record of each task, got {sorted(records)}"
        for figure in study.figures(records):
            if not (RESULTS / name / f"{figure}.png").is_file():
                yield f"docs/results/{name}/{figure}.png is missing"


def targets() -> Complaints:
    """Every figure of the records meets its target, or its miss is explained; no placeholder is left on a page."""
    yield from (f"benchmarks/TARGETS.md: {line}" for line in targets_page.complaints())
    if "{" in read(speed_page.PAGE):
        yield "docs/results/SPEED.md must have no placeholder, got {; name the table in speed_page.py"


def concepts() -> Complaints:
    """The tables of two pages of concepts have the figures of their records."""
    if how_many_rows.table() not in read(how_many_rows.PAGE):
        yield f"{how_many_rows.PAGE.relative_to(ROOT)} must have the table that its script prints"
    page = read(DOCS / "concepts" / "two-numbers.md")
    for row in two_numbers.rows():
        if row not in page:
            yield f"docs/concepts/two-numbers.md must have the figures {row!r}, as in its record"


HISTORY = re.compile(
    r"\b(NOT met|MISSED|must be|prototype|target[s]? (missed|met)|earlier study|the aim)\b", re.IGNORECASE
)


def no_history() -> Complaints:
    """Pages of results show measurements; targets and what was tried belong in benchmarks/."""
    for path in sorted(RESULTS.glob("**/*.md")):
        if found := HISTORY.search(read(path)):
            yield f"{path.relative_to(ROOT)} must have no internal history, got {found[0]!r}; see benchmarks/TARGETS.md"


def fuzzing() -> Complaints:
    """Every surface was run, ten thousand cases in all, without a failure."""
    figures, defects = fuzz_page.read()
    found = figures["surfaces"]
    held = {
        "every surface is there": set(found) == set(fuzz_page.WORDS),
        "10,000 cases": sum(surface["cases"] for surface in found.values()) >= 10_000,
        "no failure": all(surface["failures"] == {} for surface in found.values()),
        "results and errors on every surface": all(
            surface["results"] + surface["plans"] > 0 and surface["errors"] > 0 for surface in found.values()
        ),
        "defects say what was and what is": all(defect["was"] and defect["now"] for defect in defects),
    }
    yield from (f"docs/results/FUZZING.md: not so: {name}" for name, holds in held.items() if not holds)


def cells(line: str) -> list[str]:
    """Return the cells of a row of a table."""
    return [cell.strip() for cell in line.split("|")[1:-1]]


def quoted_figures() -> Complaints:
    """The README quotes the pages that it links to; the page on choosing quotes the table of losses."""
    for line in read(ROOT / "README.md").splitlines():
        if line.startswith("|") and " ± " in line:
            linked = [read(ROOT / page) for page in re.findall(r"\]\((docs/results/[^)#]+)", line)]
            drawn = "\n".join(linked).replace("**", "").replace("% | ", "% ± ")
            for figure in re.findall(r"[\d.]+%? ± [\d.]+%?", line):
                if figure not in drawn:
                    yield f"README.md: {figure} must be on a page that its row links to: {cells(line)[0]}"
    results = read(RESULTS / runner.PAGE).split("## validation")[0].replace("**", "")
    measured = {}
    for line in results.split("psi frozen")[0].splitlines():
        if " ± " in line and line.startswith("|"):
            name, _, theta, _, mae, _, mse, *_ = cells(line)
            measured[name] = [value.split(" ")[0] for value in (theta, mae, mse)]
    named = {"ELBO": "elbo", "point MSE": "point mse", "energy, joint": "energy", "MMD, joint": "mmd"}
    named["energy, node (default)"] = "ours: energy, node"
    page = read(DOCS / "concepts" / "losses.md").replace("**", "").splitlines()
    rows = [cells(line) for line in page if re.match(r"\| (literature|ELBO|point MSE|energy|MMD)", line)]
    if not len(rows) == len(measured) == 9:
        yield f"docs/concepts/losses.md must have the 9 losses, got {len(rows)}"
    for name, theta, _, mae, mse, _ in rows:
        if [theta, mae, mse] != measured[named.get(name, name)]:
            yield f"docs/concepts/losses.md: {name} must be {measured[named.get(name, name)]}, got {[theta, mae, mse]}"


def pages() -> Complaints:
    """The README is short, the page on theory has all 24 equations, and files and links that pages name exist."""
    readme = read(ROOT / "README.md")
    if len(readme.splitlines()) > 90:
        yield f"README.md must have at most 90 lines, got {len(readme.splitlines())}"
    for part in ("docs/images/report.png", "make demo", "exists", "probability", "docs/concepts/when-to-use.md"):
        if part not in readme:
            yield f"README.md must hold {part!r}"
    theory, numbers = read(DOCS / "concepts" / "theory.md"), []
    for first, last in re.findall(r"\*\*\((\d+)\)(?: to \((\d+)\))?", theory):
        numbers += range(int(first), int(last or first) + 1)
    if numbers != list(range(1, 25)):
        yield f"docs/concepts/theory.md must have the equations 1 to 24 in order, got {numbers}"
    if len(set(re.findall(r"\]\[(tacit[\w.]*)\]", theory))) <= 45:
        yield "docs/concepts/theory.md must name what computes each equation"
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        for path in re.findall(r"`((?:tests|benchmarks|tools)/[\w/.-]+\.\w+)`", read(page)):
            if not (ROOT / path).exists():
                yield f"{page.relative_to(ROOT)}: {path} does not exist"
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md"):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", read(ROOT / name)):
            if "://" not in target and not ((ROOT / name).parent / target).exists():
                yield f"{name}: {target} does not exist"


CHECKS: tuple[Callable[[], Complaints], ...] = (
    drawn_pages, studies, targets, concepts, no_history, fuzzing, quoted_figures, pages,
)  # fmt: skip

if __name__ == "__main__":
    complaints = [complaint for check in CHECKS for complaint in check()]
    print("\n".join(complaints) or "pages: as their records give them")
    sys.exit(bool(complaints))

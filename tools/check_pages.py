"""Check that the pages drawn from committed records are what the records give, and that the records meet their targets.

    python tools/check_pages.py

``make docs`` runs it. These checks compare committed files with committed files, so they cannot fail because of a
change of the package's code alone and are no tests. Each complaint is one line; the exit code is 1 if there is any.
"""

import re
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests" / "fuzz")]

import fuzz_page  # noqa: E402
from benchmarks.existence import page as existence_page  # noqa: E402
from benchmarks.observation import page as observation_page  # noqa: E402
from benchmarks.situations import page as situations_page  # noqa: E402
from benchmarks.studies import STUDIES as OWN_STUDIES  # noqa: E402
from benchmarks.studies import __main__ as own_studies  # noqa: E402

import speed_page  # noqa: E402
import trust_page  # noqa: E402
from tacit.experiments import runner  # noqa: E402
from tacit.experiments.registry import STUDIES  # noqa: E402

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
            runner.results_page(RESULTS, OWN_STUDIES.values(), own_studies.WORDS),
            "python -m benchmarks.studies",
        ),
        (speed_page.PAGE, speed_page.page(speed_page.RESULTS), "python benchmarks/speed_page.py"),
        (trust_page.PAGE, trust_page.page(trust_page.RESULTS), "python benchmarks/trust_page.py"),
        (existence_page.PAGE, existence_page.page(), "python -m benchmarks.existence.page"),
        (observation_page.PAGE, observation_page.page(), "python -m benchmarks.observation.page"),
        (situations_page.PAGE, situations_page.page(), "python -m benchmarks.situations.page"),
        (fuzz_page.PAGE, fuzz_page.page(*fuzz_page.read()), "python tests/fuzz/fuzz_page.py"),
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
        if {task.name for task in study.tasks()} != set(records):
            yield f"docs/results/{name} must hold a record of each task, got {sorted(records)}"
        for figure in study.figures(records):
            if not (RESULTS / name / f"{figure}.png").is_file():
                yield f"docs/results/{name}/{figure}.png is missing"


def speed() -> Complaints:
    """Figures of speed and accuracy meet their targets, or the page says that one is missed."""

    def figures(name: str) -> dict:
        return speed_page.read(speed_page.RESULTS, name)

    best, cpu, limit = figures("best_h200"), figures("best_cpu")["quick"], figures("limit_h200")["known"]
    small, *_, large = figures("scale_cpu")["results"]
    held = {
        "best: mean error <= 0.0015": statistics.mean(best["best"]["errors"]) <= 0.0015,
        "best: at most 20 s": max(best["best"]["seconds"]) <= 20.0,
        "larger: mean error <= 0.0006": statistics.mean(best["larger"]["errors"]) <= 0.0006,
        "two cores: error <= 0.010": max(cpu["errors"]) <= 0.010,
        "two cores: at most 3 s": max(cpu["seconds"]) <= 3.0,
        "eight replicas, ten epochs: at most 0.3 s": limit["fit_seconds"] <= 0.3 and limit["over_floor"] > 1,
        "scale: from 1,010 to 10,000 nodes": small["nodes"] <= 1_010 and large["nodes"] >= 10_000,
        "scale: 500,000 candidates in 8 GB": large["candidates"] >= 500_000 and large["gigabytes"] <= 8,
        "scale: AUROC >= 0.99, time at most linear": large["auroc"] >= 0.99 and large["of_linear"] <= 1,
        "scale, GPU: 5,000,000 candidates": figures("scale_h200")["results"][-1]["candidates"] >= 5_000_000,
    }
    lines = speed_page.page(speed_page.RESULTS).splitlines()
    for psi in ("known", "trained"):
        ratio = {
            row["implementation"]: row["ratio"]
            for row in figures("step_vs_pyg")["results"]
            if (row["theta"], row["graphs"], row["psi"]) == ("true", "shared", psi)
        }
        line = next(line for line in lines if line.startswith(f"| shared | {psi} |"))
        held[f"PyG, psi {psi}: 100 times the usual, 5 times the careful"] = (
            ratio["PyG, usual"] >= 100 and ratio["PyG, careful"] >= 5
        )
        held[f"PyG, psi {psi}: a missed target of 10 is named"] = (ratio["PyG, careful"] >= 10) == (
            "NOT met (>= 10)" not in line
        )
    held["no placeholder is left"] = not any("{" in line for line in lines)
    yield from (f"docs/results/SPEED.md: not so: {name}" for name, holds in held.items() if not holds)


def trust() -> Complaints:
    """Intervals hold as often as they say; the kernel test has its level and power; flags and cost are as promised."""

    def figures(name: str) -> dict:
        return trust_page._read(trust_page.RESULTS, name)

    coverage, held = figures("coverage"), {}
    for (psi, level), (low, high) in trust_page.TARGETS.items():
        shares = [row[f"held_{level}"] / 50 for row in coverage["rows"] if row["psi"] == psi]
        held[f"psi {psi}: {level:.0%} intervals hold {low:.0%} to {high:.0%}"] = (
            len(shares) == coverage["sets"] >= 10 and low <= statistics.mean(shares) <= high
        )
    level, power = figures("level")["p_values"], figures("power")["p_values"]
    held["the test rejects 3.5% to 6.5% of 1,000 true models"] = (
        len(level) == 1000 and 0.035 <= trust_page._rejected(level) <= 0.065
    )
    held["the test rejects 95% of three wrong models"] = len(power) == 3 and all(
        len(found) >= 100 and trust_page._rejected(found) > 0.95 for found in power.values()
    )
    held["the diagonal is flagged, and nothing else"] = all(
        (row["diagonal"], row["elsewhere"]) == (12, 0) for row in figures("flags")["rows"]
    )
    for kind, most in (("cuda", 4), ("cpu", 12)):
        held[f"standard errors cost at most {most} fits on {kind}"] = all(
            row["bootstrap"] <= most * row["fit"] for row in figures(f"cost_{kind}")["rows"]
        )
    yield from (f"docs/results/TRUST.md: not so: {name}" for name, holds in held.items() if not holds)


def observation() -> Complaints:
    """Errors of theta, levels and powers of the fit test and coverage meet their targets."""
    yield from (f"docs/results/observation.md: missed: {row}" for row in observation_page.missed())


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
            linked = [read(ROOT / page) for page in re.findall(r"\]\((docs/results/[^)]+)\)", line)]
            drawn = "\n".join(linked).replace("**", "").replace("% | ", "% ± ")
            for figure in re.findall(r"[\d.]+%? ± [\d.]+%?", line):
                if figure not in drawn:
                    yield f"README.md: {figure} must be on a page that its row links to: {cells(line)[0]}"
    results = read(RESULTS / "losses" / "table.md").replace("**", "")
    measured = {}
    for line in results.split("psi frozen")[0].splitlines():
        if " ± " in line and line.startswith("|"):
            name, _, theta, _, mae, _, mse, *_ = cells(line)
            measured[name] = [value.split(" ")[0] for value in (theta, mae, mse)]
    named = {"ELBO": "elbo", "point MSE": "point mse", "energy, joint": "energy", "MMD, joint": "mmd"}
    named["energy, node (default)"] = "ours: energy, node"
    page = read(DOCS / "how-to" / "choosing.md").replace("**", "").splitlines()
    rows = [cells(line) for line in page if re.match(r"\| (literature|ELBO|point MSE|energy|MMD)", line)]
    if not len(rows) == len(measured) == 9:
        yield f"docs/how-to/choosing.md must have the 9 losses, got {len(rows)}"
    for name, theta, _, mae, mse, _ in rows:
        if [theta, mae, mse] != measured[named.get(name, name)]:
            yield f"docs/how-to/choosing.md: {name} must be {measured[named.get(name, name)]}, got {[theta, mae, mse]}"


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
    drawn_pages, studies, speed, trust, observation, fuzzing, quoted_figures, pages,
)  # fmt: skip

if __name__ == "__main__":
    complaints = [complaint for check in CHECKS for complaint in check()]
    print("\n".join(complaints) or "pages: as their records give them")
    sys.exit(bool(complaints))

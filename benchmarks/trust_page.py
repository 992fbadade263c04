"""The page docs/results/TRUST.md, from the figures of ``trust.py`` alone; run ``python benchmarks/trust_page.py``."""

import json
import math
import statistics
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "results" / "TRUST.md"
LEVELS = (0.95, 0.8)
TEST_PAIRS = 3_500
Figures = dict[str, Any]


def page(directory: Path) -> str:
    """Return the text of the page, from the files alone."""
    parts = [HEAD, _coverage_table(read(directory, "coverage")), _kernel_table(directory), _flags_table(directory)]
    return "\n".join([*parts, _cost_table(directory)])


HEAD = """# Accuracy of the assessment

Do nominal 95% intervals of edge probabilities contain the truth in 95% of cases, and does a fit test at the 5% level
reject 5% of correct models? All figures are from the paper's 12-node system with 28,000 training pairs and a default
fit of 10 epochs. "psi known": the true predictor is given. "psi learned": it is learned too, from 8 starts, of which
the best is used. `python benchmarks/trust.py coverage level power flags cost --device cuda` makes the records, and
`python benchmarks/trust_page.py` draws this page from them.
"""


def read(directory: Path, name: str) -> Figures:
    """Return the figures of one part."""
    found: Figures = json.loads((directory / f"trust_{name}.json").read_text(encoding="utf-8"))
    return found


def _coverage_table(figures: Figures) -> str:
    lines = [
        f"## Intervals of edge probabilities\n\n{figures['sets']} independent data sets, {figures['device']}. Coverage "
        "is the share of the 50 true probabilities (0.75) that lie in their interval, ± its standard deviation between "
        "data sets. The last column is the coverage of the 94 pairs without an edge.\n",
        "| psi | nominal | coverage, bootstrap | coverage, sandwich | coverage, pairs without an edge |",
        "|---|---|---|---|---|",
    ]
    for psi in ("known", "learned"):
        rows = [row for row in figures["rows"] if row["psi"] == psi]
        for level in LEVELS:
            shares = [row[f"held_{level}"] / 50 for row in rows]
            none = statistics.mean(row[f"held_none_{level}"] / 94 for row in rows)
            some = [row for row in rows if "sandwich_edges" in row]
            edges = sum(row["sandwich_edges"] for row in some)
            cheap = sum(row[f"sandwich_held_{level}"] for row in some) / edges
            lines.append(
                f"| {psi} | {level:.0%} | {statistics.mean(shares):.1%} ± {statistics.stdev(shares):.1%} | "
                f"{cheap:.1%} ({len(some)} sets) | {none:.1%} |"
            )
    lines.append(
        "\n| psi | error of the fit | error of the bagged estimate | standard error, bootstrap | sandwich over "
        "bootstrap | share of the variance due to training | all 144 in simultaneous 95% intervals |"
    )
    lines.append("|---|---|---|---|---|---|---|")
    for psi in ("known", "learned"):
        rows = [row for row in figures["rows"] if row["psi"] == psi]
        ratios = [row["sandwich_ratio"] for row in rows if "sandwich_ratio" in row]
        root = {name: math.sqrt(statistics.mean(row[name] ** 2 for row in rows)) for name in ERRORS}
        every = sum(row["all_held"] for row in rows)
        lines.append(
            f"| {psi} | {root['fit_rmse']:.4f} | {root['bagged_rmse']:.4f} | {root['mean_std_error']:.4f} | "
            f"{statistics.mean(ratios):.2f} ± {statistics.stdev(ratios):.2f} | "
            f"{statistics.mean(row['rho'] for row in rows):.2f} | {every} of {len(rows)} |"
        )
    lines.append(f"\nErrors are root mean squares over the 50 true edges and all data sets. {_dead(figures['rows'])}\n")
    return "\n".join(lines)


def _dead(rows: list[Figures]) -> str:
    """Say where a true edge died, and what the errors are without those data sets."""
    dead = [row for row in rows if row["fit_rmse"] > DEAD]
    if not dead:
        return ""
    known = [row for row in rows if row["psi"] == dead[0]["psi"] and row not in dead]
    fit, bagged = (math.sqrt(statistics.mean(row[name] ** 2 for row in known)) for name in ERRORS[:2])
    where = ", ".join(f"data set {row['set']} with psi {row['psi']}" for row in dead)
    return (
        f"In {where} the fit drove a true edge to 0. It stays there in every replica, so its interval does not contain "
        f"the truth. Without this data set the error of the fit is {fit:.4f} and that of the bagged estimate "
        f"{bagged:.4f}."
    )


DEAD = 0.05  # an error of 0.75 in one of 50 edges is a root mean square of 0.106
ERRORS = ("fit_rmse", "bagged_rmse", "mean_std_error")


def _kernel_table(directory: Path) -> str:
    figures, strength = read(directory, "level"), read(directory, "power")
    values = figures["p_values"]
    lines = [
        f"## The fit test\n\nThe kernel test on {TEST_PAIRS:,} test pairs, at the 5% level, {figures['device']}.\n",
        "| model | rejected | data sets |",
        "|---|---|---|",
        f"| the true model | {rejected(values):.1%} | {len(values):,} |",
    ]
    lines += [f"| {name} | {rejected(found):.1%} | {len(found)} |" for name, found in strength["p_values"].items()]
    at = ", ".join(f"{share:.0%}: {rejected(values, share):.1%}" for share in (0.01, 0.1, 0.2, 0.5, 0.8))
    return "\n".join([*lines, f"\nThe true model at other levels: {at}.\n"])


def rejected(p_values: list[float], at: float = 0.05) -> float:
    """Return the share of tests that reject at a level."""
    return sum(value <= at + 1e-9 for value in p_values) / len(p_values)


def _flags_table(directory: Path) -> str:
    lines = [
        "## Edges that are not identifiable\n\nStacks of graph convolutions that add self-loops themselves: the 12 "
        "entries of the diagonal have no effect, and the other 132 of the 144 have one.\n",
        "| widths | data set | flagged on the diagonal | elsewhere |",
        "|---|---|---|---|",
    ]
    for row in read(directory, "flags")["rows"]:
        lines.append(f"| {row['widths']} | {row['set']} | {row['diagonal']} | {row['elsewhere']} |")
    return "\n".join([*lines, ""])


def _cost_table(directory: Path) -> str:
    lines = [
        "## Cost\n\nTime of 32 bootstrap replicas, and of the sandwich (not compiled), relative to the fit, without "
        "compilation. With psi learned the fit has 8 starts, most of which are stopped early.\n",
        "| device | psi | fit | bootstrap / fit | sandwich / fit |",
        "|---|---|---|---|---|",
    ]
    for kind in ("cuda", "cpu"):
        if not (directory / f"trust_cost_{kind}.json").exists():
            continue
        figures = read(directory, f"cost_{kind}")
        for row in figures["rows"]:
            lines.append(
                f"| {figures['device']} | {row['psi']} | {row['fit']:.2f} s | {row['bootstrap'] / row['fit']:.1f} | "
                f"{row['sandwich'] / row['fit']:.1f} |"
            )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(RESULTS), encoding="utf-8")
    print(PAGE)

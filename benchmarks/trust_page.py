"""The page docs/results/TRUST.md, from the figures of ``trust.py`` alone; run ``python benchmarks/trust_page.py``."""

import json
import math
import statistics
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "results" / "TRUST.md"
LEVELS = (0.95, 0.8)
TARGETS = {
    ("known", 0.95): (0.92, 0.98),
    ("known", 0.8): (0.76, 0.84),
    ("learned", 0.95): (0.90, 0.98),
}
TEST_PAIRS = 3_500
Figures = dict[str, Any]


def page(directory: Path) -> str:
    """Return the text of the page, from the files alone."""
    coverage = [_coverage_table(_read(directory, "coverage")), _settling_table(directory)]
    parts = [HEAD, *coverage, _kernel_table(directory), _flags_table(directory)]
    return "\n".join([*parts, _cost_table(directory)])


HEAD = """# Trust: do standard errors, flags and the fit test hold what they promise?

The 12-node system of the paper, 28,000 training pairs, our default fit of 10 epochs (psi learned: 8 starts, the best
kept). `python benchmarks/trust.py coverage level power flags cost --device cuda` makes the figures, `python
benchmarks/trust_page.py` this page.
"""


def _read(directory: Path, name: str) -> Figures:
    found: Figures = json.loads((directory / f"trust_{name}.json").read_text(encoding="utf-8"))
    return found


def _coverage_table(figures: Figures) -> str:
    lines = [
        f"## Intervals of edge probabilities\n\n{figures['sets']} independent data sets, {figures['device']}. Held: "
        "share of the 50 true probabilities (0.75) inside their interval, over all data sets; deviation: of that share "
        "between data sets.\n",
        "| psi | nominal | must be | held, bootstrap | deviation | held, sandwich | held, 94 pairs without edge |",
        "|---|---|---|---|---|---|---|",
    ]
    for psi in ("known", "learned"):
        rows = [row for row in figures["rows"] if row["psi"] == psi]
        for level in LEVELS:
            shares = [row[f"held_{level}"] / 50 for row in rows]
            none = statistics.mean(row[f"held_none_{level}"] / 94 for row in rows)
            some = [row for row in rows if "sandwich_edges" in row]
            edges = sum(row["sandwich_edges"] for row in some)
            cheap = sum(row[f"sandwich_held_{level}"] for row in some) / edges
            low, high = TARGETS.get((psi, level), (None, None))
            target = f"{low:.0%} to {high:.0%}" if low is not None else "-"
            lines.append(
                f"| {psi} | {level:.0%} | {target} | {statistics.mean(shares):.1%} | {statistics.stdev(shares):.1%} | "
                f"{cheap:.1%} ({len(some)} sets) | {none:.1%} |"
            )
    lines.append(
        "\n| psi | error of the fit | error of the bagged estimate | standard error, bootstrap | sandwich over "
        "bootstrap | share of training in the variance (rho) | all 144 held at once, 95% |"
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


def _settling_table(directory: Path) -> str:
    lines = [
        "Other data sets, on which the method was settled: before edges that are nearly at 0 were held there while "
        "replicas train, and after.\n",
        "| | data sets | psi known, 95% | 80% | psi learned, 95% | 80% |",
        "|---|---|---|---|---|---|",
    ]
    for name, words in (("coverage_before", "before"), ("coverage_after", "after")):
        figures = _read(directory, name)
        cells = [
            statistics.mean(row[f"held_{level}"] / 50 for row in figures["rows"] if row["psi"] == psi)
            for psi in ("known", "learned")
            for level in LEVELS
        ]
        lines.append(f"| {words} | {figures['sets']} | " + " | ".join(f"{share:.1%}" for share in cells) + " |")
    return "\n".join([*lines, ""])


def _dead(rows: list[Figures]) -> str:
    """Say where a true edge died, and what the errors are without those data sets."""
    dead = [row for row in rows if row["fit_rmse"] > DEAD]
    if not dead:
        return ""
    known = [row for row in rows if row["psi"] == dead[0]["psi"] and row not in dead]
    fit, bagged = (math.sqrt(statistics.mean(row[name] ** 2 for row in known)) for name in ERRORS[:2])
    where = ", ".join(f"data set {row['set']} with psi {row['psi']}" for row in dead)
    return (
        f"In {where} the fit drove a true edge to 0, where it stays in every replica; no interval holds it. Without it "
        f"the error of the fit is {fit:.4f} and that of the bagged estimate {bagged:.4f}."
    )


DEAD = 0.05  # an error of 0.75 in one of 50 edges is a root mean square of 0.106
ERRORS = ("fit_rmse", "bagged_rmse", "mean_std_error")


def _kernel_table(directory: Path) -> str:
    figures, strength = _read(directory, "level"), _read(directory, "power")
    values = figures["p_values"]
    lines = [
        f"## The kernel test of calibration\n\n{TEST_PAIRS:,} test pairs, at the 5% level, {figures['device']}.\n",
        "| model | must be | rejected | data sets |",
        "|---|---|---|---|",
        f"| the true one | 3.5% to 6.5% | {_rejected(values):.1%} | {len(values):,} |",
    ]
    lines += [
        f"| {name} | above 95% | {_rejected(found):.1%} | {len(found)} |"
        for name, found in strength["p_values"].items()
    ]
    at = ", ".join(f"{share:.0%}: {_rejected(values, share):.1%}" for share in (0.01, 0.1, 0.2, 0.5, 0.8))
    return "\n".join([*lines, f"\nThe true model at other levels: {at}.\n"])


def _rejected(p_values: list[float], at: float = 0.05) -> float:
    return sum(value <= at + 1e-9 for value in p_values) / len(p_values)


def _flags_table(directory: Path) -> str:
    lines = [
        "## Edges that cannot be learned\n\nTrained stacks of convolutions that set self-loops themselves: of 144 "
        "entries the 12 of the diagonal must be flagged, and no other.\n",
        "| widths | data set | flagged on the diagonal | elsewhere |",
        "|---|---|---|---|",
    ]
    for row in _read(directory, "flags")["rows"]:
        lines.append(f"| {row['widths']} | {row['set']} | {row['diagonal']} | {row['elsewhere']} |")
    return "\n".join([*lines, ""])


def _cost_table(directory: Path) -> str:
    lines = [
        "## What it costs\n\nTime of 32 bootstrap replicas, and of the sandwich (not compiled), over that of the fit; "
        "compilation aside. With psi learned the fit has 8 starts, most of them dropped early.\n",
        "| device | psi | fit | bootstrap / fit | must be | sandwich / fit |",
        "|---|---|---|---|---|---|",
    ]
    for kind, most in (("cuda", 4), ("cpu", 12)):
        if not (directory / f"trust_cost_{kind}.json").exists():
            continue
        figures = _read(directory, f"cost_{kind}")
        for row in figures["rows"]:
            lines.append(
                f"| {figures['device']} | {row['psi']} | {row['fit']:.2f} s | {row['bootstrap'] / row['fit']:.1f} | "
                f"at most {most} | {row['sandwich'] / row['fit']:.1f} |"
            )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(RESULTS), encoding="utf-8")
    print(PAGE)

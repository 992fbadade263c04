"""The page docs/results/acting.md, from ``results/acting.json`` alone; run ``python -m benchmarks.acting_page``."""

import json
from pathlib import Path
from typing import Any

from benchmarks.acting import RESULTS
from benchmarks.acting_systems import KINDS

PAGE = Path(__file__).parents[1] / "docs" / "results" / "acting.md"
Figures = dict[str, Any]
HEAD = """# How often edges act

Edges of known systems, each kind with one difficulty: does the interval contain the truth, and is the word right? A
linear filter is fitted with the true edges and a few false ones (3% of the pairs). `python -m benchmarks.acting KIND
--first 40000` makes the records from seeds on which nothing was chosen, and `python -m benchmarks.acting_page` draws
this page from them. All systems are autocorrelated series of 1,000 or 1,500 rows, of which two thirds are for training.

"""
COLUMNS = (
    "intervals with the truth",
    "intervals with 1",
    "always",
    "at times",
    "gates of .3 to .7 named",
    "always acting, but said to act at times",
    "seconds",
)
WORDS = {
    "plain": "linear series, Gaussian noise",
    "nonlinear": "products and squares",
    "gpvar": "a graph of communities, nonlinear",
    "many_gates": "all edges have gates",
    "gates": "gates of .2 to .8, weight 1, noise .5",
    "common_gate": "two edges of a node share a gate of .6",
    "gates_with_shared_noise": "gates of .3 to .7; targets share their noise",
    "growing_noise": "variance .5 + .15 times the squared sources",
    "saturating": "tanh of the sources",
    "spikes": "1% of the values have an error of 5 to 15 deviations",
    "volatility": "GARCH noise of each node",
    "common_volatility": "all nodes share one volatility",
    "unit_change": "two nodes change their unit",
}


def page(rows: list[Figures]) -> str:
    """Return the text of the page, from the records alone."""
    ordered = sorted(rows, key=lambda row: (list(KINDS).index(row["kind"]), str(row["options"])))
    lines = [
        f"| kind | system | sets | edges | {' | '.join(COLUMNS)} |",
        "|---" * (4 + len(COLUMNS)) + "|",
    ]
    for row in ordered:
        options = "".join(f", {name} {value}" for name, value in row["options"].items())
        shares = [row[key] for key in ("held", "reach_1", "always", "at times", "middle_at_times", "always_at_times")]
        cells = ["-" if share is None else f"{share:.1%}" for share in shares]
        lines.append(
            f"| {row['kind']}{options} | {WORDS[row['kind']]} | {row['sets']} | {row['edges']} | "
            f"{' | '.join(cells)} | {row['seconds']:.1f} |"
        )
    return HEAD + "\n".join(lines) + "\n" + TAIL


TAIL = """
*always* and *at times* are shares of all true edges that got this word; the others are *undecided*. An interval that
contains 1 is right for edges that always act, and for a gate only where the data do not decide. Seconds are those of
one estimate with intervals, on one core of a shared machine.
"""

if __name__ == "__main__":
    PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")

"""The page docs/results/effects.md, from ``results/effects.json`` alone; run ``python -m benchmarks.effects_page``."""

import json
from pathlib import Path
from typing import Any

from benchmarks.effects import KINDS, RESULTS, SIZES

PAGE = Path(__file__).parents[1] / "docs" / "results" / "effects.md"
Figures = dict[str, Any]
SHOWN = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24)
WORDS = {
    "var": "linear series",
    "gates": "linear series, all edges have gates",
    "nonlinear_var": "tanh of the sources",
}
HEAD = """# Effects of a change

Do the 90% intervals of [effects](../how-to/effects.md) contain the response of the true system? Known systems of 10
nodes and 1,000 rows are fitted with `--quick`, which gives the same effects as a complete fit. Then every node gets a
pulse, and the responses of all nodes over 24 steps are compared with those of the system itself, run with and without
the pulse and with the same noise. `python -m benchmarks.effects KIND --first 20000` makes the records from seeds on
which nothing was chosen, and `python -m benchmarks.effects_page` draws this page from them.

"""
TAIL = """
A response is present if a path of the true graph leads to the node in time, otherwise it is 0 (*absent*). *Lowest* and
*highest* step are those of all 24 steps; *deviation* and *lowest system* are over systems. Sizes are those of the
pulse, in standard deviations of its node. *Absent from draws* are true edges with `exists` below .02.
Seconds are CPU time.

At late steps all responses of a system follow its slowest mode, so that most of them are inside their intervals, or
most are outside. The shares at late steps have a standard error of about 5 points for 40 systems. The response of a
nonlinear system to a large pulse is smaller than that of a linear model, which matters most at the first step.
"""


def page(rows: list[Figures]) -> str:
    """Return the text of the page, from the records alone."""
    ordered = sorted(rows, key=lambda row: (list(KINDS).index(row["kind"]), SIZES[row["kind"]].index(row["size"])))
    steps = " | ".join(f"step {step}" for step in SHOWN)
    first = [f"| kind | size | {steps} | lowest step | highest step |", "|---" * (len(SHOWN) + 4) + "|"]
    second = [
        "| kind | system | size | sets | present responses contained | deviation | lowest system | "
        "absent responses contained | edges | absent from draws | uncertain | seconds of a fit | of an effect |",
        "|---" * 13 + "|",
    ]
    for row in ordered:
        shares = [held / count for held, count in zip(row["present_held"], row["present"], strict=True)]
        absent = [held / count for held, count in zip(row["absent_held"], row["absent"], strict=True) if count]
        cells = [f"{shares[step - 1]:.1%}" for step in SHOWN]
        name = f"| {row['kind']} |"
        first.append(f"{name} {row['size']:g} | {' | '.join(cells)} | {min(shares):.1%} | {max(shares):.1%} |")
        total = sum(row["present_held"]) / sum(row["present"])
        deviation = "-" if row["deviation"] is None else f"{row['deviation']:.1%}"
        second.append(
            f"{name} {WORDS[row['kind']]} | {row['size']:g} | {row['sets']} | {total:.1%} | "
            f"{deviation} | {row['lowest']:.1%} | {min(absent):.1%} | {row['edges']} | {row['missed']} | "
            f"{row['uncertain']} | {row['seconds_fit']:.1f} | {row['seconds_effect']:.2f} |"
        )
    tables = [
        "Share of the present responses whose interval contains the truth, by step:",
        "",
        *first,
        "",
        "Over all steps:",
        "",
    ]
    return HEAD + "\n".join([*tables, *second]) + "\n" + TAIL


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")

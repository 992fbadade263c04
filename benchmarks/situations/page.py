"""The page docs/results/situations.md, from the records alone; run ``python -m benchmarks.situations.page``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.situations.records import RESULTS, Figures, read
from benchmarks.situations.step import KINDS, TARGET

PAGE = Path(__file__).parents[2] / "docs" / "results" / "situations.md"
MISSED = " *MISSED*"
ERROR_TARGETS = {"category": 0.03, "hour": 0.04}
FOUND, NULL, REJECTED, POWER, MARGINALS, ACCURACY, SAME = 0.95, 0.1, 0.1, 0.95, 0.01, 0.95, 1.05
HEAD = """# Edges that depend on the situation, and regimes

Measurements of `depends_on` and `regimes` on systems whose truth is known, and on the air of Beijing.
`python -m benchmarks.situations.page` draws this page from the records in `benchmarks/results/situations/`; the
generators are in `benchmarks/situations/`. A figure that misses its target is marked *MISSED*.
"""
VARYING = """
## The paper's system with edges that vary

12 nodes, 28,000 training pairs, the paper's predictor with two hops and no noise. 20 of 50 edges vary: with the hour
(a sine from .1 to .9), with a category of three levels (.9, .5, .1), or with the first input of the source (.9 above a
threshold, .2 below). Constant fit, training, Wald test, refit (`vary_by_training`); energy score at node scope, 16
graphs per pair, 10 epochs, H200. Psi are the weights of the predictor.

- *error*: mean absolute error of the probability of the edges that vary, over the situations of the test pairs, mean ±
  deviation over data sets; *constant graph*: the same for a graph that does not depend on the situation.
- *found*: share of the varying edges that are called varying. *false*: share of the called edges that are constant.
- *coverage*: 95% intervals that contain the truth, over the places of the grid.

A step function is smoothed by the splines of `input`.
"""
NULL_TEXT = """
The same system without any dependence, the hour is asked (psi known):
"""
ROWS_TEXT = """
## Rows that come together

The same system; a node reads all its neighbours, with probability .75, or none. A mixture of two regimes per row beside
independent edges, psi known, both trained by the energy score at node scope. *marginals*: mean absolute error over the
true edges. *rejected*: data sets in which the fit test (level 5%, 2,000 test pairs) rejects the model. With 10 epochs
the error of training is not small against what the test can see.
"""
REGIMES_TEXT = """
## Regimes of the whole graph

Two regimes that last for a hundred observations on average, of weights .6 and .4: edges of the first community act with
.9 and those of the second with .3, or the other way round. The number of regimes is chosen by validation. *accuracy*:
share of the test pairs whose more likely regime, given x and y, is the right one; *true model*: the same with the true
graph and predictor.

These records were made before regimes of the whole graph were sharpened node by node and before one regime was trained
like several; they have not been measured again.
"""
LIKELIHOOD_TEXT = """
## Linear filters, by the exact likelihood

What `tacit fit` does by default. Eight nodes, four of which read an edge that always acts, one that acts with .6 and
one that varies (`vary_by_likelihood`); *none*: no edge varies, 1,500 rows. `source` is a threshold at the mean of the
source; near it the splines are off, and the intervals do not contain the step.

![Curves of four edges that follow the hour](situations/curves.png)
"""
STEP_TEXT = """
## What a step costs

Time of a training step with graphs per pair, as a ratio to the constant graph in the same run; at most {target:g} is
the target. 12 nodes: two hops, batches of 128, 16 graphs. 1,000 nodes: a filter over 50 candidates per node, batches of
32, 8 graphs. `network`: embeddings and a layer that all edges share.
"""
BEIJING_TEXT = """
## Air of Beijing

The logarithm of hourly PM2.5 at 12 stations, one hour ahead (UCI, Zhang et al. 2017), all rows or the first ones, a
linear filter with Gaussian noise. *tested*: listed edges that act at times. *CRPS*: of the test part, with the
dependence and with a constant graph; *change*: of the scaled CRPS, ± its block standard error, positive where the
dependence forecasts better. With so many rows the tests also find what is wrong with the model: that many edges are
called varying says less than the forecasts.
"""


def page() -> str:
    """Return the page."""
    varying = read(RESULTS / "varying.json")
    return "\n".join(
        [
            HEAD + VARYING,
            *_varying(varying),
            NULL_TEXT,
            *_null(varying["constant, psi known"]),
            ROWS_TEXT,
            *_rows(read(RESULTS / "many_sets.json")),
            REGIMES_TEXT,
            *_regimes(read(RESULTS / "regimes.json")),
            LIKELIHOOD_TEXT,
            *_likelihood(read(RESULTS / "likelihood.json")),  # type: ignore[arg-type]
            STEP_TEXT.format(target=TARGET),
            *_steps(read(RESULTS / "step.json")),
            BEIJING_TEXT,
            *_beijing(read(RESULTS / "beijing.json")),
            "",
        ]
    )


def _varying(records: dict[str, Figures]) -> list[str]:
    lines = _head("varies with", "psi", "sets", "error", "constant graph", "target", "found", "false", "coverage")
    for kind in ("category", "hour", "input"):
        for psi in ("known", "learned"):
            found = records.get(f"{kind}, psi {psi}")
            if found is None:
                continue
            target = ERROR_TARGETS.get(kind)
            called = sum(row["found"] + row["false"] for row in found["rows"])
            false = sum(row["false"] for row in found["rows"]) / max(1, called)
            lines.append(
                _row(
                    kind,
                    psi,
                    found["sets"],
                    _pm(found, "mae") + _unless(target is None or found["mae"] <= target),
                    f"{found['constant_graph_mae']:.3f}",
                    "-" if target is None else f"{target:g}",
                    f"{found['found_share']:.1%}" + _unless(found["found_share"] >= FOUND),
                    f"{false:.1%}",
                    _pm(found, "coverage", 3) if "coverage" in found else "-",
                )
            )
    return lines


def _null(found: Figures) -> list[str]:
    share, ratio = found["with_false"] / found["sets"], found["average_mae"] / found["constant_mae"]
    return [
        *_head("sets", "with an edge called varying", "target", "`edge_prob_mae` over the constant fit's", "target"),
        _row(
            found["sets"],
            f"{found['with_false']} ({share:.1%})" + _unless(share <= NULL),
            f"at most {NULL:.0%}",
            f"{ratio:.3f}" + _unless(ratio <= SAME),
            f"at most {SAME:g}",
        ),
    ]


def _rows(records: dict[str, Figures]) -> list[str]:
    lines = _head("epochs", "sets", "model", "marginals", "target", "rejected", "target")
    for name, found in records.items():
        epochs = name.split(", ")[-1].split()[0]
        sets = found["sets"]
        for model, held, target in (
            ("constant", found["constant_rejected"] / sets > POWER, f"> {POWER:.0%}"),
            ("mixture", found["mixture_rejected"] / sets <= REJECTED, f"at most {REJECTED:.0%}"),
        ):
            mixture = model == "mixture"
            error = found[f"{model}_mae_edges"]
            lines.append(
                _row(
                    epochs,
                    sets,
                    "two regimes" if mixture else "independent edges",
                    _pm(found, f"{model}_mae_edges") + _unless(not mixture or error <= MARGINALS),
                    f"{MARGINALS:g}" if mixture else "-",
                    f"{found[f'{model}_rejected']} of {sets}" + _unless(held),
                    target,
                )
            )
    return lines


def _regimes(records: dict[str, Figures]) -> list[str]:
    lines = _head("psi", "sets", "two regimes chosen", "accuracy", "true model", "least ratio", "target")
    for psi in ("known", "learned"):
        found = records.get(f"regimes, psi {psi}")
        if found is not None:
            lines.append(
                _row(
                    psi,
                    found["sets"],
                    f"{found['two_regimes']} of {found['sets']}",
                    _pm(found, "accuracy"),
                    _pm(found, "best_accuracy"),
                    f"{found['least_ratio']:.3f}" + _unless(found["least_ratio"] >= ACCURACY),
                    f"{ACCURACY:g}",
                )
            )
    return lines


def _likelihood(rows: list[Figures]) -> list[str]:
    lines = _head(
        "varies with", "noise", "rows", "sets", "error", "found", "coverage", "sets with a constant edge called varying"
    )
    for row in rows:
        lines.append(
            _row(
                row["kind"],
                row["noise"],
                f"{row['rows']:,}",
                row["data_sets"],
                _known(row, "mean_absolute_error", "{:.3f}"),
                _known(row, "found", "{:.1%}"),
                _known(row, "coverage", "{:.1%}"),
                f"{row['sets_with_a_wrong_edge']:.1%}"
                + _unless(row["kind"] != "none" or row["sets_with_a_wrong_edge"] <= NULL),
            )
        )
    return lines


def _steps(records: dict[str, Figures]) -> list[str]:
    lines = _head("machine, size", "constant graph", *KINDS[1:])
    names = {"cpu": "two cores", "cuda": "H200"}
    for name, found in records.items():
        device, size = name.split(", ")
        ratios = (f"{found['ratios'][kind]:.2f}" + _unless(found["ratios"][kind] <= TARGET) for kind in KINDS[1:])
        lines.append(_row(f"{names[device]}, {size}", f"{found['constant_ms']:.3g} ms", *ratios))
    return lines


def _beijing(records: dict[str, Figures]) -> list[str]:
    lines = _head("depends on", "rows", "tested", "varying", "CRPS", "constant graph", "change")
    for name, found in records.items():
        other = found["references"].get("constant graph", {})
        change = f"{other['gain']:+.2%} ± {other['gain_std_error']:.2%}" if "gain_std_error" in other else "-"
        crps, constant = (_known(one, "crps", "{:.3f}") for one in (found, other))
        lines.append(_row(name, f"{found['rows']:,}", found["tested"], found["varying"], crps, constant, change))
    return lines


def missed() -> Iterator[str]:
    """Targets that the page marks as missed, by row."""
    return (line for line in page().splitlines() if MISSED in line and line.startswith("|"))


def _head(*names: str) -> list[str]:
    return [_row(*names), "|" + "---|" * len(names)]


def _row(*cells: Any) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _pm(found: Figures, key: str, digits: int = 4) -> str:
    deviation = found.get(f"{key}_deviation")
    return f"{found[key]:.{digits}f}" + (f" ± {deviation:.{digits}f}" if deviation is not None else "")


def _known(found: Figures, key: str, form: str) -> str:
    return "-" if found.get(key) is None else form.format(found[key])


def _unless(held: bool) -> str:
    return "" if held else MISSED


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

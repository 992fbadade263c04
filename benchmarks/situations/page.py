"""The page docs/results/situations.md, from the records alone; run ``python -m benchmarks.situations.page``."""

from pathlib import Path
from typing import Any

from benchmarks.situations.records import RESULTS, Figures, read

PAGE = Path(__file__).parents[2] / "docs" / "results" / "situations.md"
HEAD = """# Edges that depend on the situation, and regimes

Measurements of `depends_on` and `regimes` ([how to use them](../how-to/situations.md)), on systems whose edges are
known and on the air quality of Beijing. `python -m benchmarks.situations.page` draws this page from the records. The
generators are in `benchmarks/situations/`.
"""
LIKELIHOOD_TEXT = """
## Linear filters, by the exact likelihood

What `tacit fit` does by default. Eight nodes, four of which read an edge that always acts, one that acts with .6 and
one that varies (`vary_by_likelihood`); *none*: no edge varies, 1,500 rows. `source` is a threshold at the mean of the
source. The splines smooth this step, so the intervals near it do not contain the truth.

![Curves of four edges that follow the hour](situations/curves.png)
"""
FILTER_REGIMES_TEXT = """
## Regimes of linear filters, by the exact likelihood

What `tacit fit --regimes` does by default (`regimes_by_likelihood`). Four nodes read three of four drivers, with
weights of .9 and noise of standard deviation .35, in 3,000 rows. *rows*: each node has two regimes, of weights .6 and
.4, in which its edges act with .9, .8, .95 and with .15, .3, .1. *all*: the graph has two regimes that last for 20 rows
on average. *pairs*: nodes have two edges, so the regimes are not identifiable. *none*: independent edges; the number of
regimes is chosen.

*error*: mean absolute error of the probability in each regime. *coverage*: 95% intervals that contain the truth.
*width*: mean width of these intervals. *accuracy*: validation pairs whose more likely regime is the right one.
"""
BEIJING_TEXT = """
## Air of Beijing

The logarithm of hourly PM2.5 at 12 stations, one hour ahead (UCI, Zhang et al. 2017), all rows or the first ones, a
linear filter with Gaussian noise. *tested*: listed edges that act at times. *CRPS*: of the test part, with the
dependence and with a constant graph; *change*: of the scaled CRPS, ± its block standard error, positive where the
dependence forecasts better. With so many rows the tests also detect other misfits of the model, so many edges are
called varying. Judge by the forecasts.
"""


def page() -> str:
    """Return the page."""
    return "\n".join(
        [
            HEAD + LIKELIHOOD_TEXT,
            *_likelihood(read(RESULTS / "likelihood.json")),  # type: ignore[arg-type]
            FILTER_REGIMES_TEXT,
            *_filter_regimes(read(RESULTS / "filter_regimes.json")),
            BEIJING_TEXT,
            *_beijing(read(RESULTS / "beijing.json")),
            "",
        ]
    )


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
                f"{row['sets_with_a_wrong_edge']:.1%}",
            )
        )
    return lines


def _filter_regimes(records: dict[str, Figures]) -> list[str]:
    lines = _head(
        "data, method", "sets", "one regime", "error", "coverage", "width", "marginals, error", "coverage", "accuracy",
        "seconds",
    )  # fmt: skip
    for name, found in records.items():
        forms = (("error", "{:.3f}"), ("coverage", "{:.1%}"), ("width", "{:.2f}"))
        marginals = (("marginal_error", "{:.3f}"), ("marginal_coverage", "{:.1%}"), ("accuracy", "{:.1%}"))
        cells = (_known(found, key, form) for key, form in (*forms, *marginals, ("seconds", "{:.1f}")))
        lines.append(_row(name, found["sets"], found["one_regime"], *cells))
    return lines


def _beijing(records: dict[str, Figures]) -> list[str]:
    lines = _head("depends on", "rows", "tested", "varying", "CRPS", "constant graph", "change")
    for name, found in records.items():
        other = found["references"].get("constant graph", {})
        change = f"{other['gain']:+.2%} ± {other['gain_std_error']:.2%}" if "gain_std_error" in other else "-"
        crps, constant = (_known(one, "crps", "{:.3f}") for one in (found, other))
        lines.append(_row(name, f"{found['rows']:,}", found["tested"], found["varying"], crps, constant, change))
    return lines


def _head(*names: str) -> list[str]:
    return [_row(*names), "|" + "---|" * len(names)]


def _row(*cells: Any) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _pm(found: Figures, key: str, digits: int = 4) -> str:
    deviation = found.get(f"{key}_deviation")
    return f"{found[key]:.{digits}f}" + (f" ± {deviation:.{digits}f}" if deviation is not None else "")


def _known(found: Figures, key: str, form: str) -> str:
    return "-" if found.get(key) is None else form.format(found[key])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

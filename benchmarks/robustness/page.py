"""The page docs/results/ROBUSTNESS.md, from the records alone; run ``python -m benchmarks.robustness.page``.

With ``--full`` the tables of every method on every kind are printed instead; they are too long for a page.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.robustness.methods import FIT, METHODS, TACIT
from benchmarks.robustness.records import RESULTS, Row, any_listed, read, some, stated_and_realised
from benchmarks.robustness.systems import BACKGROUNDS, EDGES, HIDDEN, KINDS, NONE, PLAIN

from tacit.assessment.evidence.diagnostics import DRIVER

PAGE = Path(__file__).parents[2] / "docs" / "results" / "ROBUSTNESS.md"
BEFORE = "before"  # record of the version without backgrounds
WORDS = {BEFORE: "tacit, no background"}
OURS = (TACIT, FIT, BEFORE)
MANY = 20  # stated false edges from which on their ratio is shown
WORSE = 2.0  # paired standard errors from which on another method ranks better
NO_SERIES, UNKNOWN = -1, 0  # how many nodes an unseen series reaches
WHAT = {
    "trend": "a smooth curve for each node",
    "cycle": "a daily cycle with its own phase, amplitude and second harmonic for each node",
    "cycle_undated": "the same without dates, with a period of 14 to 60 rows that is no integer",
    "two_cycles": "a daily and a weekly cycle, with a noise of a fifth to a half of them",
    "two_cycles_undated": "the same without dates",
    "weekend": "a dip on Saturday and Sunday",
    "weekend_counts": "counters; the weekend takes 20% to 70%",
    "yearly": "a yearly cycle that all nodes share, with amplitudes of their own",
    "shift": "one change of level for each node, in a row of its own",
    "shift_common": "the same with one row for all nodes",
    "trend_and_cycle": "a smooth curve and a daily cycle together",
    "one_of_40_trend": "of 40 nodes, one has a trend",
    "one_of_40_shift": "of 40 nodes, one has a change of level",
    "one_of_40_cycle": "of 40 nodes, one has a daily cycle",
    "plain_var": "nothing is broken",
    "small_effects": "nothing is broken; weights lie between 0 and .6, in all other kinds from .2 on",
    "hub": "one node sends to ten others",
    "random_walk": "without edges all are random walks, with edges three are",
    "volatility": "the noise of each node is GARCH(1, 1)",
    "common_volatility": "one slow deviation of the noise for all nodes",
    "hidden_now": "an unseen series reaches three to five nodes within the step",
    "hidden_lagged": "an unseen persistent series reaches three to five nodes after zero to three steps",
    "measurement_noise": "noise of .3 to 1 deviations is added to what is observed",
    "missing_blocks": "10% of the values are missing, in blocks of 5 to 40 rows",
    "quantised": "values are rounded to steps of .4 to 1.2 deviations",
    "outliers": "1% of the values are 5 to 15 deviations off",
    "saturation": "values are clipped at .7 to 1.3 deviations",
    "unit_change": "two nodes change from Celsius to Fahrenheit in one row",
    "exact_zeros": "rain: positive and skewed; about two thirds of the values are exact zeros",
    "aggregated": "means of three steps",
    "changing_weights": "half of the edges end half-way, and all own weights change there",
    "oscillators": "noisy phase oscillators (Kuramoto), with and without coupling; their sine is observed",
    "mixed": "every sensor adds a tenth of both neighbours on a ring; on odd seeds the nodes are oscillators",
    "returns": "three unseen factors with one volatility reach every node after zero to two days",
    "storms": "river gauges; unseen storms reach all after zero to three hours, and levels recede",
    "gauges": "a tree of gauges; smooth, a daily cycle at the root, 12 gaps of 5 to 40 rows",
    "monitoring": "loads of computers; long exact constants, bursts, and rounded values",
}
HEAD = """# Tables that break the assumptions

A fit assumes that every node depends on its own past, on its parents and on its background (trend, cycles, levels).
This page shows what is listed where these assumptions hold and where others are broken, beside other methods on the
same data. In systems without edges every listed edge is false. All choices were made on other seeds.

*tacit* is the evidence with which a fit begins, *tacit fit* a complete fit with defaults, and *tacit, no background*
the evidence without backgrounds. The other methods are ridge regression, stability selection (recalibrated to
probabilities on other systems), PCMCI, PCMCI+ and VARLiNGAM. They see the values, with straight lines in place of
missing ones, and up to three lags; tacit sees the dates too. tacit and stability selection list edges at a false
discovery rate of 10%. PCMCI and PCMCI+ list the links of their graphs (levels .01 and .05 for each test), which do not
control such a rate. Ridge and VARLiNGAM only rank.

`python -m benchmarks.robustness` makes the records, and `python -m benchmarks.robustness.page` draws this page from
them; with `--full` it prints every method on every kind. The generators are in `benchmarks/robustness/systems.py`.
"""
POOLED = """
## All kinds together

AUROC and average precision are means over the kinds on which a method was run, each kind with the same weight. *False
share*: false edges among all listed edges of the systems with edges. *Any listed*: share of the data sets without edges
in which an edge is listed. Seconds are those of one core for one data set.
"""
SAME = """On {same} of the {both} data sets on which both were run, a complete fit and its evidence list equally many
edges, of which equally many are false. Where the two columns of a kind differ below, the data sets do: fits were run on
fewer of them."""
KIND_BY_KIND = """
## Kind by kind

Most systems have 8 nodes and 600 to 1,200 rows. *Best peer*: the best of the other methods in this column; `-`: not
run. A background has .7 to 5 deviations of the node. On even seeds it is added to what is observed; on odd seeds it
drives the nodes and passes through the edges. The kinds *cc* are those of the package causalcompass
([CausalCompass](https://arxiv.org/abs/2602.07915)) with its defaults, 10 nodes and 1,000 rows: a VAR with three lags,
and Lorenz-96; *cc coefficients*, where weights change, has 500 rows. In *missing* empty cells have the last value, as
its authors fill them; in *gaps* they are empty.
"""
STATED = """
## Stated and realised number of false edges

*Stated*: the sum of 1 - `exists` over the listed edges, which an answer states as the number of false ones. *False*:
the number of listed edges that are false. *Realised*: their ratio, or, where fewer than {many} are stated, false less
stated with its standard error over data sets or the square root of the stated number if that is larger.
"""
FOUND = """
## Shared drivers

The share of data sets whose answer states that a shared driver moves several nodes, by how many nodes an unseen series
reaches in truth.
"""
PEERS = """
## Where another method ranks better

Kinds where the mean of another method is higher by more than two paired standard errors: {}.

On other pages: a chain of gauges that is sampled slowly, and hidden drivers of
[effects within a step](simultaneous.md); gated networks of [yes or no](observation.md).
"""
Records = dict[str, dict[str, dict[str, Row]]]


def page(results: Path = RESULTS) -> str:
    """Return the text of the page."""
    records = read_all(results)
    parts = [HEAD, POOLED, *_pooled(records), "", _same_lists(records), KIND_BY_KIND, *_kinds(records)]
    parts += [STATED.format(many=MANY), *_stated(records, ("",)), FOUND, *_drivers(records[TACIT])]
    return "\n".join([*parts, PEERS.format("; ".join(_better(records)) or "none")]).rstrip() + "\n"


def full(results: Path = RESULTS) -> str:
    """Return the tables of every method on every kind."""
    records = read_all(results)
    parts = [*_all(records), "", *_stated(records, (*KINDS, "")), "", *_findings(records[TACIT]), ""]
    return "\n".join([*parts, *_against(records)])


def read_all(results: Path) -> Records:
    """Return the records of every method: ours first."""
    return {name: read(name, results) for name in (TACIT, FIT, BEFORE, *(one for one in METHODS if one not in OURS))}


def _pooled(records: Records) -> list[str]:
    lines = _head("method", "kinds", "AUROC", "average precision", "false share", "any listed", "data sets", "s")
    for name, found in ((name, found) for name, found in records.items() if found):
        edges, none = (
            [found[kind][truth] for kind in KINDS if truth in found.get(kind, {})] for truth in (EDGES, NONE)
        )
        means = ([mean for row in edges if (mean := _mean(row, key)) is not None] for key in ("auroc", "aupr"))
        pooled = [
            {key: [one for row in rows for one in row.get(key, [])] for key in ("listed", "false")}
            for rows in (edges, none)
        ]
        lines.append(
            _row(
                WORDS.get(name, name),
                str(len(edges)),
                *(f"{np.mean(mean):.3f}" for mean in means),
                _share(pooled[0]),
                f"{any_listed(pooled[1]):.1%}" if pooled[1]["listed"] else "-",
                " / ".join(f"{sum(len(row['seeds']) for row in rows):,}" for rows in (edges, none)),
                f"{np.mean([one for row in (*edges, *none) for one in row.get('seconds', [])]):.1f}",
            )
        )
    return lines


def _same_lists(records: Records) -> str:
    """Return on how many data sets the evidence and a complete fit list equally many edges, and equally many false."""
    same = []
    for kind, of_truth in records[FIT].items():
        for truth, row in of_truth.items():
            counts = [
                dict(zip(one["seeds"], zip(one["listed"], one["false"], strict=True), strict=True))
                for one in (row, records[TACIT].get(kind, {}).get(truth, {"seeds": [], "listed": [], "false": []}))
            ]
            same += [counts[0][seed] == counts[1][seed] for seed in counts[0].keys() & counts[1].keys()]
    return SAME.format(same=sum(same), both=len(same))


def _kinds(records: Records) -> list[str]:
    best = "best peer"
    heads = ["kind", "AUROC: tacit", "tacit fit", best, "false share: tacit", "tacit fit", best]
    lines = _head(*heads, "without edges, any listed: tacit")
    for kind, found in records[TACIT].items():
        none = found.get(NONE, {})
        lines.append(
            _row(
                f"*{_words(kind)}*" + (f": {WHAT[kind]}" if kind in WHAT else ""),
                *_scores(records, kind, lambda row: _mean(row, "auroc"), max, "{:.3f}"),
                *_scores(records, kind, false_share, min, "{:.1%}"),
                f"{any_listed(none):.0%}" if none.get("listed") else "-",
            )
        )
    return lines


def _scores(
    records: Records, kind: str, score: Callable[[Row], float | None], better: Callable[..., Any], form: str
) -> list[str]:
    """Return a score in systems with edges: of tacit, of a complete fit, and of the best peer with its name."""
    found = {name: score(own.get(kind, {}).get(EDGES, {})) for name, own in records.items()}
    peers = {name: value for name, value in found.items() if name not in OURS and value is not None}
    best = better(peers, key=peers.__getitem__) if peers else None
    cells = ["-" if (value := found[name]) is None else form.format(value) for name in (TACIT, FIT)]
    return [*cells, "-" if best is None else f"{form.format(peers[best])} {best}"]


def _drivers(found: dict[str, dict[str, Row]]) -> list[str]:
    groups: dict[int, list[bool]] = {}
    for kind, of_truth in found.items():
        for row in of_truth.values():
            for reached, driver in zip(row.get("reached", []), row.get("driver", []), strict=False):
                number = (reached or UNKNOWN) if kind in HIDDEN or "confounders" in kind else NO_SERIES
                groups.setdefault(number, []).append(driver)
    names = {NO_SERIES: "there is none", UNKNOWN: "unknown (*cc confounders*)"}
    lines = _head("an unseen series reaches", "data sets", "a shared driver is stated")
    for number, driver in sorted(groups.items()):
        lines.append(_row(names.get(number, f"{number} nodes"), f"{len(driver):,}", f"{np.mean(driver):.0%}"))
    return lines


def _mean(found: Row, key: str) -> float | None:
    values = [value for value in found.get(key, []) if value is not None]
    return float(np.mean(values)) if values else None


def _all(records: Records) -> list[str]:
    heads = ["kind", "method", "AUROC", "average precision", "false share", "calibration", "any listed", "listed"]
    lines = _head(*heads, "data sets", "failed", "s")
    for kind in KINDS:
        for name, found in records.items():
            if kind not in found:
                continue
            edges, none = (found[kind].get(truth, {}) for truth in (EDGES, NONE))
            lists = [f"{any_listed(none):.0%}", f"{np.mean(none['listed']):.1f}"] if none.get("listed") else ["-", "-"]
            failed = sum(len(one.get("failed", [])) for one in (edges, none))
            lines.append(
                _row(
                    _words(kind),
                    WORDS.get(name, name),
                    *(_spread(edges, key) for key in ("auroc", "aupr")),
                    _share(edges),
                    _number(edges.get("calibration_error")),
                    *lists,
                    " / ".join(str(len(one.get("seeds", []))) for one in (edges, none)),
                    str(failed) if failed else "-",
                    f"{np.mean(edges.get('seconds', []) + none.get('seconds', [])):.1f}",
                )
            )
    return lines


def _stated(records: Records, kinds: tuple[str, ...]) -> list[str]:
    heads = ["stated", "false", "realised"]
    lines = _head("kind", "method", *(f"with edges: {one}" for one in heads), *(f"without: {one}" for one in heads))
    for kind in kinds:  # "" has all of them
        for name in (TACIT, FIT):
            own = [found for one, found in records[name].items() if kind in ("", one)]
            counts = [stated_and_realised([found[truth] for found in own if truth in found]) for truth in (EDGES, NONE)]
            if any(counts):
                cells = [cell for one in counts for cell in _compared(one)]
                lines.append(_row(_words(kind) or "all kinds", name, *cells))
    return lines


def _compared(counts: tuple[float, float, float] | None) -> tuple[str, str, str]:
    if counts is None:
        return "-", "-", "-"
    stated, realised, error = counts
    ratio = (
        f"{realised / stated:.2f} times"
        if stated >= MANY
        else f"{round(realised - stated, 1) + 0.0:+.1f} ± {error:.1f}"
    )
    return f"{stated:.1f}", f"{realised:.0f}", ratio


def _findings(found: dict[str, dict[str, Row]]) -> list[str]:
    lines = _head("kind", "nodes reached", "data sets", "driver, no edges", "driver, with edges", "other findings")
    for kind, of_truth in found.items():
        said = [of_truth[truth] for truth in (NONE, EDGES) if "driver" in of_truth.get(truth, {})]
        for reached in sorted({one for row in said for one in row["reached"]}):
            own = [
                some(of_truth[truth], [one == reached for one in of_truth[truth]["reached"]])
                if "driver" in of_truth.get(truth, {})
                else {}
                for truth in (NONE, EDGES)
            ]
            drivers = [f"{np.mean(row['driver']):.0%}" if row.get("driver") else "-" for row in own]
            causes = [one for causes in own[1].get("causes", []) for one in causes if one != DRIVER]
            shares = {one: causes.count(one) / len(own[1]["causes"]) for one in sorted(set(causes))}
            others = ", ".join(f"{one} {share:.0%}" for one, share in shares.items())
            sets = " / ".join(str(len(row.get("driver", []))) for row in own)
            many = (str(reached) if reached else "unknown") if kind in HIDDEN or "confounders" in kind else "-"
            lines.append(_row(_words(kind), many, sets, *drivers, others or "-"))
    return lines


def _against(records: Records) -> list[str]:
    lines = _head("kind", "method", "AUROC with", "without", "precision with", "without", "false share with", "without")
    for kind in BACKGROUNDS:
        for name in OURS:
            found = records[name].get(kind, {})
            if EDGES in found and PLAIN in found:
                both = found[EDGES], found[PLAIN]
                cells = [_spread(one, key) for key in ("auroc", "aupr") for one in both]
                lines.append(_row(_words(kind), WORDS.get(name, name), *cells, *map(_share, both)))
    return lines


def _better(records: Records) -> list[str]:
    found = []
    for kind, key, name, own, other, mean, error in paired(records):
        if mean < -WORSE * error:
            score = "AUROC" if key == "auroc" else "average precision"
            found.append(
                f"{_words(kind)} ({score} {own:.3f}, {name} {other:.3f}, difference {mean:+.3f} ± {error:.3f})"
            )
    return found


def paired(
    records: Records,
) -> Iterator[tuple[str, str, str, float, float, float, float]]:
    """Yield kind, score, the other method, both means, and the paired difference with its standard error."""
    for kind, own in records[TACIT].items():
        for key, (name, found) in itertools.product(("auroc", "aupr"), records.items()):
            if name in OURS or key not in own.get(EDGES, {}) or key not in found.get(kind, {}).get(EDGES, {}):
                continue
            mine, theirs = (dict(zip(one["seeds"], one[key], strict=True)) for one in (own[EDGES], found[kind][EDGES]))
            pairs = np.array([(mine[seed], theirs[seed]) for seed in mine if seed in theirs], dtype=float)
            if len(pairs) > 1:
                difference = pairs[:, 0] - pairs[:, 1]
                error = float(difference.std(ddof=1) / len(pairs) ** 0.5)
                yield kind, key, name, *map(float, pairs.mean(0)), float(difference.mean()), error


def false_share(found: Row) -> float | None:
    """Return the false edges among all listed edges of one kind; None if none is listed."""
    listed = sum(found.get("listed", []))
    return sum(found["false"]) / listed if listed else None


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _spread(found: Row, key: str) -> str:
    values = np.array([value for value in found.get(key, []) if value is not None])
    if not len(values):
        return "-"
    return f"{values.mean():.3f} ± {values.std(ddof=1) if len(values) > 1 else 0:.3f}"


def _share(found: Row) -> str:
    share = false_share(found)
    return "-" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), "|" + "---|" * len(cells)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page, or print the full tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="print every method on every kind")
    if parser.parse_args().full:
        print(full())
        return
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()

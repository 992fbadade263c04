"""The page docs/results/EXISTENCE.md, from the records alone; run ``python -m benchmarks.existence.page``.

With ``--full`` the tables with the average precision and the seconds of every method are printed instead.
"""

import argparse
import itertools
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.existence.fit_tables import full_fits
from benchmarks.existence.records import EVIDENCE, FIT, RESULTS, ROOT, STABILITY, Record, rankings, speed, study

PAGE = ROOT / "docs" / "results" / "EXISTENCE.md"
KNOWN = {
    "dream4-10": "DREAM4, 10 genes",
    "dream4-100": "DREAM4, 100 genes",
    "gnw20-choose": "gnw20, 1 to 10",
    "gnw20-test": "gnw20, 11 to 20",
    "F_10_T_250": "Lorenz-96, F = 10, 250 rows",
    "F_10_T_500": "Lorenz-96, F = 10, 500 rows",
    "F_10_T_1000": "Lorenz-96, F = 10, 1,000 rows",
    "F_40_T_250": "Lorenz-96, F = 40, 250 rows",
    "F_40_T_500": "Lorenz-96, F = 40, 500 rows",
    "F_40_T_1000": "Lorenz-96, F = 40, 1,000 rows",
    "S_30_T_500": "VAR, 500 rows",
    "S_30_T_1000": "VAR, 1,000 rows",
}
HEAD = """# Whether an edge exists

How well `exists` ranks edges, how well it is calibrated, and what full fits with default options find, on networks
whose edges are known.

The method was chosen on the seeds `choose` and on gnw20 1 to 10. The seeds `test`, gnw20 11 to 20 and DREAM4 were
scored once. `python -m benchmarks.existence.evidence_study` and `python -m benchmarks.existence.full_fits` make the
records, and `python -m benchmarks.existence.page` draws this page from them; with `--full` it prints the average
precision and the seconds of every method.
"""
RANKING = """
## Ranking of edges on known graphs

AUROC, mean ± standard deviation over networks. *evidence* is tacit without a complete fit. All methods have the same
data. Ridge, lasso, the forest, PCMCI, VARLiNGAM and stability selection read one to three lags: the number with which
a ridge regression forecasts best. The random forest ranks by importances as GENIE3 does (100 trees, at most 500 rows
each) and predicts the change of a node. *trained*: edge probabilities of a model that is trained on all edges, the
mean of several starts ([these studies](STUDIES.md)). The last column is the paired difference of *evidence* to the
best other method, ± its standard error over networks.
"""
SWEEP = """
## Calibration

Five kinds of systems (VAR, nonlinear VAR, random gates, GPVAR, panels) with 5 to 30 nodes, 100 to 5,000 rows and
densities of .02 to .3. The calibration error has ten bins of equal counts, over all pairs of nodes and over those
with `exists` of at least .1; lower is better, as for the log score. Power is the share of the true edges that are
listed. Stability selection is recalibrated by isotonic regression on the seeds `choose`. The last column is its power
at a threshold with the same false share as tacit, rounded up to hundredths.
"""


SPEED = """
## Seconds and memory of the evidence

Linear VARs of 1,000 rows in which every node reads two others (`python -m benchmarks.existence.speed`). Seconds are
those of one core of a shared machine. GB: peak memory of the process. With 10,000 nodes each has 50 candidates.
"""


def page(directory: Path = RESULTS) -> str:
    """Return the text of the page, from the files alone."""
    parts = [HEAD, RANKING, *_ranking(directory), SWEEP, *_sweep(directory, ["test"])]
    return "\n".join([*parts, *full_fits(directory), *_speed(directory)]).rstrip() + "\n"


def full(directory: Path = RESULTS) -> str:
    """Return the tables of all scores of every method."""
    return "\n".join([*_every_method(directory), "", *_sweep(directory, ["choose", "test"], every=True)])


def _ranking(directory: Path) -> list[str]:
    found = {on: rankings(directory, on) for on in KNOWN}
    methods = [one for one in dict.fromkeys(name for of in found.values() for name in of) if one != FIT]
    differences: dict[str, str] = {}
    for on, score, label, best, mean, error in paired(directory):
        if label == EVIDENCE and score == "AUROC":
            differences[on] = f"{mean:+.3f} ± {error:.3f} ({best})"
    heads = ["graphs", "networks", *methods, "evidence less the best other"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for on, of in found.items():
        cells = [_spread([row["auroc"] for row in of[name].values()]) if name in of else "-" for name in methods]
        start = [KNOWN[on], str(len(of[EVIDENCE]))]
        lines.append(f"| {' | '.join([*start, *cells, differences.get(on, '-')])} |")
    return lines


def _every_method(directory: Path) -> list[str]:
    lines = ["| graphs | method | AUROC | AUPR | networks | s |", "|---|---|---|---|---|---|"]
    for on, words in KNOWN.items():
        for method, rows in rankings(directory, on).items():
            cells = [_spread([row[key] for row in rows.values()]) for key in ("auroc", "aupr")]
            seconds = statistics.mean(row["seconds"] for row in rows.values())
            lines.append(f"| {words} | {method} | {' | '.join(cells)} | {len(rows)} | {seconds:.1f} |")
    return lines


def paired(directory: Path) -> Iterator[tuple[str, str, str, str, float, float]]:
    """Yield graphs, score, our method, the best other, and the mean difference with its standard error."""
    for on in KNOWN:
        found = rankings(directory, on)
        ours = {label: found.pop(label) for label in (FIT, EVIDENCE) if label in found}
        for label, key in itertools.product(ours, ("auroc", "aupr") if found else ()):
            own = ours[label]
            best = max(found, key=lambda name: statistics.mean(row[key] for row in found[name].values()))
            pairs = [own[name][key] - row[key] for name, row in found[best].items() if name in own]
            if len(pairs) < 2:
                continue
            error = statistics.stdev(pairs) / len(pairs) ** 0.5
            yield on, key.upper(), label, best, statistics.mean(pairs), error


def _sweep(directory: Path, all_seeds: list[str], every: bool = False) -> list[str]:
    heads = ["seeds", "method", "systems", "kind", "AUROC", "AUPR", "calibration error", "from .1 up", "log score"]
    heads += ["false share of listed", "power", "stability at that share"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for seeds in all_seeds:
        ours, peer = (study(directory, f"sweep-{seeds}", method) for method in (EVIDENCE, STABILITY))
        for record in (one for one in (ours, peer) if one):
            kinds = record.get("kinds", {}) if every else {}
            for kind, values in {"all": record["all"], **kinds}.items():
                other = _power_at(peer, values["false_share"]) if record is ours and kind == "all" else "-"
                keys = ("auroc", "aupr", "calibration_error", "calibration_error_may_exist", "log_score")
                cells = [_number(values[key]) for key in (*keys, "false_share", "power")]
                start = [seeds, record["method"], str(values["systems"]), kind]
                lines.append(f"| {' | '.join([*start, *cells, other])} |")
    return lines


def _speed(directory: Path) -> list[str]:
    lines = [SPEED, "| nodes | candidates | columns | AUROC | core s | GB |", "|---|---|---|---|---|---|"]
    for row in speed(directory):
        cells = [f"{row['nodes']:,}", f"{row['candidates']:,}", row["columns"], f"{row['auroc']:.3f}"]
        lines.append(f"| {' | '.join(cells)} | {row['core_seconds']:.1f} | {row['gigabytes']:.2f} |")
    return lines


def _power_at(peer: Record | None, share: float | None) -> str:
    """Return the power of the peer at a false share, at the next share that its record has."""
    if peer is None or share is None:
        return "-"
    above = [value for key, value in peer["power_at"].items() if float(key) >= share]
    return f"{above[0]:.3f}" if above else "-"


def _spread(values: list[float]) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.3f} ± {deviation:.3f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main() -> None:
    """Write the page, or print the full tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="print all scores of every method")
    if parser.parse_args().full:
        print(full())
        return
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()

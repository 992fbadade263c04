"""Tables of full fits with defaults: targets of single systems, series without an edge, and how often edges act."""

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from benchmarks.existence.records import EVIDENCE, Record, fits, study
from benchmarks.existence.scores import calibration_error

HEAD = """
## Full fits with defaults

`tacit fit` on files as a user has them; means over data sets. Rows with "evidence" are of the evidence stage alone.
"""
GRAPHS = ("dream4-10", "gnw20-choose", "gnw20-test")  # of which calibration against the gold standard is a target


def full_fits(directory: Path) -> list[str]:
    """Return the lines of the section, one for each target that has records."""
    lines = [HEAD, "| data | seeds | data sets | what | found | target | met |", "|---|---|---|---|---|---|---|"]
    for seeds in ("choose", "test"):
        for data, count, what, value, target, met in _targets(directory, seeds):
            verdict = "-" if value is None else "yes" if met(value) else "NO"
            shown = "-" if value is None else f"{value:.3f}"
            lines.append(f"| {data} | {seeds} | {count} | {what} | {shown} | {target} | {verdict} |")
    return lines


Target = tuple[str, int, str, float | None, str, Callable[[float], bool]]


def _targets(directory: Path, seeds: str) -> Iterator[Target]:
    def rows(name: str) -> list[Record]:
        return fits(directory, f"{name}-{seeds}")

    if found := rows("nonlinear_var"):
        yield "nonlinear VAR", len(found), "AUROC", _mean(found, "auroc"), ">= .99", _at_least(0.99)
    if found := rows("wide"):
        yield "60 nodes, 300 rows", len(found), "AUPR", _mean(found, "aupr"), ">= .99", _at_least(0.99)
        yield "60 nodes, 300 rows", len(found), "false share of listed", _false_share(found), "<= .12", _at_most(0.12)
    if found := rows("mixed_signs"):
        errors = [[abs(edge["probability"] - edge["theta"]) for edge in row["true_edges"]] for row in found]
        worst = max(statistics.mean(of_edge) for of_edge in zip(*errors, strict=True))
        said = "mean error of each of five probabilities, the worst"
        yield "mixed signs", len(found), said, worst, "<= .03", _at_most(0.03)
        largest = _mean(found, "theta_largest_error_on_edges")
        yield "mixed signs", len(found), "largest of the five errors of a data set", largest, "<= .03", _at_most(0.03)
    yield from _nothing(directory, seeds, rows("independent"))
    if found := rows("river"):
        gate = [edge for row in found for edge in row["true_edges"] if edge["theta"] < 1]
        error = statistics.mean(abs((edge["probability"] or 0) - edge["theta"]) for edge in gate)
        exists = [edge["exists"] for edge in gate if edge["exists"] is not None]
        yield "river", len(found), "largest `exists` without an edge", _largest(found), "< .1", _at_most(0.0999)
        least = min(exists) if exists else None
        yield "river", len(found), "`exists` of the gate", least, "> .95", _at_least(0.95)
        yield "river", len(found), "error of how often the gate acts", error, "<= .04", _at_most(0.04)
    if found := rows("var"):
        yield "VAR", len(found), "intervals that contain 1", _covered(found), ">= .90", _at_least(0.9)
    if found := rows("gates"):
        coverage = _covered(found)
        yield "gates", len(found), "coverage of 95% intervals", coverage, ".92 to .98", lambda x: 0.92 <= x <= 0.98
    for name in GRAPHS if seeds == "test" else ():
        if found := fits(directory, name):
            error = _pooled_error(found)
            yield name, len(found), "calibration error against gold", error, "<= .10", _at_most(0.1)


def _nothing(directory: Path, seeds: str, found: list[Record]) -> Iterator[Target]:
    """Independent series: of full fits, and of the evidence alone."""
    record = study(directory, f"independent-{seeds}", EVIDENCE)
    for name, rows in (("no edge", found), ("no edge, evidence", record["systems"] if record else [])):
        if rows:
            share = statistics.mean(row["listed"] > 0 for row in rows)
            yield name, len(rows), "share with a listed edge", share, "<= .10", _at_most(0.1)
            yield name, len(rows), "mean `exists`", _mean(rows, "mean_exists"), "<= .03", _at_most(0.03)


def _mean(rows: list[Record], key: str) -> float | None:
    values = [row[key] for row in rows if row[key] is not None]
    return statistics.mean(values) if values else None


def _largest(rows: list[Record]) -> float:
    return max(float(row["largest_without_edge"]) for row in rows)


def _false_share(rows: list[Record]) -> float | None:
    shares = [row["false"] / row["listed"] for row in rows if row["listed"]]
    return statistics.mean(shares) if shares else None


def _covered(rows: list[Record]) -> float | None:
    count = sum(row["intervals"] for row in rows)
    return sum(row["covered"] for row in rows) / count if count else None


def _pooled_error(rows: list[Record]) -> float | None:
    parts = [row["pairs"] for row in rows if row.get("pairs")]
    exists = [np.array(part["exists"]) for part in parts]
    truth = [np.isin(np.arange(len(part["exists"])), part["truth"]) for part in parts]
    return calibration_error(np.concatenate(exists), np.concatenate(truth)) if parts else None


def _at_least(bound: float) -> Callable[[float], bool]:
    return lambda value: value >= bound


def _at_most(bound: float) -> Callable[[float], bool]:
    return lambda value: value <= bound

"""Tables of full fits with defaults: single systems, series without an edge, and how often edges act."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.existence.records import EVIDENCE, Record, fits, study
from benchmarks.existence.scores import calibration_error

HEAD = """
## Full fits with defaults

`tacit fit` on files, with default options; means over data sets. Rows with "evidence" are of the evidence stage alone.
"""
GRAPHS = ("dream4-10", "gnw20-choose", "gnw20-test")  # that have a gold standard
INFINITE = float("inf")


@dataclass(frozen=True)
class Measured:
    """One figure of full fits, and the range it is to be in (``benchmarks/TARGETS.md``)."""

    data: str
    count: int
    what: str
    value: float | None
    wanted: str
    low: float = -INFINITE
    high: float = INFINITE


def full_fits(directory: Path) -> list[str]:
    """Return the lines of the section, one for each figure that has records."""
    lines = [HEAD, "| data | seeds | data sets | what | found |", "|---|---|---|---|---|"]
    for seeds in ("choose", "test"):
        for row in measured(directory, seeds):
            shown = "-" if row.value is None else f"{row.value:.3f}"
            lines.append(f"| {row.data} | {seeds} | {row.count} | {row.what} | {shown} |")
    return lines


def measured(directory: Path, seeds: str) -> Iterator[Measured]:
    """Yield the figures of the fits with these seeds."""

    def rows(name: str) -> list[Record]:
        return fits(directory, f"{name}-{seeds}")

    if found := rows("nonlinear_var"):
        yield Measured("nonlinear VAR", len(found), "AUROC", _mean(found, "auroc"), ">= .99", low=0.99)
    if found := rows("wide"):
        name, count = "60 nodes, 300 rows", len(found)
        yield Measured(name, count, "AUPR", _mean(found, "aupr"), ">= .99", low=0.99)
        yield Measured(name, count, "false share of the listed edges", _false_share(found), "<= .12", high=0.12)
    if found := rows("mixed_signs"):
        errors = [[abs(edge["probability"] - edge["theta"]) for edge in row["true_edges"]] for row in found]
        worst = max(statistics.mean(of_edge) for of_edge in zip(*errors, strict=True))
        said = "mean error of `probability`, the worst of five edges"
        yield Measured("mixed signs", len(found), said, worst, "<= .03", high=0.03)
        said, largest = "largest error of five edges, mean over data sets", _mean(found, "theta_largest_error_on_edges")
        yield Measured("mixed signs", len(found), said, largest, "<= .03", high=0.03)
    yield from _nothing(directory, seeds, rows("independent"))
    yield from _river(rows("river"))
    if found := rows("var"):
        yield Measured("VAR", len(found), "share of intervals that contain 1", _covered(found), ">= .90", low=0.9)
    if found := rows("gates"):
        coverage = _covered(found)
        yield Measured("gates", len(found), "coverage of 95% intervals", coverage, ".92 to .98", low=0.92, high=0.98)
    for name in GRAPHS if seeds == "test" else ():
        if found := fits(directory, name):
            error = _pooled_error(found)
            yield Measured(name, len(found), "calibration error of `exists`", error, "<= .10", high=0.1)


def _river(found: list[Record]) -> Iterator[Measured]:
    """Yield the figures of the river with a gate."""
    gate = [edge for row in found for edge in row["true_edges"] if edge["theta"] < 1]
    if gate:
        error = statistics.mean(abs((edge["probability"] or 0) - edge["theta"]) for edge in gate)
        least = min((edge["exists"] for edge in gate if edge["exists"] is not None), default=None)
        count, largest = len(found), max(float(row["largest_without_edge"]) for row in found)
        yield Measured("river", count, "largest `exists` of a pair without an edge", largest, "< .1", high=0.0999)
        yield Measured("river", count, "`exists` of the gate", least, "> .95", low=0.95)
        yield Measured("river", count, "error of `probability` of the gate", error, "<= .04", high=0.04)


def _nothing(directory: Path, seeds: str, found: list[Record]) -> Iterator[Measured]:
    """Independent series: of full fits, and of the evidence alone."""
    record = study(directory, f"independent-{seeds}", EVIDENCE)
    for name, rows in (("no edge", found), ("no edge, evidence", record["systems"] if record else [])):
        if rows:
            share = statistics.mean(row["listed"] > 0 for row in rows)
            yield Measured(name, len(rows), "share of data sets with a listed edge", share, "<= .10", high=0.1)
            yield Measured(name, len(rows), "mean `exists`", _mean(rows, "mean_exists"), "<= .03", high=0.03)


def _mean(rows: list[Record], key: str) -> float | None:
    values = [row[key] for row in rows if row[key] is not None]
    return statistics.mean(values) if values else None


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

"""The printed results of ``tacit fit`` and ``tacit evaluate``: sentences, a table of edges, a table of scores."""

import math
import shlex
import sys
from typing import TYPE_CHECKING, Any

from tacit.console import SHOWN_SECONDS
from tacit.errors import one_line

if TYPE_CHECKING:
    from tacit.pipeline import FitJob

SHOWN_GROUPS = 10  # nodes or series in a table of scores
SCORES = {"point_mae": "MAE", "point_mse": "MSE", "crps": "CRPS", "coverage_0.8": "in 80%", "coverage_0.95": "in 95%"}
CLASS_SCORES = {"brier_score": "Brier", "ranked_probability_score": "RPS"}  # shown if a forecast has them
GROUP_SCORES = SCORES | {"scaled_crps": "scaled CRPS"}
SHOWN_EDGES, SHOWN_CANDIDATES = 8, 3  # rows of the table: listed edges, or candidates if none is listed
LEGEND = "in the units of the data; in 80%: fraction of values inside their 80% interval"


def print_notes(notes: list[str]) -> None:
    """Print notes on what was changed or left out, on standard error."""
    for note in notes:
        print(f"note: {one_line(note)}", file=sys.stderr)


def score_table(rows: dict[str, dict[str, float]], scores: dict[str, str] = SCORES) -> Any:
    """Return a table of scores with a row for each forecast, node or series."""
    from rich.table import Table
    from rich.text import Text

    further = {key: title for key, title in CLASS_SCORES.items() if any(key in metrics for metrics in rows.values())}
    scores = scores | further
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title in scores.values():
        table.add_column(title, justify="right", no_wrap=True)
    for name, metrics in rows.items():
        cells = [
            "-" if not math.isfinite(metrics.get(key, math.nan)) else f"{metrics[key]:{_format(key)}}" for key in scores
        ]
        table.add_row(Text(name), *cells)  # no markup
    return table


def print_group_scores(console: Any, what: str, scores: dict[str, dict[str, float]]) -> None:
    """Print the scores of each node or series, by decreasing scaled CRPS; if there are many, only the extremes."""
    if not scores:
        return
    scaled = {name: -math.inf if math.isnan(value) else value for name, value in scores["scaled_crps"].items()}
    names = sorted(scaled, key=lambda name: -scaled[name])
    title = f"by {what}"
    if len(names) > SHOWN_GROUPS:
        half = SHOWN_GROUPS // 2
        title += f", the {half} highest and the {half} lowest scaled CRPS of {len(names):,} (--json prints all)"
        names = [*names[:half], *names[-half:]]
    rows = {name: {score: values[name] for score, values in scores.items() if name in values} for name in names}
    console.print(
        f"\n{title}; scaled CRPS: in standard deviations of the node", soft_wrap=True, highlight=False, markup=False
    )
    console.print(score_table(rows, GROUP_SCORES))


def _format(score: str) -> str:
    return ".1%" if score.startswith("coverage") else ".3f" if score == "scaled_crps" else ".4g"


def print_lines(console: Any, lines: list[str]) -> None:
    """Print findings, one per line, after an empty line."""
    if lines:
        console.print()
    for line in lines:
        console.print(f"- {line}", soft_wrap=True, markup=False, highlight=False)


def print_check(checked: dict[str, Any], lines: list[str]) -> None:
    """Print the size of a table and its findings."""
    nodes, rows, variables = len(checked["nodes"]), f"{checked['rows']:,} rows", len(checked["variables"])
    where = (
        f"in {checked['series']} series" if checked["series"] > 1 else f"from {checked['first']} to {checked['last']}"
    )
    parts = [f"{nodes} node{'s' * (nodes > 1)}", f"{rows} {where}"]
    parts += [f"{variables} variables"] if variables > 1 else []
    parts += [f"{100 * checked['missing']:.2g}% missing"] if checked["missing"] else []
    print(one_line(f"{checked['data']}: {', '.join(parts)}"))
    for line in lines or ["nothing was found that may mislead a fit"]:
        print(f"- {one_line(line)}")


def print_fit(job: "FitJob", seconds: float) -> None:
    """Print the answer, the edges, the scores, the findings, the chosen options and the time of each stage."""
    from rich.console import Console

    record, console = job.run.record, Console()

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False, highlight=False)

    for sentence in record.answer:
        say(sentence)
    _print_edges(console, job)
    say(f"\nall edges: {job.directory / 'edges.csv'}")
    if job.run.edges_by is not None:
        say(f"how often they act in each {_in_each(record)}: {job.directory / 'edges_by.csv'}")
    say("")
    console.print(score_table({"learned graph": record.metrics, **record.references}))
    say(f"\non the test part, {LEGEND}")
    print_lines(console, record.findings)
    console.print()
    for choice in record.choices:
        say(f"chosen: {choice}")
    for note in record.warnings:
        say(f"note: {note}")
    stages = {"starting": seconds - sum(job.stages.values()), **job.stages}
    parts = [f"{name} {took:.1f}" for name, took in stages.items() if took >= SHOWN_SECONDS]
    say(f"took {seconds:.1f} s: {', '.join(parts)}")
    undrawn = f"not drawn because the run was stopped; draw it with tacit report {shlex.quote(str(job.directory))}"
    say(f"report: {undrawn if job.report is None else job.report}")


def _in_each(record: Any) -> str:
    return "regime" if record.situations.get("kind") == "mixture" else "situation"


def _print_edges(console: Any, job: "FitJob") -> None:
    """Print the strongest listed edges, or a few candidates if none is listed."""
    from rich.table import Table
    from rich.text import Text

    from tacit.report import edge_columns, is_symmetric, strongest_edges

    columns = edge_columns(job.run)
    listed, symmetric = columns.found, is_symmetric(job.run)
    if columns.exists is None:
        title, rows = "", strongest_edges(job.run, SHOWN_EDGES, columns)
    elif listed.any():
        more = int(listed.sum()) - SHOWN_EDGES
        title = f"listed edges, the first {SHOWN_EDGES} of {listed.sum():,}:" if more > 0 else "listed edges:"
        rows = strongest_edges(job.run, SHOWN_EDGES, columns, listed)
    else:
        others = columns.drawable & ~columns.listed
        rows = strongest_edges(job.run, SHOWN_CANDIDATES, columns, others)
        title = "the most likely candidates, not listed:" if rows else "no candidates"
    known = {name: any(row[name] is not None for row in rows) for name in ("exists", "std_error", "effect", "lag")}
    table = Table(box=None, pad_edge=False)
    table.add_column("edge")
    directions = any(row["direction"] for row in rows)
    wide = (
        directions or columns.group is not None or columns.changed is not None
    )  # without the standard error, to fit 80 columns
    shown = {"exists": known["exists"], "acts": True, "std. error": known["std_error"] and not wide}
    shown |= {"95% interval": known["std_error"], "effect": known["effect"]}
    lags = job.run.lags
    shown |= {"lag": known["lag"] and lags is not None and lags.effects.shape[1] > 1}
    shown |= {"direction": directions, "varies": any(row["varies"] for row in rows)}
    shown["changed"] = any(row["changed"] for row in rows)
    for name in (name for name, is_shown in shown.items() if is_shown):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        interval = "-" if row["low"] is None or row["high"] is None else f"{row['low']:.3f} to {row['high']:.3f}"
        cells = {
            "exists": _three(row["exists"]),
            "acts": _three(row["probability"]),
            "std. error": _three(row["std_error"]),
            "95% interval": interval,
            "effect": "-" if row["effect"] is None else f"{row['effect']:+.3f}",
            "lag": "-" if row["lag"] is None else f"{row['lag']:.0f}",
            "direction": row["direction"] or "-",
            "varies": row["varies"] or "-",
            "changed": row["changed"] or "-",
        }
        arrow = "-" if symmetric or row["undirected"] else "->"
        edge = Text(f"{row['source']} {arrow} {row['target']}")  # no markup
        table.add_row(edge, *(cell for key, cell in cells.items() if shown[key]))
    console.print(f"\n{title}" if title else "", highlight=False)
    console.print(table)


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

"""The printed results of ``tacit fit`` and ``tacit evaluate``: sentences, a table of edges, a table of scores."""

import math
import shlex
import sys
from typing import TYPE_CHECKING, Any

from tacit.console import SHOWN_SECONDS
from tacit.errors import one_line

if TYPE_CHECKING:
    from tacit.pipeline import FitJob
    from tacit.records import Run

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
    for line in lines:
        print(f"- {one_line(line)}")


def print_fit(job: "FitJob", seconds: float) -> None:
    """Print the answer, the edges, the scores, the findings, the chosen options and the time of each stage."""
    from rich.console import Console

    record, console = job.run.record, Console()

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False, highlight=False)

    for sentence in record.answer:
        say(sentence)
    print_edges(console, job.run)
    say(f"\nall edges: {job.directory / 'edges.csv'}")
    if job.run.edges.by is not None:
        say(f"how often they act in each {_in_each(record)}: {job.directory / 'edges_by.csv'}")
    say("")
    console.print(score_table({"learned graph": record.metrics, **record.references}))
    say(f"\non the test part, {LEGEND}")
    print_lines(console, [one.sentence for one in record.findings])
    console.print()
    for choice in record.choices:
        say(f"chosen: {choice.sentence}")
    for note in record.warnings:
        say(f"note: {note}")
    stages = {"starting": seconds - sum(job.stages.values()), **job.stages}
    parts = [f"{name} {took:.1f}" for name, took in stages.items() if took >= SHOWN_SECONDS]
    say(f"took {seconds:.1f} s: {', '.join(parts)}")
    undrawn = f"not drawn because the run was stopped; draw it with tacit report {shlex.quote(str(job.directory))}"
    say(f"report: {undrawn if job.report is None else job.report}")


def _in_each(record: Any) -> str:
    return "regime" if record.situations.get("kind") == "mixture" else "situation"


def print_edges(console: Any, run: "Run") -> None:
    """Print the strongest listed edges, or a few candidates if none is listed."""
    from rich.table import Table
    from rich.text import Text

    from tacit.edges import schema
    from tacit.report import strongest_edges

    edges = run.edges.each_once()
    listed = edges.listed()
    if "exists" not in edges:
        title, rows = "", strongest_edges(run, SHOWN_EDGES, edges)
    elif listed.any():
        more = int(listed.sum()) - SHOWN_EDGES
        title = f"listed edges, the first {SHOWN_EDGES} of {listed.sum():,}:" if more > 0 else "listed edges:"
        rows = strongest_edges(run, SHOWN_EDGES, edges, listed)
    else:
        rows = strongest_edges(run, SHOWN_CANDIDATES, edges, edges.drawable & ~edges.shown)
        title = "the most likely candidates, not listed:" if rows else "no candidates"
    empty = {one.name for one in schema.COLUMNS if all(row.get(one.name) in (None, "") for row in rows)}
    hidden = empty - {"probability"}
    hidden |= set() if edges.lags is not None and edges.lags.effects.shape[1] > 1 else {"lag"}
    wide = "group" in edges or "changed" in edges or any(row["direction"] for row in rows)
    hidden |= {"std_error"} if wide else set()  # to fit 80 columns
    columns = [one for one in schema.COLUMNS if one.printed and one.name not in hidden]
    table = Table(box=None, pad_edge=False)
    table.add_column("edge")
    for one in columns:
        table.add_column(one.printed, justify="right", no_wrap=True)
    for row in rows:
        cells = [_cell(row[one.name], one.style) for one in columns]
        for place, one in enumerate(columns):
            if one.name == "low" and row["low"] is not None:
                cells[place] += f" to {_cell(row['high'], one.style)}"
        arrow = "-" if edges.index.symmetric or row["undirected"] else "->"
        table.add_row(Text(f"{row['source']} {arrow} {row['target']}"), *cells)  # no markup
    console.print(f"\n{title}" if title else "", highlight=False)
    console.print(table)


def _cell(value: float | str | None, style: str) -> str:
    return "-" if value is None or value == "" else value if isinstance(value, str) else f"{value:{style}}"

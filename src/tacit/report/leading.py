"""What the page shows first: the edges that exist with both numbers, and the checks of the result."""

from typing import Any

from tacit.edges import FLAGS, EdgeTable
from tacit.records import Run
from tacit.report.strongest import strongest_edges

LEADING = 8  # edges
SHOWN_FROM = 0.005  # a smaller probability is rounded to 0.00
UNKNOWN = "–"


def leading_edges(run: Run, columns: EdgeTable) -> list[dict[str, str]]:
    """Return the most likely listed edges, or without evidence the most probable ones, with their numbers as text."""
    among = columns.shown
    if "exists" not in columns:
        among = columns.drawable & (columns.acts >= SHOWN_FROM)
        if "identifiable" in columns:
            among = among & (columns["identifiable"] != FLAGS.index(""))
    found = strongest_edges(run, LEADING, columns, among)
    return [
        {
            "source": edge["source"],
            "target": edge["target"],
            "arrow": "—" if run.record.is_symmetric or edge["undirected"] else "→",
            "exists": _number(edge["exists"], 3),
            "acts": _number(edge["probability"], 2),
            "interval": UNKNOWN if edge["low"] is None else f"{edge['low']:.2f} to {edge['high']:.2f}",
            "true": _number(edge["truth"], 2),
        }
        for edge in found
    ]


def leading_said(columns: EdgeTable) -> str:
    """Return how many of the edges are shown first."""
    if "exists" not in columns:
        return "The most probable edges."
    listed = int(columns.shown.sum())
    return f"The {LEADING} most likely of {listed:,} listed edges." if listed > LEADING else ""


def findings(run: Run) -> list[str]:
    """Return the findings without the verdict of the fit test, which is shown before them."""
    first: Any = (run.record.goodness.get("sentences") or [None])[0]
    return [finding[:1].upper() + finding[1:] for finding in run.record.findings if finding != first]


def _number(value: float | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"

"""Colours, labels and numbers that the figures for papers and the page have in common; the page gets them as data.

Colours are those of Okabe and Ito, which colour-blind people can distinguish.
"""

from typing import Any

import matplotlib as mpl
from matplotlib.colors import to_hex

from tacit.edges import schema

BLUE, VERMILION = "#0072b2", "#d55e00"
PROBABILITY_COLOURS = "viridis"  # readable for colour-blind people and in grey, like the next
ERROR_COLOURS = "magma"
FORECAST_COLOUR = BLUE  # of a fan chart
BEND = 0.12  # distance of the middle of an edge from the straight line, in lengths of the edge
LABELLED_UP_TO = 40  # nodes
ROWS = 25  # of the table of edges on a page
LIGHT = {
    "ink": "#1a1c20",
    "quiet": "#55595f",
    "paper": "#ffffff",
    "soft": "#f4f5f7",
    "line": "#d4d8de",
    "border": "#8a9099",
    "mark": "#0068a3",
    "alarm": "#a84a00",
    "good": "#00664b",
    "raises": BLUE,
    "lowers": VERMILION,
    "edge": BLUE,
    "incoming": "#be5000",
    "outgoing": "#007d5c",
    "node": VERMILION,
    "chosen": "#000000",
    "best": BLUE,
    "others": "#b5b9bf",
    "expected": VERMILION,
}
DARK = {
    "ink": "#e8eaed",
    "quiet": "#b3b8c0",
    "paper": "#15171a",
    "soft": "#1f2328",
    "line": "#363b42",
    "border": "#7c838d",
    "mark": "#6fc0f0",
    "alarm": "#f2a65a",
    "good": "#4fd1a5",
    "raises": "#56b4e9",
    "lowers": "#f08c3c",
    "edge": "#56b4e9",
    "incoming": "#f0aa3c",
    "outgoing": "#3ccda0",
    "node": "#e69f00",
    "chosen": "#ffffff",
    "best": "#56b4e9",
    "others": "#6b727c",
    "expected": "#e69f00",
}
PRINTED = LIGHT | {
    "ink": "#000000",
    "quiet": "#333333",
    "line": "#bbbbbb",
    "border": "#777777",
    "mark": "#00507d",
    "alarm": "#8a3c00",
    "good": "#00503b",
}
LABELS = {
    "matrix": {"x": "source", "y": "target"},
    "map": {"x": "longitude", "y": "latitude"},
    "histogram": {"x": "probability", "y": "number of candidates"},
    "reliability": {"title": "reliability of edge probabilities", "x": "learned probability", "y": "true probability"},
    "coverage": {"title": "coverage of predicted intervals", "x": "nominal coverage", "y": "observed coverage"},
    "ranks": {
        "title": "ranks of the targets, one line per node",
        "x": "rank of the target among samples",
        "y": "observed / expected share",
    },
    "training": {"x": "epoch", "y": "", "optimal": "optimal"},
}


def panel_titles(*, has_evidence: bool) -> dict[str, str]:
    """Return the titles of the matrices by what they show."""
    learned = "acts" if has_evidence else "learned edge probability"
    truth = {"truth": "true edge probability", "error": "absolute error"}
    return {"exists": "exists", "probability": learned, **truth}


def counted(number: int, what: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "edge"), counted(1200, "edge")
    ('1 edge', '1,200 edges')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def short(text: str, length: int) -> str:
    """Return a text of at most so many letters.

    >>> short("a long name", 7)
    'a long…'
    """
    return text if len(text) <= length else f"{text[: length - 1]}…"


def css_variables() -> str:
    """Return the colours as CSS variables for light and dark mode and for paper."""

    def root(colours: dict[str, str]) -> str:
        return ":root { " + " ".join(f"--{name}: {colour};" for name, colour in colours.items()) + " }"

    dark, printed = f"@media (prefers-color-scheme: dark) {{ {root(DARK)} }}", f"@media print {{ {root(PRINTED)} }}"
    return f"{root(LIGHT)}\n{dark}\n{printed}\n"


def page_constants() -> dict[str, Any]:
    """Return what the page's script reads under ``shared``."""
    return {
        "palettes": {"light": LIGHT, "dark": DARK},
        "scales": {"probability": _scale(PROBABILITY_COLOURS), "error": _scale(ERROR_COLOURS)},
        "labels": LABELS,
        "columns": schema.script_columns(),
        "situationNumbers": [one.name for one in schema.BY_COLUMNS if one.kind == "number"],
        "bend": BEND,
        "labelledUpTo": LABELLED_UP_TO,
        "rows": ROWS,
    }


def _scale(name: str, steps: int = 10) -> list[list[Any]]:
    """Return a colour map of matplotlib as a scale of plotly."""
    places = [step / (steps - 1) for step in range(steps)]
    return [[place, to_hex(mpl.colormaps[name](place))] for place in places]

"""Losses and errors during training: a line for each replica, the kept one in colour."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from tacit.records import Run
from tacit.report.shared import BLUE, LABELS, VERMILION

TITLES = {
    "train_loss": "training loss",
    "validation_loss": "validation loss",
    "edge_prob_mae": "edge probability error",
}


class Curve(NamedTuple):
    """A number after each epoch: ``lines`` has one list per replica, None once it was dropped."""

    key: str
    title: str
    epochs: list[int]
    lines: list[list[float | None]]
    optimal: float | None


def training_curves(run: Run) -> list[Curve]:
    """Return the curves of a run; none where it was fitted in closed form."""
    epochs = [line["epoch"] for line in run.history]
    found = []
    for key, title in TITLES.items():
        if run.history and key in run.history[0]:
            lines = [list(values) for values in zip(*(line[key] for line in run.history), strict=True)]
            found.append(Curve(key, title, epochs, lines, run.record.optimal.get(key)))
    return found


def draw_curve(axes: Axes, curve: Curve, best: int) -> None:
    """Draw a line for each replica, that of the ``best`` on top, and the optimal value where it is known."""
    for replica, line in enumerate(curve.lines):
        kept = replica == best
        values = [np.nan if value is None else value for value in line]
        style: dict[str, Any] = (
            {"color": BLUE, "lw": 1.8, "zorder": 3} if kept else {"color": "0.7", "lw": 0.8, "zorder": 2}
        )
        axes.plot(curve.epochs, values, marker=".", markersize=3, **style)  # a replica may have one epoch only
    if curve.optimal is not None:
        axes.axhline(curve.optimal, color=VERMILION, ls="--", lw=1, label=LABELS["training"]["optimal"])
        axes.legend(frameon=False)
    axes.set(title=curve.title, xlabel=LABELS["training"]["x"])

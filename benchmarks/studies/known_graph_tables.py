"""Rows and figures of the studies whose graph is known."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from tacit.experiments.replication import mean_and_deviation
from tacit.experiments.study import Values
from tacit.report.matrix import COLOURS

RANKING_COLUMNS = {"AUROC": "auroc", "AUPR": "aupr", "F1": "f1", "F1 of the top edges": "f1_top"}
RANKING_NOTE = "F1: of the edges with theta above 0.5; top edges: as many as there are true edges"


def method_rankings(systems: Sequence[Values]) -> dict[str, list[Values]]:
    """Return the rankings of each method, one per system. Those of single starts are in the records only."""
    return {
        "mean of the starts": [one["mean_of_starts"] for one in systems],
        "ridge": [one["ridge"] for one in systems],
        "lasso": [one["lasso"] for one in systems],
    }


def ranking_cells(rankings: Sequence[Values], keys: Sequence[str] = tuple(RANKING_COLUMNS.values())) -> list[str]:
    """Return mean and deviation of each metric, of those rankings that have it.

    >>> ranking_cells([{"auroc": 0.5}, {"auroc": 0.7}], ["auroc", "f1"])
    ['0.600 ± 0.141', '–']
    """
    return [mean_and_deviation([one[key] for one in rankings if key in one], 3) for key in keys]


def strips(systems: Mapping[str, Values], xlabel: str) -> Figure:
    """Draw the learned probabilities of each system in two columns: true edges, and other pairs."""
    figure = Figure(figsize=(1.3 * len(systems) + 1.2, 3.0), layout="constrained")
    axis = figure.subplots()
    for key, colour, shift, said in (
        ("probs_on_edges", COLOURS[1], -0.15, "true edges"),
        ("probs_elsewhere", COLOURS[0], 0.15, "other pairs"),
    ):
        points = [(place + shift, prob) for place, values in enumerate(systems.values()) for prob in values[key]]
        axis.plot(*zip(*points, strict=True), "o", color=colour, alpha=0.5, markersize=4, markeredgewidth=0, label=said)
    axis.set(xticks=range(len(systems)), xticklabels=list(systems), xlabel=xlabel, ylabel="learned probability")
    axis.legend(fontsize=7)
    return figure

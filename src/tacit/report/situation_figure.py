"""For papers: how often the edges that vary most act, over the values of a variable or in each regime."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tacit.records import Run
from tacit.report.shared import BLUE, short
from tacit.report.situations import SituationTable, most_varying, situation_tables

MOST_PANELS, ACROSS = 6, 3
WIDTH, HEIGHT = 2.9, 2.4  # of a panel, in inches
MOST_TICKS, LONGEST_TICK, LONGEST_NAME = 8, 12, 18  # letters of a tick and of a name


def draw_situations(run: Run) -> Figure | None:
    """Return the curves of at most six edges with their 95% bands; None where no edge varies."""
    shown = most_varying(situation_tables(run), MOST_PANELS)
    if not shown:
        return None
    across = min(ACROSS, len(shown))
    down = -(-len(shown) // across)
    figure = Figure(figsize=(WIDTH * across, HEIGHT * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes, (table, edge) in zip(panels, shown, strict=False):
        _draw_panel(axes, table, edge, run.record.node_names)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    for axes in panels[::across]:
        axes.set_ylabel("probability")
    return figure


def _draw_panel(axes: Axes, table: SituationTable, edge: int, names: list[str]) -> None:
    x = np.array(table.positions) if table.positions is not None else np.arange(len(table.labels))
    probs, low, high = table.probability[edge], table.low[edge], table.high[edge]
    if table.ordered:
        axes.fill_between(x, low, high, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(x, probs, color=BLUE, marker="o", markersize=2.5)
    else:
        axes.errorbar(x, probs, yerr=[probs - low, high - probs], fmt="o", color=BLUE, capsize=3)
        axes.set_xlim(-0.5, len(x) - 0.5)
    if table.positions is None:
        kept = np.arange(0, len(x), -(-len(x) // MOST_TICKS))
        turned = sum(len(table.labels[place]) for place in kept) > 30
        axes.set_xticks(kept, [short(table.labels[place], LONGEST_TICK) for place in kept], parse_math=False)
        axes.tick_params(axis="x", labelrotation=30 if turned else 0)
    source, target = (short(names[node], LONGEST_NAME) for node in (table.source[edge], table.target[edge]))
    axes.set_title(f"{source} → {target}", fontsize=8, parse_math=False)
    axes.set_xlabel(table.by, parse_math=False)
    axes.set_ylim(-0.03, 1.03)

"""How often edges act by situation or regime: tables, the posterior over time, and figures."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from tacit.edges import BY_NUMBERS, REGIME, EdgeTable
from tacit.records import Run
from tacit.report.embedding import FLOATS, SMALL, WHOLE, packed
from tacit.report.matrix import COLOURS
from tacit.report.shared import BLUE, counted, short

ORDERED = ("periodic", "number")  # kinds whose values have an order: a slider chooses one, a line joins them
MOST_LISTED = 40  # rows of the table on the page
Numbers = Float[np.ndarray, "edge value"]


@dataclass(frozen=True)
class SituationTable:
    """How often edges act at each value of one variable, or in each regime; NaN where a number is not known.

    ``by`` is the name of the variable or ``regime``, ``kind`` is ``category``, ``periodic``, ``number`` or ``regime``,
    and ``labels`` are the values in their order. ``numbers`` are the columns of numbers of ``edges_by.csv``.
    """

    by: str
    kind: str
    labels: list[str]
    source: Int[np.ndarray, " edge"]
    target: Int[np.ndarray, " edge"]
    numbers: dict[str, Numbers]

    @property
    def probability(self) -> Numbers:
        """How often each edge acts at each value."""
        return self.numbers["probability"]

    @property
    def ordered(self) -> bool:
        """Have the values an order?"""
        return self.kind in ORDERED

    @property
    def positions(self) -> list[float] | None:
        """The values as numbers; None where they are no numbers, or have no order."""
        try:
            return [float(label) for label in self.labels] if self.ordered else None
        except ValueError:
            return None

    @property
    def spread(self) -> Float[np.ndarray, " edge"]:
        """The largest minus the smallest probability of each edge."""
        return np.asarray(np.nanmax(self.probability, 1) - np.nanmin(self.probability, 1))

    def named(self, place: int) -> str:
        """Return a value with the name of the variable: "hour = 3", "regime 1"."""
        label = self.labels[place]
        return f"regime {label}" if self.kind == REGIME else f"{self.by} = {label}"


def situation_tables(run: Run) -> list[SituationTable]:
    """Return a table per variable, in the order of ``edges_by.csv``; none where no edge varies."""
    rows = run.edges.by
    if rows is None or not len(rows):
        return []
    variables = {one["name"]: one for one in run.record.situations.get("variables", [])}
    by, value = np.array(rows.by, dtype=object), np.array(rows.value, dtype=object)
    ends = np.stack([np.array(rows.target), np.array(rows.source)], 1)
    numbers = {name: np.array(getattr(rows, name), dtype=float) for name in BY_NUMBERS}
    found = []
    for name in dict.fromkeys(rows.by):
        own = by == name
        edges, edge = np.unique(ends[own], axis=0, return_inverse=True)
        labels = list(dict.fromkeys([*variables.get(name, {}).get("values", []), *value[own]]))
        place = np.array([labels.index(label) for label in value[own]])
        cells = {key: np.full((len(edges), len(labels)), np.nan) for key in BY_NUMBERS}
        for key, matrix in cells.items():
            matrix[edge.ravel(), place] = numbers[key][own]
        kind = REGIME if name == REGIME and name not in variables else variables.get(name, {}).get("kind", "category")
        found.append(SituationTable(name, kind, labels, edges[:, 1], edges[:, 0], cells))
    return found


def varying_rows(run: Run, tables: list[SituationTable]) -> list[dict[str, Any]]:
    """Return the edges that vary most, a row per edge and variable: where they act least and most often."""
    names = run.record.node_names
    rows = []
    for table, edge in most_varying(tables, MOST_LISTED):
        probs = table.probability[edge]
        ends = {"lowest": int(np.nanargmin(probs)), "highest": int(np.nanargmax(probs))}
        rows.append(
            {"source": names[table.source[edge]], "target": names[table.target[edge]]}
            | {end: {"probability": float(probs[place]), "at": table.named(place)} for end, place in ends.items()}
        )
    return rows


def most_varying(tables: list[SituationTable], count: int) -> list[tuple[SituationTable, int]]:
    """Return tables and rows of the edges with the largest spread, the largest first."""
    found = [
        (spread, number, edge) for number, one in enumerate(tables) for edge, spread in enumerate(one.spread.tolist())
    ]
    return [(tables[number], edge) for _, number, edge in sorted(found, key=lambda one: -one[0])[:count]]


def packed_situations(tables: list[SituationTable], columns: EdgeTable) -> list[dict[str, Any]]:
    """Return the tables as the page embeds them, with the place of each edge in the page."""
    found = []
    for table in tables:
        place = columns.index.find(table.source, table.target)
        shown = place >= 0
        found.append(
            {
                "by": table.by,
                "kind": table.kind,
                "labels": table.labels,
                "named": [table.named(value) for value in range(len(table.labels))],
                "positions": table.positions,
                "edge": packed(place[shown], WHOLE),
                "numbers": {name: packed(values[shown], FLOATS) for name, values in table.numbers.items()},
            }
        )
    return found


OWN_REGIMES = (
    "Each node has {count} regimes of its own for the edges into it: regime 1 of a node is its most frequent one, and "
    "regime 1 of two nodes need not hold at the same time."
)
ONE_GRAPH = (
    "The graph has {count} regimes: at each time one of them holds for all edges; regime 1 is the most frequent."
)
SHARES = 1000  # a probability of 1 as the page stores it
ALL = ["all"]  # names of the blocks where all edges share their regimes


def has_own_regimes(run: Run) -> bool:
    """Has each node regimes of its own?"""
    return bool(run.record.situations.get("blocks", ALL) != ALL)


def blocks_shown(run: Run, tables: list[SituationTable]) -> list[tuple[int, str]]:
    """Return number and name of the blocks of edges that have regimes: others have no edge in ``edges_by.csv``."""
    names = run.record.situations.get("blocks", [])
    if not has_own_regimes(run):
        return list(enumerate(names))
    targets = {int(node) for table in tables if table.kind == REGIME for node in table.target}
    return [(number, name) for number, name in enumerate(names) if number in targets]


def value_words(run: Run, table: SituationTable) -> list[str]:
    """Return the values that the control lists; regimes with their weights.

    Where each node has its own regimes, the smallest and the largest weight over the nodes.
    """
    weights = np.array(run.record.situations.get("weights") or [], dtype=float)
    if table.kind != REGIME or not weights.size:
        return list(table.labels) if table.kind != REGIME else [table.named(k) for k in range(len(table.labels))]
    if has_own_regimes(run):
        weights = weights[np.unique(table.target)]
    low, high = 100 * weights.min(0), 100 * weights.max(0)
    shares = [f"{a:.0f}%" if round(a) == round(b) else f"{a:.0f}% to {b:.0f}%" for a, b in zip(low, high, strict=True)]
    return [f"{table.named(k)} ({shares[int(label) - 1]})" for k, label in enumerate(table.labels)]


def packed_posterior(run: Run) -> dict[str, Any] | None:
    """Return the posterior of the regimes over time; None where there is none."""
    found = run.record.situations.get("posterior")
    if not found or not len(found.get("times", ())):
        return None
    probs: Float[np.ndarray, "time block regime"] = np.array(found["probs"], dtype=float)
    return {
        "times": found["times"],
        "series": found.get("series"),
        "parts": found.get("parts"),
        "blocks": run.record.situations["blocks"],
        "count": probs.shape[2],
        "scale": SHARES,
        "colours": list(COLOURS),
        "probs": packed(np.rint(SHARES * probs), SMALL),
    }


def situations_said(run: Run, tables: list[SituationTable]) -> list[str]:
    """Return sentences: how many edges vary with what, what regimes are, and what limits the answer."""
    situations = run.record.situations
    variables = [table.by for table in tables if table.kind != REGIME]
    said = []
    if variables:
        varying = len({ends for table in tables for ends in zip(table.source, table.target, strict=True)})
        tested, fdr = situations.get("tested"), situations.get("fdr")
        of = "" if not tested else f" of {counted(tested, 'tested edge')}"
        count = f"{varying:,}{of}" if of else counted(varying, "edge")
        rate = "" if fdr is None or not tested else f" (false discovery rate {100 * fdr:g}%)"
        said.append(f"{count} {'varies' if varying == 1 else 'vary'} with {' and '.join(variables)}{rate}.")
    if len(variables) > 1:
        said.append("The probabilities by one variable have the other variables at their average.")
    for table in tables:
        if table.kind == REGIME:
            said.append((OWN_REGIMES if has_own_regimes(run) else ONE_GRAPH).format(count=len(table.labels)))
    return said + list(situations.get("notes", []))


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
        x = np.array(table.positions) if table.positions is not None else np.arange(len(table.labels))
        probs, low, high = (table.numbers[name][edge] for name in ("probability", "low", "high"))
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
        names = run.record.node_names
        source, target = (short(names[node], LONGEST_NAME) for node in (table.source[edge], table.target[edge]))
        axes.set_title(f"{source} → {target}", fontsize=8, parse_math=False)
        axes.set_xlabel(table.by, parse_math=False)
        axes.set_ylim(-0.03, 1.03)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    for axes in panels[::across]:
        axes.set_ylabel("probability")
    return figure

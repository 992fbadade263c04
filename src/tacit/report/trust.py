"""Figures of trust: are edge probabilities reliable where the truth is known, and are the targets' ranks uniform?"""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from matplotlib.figure import Figure

from tacit.records import Run
from tacit.report.network import plain_text
from tacit.uncertainty import reliability

BINS = 10
MOST_NODES = 60  # ranks of more could not be told apart
LEARNED, EXPECTED = "#0072b2", "#d55e00"
MARGINS = {"l": 50, "r": 10, "t": 36, "b": 44}


def reliability_points(run: Run) -> tuple[list[float], list[float], list[int]] | None:
    """Return mean learned and mean true probability, and number of edges, of each bin; None without a truth."""
    if run.record.true_edge_probs is None:
        return None
    flags = run.edges.identifiable
    learned = None if flags is None else torch.tensor([[flag == "yes" for flag in row] for row in flags])
    if learned is not None and not learned.any():
        return None
    probs, truth = torch.tensor(run.edge_probs), torch.tensor(run.record.true_edge_probs)
    found = reliability(probs, truth, num_bins=BINS, learned=learned)
    return found.predicted.tolist(), found.true.tolist(), found.count.tolist()


def rank_shares(run: Run) -> dict[str, list[float]]:
    """Return for each node the share of targets in each bin of ranks over what is expected; 1 is right everywhere."""
    goodness = run.record.goodness
    names = goodness.get("names", [])[:MOST_NODES]
    tests = goodness.get("ranks", [])
    return {
        name: [count / expected for count, expected in zip(test["counts"], test["expected"], strict=True)]
        for name, test in zip(names, tests, strict=False)
        if test["counts"] and all(test["expected"])
    }


def draw_reliability(run: Run) -> Figure | None:
    """Return the reliability diagram for a paper."""
    points = reliability_points(run)
    if points is None:
        return None
    predicted, true, count = points
    figure = Figure(figsize=(3.4, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=EXPECTED, ls="--", lw=1)
    axes.scatter(predicted, true, s=20 + 8 * np.sqrt(count), color=LEARNED, zorder=3)
    axes.set(xlabel="learned probability", ylabel="true probability", title="reliability", xlim=(-0.03, 1.03))
    return figure


def draw_ranks(run: Run) -> Figure | None:
    """Return ranks of targets among samples, a line per node, for a paper."""
    shares = rank_shares(run)
    if not shares:
        return None
    figure = Figure(figsize=(4.2, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.axhline(1, color=EXPECTED, ls="--", lw=1)
    for values in shares.values():
        axes.step(np.linspace(0, 1, len(values) + 1), [*values, values[-1]], where="post", color=LEARNED, lw=0.8)
    axes.set(xlabel="rank of the target among samples", ylabel="share over expected", title="ranks, a line per node")
    return figure


def interactive_trust(run: Run) -> list[go.Figure]:
    """Return both for a page, those that there are."""
    figures = []
    points = reliability_points(run)
    if points is not None:
        predicted, true, count = points
        figure = go.Figure(
            go.Scatter(
                x=predicted,
                y=true,
                mode="markers",
                marker={"size": [8 + 2 * number**0.5 for number in count], "color": LEARNED},
                customdata=count,
                hovertemplate="learned %{x:.3f}, true %{y:.3f}, %{customdata} edges<extra></extra>",
                showlegend=False,
            )
        )
        figure.add_shape(type="line", x0=0, y0=0, x1=1, y1=1, line={"color": EXPECTED, "dash": "dash"})
        figures.append(_laid_out(figure, "reliability of edge probabilities", "learned", "true"))
    shares = rank_shares(run)
    if shares:
        figure = go.Figure()
        for name, values in shares.items():
            middles = [(place + 0.5) / len(values) for place in range(len(values))]
            line: dict[str, Any] = {"shape": "hvh", "color": LEARNED, "width": 1}
            figure.add_scatter(x=middles, y=values, mode="lines", line=line, name=plain_text(name), showlegend=False)
        figure.add_hline(y=1, line={"color": EXPECTED, "dash": "dash"})
        figures.append(_laid_out(figure, "ranks of targets, a line per node", "rank", "share over expected"))
    return figures


def _laid_out(figure: go.Figure, title: str, x: str, y: str) -> go.Figure:
    figure.update_xaxes(title=x)
    figure.update_yaxes(title=y)
    return figure.update_layout(title=title, margin=MARGINS, height=300)

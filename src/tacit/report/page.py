"""The page: one self-contained HTML file, for one run or for several side by side."""

import json
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from tacit.records import Run
from tacit.report.figures import curves, panels
from tacit.report.listed import interactive_histogram, strongest_listed
from tacit.report.network import interactive_network
from tacit.report.trust import interactive_trust
from tacit.whole_files import write_whole

PLOTLY_COLOURS = {"viridis": "Viridis", "magma": "Magma"}
BEST, OTHERS, OPTIMAL = "#0072b2", "#bbbbbb", "#d55e00"
SHOWN_EDGES, SHOWN_LISTED = 10, 100  # rows of the table of edges; of candidates more, as there is no heatmap
LONGEST_LIST = 50
MARGINS = {"l": 50, "r": 10, "t": 36, "b": 44}


def write_page(runs: list[Run], path: Path, title: str) -> None:
    """Write the page of these runs."""
    environment = Environment(
        loader=PackageLoader("tacit.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("page.html").render(
        title=title,
        plotly=Markup(get_plotlyjs()),
        runs=[
            {
                "record": run.record,
                "config": json.dumps(_shortened(run.record.config), indent=2),
                "matrices": [_json(figure) for figure in _probabilities(run)],
                "curves": [_json(_curve(run, *curve)) for curve in curves(run)],
                "trust": [_json(figure) for figure in interactive_trust(run)],
                "strongest": strongest_edges(run, SHOWN_EDGES if run.listed is None else SHOWN_LISTED),
                "errors": run.edges.std_error is not None,
                "network": _json(interactive_network(run)) if run.record.preparation else None,
                "scores": {"learned graph": run.record.metrics, **run.record.references},
            }
            for run in runs
        ],
    )
    write_whole(path, page.encode())


def strongest_edges(run: Run, count: int = SHOWN_EDGES) -> list[dict[str, Any]]:
    """Return the most probable edges between different nodes that can be learned, the most probable first."""
    if run.listed is not None:
        return strongest_listed(run, count)
    names = run.record.node_names
    truth, flags = run.record.true_edge_probs, run.edges.identifiable
    entries = [
        (p, i, j)
        for i, row in enumerate(run.edge_probs)
        for j, p in enumerate(row)
        if i != j and (flags is None or flags[i][j] != "no")
    ]
    found = {name: matrix for name, matrix in run.edges.model_dump().items() if name != "bagged"}
    return [
        {
            "source": names[j],
            "target": names[i],
            "probability": p,
            "truth": truth[i][j] if truth else None,
            **{name: None if matrix is None else matrix[i][j] for name, matrix in found.items()},
        }
        for p, i, j in sorted(entries, reverse=True)[:count]
    ]


def _probabilities(run: Run) -> list[go.Figure]:
    """Return the probabilities as heatmaps, or of candidates how many edges are how probable."""
    if run.listed is not None:
        return [interactive_histogram(run.listed).update_layout(margin=MARGINS, height=440)]
    return [_heatmap(run, *panel) for panel in panels(run)]


def _shortened(config: Any) -> Any:
    """Return a config with long lists cut: thousands of candidates by name would fill the page."""
    if isinstance(config, dict):
        return {key: _shortened(value) for key, value in config.items()}
    if isinstance(config, list | tuple) and len(config) > LONGEST_LIST:
        return [*config[:LONGEST_LIST], f"and {len(config) - LONGEST_LIST:,} more, see record.json"]
    return config


def _heatmap(run: Run, title: str, matrix: Any, colours: str, top: float) -> go.Figure:
    names = run.record.node_names
    figure = go.Figure(
        go.Heatmap(
            z=matrix.round(5).tolist(),
            x=names,
            y=names,
            colorscale=PLOTLY_COLOURS[colours],
            zmin=0,
            zmax=top,
            hovertemplate="%{x} → %{y}: %{z:.4f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="source (sends)", type="category", constrain="domain")
    figure.update_yaxes(title="target (receives)", type="category", autorange="reversed", scaleanchor="x")
    return figure.update_layout(title=title, margin=MARGINS, height=440 if run.record.preparation else 340)


def _curve(
    run: Run, title: str, epochs: list[int], lines: list[list[float | None]], optimal: float | None
) -> go.Figure:
    figure = go.Figure()
    for replica, values in enumerate(lines):
        best = replica == run.record.best_replica
        figure.add_scatter(
            x=epochs,
            y=values,
            mode="lines+markers",
            line={"color": BEST if best else OTHERS, "width": 3 if best else 1},
            name=f"replica {replica}" + (" (kept)" if best else ""),
            showlegend=False,
        )
    if optimal is not None:
        figure.add_hline(y=optimal, line={"color": OPTIMAL, "dash": "dash"}, annotation_text="optimal")
    figure.update_xaxes(title="epoch")
    return figure.update_layout(title=title, margin=MARGINS, height=300)


def _json(figure: go.Figure) -> Markup:
    """Return a figure as JSON that cannot end the script it stands in."""
    return Markup(figure.to_json().replace("<", "\\u003c"))

"""The content of a report: text and tables for the template, data for the script."""

import json
from typing import Any

import numpy as np

from tacit.edges import FLAGS, LISTED_FROM, EdgeTable, schema
from tacit.records import FORECAST_NUMBERS, Run
from tacit.registry import OBSERVATIONS
from tacit.report.embedding import (
    FLOATS,
    SMALL,
    WHOLE,
    packed,
    packed_edges,
    packed_texts,
    page_row,
    strongest_edges,
)
from tacit.report.figures import coverage_points, rank_shares, reliability_points, training_curves
from tacit.report.matrix import histogram, histogram_title
from tacit.report.places import Places, label_sides, run_places
from tacit.report.shared import LABELLED_UP_TO, ROWS, panel_titles
from tacit.report.situations import (
    blocks_shown,
    has_own_regimes,
    packed_posterior,
    packed_situations,
    situation_tables,
    situations_said,
    value_words,
    varying_rows,
)
from tacit.words import FindingKind


def packed_background(run: Run) -> dict[str, Any] | None:
    """Return observed values and background by node, point and column; None if no node has a background."""
    table = run.background
    if table is None or not table.times:
        return None
    said = [run.record.background[run.record.node_names[node]] for node in table.nodes]
    return {
        "times": table.times,
        "rows": packed(np.minimum(table.rows, 2**16 - 1), SMALL),
        "series": table.series,
        "nodes": table.nodes,
        "terms": [one["terms"] for one in said],
        "shares": [one["share"] for one in said],
        "numbers": packed(np.moveaxis(table.numbers, 0, 1), FLOATS),
    }


def background_options(run: Run) -> dict[str, Any] | None:
    """Return what can be chosen: nodes by name, series, and the parts of the table."""
    table = run.background
    if table is None or not table.times:
        return None
    series = list(dict.fromkeys(table.series))
    rows, several = np.array(table.rows), len(series) > 1
    size, single = int(rows.max()), int((rows == 1).sum())
    last = f"the last {single // max(1, len(series)):,} rows" + (" of each series" if several else "")
    parts = [(size, f"all rows, as means of {size:,}"), (1, last)] if size > 1 else []
    return {
        "nodes": [run.record.node_names[node] for node in table.nodes],
        "series": series,
        "parts": parts,
        "of": len(run.record.background),
    }


def packed_forecasts(run: Run) -> dict[str, Any] | None:
    """Return quantiles and observed values by node, variable, row and column; None where none were kept."""
    table = run.forecasts
    if table is None or not table.rows or not table.nodes:
        return None
    return {
        "rowName": table.row_name,
        "rows": table.rows,
        "series": table.series,
        "nodes": table.nodes,
        "variables": table.variables,
        "columns": list(FORECAST_NUMBERS),
        "numbers": packed(np.moveaxis(table.numbers, 0, 2), FLOATS),
    }


def forecast_options(run: Run) -> dict[str, Any] | None:
    """Return what can be chosen: nodes by name, variables and series."""
    table = run.forecasts
    if packed_forecasts(run) is None or table is None:
        return None
    return {
        "nodes": [run.record.node_names[node] for node in table.nodes],
        "variables": table.variables,
        "series": list(dict.fromkeys(table.series)),
        "num_rows": len(table.rows),
        "timed": table.row_name == "time",
    }


def packed_lags(run: Run, columns: EdgeTable) -> dict[str, Any] | None:
    """Return the profiles of the edges in the page, with the place of each edge; None where there are none."""
    lags = run.edges.lags
    if lags is None or not lags.source:
        return None
    place = columns.index.find(np.array(lags.source), np.array(lags.target))
    shown = place >= 0
    return {
        "first": lags.first,
        "count": lags.effects.shape[1],
        "edge": packed(place[shown], WHOLE),
        "effects": packed(lags.effects.numpy()[shown], FLOATS),
        "shares": packed(lags.shares.numpy()[shown], FLOATS),
    }


LEADING = 8  # edges
LEADING_FROM = 0.005  # a smaller probability is rounded to 0.00
UNKNOWN = "–"


def leading_edges(run: Run, columns: EdgeTable) -> list[dict[str, str]]:
    """Return the most likely listed edges, or without evidence the most probable ones, with their numbers as text."""
    among = columns.shown
    if "exists" not in columns:
        among = columns.drawable & (columns.acts >= LEADING_FROM)
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
    further = [one.sentence for one in run.record.findings if one.kind != FindingKind.FIT_VERDICT]
    return [line[:1].upper() + line[1:] for line in further]


def _number(value: float | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


NAMED = 8  # nodes of one kind
FURTHER = {"brier_score": "Brier score", "ranked_probability_score": "RPS", "log_score": "log score"}
EXPLAINED = {
    "brier_score": "Brier score: mean square of probability minus outcome, of yes-or-no targets.",
    "ranked_probability_score": "RPS: ranked probability score of ordered categories, in steps of a category.",
    "log_score": "Log score: mean log probability (of numbers: density) of the targets; higher is better.",
}


def targets_said(run: Run) -> str:
    """Return a sentence on the distribution of the targets, by node where it differs; nothing if it is not known."""
    kind = run.record.config.get("observation", {}).get("kind")
    if not kind:
        return ""
    if isinstance(kind, str):
        return f"The targets are {_words(kind)}."
    nodes: dict[str, list[str]] = {}
    for node, name in kind.items():
        nodes.setdefault(name, []).append(node)
    parts = []
    for name, own in nodes.items():
        more = f" and {len(own) - NAMED:,} more" if len(own) > NAMED else ""
        parts.append(f"{_words(name)} ({', '.join(own[:NAMED])}{more})")
    return f"The targets are {'; '.join(parts)}."


def further_scores(run: Run) -> dict[str, str]:
    """Return the titles of the scores of the observation model that a run has."""
    return {name: title for name, title in FURTHER.items() if name in run.record.metrics}


def scores_explained(run: Run) -> str:
    """Return what these scores are."""
    return " ".join(EXPLAINED[name] for name in further_scores(run))


def _words(kind: str) -> str:
    return str(OBSERVATIONS[kind].words or kind) if kind in OBSERVATIONS else kind


LEVELS = (0.1, 0.5)
KINDS = {True: "fits", False: "misfit", None: "untested"}  # CSS classes of the verdict on the fit
UNTESTED = "The fit of the model was not tested."


def verdict(run: Run) -> tuple[str, str, str]:
    """Return the verdict of the fit test: a CSS class, the verdict, and the tests behind it in brackets."""
    tested = run.record.goodness
    words = tested.get("verdict", UNTESTED)
    return KINDS[tested.get("fits")], words[0].upper() + words[1:], f"{tested['tests']}." if "tests" in tested else ""


def answer(run: Run, columns: EdgeTable) -> list[str]:
    """Return sentences: the number of edges, those that are not identifiable, errors.

    Whether there is a graph, and which edges are listed, is in the sentences of the record.
    """
    nodes, error = f"{len(run.record.node_names):,} nodes", edge_error(run)
    edges = "edges between different nodes" if run.edges.index.has_all_pairs else "candidate edges"
    edges += " without direction" if run.record.is_symmetric else ""
    errors = [] if error is None else [f"Mean absolute error of the probabilities against the truth: {error:.4f}."]
    if "exists" in columns:
        between, keep = columns.index.between, run.record.keep
        acting = (
            f"{nodes} and {int(between.sum()):,} {edges}; how often they act was estimated for the "
            f"{int((between & (columns.decides >= keep)).sum()):,} that exist with probability {keep:g} or more."
        )
        return [acting, *errors]
    possible = columns.drawable
    if "identifiable" in columns:
        possible = possible & (columns["identifiable"] != FLAGS.index(""))
    probs = columns["probability"][possible]
    above = {level: int((probs >= level).sum()) for level in LEVELS}
    counts = " and ".join(
        f"{count:,} {'has' if count == 1 else 'have'} a probability of {level:.2f} or more"
        for level, count in above.items()
    )
    said = [f"{nodes} and {len(probs):,} learned {edges}: {counts}."]
    hidden = "identifiable" in columns and columns.index.between & (columns["identifiable"] == FLAGS.index("no"))
    count = int(np.sum(hidden))
    if count:
        edges_are, are = ("edge is", "is") if count == 1 else ("edges are", "are")
        said.append(f"{count:,} {edges_are} not identifiable from the data and {are} not drawn.")
    said += errors
    if "std_error" not in columns:
        later = run.record.preparation and run.edges.index.has_all_pairs
        remedy = "; tacit fit --std-errors 32 adds them" if later else ""
        said.append(f"Standard errors of the probabilities were not computed{remedy}.")
    return said


def edge_error(run: Run) -> float | None:
    """Return the mean absolute error of the identifiable edge probabilities, where the truth is known."""
    metrics = run.record.metrics
    return metrics.get("edge_prob_mae_identifiable", metrics.get("edge_prob_mae"))


MOST_EMBEDDED = 200_000  # edges in the page; of more the most probable, and all are in edges.csv
LONGEST_LIST = 50
SHOWN_FROM, FEWEST_SHOWN = 0.10, 20  # where the slider begins; lower where nothing would be drawn,
SHOWN_AT_LEAST = 0.01  # but not so low that every edge is
SHOWN_SECONDS = 0.05  # of a stage; less is 0.0
MOST_GAINS = 20  # nodes whose gain is shown


def run_content(run: Run, places: Places | None = None) -> dict[str, Any]:
    """Return all that the template says of a run, and under ``data`` what the script draws from."""
    columns, candidates = run.edges.each_once(), not run.edges.index.has_all_pairs
    counted = {"counts": histogram(columns)[0].tolist(), "title": histogram_title(columns)} if candidates else None
    places = run_places(run, columns) if places is None else places
    embedded = columns if len(columns) <= MOST_EMBEDDED else columns.at(np.sort(columns.strongest(MOST_EMBEDDED)))
    situations = _situations(run, embedded)
    # The columns of the table that are known; ``varies`` also shows regimes.
    known = {one.name for one in schema.page_columns() if one.kind == "node" or one.name in columns}
    known |= {"varies"} if situations is not None else set()
    shown = [one.name for one in schema.page_columns() if one.name in known]
    return {
        "record": run.record,
        "verdict": verdict(run),
        "answer": answer(run, columns),
        "edge_error": edge_error(run),
        "leading": leading_edges(run, columns),
        "leading_said": leading_said(columns),
        "findings": findings(run),
        "background": background_options(run),
        "forecasts": forecast_options(run),
        "edges": [page_row(row, shown) for row in strongest_edges(run, ROWS, columns)],
        "columns": shown,
        "headings": headings(columns, shown),
        "explanations": explanations(columns),
        "num_edges": len(columns),
        "num_embedded": len(embedded),
        "listed": candidates,
        "evident": "exists" in columns,
        "node_gains": node_gains(run),
        "stages": stages(run),
        "num_placed": len(places.node),
        "kind": places.kind,
        "threshold": start_threshold(columns),
        "unidentifiable": "identifiable" in columns and not bool((columns.index.between == columns.drawable).all()),
        "loops": not bool(embedded.index.between.all()),
        "curves": [title for _, title, *_ in training_curves(run)],
        "has": {
            "reliability": reliability_points(run) is not None,
            "ranks": bool(rank_shares(run.record.goodness)),
            "coverage": bool(coverage_points(run)),
            "truth": "truth" in columns,
            "intervals": "low" in columns,
            "gains": any("gain" in numbers for numbers in run.record.references.values()),
        },
        "targets_said": targets_said(run),
        "further_scores": further_scores(run),
        "scores_explained": scores_explained(run),
        "scores": {"learned graph": run.record.metrics, **run.record.references},
        "config": json.dumps(shortened(run.record.config), indent=2, ensure_ascii=False),
        "panels": [name for name in ("exists", "probability", "truth", "error") if name in columns],
        "symmetric": run.record.is_symmetric,
        "undirected": "undirected" in columns and bool(columns["undirected"].any()),
        "situations": situations,
        "varies_known": "varies" in columns,
        "data": {
            **_data(run, embedded, places, start_threshold(columns)),
            **({} if situations is None else situations["data"]),
            "histogram": counted,
            "symmetric": run.record.is_symmetric,
            "titles": panel_titles(has_evidence="exists" in columns),
            "possible": {"identifiable": int(columns.drawable.sum()), "all": int(columns.index.between.sum())},
        },
    }


def headings(edges: EdgeTable, shown: list[str]) -> dict[str, str]:
    """Return the headings of the columns of the table."""
    found = {name: schema.column(name).heading for name in shown}
    if "exists" not in edges:
        found |= {name: schema.column(name).plain for name in shown if schema.column(name).plain}
    return found | ({"varies": "by regime"} if "varies" in shown and "varies" not in edges else {})


def explanations(edges: EdgeTable) -> str:
    """Return what the columns of the table mean, in sentences; nothing without evidence."""
    if "exists" not in edges:
        return ""
    known = [one.explained for one in schema.page_columns() if one.name in edges and one.explained]
    return " ".join(known).format(keep=edges.keep)


def start_threshold(columns: EdgeTable) -> float:
    """Return where the slider begins: with evidence at the listed edges, else at 0.1 or so low that some are drawn.

    With evidence it is a round number, 0.5 or more, that parts listed edges from others; 1 where none is listed.
    """
    if "exists" in columns:
        if columns.listed_from is None or columns.listed_from > 1:
            return 1.0
        others = columns.decides[columns.index.between & ~columns.shown].max(initial=0.0)
        above = max(LISTED_FROM, (np.floor(100 * others) + 1) / 100)
        return float(min(above, columns.listed_from))
    probs = np.sort(columns["probability"][columns.drawable])[::-1]
    if not len(probs) or probs[0] >= SHOWN_FROM or probs[0] < SHOWN_AT_LEAST:
        return SHOWN_FROM
    return max(SHOWN_AT_LEAST, float(np.floor(100 * probs[:FEWEST_SHOWN][-1]) / 100))


def node_gains(run: Run) -> list[dict[str, Any]]:
    """Return how much the edges improve the forecast of each node, the largest first, with the width of a bar."""
    found = sorted(run.record.node_gains.items(), key=lambda gain: -gain[1])
    largest = max((abs(share) for _, share in found), default=1.0) or 1.0
    rows = [{"node": node, "share": share, "width": 100 * abs(share) / largest} for node, share in found]
    return rows[:MOST_GAINS]


def stages(run: Run) -> list[dict[str, Any]]:
    """Return the stages that took long enough to be seen, with their share of the time in percent."""
    seconds = run.record.stages
    whole = sum(seconds.values()) or 1.0
    shown = {name: took for name, took in seconds.items() if took >= SHOWN_SECONDS}
    return [{"name": name, "seconds": took, "width": 100 * took / whole} for name, took in shown.items()]


def shortened(config: Any) -> Any:
    """Return a config with long lists cut: thousands of candidates by name would fill the page."""
    if isinstance(config, dict):
        return {key: shortened(value) for key, value in config.items()}
    if isinstance(config, list | tuple) and len(config) > LONGEST_LIST:
        return [*config[:LONGEST_LIST], f"and {len(config) - LONGEST_LIST:,} more, see record.json"]
    return config


def _situations(run: Run, columns: EdgeTable) -> dict[str, Any] | None:
    """Return the content on edges by situation or regime; None if there is none."""
    tables, posterior = situation_tables(run), packed_posterior(run)
    if not tables:
        return None
    return {
        "tables": [
            {"by": one.by, "kind": one.kind, "ordered": one.ordered, "values": value_words(run, one)} for one in tables
        ],
        "own_regimes": has_own_regimes(run),
        "blocks": blocks_shown(run, tables),
        "series": sorted(set(posterior["series"])) if posterior and posterior["series"] else [],
        "posterior": posterior is not None,
        "said": situations_said(run, tables),
        "rows": varying_rows(run, tables),
        "data": {
            "situations": packed_situations(tables, columns),
            "hasOwnRegimes": has_own_regimes(run),
            "posterior": posterior,
        },
    }


def _data(run: Run, columns: EdgeTable, places: Places, threshold: float) -> dict[str, Any]:
    names = run.record.node_names
    points, shares = reliability_points(run), rank_shares(run.record.goodness)
    return {
        "nodes": names,
        "edges": packed_edges(columns),
        "texts": packed_texts(columns),
        "lags": packed_lags(run, columns),
        "background": packed_background(run),
        "forecasts": packed_forecasts(run),
        "threshold": threshold,
        "listedFrom": 1.0 if columns.listed_from is None else min(1.0, columns.listed_from),
        "places": {
            "node": None if len(places.node) == len(names) else places.node.tolist(),
            "x": packed(places.x, FLOATS),
            "y": packed(places.y, FLOATS),
            "kind": places.kind,
            "stretch": places.stretch,
            "sides": label_sides(places).tolist() if len(places.node) <= LABELLED_UP_TO else [],
        },
        "curves": [
            {"title": title, "epochs": epochs, "lines": lines, "optimal": optimal, "best": run.record.best_replica}
            for _, title, epochs, lines, optimal in training_curves(run)
        ],
        "reliability": None if points is None else dict(zip(("learned", "true", "count"), points, strict=True)),
        "ranks": [{"name": name, "shares": values} for name, values in shares.items()],
        "coverage": coverage_points(run),
    }

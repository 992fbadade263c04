"""The content of a report: text and tables for the template, data for the script."""

import json
from typing import Any

import numpy as np

from tacit.edges import LISTED_FROM, EdgeTable, schema
from tacit.records import Run
from tacit.report.background import background_options, packed_background
from tacit.report.embedding import FLOATS, packed, packed_edges, packed_texts
from tacit.report.forecasts import forecast_options, packed_forecasts
from tacit.report.lags import packed_lags
from tacit.report.leading import findings, leading_edges, leading_said
from tacit.report.listed import histogram, histogram_title
from tacit.report.places import Places, label_sides, run_places
from tacit.report.regimes import blocks_shown, has_own_regimes, packed_posterior, situations_said, value_words
from tacit.report.shared import LABELLED_UP_TO, ROWS, panel_titles
from tacit.report.situations import packed_situations, situation_tables, varying_rows
from tacit.report.strongest import page_row, strongest_edges
from tacit.report.target_words import further_scores, scores_explained, targets_said
from tacit.report.training import training_curves
from tacit.report.trust import coverage_points, rank_shares, reliability_points
from tacit.report.words import answer, edge_error, verdict

MOST_EMBEDDED = 200_000  # edges in the page; of more the most probable, and all are in edges.csv
LONGEST_LIST = 50
SHOWN_FROM, FEWEST_SHOWN = 0.10, 20  # where the slider begins; lower where nothing would be drawn,
SHOWN_AT_LEAST = 0.01  # but not so low that every edge is
SHOWN_SECONDS = 0.05  # of a stage; less is 0.0
MOST_GAINS = 20  # nodes whose gain is shown


def run_content(run: Run, places: Places | None = None) -> dict[str, Any]:
    """Return all that the template says of a run, and under ``data`` what the script draws from."""
    columns, candidates = run.edges.each_once(), not run.edges.index.has_all_pairs
    places = run_places(run, columns) if places is None else places
    embedded = _embedded(columns)
    situations = _situations(run, embedded)
    shown = shown_columns(columns, by_situation=situations is not None)
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
        "panels": shown_panels(columns),
        "symmetric": run.record.is_symmetric,
        "undirected": "undirected" in columns and bool(columns["undirected"].any()),
        "situations": situations,
        "varies_known": "varies" in columns,
        "data": {
            **_data(run, embedded, places, start_threshold(columns)),
            **({} if situations is None else situations["data"]),
            "histogram": _histogram(columns) if candidates else None,
            "symmetric": run.record.is_symmetric,
            "titles": panel_titles(has_evidence="exists" in columns),
            "possible": {"identifiable": int(columns.drawable.sum()), "all": int(columns.index.between.sum())},
        },
    }


def shown_columns(edges: EdgeTable, *, by_situation: bool = False) -> list[str]:
    """Return the names of the columns of the table that are known; ``varies`` also shows regimes."""
    by = {"varies"} if by_situation else set()
    return [one.name for one in schema.page_columns() if one.kind == "node" or one.name in edges or one.name in by]


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


def shown_panels(columns: EdgeTable) -> list[str]:
    """Return what the matrices show, in their order."""
    first = [] if "exists" not in columns else ["exists"]
    return [*first, "probability", *(["truth", "error"] if "truth" in columns else [])]


def start_threshold(columns: EdgeTable) -> float:
    """Return where the slider begins: with evidence at the listed edges, else at 0.1 or so low that some are drawn."""
    if "exists" in columns:
        return _above_others(columns)
    probs = np.sort(columns["probability"][columns.drawable])[::-1]
    if not len(probs) or probs[0] >= SHOWN_FROM or probs[0] < SHOWN_AT_LEAST:
        return SHOWN_FROM
    return max(SHOWN_AT_LEAST, float(np.floor(100 * probs[:FEWEST_SHOWN][-1]) / 100))


def _above_others(columns: EdgeTable) -> float:
    """Return a round number, 0.5 or more, that parts listed edges from others; 1 where none is listed."""
    if columns.listed_from is None or columns.listed_from > 1:
        return 1.0
    others = columns.decides[columns.index.between & ~columns.shown].max(initial=0.0)
    above = max(LISTED_FROM, (np.floor(100 * others) + 1) / 100)
    return float(min(above, columns.listed_from))


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


def _embedded(columns: EdgeTable) -> EdgeTable:
    """Return all edges in their order, or of too many the most likely."""
    return columns if len(columns) <= MOST_EMBEDDED else columns.at(np.sort(columns.strongest(MOST_EMBEDDED)))


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
    dense = columns.index.has_all_pairs
    points, shares = reliability_points(run), rank_shares(run.record.goodness)
    return {
        "nodes": names,
        "edges": packed_edges(columns, dense=dense),
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


def _histogram(columns: EdgeTable) -> dict[str, Any]:
    return {"counts": histogram(columns)[0].tolist(), "title": histogram_title(columns)}

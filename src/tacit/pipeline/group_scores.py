"""Scores of each node and of each series, by name."""

from collections.abc import Sequence

from tacit.assessment.evaluation import ForecastScores

Named = dict[str, dict[str, float]]  # score -> name of the node or series -> number


def group_scores(scores: ForecastScores, nodes: Sequence[str], series_names: Sequence[str]) -> dict[str, Named]:
    """Return ``by_node`` and ``by_series``; the latter is empty if series have no names."""
    return {"by_node": _named(scores.by_node, nodes), "by_series": _named(scores.by_series, series_names)}


def _named(scores: dict[str, list[float]], names: Sequence[str]) -> Named:
    # Series at the end that have no pair are not in the scores.
    return {score: dict(zip(names, values, strict=False)) for score, values in scores.items()} if names else {}

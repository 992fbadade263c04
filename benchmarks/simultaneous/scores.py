"""Scores of answers about effects within a step, for one system and for all systems of a kind."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from benchmarks.existence.scores import calibration_error, listed, off_diagonal, ranking
from benchmarks.simultaneous.peers import Answer, Matrix
from benchmarks.simultaneous.systems import Structural

Figures = dict[str, Any]
GRAPHS = ("directed", "undirected", "within", "within_undirected")


def upper(matrix: Matrix) -> np.ndarray:
    """Return one number for each pair of nodes."""
    return np.asarray(matrix[np.triu_indices(len(matrix), 1)])


def vectors(answer: Answer, system: Structural) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return scores and truth of each graph: of ordered pairs with a direction, of pairs without."""
    found = {}
    for name in GRAPHS:
        truth = system.within_graph if name.startswith("within") else system.truth
        scores = getattr(answer, name)
        once = name.endswith("undirected")
        found[name] = (upper(scores), upper(truth | truth.T)) if once else (off_diagonal(scores), off_diagonal(truth))
    return found


def figures(answer: Answer, system: Structural) -> Figures:
    """Return AUROC and AUPR of each graph, and the pairs that are listed at lag 0 with the false ones among them."""
    parts = vectors(answer, system)
    found = {f"{name}_{key}": value for name, part in parts.items() for key, value in ranking(*part).items()}
    scores, truth = parts["within_undirected"]
    chosen = listed(scores) if answer.probabilities else None if answer.listed is None else upper(answer.listed)
    if chosen is not None:
        found |= {"listed": int(chosen.sum()), "false": int((chosen & ~truth).sum())}
    if answer.probabilities:
        edges, there = parts["directed"]
        found |= {"listed_edges": int(listed(edges).sum()), "false_edges": int((listed(edges) & ~there).sum())}
    return found | {"pairs": int(truth.sum()), "edges": int(system.truth.sum())}


def pooled(answers: Sequence[Answer], systems: Sequence[Structural]) -> Figures:
    """Return the calibration error of each graph over all pairs of all systems, for probabilities."""
    if not all(answer.probabilities for answer in answers):
        return {}
    parts = [vectors(*pair) for pair in zip(answers, systems, strict=True)]
    joined = {
        name: [np.concatenate(both) for both in zip(*(one[name] for one in parts), strict=True)] for name in GRAPHS
    }
    return {f"{name}_calibration_error": calibration_error(*both) for name, both in joined.items()}

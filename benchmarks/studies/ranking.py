"""Does a graph's answer put the true edges first? Scores of a ranking of edges, for any method that gives one."""

import torch
from torch import Tensor

from tacit.errors import require
from tacit.shapes import EdgeProbs


def edge_ranking(edge_scores: EdgeProbs, true_graph: EdgeProbs, *, threshold: float | None = 0.5) -> dict[str, float]:
    """Compare numbers that should be higher on true edges with the truth, self-loops left out.

    ``auroc``     chance that a true edge stands above one that is not; ties count half
    ``aupr``      average precision: the mean, over true edges, of the share of true ones among all down to it
    ``f1_top``    F1 of the highest scores, as many as there are true edges
    ``precision``, ``recall``, ``f1``  of the edges above ``threshold``; left out without one, as scores that are no
    probabilities have none

    >>> scores = torch.tensor([[0.9, 0.8], [0.3, 0.9]])
    >>> edge_ranking(scores, torch.tensor([[0.0, 1.0], [0.0, 0.0]]))["auroc"]
    1.0
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    scores, truth = _off_diagonal(edge_scores, true_graph)
    order, labels = scores.cpu().numpy(), truth.cpu().numpy()
    ranking = {
        "auroc": float(roc_auc_score(labels, order)),
        "aupr": float(average_precision_score(labels, order)),
        "f1_top": _f1_top(scores, truth),
    }
    if threshold is None:
        return ranking
    chosen = scores > threshold
    hits = float((chosen & truth).sum())
    return {
        **ranking,
        "precision": hits / max(1.0, float(chosen.sum())),
        "recall": hits / float(truth.sum()),
        "f1": 2 * hits / float(chosen.sum() + truth.sum()),
    }


def _off_diagonal(edge_scores: Tensor, true_graph: Tensor) -> tuple[Tensor, Tensor]:
    require(
        edge_scores.ndim == 2 and edge_scores.shape[0] == edge_scores.shape[1],
        f"edge_scores needs a square matrix, got {tuple(edge_scores.shape)}; pass a number per ordered pair of nodes",
    )
    require(
        true_graph.shape == edge_scores.shape,
        f"true_graph needs the shape of edge_scores, {tuple(edge_scores.shape)}, got {tuple(true_graph.shape)}; "
        "pass the truth for the same nodes",
    )
    require(
        bool(((true_graph == 0) | (true_graph == 1)).all()),
        "true_graph needs 0 or 1 for each edge, got other numbers; say which edges there are",
    )
    away = ~torch.eye(len(edge_scores), dtype=torch.bool, device=edge_scores.device)
    scores, truth = edge_scores.detach()[away].double(), true_graph.to(edge_scores.device)[away] > 0
    require(bool(torch.isfinite(scores).all()), "edge_scores needs finite numbers, got NaN or infinity; check the fit")
    require(
        0 < int(truth.sum()) < len(truth),
        f"true_graph needs at least one edge and one pair without, got {int(truth.sum())} edges of {len(truth)} pairs; "
        "there is nothing to rank",
    )
    return scores, truth


def _f1_top(scores: Tensor, truth: Tensor) -> float:
    """Return the expected share of true edges among the top; where scores tie at the end, as if drawn by lot."""
    count = int(truth.sum())
    last = scores.sort(descending=True).values[count - 1]
    above, tied = scores > last, scores == last
    places = count - int(above.sum())
    hits = (truth & above).sum() + (truth & tied).sum() * places / tied.sum()
    return float(hits) / count

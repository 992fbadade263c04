r"""Scores of the probability that an edge exists: ranking, calibration, log score, and the list of edges.

All take numbers over ordered pairs of different nodes: use :func:`off_diagonal` on matrices, and concatenate the
vectors of several systems for pooled scores.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from sklearn.metrics import average_precision_score, roc_auc_score

BINS = 10
MAY_EXIST = 0.1  # calibration is also scored among the edges that are at least so probable
LIST_FROM, FALSE_DISCOVERY_RATE = 0.5, 0.1
SMALLEST = 1e-6  # probabilities are clipped to [SMALLEST, 1 - SMALLEST] before a logarithm

Probs = Float[np.ndarray, " edge"]
Truth = Bool[np.ndarray, " edge"]


def off_diagonal(matrix: Float[np.ndarray, "node node"]) -> Float[np.ndarray, " edge"]:
    """Return the entries between different nodes, row by row."""
    return matrix[~np.eye(len(matrix), dtype=bool)]


def ranking(scores: Probs, truth: Truth) -> dict[str, float | None]:
    """Return AUROC and AUPR (average precision); None where there is no true edge or nothing but true edges."""
    if truth.all() or not truth.any():
        return {"auroc": None, "aupr": None}
    return {
        "auroc": float(roc_auc_score(truth, scores)),
        "aupr": float(average_precision_score(truth, scores)),
    }


def calibration_bins(exists: Probs, truth: Truth, bins: int = BINS) -> list[dict[str, float]]:
    """Return mean probability, share of true edges and count in bins of (nearly) equal counts."""
    order = np.argsort(exists, kind="stable")
    return [
        {"exists": float(exists[part].mean()), "true": float(truth[part].mean()), "count": len(part)}
        for part in np.array_split(order, bins)
        if len(part)
    ]


def calibration_error(exists: Probs, truth: Truth, bins: int = BINS) -> float | None:
    r"""Return $\sum_b \tfrac{n_b}{n} |\bar p_b - \bar z_b|$ over bins of equal counts; None without any edge.

    >>> round(calibration_error(np.array([0.1, 0.2, 0.7, 0.8]), np.array([False, False, True, True]), bins=2), 3)
    0.2
    """
    found = calibration_bins(exists, truth, bins)
    total = sum(one["count"] for one in found)
    return sum(one["count"] * abs(one["exists"] - one["true"]) for one in found) / total if total else None


def log_score(exists: Probs, truth: Truth) -> float:
    r"""Return the mean of $-\log p$ of what is true; lower is better."""
    clipped = np.clip(exists, SMALLEST, 1 - SMALLEST)
    return float(-np.log(np.where(truth, clipped, 1 - clipped)).mean())


def listed(exists: Probs, rate: float = FALSE_DISCOVERY_RATE) -> Truth:
    """Return the listed edges: ``exists`` at least .5, the longest list whose mean of 1 - ``exists`` is in the rate.

    >>> listed(np.array([0.99, 0.45, 0.6, 0.9, 0.95])).tolist()
    [True, False, False, True, True]
    """
    order = np.argsort(-exists, kind="stable")
    chosen = exists[order]
    expected = np.cumsum(1 - chosen) / np.arange(1, len(chosen) + 1)
    fits = np.flatnonzero((chosen >= LIST_FROM) & (expected <= rate + 1e-12))
    found = np.zeros(len(exists), dtype=bool)
    found[order[: fits[-1] + 1 if len(fits) else 0]] = True
    return found


def list_scores(exists: Probs, truth: Truth, rate: float = FALSE_DISCOVERY_RATE) -> dict[str, int]:
    """Count the listed edges, the false ones among them, and the true edges that there are."""
    chosen = listed(exists, rate)
    return {"listed": int(chosen.sum()), "false": int((chosen & ~truth).sum()), "edges": int(truth.sum())}


def pooled_list(parts: Sequence[dict[str, int]]) -> dict[str, float | None]:
    """Return the false share and the power of all lists together, and the mean false share over systems with a list."""
    total = {key: sum(part[key] for part in parts) for key in ("listed", "false", "edges")}
    shares = [part["false"] / part["listed"] for part in parts if part["listed"]]
    return {
        "false_share": total["false"] / total["listed"] if total["listed"] else None,
        "mean_false_share": float(np.mean(shares)) if shares else None,
        "power": (total["listed"] - total["false"]) / total["edges"] if total["edges"] else None,
        "with_list": len(shares) / len(parts),
    }


def power_at(scores: Probs, truth: Truth, share: float) -> float:
    """Return the largest power of a threshold on the scores whose false share is at most ``share``.

    >>> power_at(np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, True]), 0.3)
    1.0
    >>> power_at(np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, False]), 0.2)
    0.5
    """
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(truth[order])
    false = 1 - hits / np.arange(1, len(hits) + 1)
    last = np.append(scores[order][1:] != scores[order][:-1], True)  # a threshold takes all of a tie
    fits = last & (false <= share)
    return float(hits[fits].max() / truth.sum()) if fits.any() and truth.any() else 0.0


def summary(parts: Sequence[tuple[Probs, Truth]]) -> dict[str, object]:
    """Return the pooled scores of several systems; rankings are means over the systems that have one."""
    exists = np.concatenate([one for one, _ in parts])
    truth = np.concatenate([one for _, one in parts])
    may = exists >= MAY_EXIST
    found = [ranking(*part) for part in parts]
    lists = pooled_list([list_scores(*part) for part in parts])
    means = {}
    for key in ("auroc", "aupr"):
        values = [one[key] for one in found if one[key] is not None]
        means[key] = float(np.mean(np.array(values))) if values else None
    return {
        "systems": len(parts),
        "pairs": len(exists),
        **means,
        "calibration_error": calibration_error(exists, truth),
        "calibration_error_may_exist": calibration_error(exists[may], truth[may]),
        "log_score": log_score(exists, truth),
        "mean_exists": float(exists.mean()),
        **lists,
        "bins": calibration_bins(exists, truth),
    }

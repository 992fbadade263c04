r"""Lasso with stability selection (Meinshausen and Bühlmann 2010; complementary halves: Shah and Samworth 2013).

Each target is regressed on all sources after its own past has been regressed out of both. On random halves of the rows
the lasso path is followed; an edge is selected where a weight of any lag is not 0. The score is the share of halves
that select it. :class:`Recalibration` turns shares into probabilities, fitted on systems of seeds that no test uses.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from benchmarks.existence.design import BLOCKS, Design, Scores, chosen_design
from benchmarks.existence.systems import Values
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LassoCV, lasso_path
from sklearn.model_selection import KFold

PAIRS_OF_HALVES = 25
PENALTIES = np.geomspace(2.0, 1.0, 3)  # times the best penalty by forecasts; best log score of nine ranges up to 16


def stability_selection(series: tuple[Values, ...], centre: bool = False) -> Scores:
    """Return the share of halves that select each edge, averaged over penalties from the best forecast's upwards."""
    design = chosen_design(series, centre)
    scores = np.zeros((design.num_nodes, design.num_nodes))
    for target in range(design.num_nodes):
        others = np.delete(np.arange(design.num_nodes), target)
        scores[target, others] = _selected(design, target, others, np.random.default_rng(target))
    return scores


def _selected(design: Design, target: int, others: np.ndarray, rng: np.random.Generator) -> Float[np.ndarray, " other"]:
    own = np.column_stack([np.ones(len(design.targets)), design.inputs[:, :, target]])
    basis = np.linalg.qr(own)[0]
    left = design.targets[:, target] - basis @ (basis.T @ design.targets[:, target])
    columns = design.inputs[:, :, others].reshape(len(left), -1)  # (row, lag x other)
    columns = columns - basis @ (basis.T @ columns)
    columns /= np.maximum(columns.std(0), 1e-12)
    left /= max(left.std(), 1e-12)
    counts = np.zeros(len(others))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = LassoCV(cv=KFold(BLOCKS), alphas=50, max_iter=5_000, fit_intercept=False).fit(columns, left).alpha_
        for _ in range(PAIRS_OF_HALVES):
            for half in np.array_split(rng.permutation(len(left)), 2):
                part = np.asfortranarray(columns[half])
                path = lasso_path(part, left[half], alphas=best * PENALTIES, precompute=part.T @ part)[1]
                chosen = (path != 0).reshape(design.lags, len(others), -1).any(0)  # (other, penalty)
                counts += chosen.mean(1)
    return counts / (2 * PAIRS_OF_HALVES)


@dataclass(frozen=True)
class Recalibration:
    """A nondecreasing map from scores to probabilities, by isotonic regression on pairs of nodes of known graphs."""

    scores: list[float]
    probs: list[float]

    @classmethod
    def fit(cls, scores: np.ndarray, truth: np.ndarray) -> "Recalibration":
        """Fit the map; a rule of succession keeps its ends off 0 and 1."""
        model = IsotonicRegression(out_of_bounds="clip").fit(scores, truth)
        steps, values = model.X_thresholds_, model.y_thresholds_
        low, high = (1 / (2 + (model.predict(scores) == end).sum()) for end in (values[0], values[-1]))
        return cls(steps.tolist(), np.clip(values, min(low, 0.5), max(1 - high, 0.5)).tolist())

    def __call__(self, scores: Scores) -> Scores:
        """Return the probabilities of scores."""
        return np.asarray(np.interp(scores, self.scores, self.probs))

r"""Fits of one node by quasi-Newton search with scores, and their covariance.

$$J = \sum_n s_n s_n^\top, \qquad H = -\sum_n \nabla^2 \ell_n, \qquad C = (H + P)^{-1} J\, (H + P)^{-1}$$

$s_n$ is the score of row $n$ for all parameters of the fit, and $P$ the precision of their prior. $J^{-1}$ initialises
the quasi-Newton search: in expectation it is the inverse of $H$ if the model is correct, so few steps are needed. $C$
is the sandwich, which is valid even if the noise has another shape than the model's.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tacit.training.gated_fit import GatedFit
from tacit.training.gated_regression import MOST_LOGIT, FlatFit, GatedRegression
from tacit.training.gated_scores import RowLikelihood

STEP = 1e-4  # of finite differences of the gradient, in units of the standard error of each parameter
MOST_STEPS = 200
CLOSE, FAR = 1e-5, 1e-3  # gradient per row: below the first the search ends, above the second it has failed
RIDGE = 1e-8  # relative to each diagonal entry of the information


class ScoredFit:
    """The fit of a node whose probabilities depend on features, from given initial values."""

    def __init__(self, data: GatedRegression, start: GatedFit) -> None:
        self.data, self.flat = data, FlatFit(data, start)
        self.likelihood = RowLikelihood(data, start)
        self.precisions = 1 / self.flat.prior_variances()

    def scores(self, numbers: np.ndarray) -> tuple[Float[Tensor, " row"], Float[Tensor, "row number"]]:
        """Return the log likelihood of each row and its gradient, without the prior."""
        data, flat = self.data, torch.from_numpy(numbers)
        fit = self.flat.unpacked(flat)
        found = self.likelihood(fit, flat[self.flat.slopes.stop :])
        assert data.features is not None
        assert fit.varying is not None
        sent = found.base[:, None].expand(-1, len(data.sent)).clone()
        logits = torch.zeros_like(sent)
        sent[:, fit.gated], logits[:, fit.gated] = found.messages, found.logits
        edges = torch.einsum("nj,jnl->njl", sent, data.sent).flatten(1)
        weights = torch.cat([found.base[:, None] * data.own, edges], 1) @ data._root.mT
        slopes = (logits[:, fit.varying, None] * data.features[:, fit.varying]).flatten(1)
        return found.values, torch.cat([weights, logits[:, self.flat.learned], slopes, found.noise], 1)

    def value_and_gradient(self, numbers: np.ndarray) -> tuple[float, np.ndarray]:
        """Return minus the log posterior divided by the number of rows, and its gradient."""
        values, scores = self.scores(numbers)
        weights, away = self.data.weights, torch.from_numpy(numbers) - self.flat.prior_means()
        total = float(weights @ values - (away.square() * self.precisions).sum() / 2)
        gradient = weights @ scores - away * self.precisions
        rows = float(weights.sum())
        return -total / rows, (-gradient / rows).numpy()

    def outer(self, numbers: np.ndarray) -> Float[Tensor, "number number"]:
        """Return $J$, weighted by the rows."""
        scores = self.scores(numbers)[1]
        return (scores * self.data.weights[:, None]).mT @ scores

    def fit(self) -> GatedFit:
        """Return the local maximum from the initial values."""
        from scipy.optimize import minimize

        information = self.outer(self.flat.first) + torch.diag(self.precisions)
        inverse = safe_inverse(information / self.data.weights.sum()).numpy()
        found = minimize(
            self.value_and_gradient,
            self.flat.first,
            jac=True,
            method="BFGS",
            options={"maxiter": MOST_STEPS, "gtol": CLOSE, "hess_inv0": inverse},
        )
        fit = self.flat.unpacked(torch.from_numpy(found.x))
        fit = replace(fit, logits=fit.logits.clamp(-MOST_LOGIT, MOST_LOGIT))
        if not np.isfinite(found.fun) or np.abs(found.jac).max() > FAR:  # the slower search is more robust
            return self.data.fit(fit if np.isfinite(found.fun) else self.flat.start)
        return replace(fit, log_likelihood=float(self.data.row_log_likelihoods(fit) @ self.data.weights))

    def hessian(self, numbers: np.ndarray) -> Float[Tensor, "number number"]:
        """Return $H + P$, by finite differences of the gradient."""
        rows, start = float(self.data.weights.sum()), self.value_and_gradient(numbers)[1]
        steps = STEP / (self.outer(numbers).diagonal() + self.precisions).clamp_min(1e-12).sqrt().numpy()
        columns = []
        for place, step in enumerate(steps):
            moved = numbers.copy()
            moved[place] += step
            columns.append(torch.from_numpy((self.value_and_gradient(moved)[1] - start) * rows / step))
        found = torch.stack(columns)
        return (found + found.mT) / 2

    def covariance(self) -> Float[Tensor, "number number"]:
        """Return the sandwich covariance at the initial values, which must be a maximum."""
        numbers = self.flat.first
        inverse = safe_inverse(self.hessian(numbers))
        return inverse @ self.outer(numbers) @ inverse

    def edge_covariances(self) -> Float[Tensor, "edge number number"]:
        """Return the covariances of the logit and the slopes of each edge that varies."""
        found, gates, first = self.covariance(), self.flat.gates, self.flat.slopes.start
        varying = self.flat.start.varying
        assert varying is not None
        size = self.flat.sizes[2] // max(1, int(varying.sum()))
        logits = (gates.start + varying[self.flat.learned].nonzero()[:, 0]).tolist()
        parts = []
        for edge, logit in enumerate(logits):
            numbers = [logit, *range(first + edge * size, first + (edge + 1) * size)]
            parts.append(found[numbers][:, numbers])
        return torch.stack(parts)


def safe_inverse(matrix: Float[Tensor, "number number"]) -> Float[Tensor, "number number"]:
    """Invert a matrix that should be positive definite; small or negative eigenvalues are replaced by a floor."""
    scale = matrix.diagonal().clamp_min(torch.finfo(matrix.dtype).tiny).rsqrt()
    sizes, directions = torch.linalg.eigh(matrix * scale[:, None] * scale)
    root = directions * sizes.clamp_min(RIDGE).rsqrt()
    inverse: Tensor = root @ root.mT * scale[:, None] * scale
    return (inverse + inverse.mT) / 2

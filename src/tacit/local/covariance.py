r"""The sandwich covariance of the parameters of one regression.

$$J = \sum_n s_n s_n^\top, \qquad H = -\sum_n \nabla^2 \ell_n, \qquad C = (H + P)^{-1} J\, (H + P)^{-1}$$

$s_n$ is the score of row $n$ for all parameters of the fit, and $P$ the precision of their prior. $C$ is valid even if
the noise has another shape than the model's.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.local.batch import GatedBatch
from tacit.local.gated_fit import GatedFit
from tacit.local.gated_regression import GatedRegression

RIDGE = 1e-8  # relative to each diagonal entry of the information


def logit_errors(data: Sequence[GatedRegression], fits: Sequence[GatedFit], gates: Sequence[int]) -> list[float]:
    """Return the standard error of the logit of one gate of each fit, from the curvature; infinite if there is none."""
    found = []
    for one, fit, gate in zip(data, fits, gates, strict=True):
        batch = GatedBatch([one], [fit], [None])
        curvature = batch.evaluate_effects(batch.with_effects(batch.numbers()), torch.tensor([0]))[2][0]
        place = int(batch.gated_places[1][int(fit.gated[:gate].sum())])
        others = torch.arange(len(curvature)) != place
        between = curvature[others, place]
        left = curvature[place, place] - between @ safe_inverse(curvature[others][:, others]) @ between
        found.append(float(left.rsqrt()) if left > 0 else torch.inf)
    return found


def edge_covariances(data: GatedRegression, fit: GatedFit) -> Float[Tensor, "edge number number"]:
    """Return the covariances of the logit and the slopes of each edge that varies; the fit must be a maximum."""
    assert fit.varying is not None
    batch = GatedBatch([data], [fit], [None])
    numbers, free = batch.numbers(), batch.free[0]
    curvature = batch.evaluate(numbers, torch.tensor([0]))[2][0]
    scores = batch.scores(numbers)[0]
    outer = (scores * data.weights[:, None]).mT @ scores
    inverse = torch.zeros_like(curvature)
    inverse[free[:, None] & free] = safe_inverse(curvature[free][:, free]).flatten()
    covariance = inverse @ outer @ inverse
    parts, size = [], batch.num_features
    for gate in fit.varying[fit.gated].nonzero()[:, 0].tolist():
        own = slice(batch.num_weights + gate * size, batch.num_weights + (gate + 1) * size)
        parts.append(covariance[own, own])
    return torch.stack(parts)


def safe_inverse(matrix: Float[Tensor, "number number"]) -> Float[Tensor, "number number"]:
    """Invert a matrix that should be positive definite; small or negative eigenvalues are replaced by a floor."""
    scale = matrix.diagonal().clamp_min(torch.finfo(matrix.dtype).tiny).rsqrt()
    sizes, directions = torch.linalg.eigh(matrix * scale[:, None] * scale)
    root = directions * sizes.clamp_min(RIDGE).rsqrt()
    inverse: Tensor = root @ root.mT * scale[:, None] * scale
    return (inverse + inverse.mT) / 2

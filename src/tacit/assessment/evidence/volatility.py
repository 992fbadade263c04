r"""Row weights for residuals whose size changes slowly: volatile stretches count less.

Where the noise of two nodes is volatile at the same time, large values of one coincide with large errors of the other,
and plain regressions take this for evidence. The variance of a target's residual $e_t$ is estimated from its
neighbours in time,

$$\hat v_t = \frac{c\, \bar v + \sum_{s \ne t} 2^{-|t - s| / h}\, e_s^2}{c + \sum_{s \ne t} 2^{-|t - s| / h}},$$

for some half-lives $h$; or from the mean of the squared residuals of all other targets in units of their variances, at
the same time and near it, where volatility is common. If the Gaussian log likelihood of the residuals under the best
$\hat v$ exceeds that of one variance by more than the price of the choice, the rows of the target have weights
$1 / \hat v_t$.
"""

import math
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evidence.candidates import Candidates
from tacit.assessment.evidence.columns import Columns
from tacit.assessment.evidence.diagnostics import MOST_NODES, residuals
from tacit.observation import ObservationModel

HALF_LIVES = (4.0, 16.0, 64.0)
PRIOR_ROWS = 2.0  # c
WORTH = math.log(9.0) + math.log(6.0)  # prior odds against changing variances, and the choice of an estimate
FEWEST_ROWS = 100


def with_volatility(
    columns: Columns,
    candidates: Candidates,
    believed: Bool[Tensor, "target candidate"],
    observation: ObservationModel | None = None,
) -> Columns:
    """Return the columns with weights of the rows for targets with changing variances, given their parents.

    Targets of an ``observation`` model whose noise is not added to its output, such as counts, are left out.
    """
    rows, targets = columns.observed.shape
    if rows < FEWEST_ROWS or targets > MOST_NODES or columns.row_weights is not None:
        return columns
    supports = () if observation is None else observation.supports or (observation.support,) * targets
    other = [node for node, support in enumerate(supports) if support != "real"]
    seen = columns.observed.index_fill(1, torch.tensor(other, dtype=torch.long), 0.0)[:, candidates.targets]
    squares = residuals(columns, candidates, believed).square() * seen
    count = seen.sum(0).clamp_min(1.0)
    mean = (squares.sum(0) / count).clamp_min(1e-12)
    best, weights = torch.zeros_like(mean), torch.ones_like(squares)
    share = squares / mean
    others = (share.sum(1, keepdim=True) - share) * seen, (seen.sum(1, keepdim=True) - seen) * seen
    for values, present, itself in ((share, seen, 0.0), (*others, 1.0)):
        for half_life in HALF_LIVES:
            near, mass = (smoothed(one, half_life, columns.series) + itself * one for one in (values, present))
            variance = (PRIOR_ROWS + near) / (PRIOR_ROWS + mass)
            gain = -0.5 * (seen * (variance.log() + share / variance - share)).sum(0) - WORTH - 0.5 * count.log()
            better = gain > best
            weights[:, better] = 1 / variance[:, better]
            best = torch.where(better, gain, best)
    if not (best > 0).any():
        return columns
    weights = torch.where(best > 0, weights * count / (weights * seen).sum(0).clamp_min(1e-12), 1.0)
    every = torch.ones_like(columns.observed)
    every[:, candidates.targets] = weights
    return replace(columns, row_weights=every)


def smoothed(
    values: Float[Tensor, "row target"], half_life: float, series: Tensor | None
) -> Float[Tensor, "row target"]:
    """Return the sums over other rows of the same series, with exponential weights."""
    from scipy.signal import lfilter

    parts = (
        [values]
        if series is None
        else list(torch.split(values, torch.unique_consecutive(series, return_counts=True)[1].tolist()))
    )
    decay, found = 2 ** (-1 / half_life), []
    for part in parts:
        both = np.stack([part.numpy(), part.flip(0).numpy()], 2)  # (row, target, direction)
        before, after = np.moveaxis(lfilter([0, decay], [1, -decay], both, axis=0), 2, 0)
        found.append(torch.from_numpy(before + after[::-1]))
    return torch.cat(found)

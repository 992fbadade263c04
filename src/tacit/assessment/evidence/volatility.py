r"""Row weights for volatile stretches, and working responses of targets that are not Gaussian.

Row weights for residuals whose size changes slowly: volatile stretches count less.

Where the noise of two nodes is volatile at the same time, large values of one coincide with large errors of the other,
and plain regressions take this for evidence. The variance of a target's residual $e_t$ is estimated from its
neighbours in time,

$$\hat v_t = \frac{c\, \bar v + \sum_{s \ne t} 2^{-|t - s| / h}\, e_s^2}{c + \sum_{s \ne t} 2^{-|t - s| / h}},$$

for some half-lives $h$; or from the mean of the squared residuals of all other targets in units of their variances, at
the same time and near it, where volatility is common. If the Gaussian log likelihood of the residuals under the best
$\hat v$ exceeds that of one variance by more than the price of the choice, the rows of the target have weights
$1 / \hat v_t$.

Regressions of targets that are not Gaussian, such as counts: each target is replaced by its working response.

The log likelihood of an observation model is approximately quadratic near the output $\hat f$ of a generalised linear
regression,

$$\log p(y \mid f) \approx \text{const} - \tfrac12 I\, (r - f)^2, \qquad
r = \hat f + \frac{1}{I} \frac{\partial \log p}{\partial f}, \qquad
I = E\Big[\Big(\frac{\partial \log p}{\partial f}\Big)^2\Big],$$

so a regression of $r$ with weights $I$ has the marginal likelihood of the generalised linear model in the Laplace
approximation. $\hat f$ uses the selected parents: for these edges the test is Wald's, for the others the score test.
The variance of $r$ is free: it is 1 for the right model, and larger if gates add variance to the targets, which would
be mistaken for evidence if the variance were fixed.

If the rows of a target have weights $w$ (:mod:`tacit.assessment.evidence.volatility`), its noise is multiplied by
$w^{-1/2}$: the regression is that of $\sqrt w\, y$ on $\sqrt w$ times the columns.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evidence.candidates import DOUBLE, Candidates, Columns
from tacit.assessment.evidence.diagnostics import MOST_NODES, residuals
from tacit.assessment.evidence.products import design
from tacit.data import Pairs
from tacit.local import GatedFit, GatedRegression, fit_gated
from tacit.observation import ObservationModel

HALF_LIVES = (4.0, 16.0, 64.0)
PRIOR_ROWS = 2.0  # c
WORTH = math.log(9.0) + math.log(6.0)  # prior odds against changing variances, and the choice of an estimate
FEWEST_ROWS = 100
FORGOTTEN = 1e-18  # weight of a row that does not count


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
    """Return the sums over other rows of the same series, with exponential weights; in doubling steps."""
    rows = values.mT
    lengths = [len(values)] if series is None else torch.unique_consecutive(series, return_counts=True)[1].tolist()
    found = []
    for part in torch.split(rows, lengths, 1):
        before, after, step = part.clone(), part.clone(), 1  # sums over ``step`` rows, the row itself included
        while step < part.shape[1] and (weight := 2 ** (-step / half_life)) > FORGOTTEN:
            before[:, step:] += weight * before[:, :-step].clone()
            after[:, :-step] += weight * after[:, step:].clone()
            step *= 2
        found.append(before + after - 2 * part)
    return torch.cat(found, 1).mT


MOST_ROWS = 2**18  # of the targets whose regressions are made together, which limits the memory
LEAST_INFORMATION = 1e-6  # relative to its mean: rows with less are uninformative


def with_responses(
    columns: Columns,
    candidates: Candidates,
    believed: Bool[Tensor, "target candidate"],
    pairs: Pairs,
    observation: ObservationModel,
) -> Columns:
    """Return the columns with working responses as targets, and their weights, for targets with one channel."""
    targets, weights = columns.targets.clone(), torch.ones_like(columns.observed)
    for rows in torch.split(torch.arange(len(candidates.targets)), max(1, MOST_ROWS // len(pairs))):
        regressions, scales = list[GatedRegression](), list[Tensor]()
        for row in rows.tolist():
            target = int(candidates.targets[row])
            parents = _parents(columns, candidates, believed[row], row)
            always = candidates.always(columns, torch.tensor([row]))[0].mT
            known = columns.observed[:, target] > 0
            both = torch.cat([always, _intercepts(columns), parents], 1)[known]
            values = pairs.targets[:, target, 0].cpu().to(DOUBLE)[known]
            model = observation.chosen([target]).cpu().double()
            ones = torch.ones_like(values)
            scale = ones if columns.row_weights is None else columns.row_weights[known, target].sqrt()
            no_source = both.new_zeros(0, len(both), 1)
            regressions.append(
                GatedRegression(scale[:, None] * both, no_source, torch.zeros_like(values), scale * values, ones, model)
            )
            scales.append(scale)
        fits = fit_gated(regressions, [one.start() for one in regressions])
        for row, one, fit, scale in zip(rows.tolist(), regressions, fits, scales, strict=True):
            target = int(candidates.targets[row])
            known = columns.observed[:, target] > 0
            responses, information = _responses(one, fit)
            targets[known, target, 0], weights[known, target] = responses / scale, scale.square() * information
    return replace(columns, targets=targets, row_weights=weights)


def _parents(
    columns: Columns, candidates: Candidates, believed: Bool[Tensor, " candidate"], row: int
) -> Float[Tensor, "row column"]:
    """Return the columns of the selected parents of a target."""
    chosen = candidates.sources[row][believed]
    if columns.products:
        return design(columns, int(candidates.targets[row]), chosen)
    parents = columns.sources[:, chosen].flatten(1)
    return parents if candidates.ages is None else parents[:, columns.within(candidates.ages[row][believed]).flatten()]


def _intercepts(columns: Columns) -> Float[Tensor, "row series"]:
    """Return one column per series, if each series has its own intercept."""
    if columns.series is None:
        return columns.shared[:, :0]
    places = torch.unique(columns.series, return_inverse=True)[1]
    return torch.nn.functional.one_hot(places).to(DOUBLE)


@torch.no_grad()
def _responses(data: GatedRegression, fit: GatedFit) -> tuple[Float[Tensor, " row"], Float[Tensor, " row"]]:
    outputs = data.outputs(fit)[..., None, None]
    scores = fit.observation.derivatives(outputs, data.targets[:, None, None]).score
    described = fit.observation.describe(outputs, outputs.new_zeros(len(outputs), 1, 1))
    information = fit.observation.information(described)[:, 0, 0, 0]
    information = torch.maximum(information, LEAST_INFORMATION * information.mean())
    return outputs[:, 0, 0, 0] + scores[:, 0, 0, 0] / information, information / information.mean()

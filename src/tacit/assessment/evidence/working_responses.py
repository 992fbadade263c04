r"""Regressions of targets that are not Gaussian, such as counts: each target is replaced by its working response.

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

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evidence.candidates import Candidates
from tacit.assessment.evidence.columns import DOUBLE, Columns
from tacit.assessment.evidence.products import design
from tacit.data import Pairs
from tacit.observation import ObservationModel
from tacit.training import GatedRegression

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
    for row, target in enumerate(candidates.targets.tolist()):
        parents = _parents(columns, candidates, believed[row], row)
        always = candidates.always(columns, torch.tensor([row]))[0].mT
        known = columns.observed[:, target] > 0
        both = torch.cat([always, _intercepts(columns), parents], 1)[known]
        values = pairs.targets[:, target, 0].cpu().to(DOUBLE)[known]
        model = observation.chosen([target]).cpu().double()
        scale = torch.ones_like(values) if columns.row_weights is None else columns.row_weights[known, target].sqrt()
        responses, information = _responses(scale[:, None] * both, scale * values, model)
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


def _responses(
    both: Float[Tensor, "row column"], values: Float[Tensor, " row"], model: ObservationModel
) -> tuple[Float[Tensor, " row"], Float[Tensor, " row"]]:
    nothing = both.new_zeros(len(both))
    data = GatedRegression(both, both.new_zeros(0, len(both), 1), nothing, values, torch.ones_like(nothing), model)
    fit = data.fit()
    outputs = data.outputs(fit).requires_grad_()
    described = fit.observation.describe(outputs[..., None, None], outputs.new_zeros(len(both), 1, 1))
    total = fit.observation.log_prob(described, values[:, None, None]).sum()
    (scores,) = torch.autograd.grad(total, outputs)
    information = fit.observation.information(described).detach()[:, 0, 0, 0]
    information = torch.maximum(information, LEAST_INFORMATION * information.mean())
    return outputs.detach()[:, 0] + scores[:, 0] / information, information / information.mean()

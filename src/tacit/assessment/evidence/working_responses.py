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
from tacit.local import GatedFit, GatedRegression, fit_gated
from tacit.observation import ObservationModel

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

r"""The effect of each edge if edges may act within a step: of all its lags together, given the selected parents.

$$y_i = \text{always included} + \sum_{j \in S} b_j\, y_j + \sum_{j \in L} w_j^\top x_j + e, \qquad
\text{effect}_{ij} = \pm\, \frac{\mathrm{sd}(b_j\, y_j + w_j^\top x_j)}{\mathrm{sd}(y_i)}$$

$S$ are the parents within the step of the fitted graph, $L$ the selected lagged parents. The sign is that of the
largest coefficient. An edge in neither set is evaluated as an addition to $L$.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evidence.candidates import DOUBLE, Candidates, Columns
from tacit.assessment.evidence.within_scores import TargetColumns

Matrix = Float[Tensor, "node node"]


def within_effects(
    columns: Columns, candidates: Candidates, acyclic: Bool[Tensor, "node node"], believed: Bool[Tensor, "node node"]
) -> Matrix:
    """Return the signed effect of each edge; ``believed`` are lagged parents among the ``candidates``."""
    found = columns.targets.new_zeros(acyclic.shape)
    for place, target in enumerate(candidates.targets.tolist()):
        found[target] = _of_target(columns, candidates.chosen(torch.tensor([place])), acyclic[target], believed[target])
    return found


def _of_target(
    columns: Columns, one: Candidates, acyclic: Bool[Tensor, " node"], believed: Bool[Tensor, " node"]
) -> Float[Tensor, " node"]:
    node, now = int(one.targets[0]), acyclic.nonzero()[:, 0]
    target = TargetColumns.of(columns, one, now)
    products, solved = (part[0] for part in target.given(torch.ones(1, len(now), dtype=DOUBLE)))
    sources, tableau = target.sources, target.tableau(products[None])
    tableau.include(believed[sources][None])
    weights = tableau.coefficients()[0, :, :, 0]  # (source, column)
    kept = weights * tableau.included[0][:, None]
    by_now = solved[:, -1] - solved[:, :-1] @ kept.flatten()
    joined = (
        weights * (tableau.included[0] | ~acyclic[sources])[:, None]
    )  # at lag 0 only, if it is not a selected lagged parent
    total, signs = weights.new_zeros(len(acyclic), len(columns.targets)), weights.new_zeros(len(acyclic))
    total[sources] = torch.einsum("sc,rsc->sr", joined, columns.sources[:, sources])
    total[now] += by_now[:, None] * columns.targets[:, now, 0].mT
    if len(sources):
        linear = joined[:, : columns.num_linear]
        signs[sources] = linear.gather(1, linear.abs().argmax(1, keepdim=True))[:, 0]
    signs[now] = torch.where(by_now.abs() > signs[now].abs(), by_now, signs[now])
    effects = signs.sign() * columns.deviations(total) / columns.target_deviations[node, 0]
    effects[node] = 0.0
    return effects

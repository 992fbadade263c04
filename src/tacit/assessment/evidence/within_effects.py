r"""The effect of each edge where edges may act within a step: of all its lags together, beside the believed parents.

$$y_i = \text{always in} + \sum_{j \in S} b_j\, y_j + \sum_{j \in L} w_j^\top x_j + e, \qquad
\text{effect}_{ij} = \pm\, \frac{\mathrm{sd}(b_j\, y_j + w_j^\top x_j)}{\mathrm{sd}(y_i)}$$

$S$ are the parents within the step of the fitted graph, $L$ the believed lagged parents. The sign is that of the
largest coefficient. An edge in neither set is judged as one that joins $L$.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evidence.candidates import Candidates
from tacit.assessment.evidence.columns import Columns
from tacit.assessment.evidence.tableau import Tableau
from tacit.assessment.evidence.within_scores import residualised

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
    target, now = int(one.targets[0]), acyclic.nonzero()[:, 0]
    known = columns.observed[:, [target, *now.tolist()]].prod(1)
    sources = one.sources[0][one.used[0]]
    gone = ~one.own_columns(columns)[0][one.used[0]].flatten()
    lagged = columns.by_node(sources[None])[0].masked_fill(gone[:, None], 0.0)
    within = columns.targets[:, [*now.tolist(), target], 0].mT
    always = one.always(columns, torch.tensor([0]))[0]
    _, products = residualised(columns, torch.cat([within[:-1], lagged, within[-1:]]), always, known)
    count = len(now)
    inside, cross = products[:count, :count], products[:count, count:]
    solved = torch.linalg.solve(inside, cross) if count else cross
    tableau = Tableau.start((products[count:, count:] - cross.mT @ solved)[None], len(sources), columns.group_size)
    tableau.include(believed[sources][None])
    weights = tableau.coefficients()[0, :, :, 0]  # (source, column)
    kept = weights * tableau.included[0][:, None]
    by_now = solved[:, -1] - solved[:, :-1] @ kept.flatten()
    joined = (
        weights * (tableau.included[0] | ~acyclic[sources])[:, None]
    )  # at lag 0 alone, where it is not believed later
    effects = torch.zeros(len(acyclic), dtype=weights.dtype)
    total, signs = torch.zeros(len(acyclic), len(known), dtype=weights.dtype), torch.zeros_like(effects)
    by_source = torch.unflatten(lagged, 0, (len(sources), columns.group_size))
    total[sources] = torch.einsum("sc,scr->sr", joined, by_source)
    total[now] += by_now[:, None] * within[:-1]
    largest = joined[:, : columns.num_linear]
    signs[sources] = largest.gather(1, largest.abs().argmax(1, keepdim=True))[:, 0]
    stronger = by_now.abs() > signs[now].abs()
    signs[now] = torch.where(stronger, by_now, signs[now])
    spread = columns.deviations(total) / columns.target_deviations[target, 0]
    effects = signs.sign() * spread
    effects[target] = 0.0
    return effects

r"""The smallest effect that counts: a price for regressions that are only nearly right.

A regression with a slightly wrong form of a strong parent, or of a shared driver, leaves a little of its effect over.
Other nodes that move with that parent pick it up, and with many rows this is significant. So an edge is not compared
with no effect at all, but with what a wrong form may leave over. Let $V$ be the residual sum of squares of a target
given its own past and background, $R$ the one given its likely parents and drivers too, and $\Delta_j$ its increase
without source $j$. All others explain $E_j = V - R - \Delta_j$. Of the values that they fit, the columns of $j$ explain
the sum of squares $L_j$, given the own past. The effect of $j$ counts if

$$\Delta_j > \delta (E_j + \kappa L_j), \qquad P(\text{counts}) =
\Phi\bigg(\frac{\log \Delta_j - \log \delta (E_j + \kappa L_j)}{\sqrt{s^2 + 4 R / (n \Delta_j)}}\bigg),$$

with $n$ rows. What a wrong form leaves over is not known, so its share is log-normal with median $\delta$ and standard
deviation $s$ of the logarithm; $4 R / (n \Delta_j)$ is the variance of $\log \Delta_j$. ``exists`` is multiplied by
this probability, or by ``LEAST`` if that is larger. A single parent without drivers has $E_j = L_j = 0$ and always
counts.

Where a finding says that the regressions are wrong, they leave more over: a :class:`Leak` has $\delta$ in multiples of
the smallest effect, $s$ and $\kappa$. Noisy values hide a part of a parent, whatever its form, and a driver is only
known from the nodes that it reaches. What is hidden moves with what is fitted, so a source that says nothing of that
cannot explain it. A wrong form need not: squares are uncorrelated with values, and $\kappa$ is 0. Effects within a step
arrive through nodes that the regressions do not have at that time. A wrong form of a product is wrong for each of its
factors. The numbers were fitted to lists on seeds below 1,000 of benchmarks/robustness (benchmarks/TRIED.md).
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.averaging import cross_products
from tacit.assessment.evidence.candidates import DOUBLE, Candidates, Columns
from tacit.assessment.evidence.products import parent_columns

SMALLEST = 0.02  # delta
TOGETHER = 0.1  # correlation of residuals within a step
LEAST = 0.05  # probability that remains, so that small effects keep their order
TINY = 1e-300
POSSIBLE = 0.02  # candidates with a smaller probability are not in any list


class Leak(NamedTuple):
    """What a wrong form leaves over: its median in smallest effects, and the deviation $s$ of its logarithm.

    ``along``  $\\kappa$: the share of what a source says of the other effects, in shares of these effects themselves
    """

    median: float
    spread: float
    along: float = 0.0


SMALL = Leak(1.0, 0.5)
DRIVEN = Leak(1.0, 0.6, 2.0)
NOISY = Leak(1.0, 0.75, 100.0)
WITHIN_STEP = Leak(5.0, 1.3)
PRODUCTS = Leak(10.0, 0.5)


def counting_probs(
    columns: Columns,
    candidates: Candidates,
    probs: Float[Tensor, "target candidate"],
    *,
    num_drivers: int = 0,
    leak: Leak = SMALL,
    smallest: float = SMALLEST,
    horizon: int = 1,
) -> Float[Tensor, "target candidate"]:
    """Return the probability that the effect of each candidate counts, given those with a probability above 1/2.

    ``num_drivers`` is the number of columns of drivers, the last own ones of each target. Targets with several channels
    use the sum over channels.
    """
    found = torch.ones_like(probs)
    leak = PRODUCTS if columns.products else leak
    smallest *= leak.median
    channels, first = columns.targets.shape[2], columns.own.shape[2] - num_drivers
    without_drivers = replace(columns, own=columns.own[:, :, :first])
    for row, target in enumerate(candidates.targets.tolist()):
        possible = (probs[row] >= POSSIBLE) & candidates.used[row]
        if smallest == 0 or not possible.any() or (num_drivers == 0 and int(possible.sum()) == 1):
            continue
        places = possible.nonzero()[:, 0]
        parents, owners = parent_columns(columns, candidates, row, possible)
        values = torch.cat([parents, columns.own[:, target, first:], columns.targets[:, target]], 1).mT[None]
        owners = torch.nn.functional.pad(owners, (0, num_drivers))  # drivers are always among the others
        weights = columns.weights[:, target][None]
        always = candidates.always(without_drivers, torch.tensor([row]))
        both = columns.without_intercepts(torch.cat([values, always], 1), weights)
        moments = cross_products(both, weights, always.shape[1], channels)[0]
        believed = probs[row, places] >= 0.5
        total = moments.diagonal()[-channels:].sum()
        rows = float(candidates.num_rows(columns, torch.ones(len(weights[0]), dtype=DOUBLE))[row]) / horizon
        for number, place in enumerate(places.tolist()):
            others = believed.clone()
            others[number] = False
            without, chosen, weights_of_others = _fitted(moments, owners, others, channels)
            others[number] = True
            given = _fitted(moments, owners, others, channels)[0]
            explained = (total - without).clamp_min(0.0)
            if leak.along > 0:
                cross = moments[:-channels, :-channels][owners[number]][:, chosen] @ weights_of_others
                inside = moments[:-channels, :-channels][owners[number]][:, owners[number]]
                said = (cross * torch.linalg.lstsq(inside, cross, driver="gelsd").solution).sum()
                explained = explained + leak.along * said
            effect = (without - given).clamp_min(TINY)
            size = effect.log() - (smallest * explained).clamp_min(TINY).log()
            unsure = leak.spread**2 + 4 * given / (rows * effect)
            found[row, place] = torch.special.ndtr(size / unsure.sqrt()).clamp_min(LEAST)
    return found


def beside_others(columns: Columns, left: Float[Tensor, "row target"], targets: Int[Tensor, " target"]) -> Columns:
    """Return the columns with the values of other nodes at the same time, where residuals ``left`` are correlated.

    Where effects are faster than a step, an effect of a grandparent reaches the target through the parent within the
    step. Given the value of the parent at the same time, it has none.
    """
    together = torch.corrcoef(left.mT).nan_to_num().abs() >= TOGETHER
    together.fill_diagonal_(False)
    own = columns.own.new_zeros(*columns.own.shape[:2], int(together.sum(1).max()))
    for row, target in enumerate(targets.tolist()):
        values = columns.targets[:, targets[together[row]], 0]
        own[:, target, : values.shape[1]] = values
    return replace(columns, own=torch.cat([columns.own, own], 2))


def _fitted(
    moments: Float[Tensor, "both both"],
    owners: Bool[Tensor, "candidate column"],
    members: Bool[Tensor, " candidate"],
    channels: int,
) -> tuple[Float[Tensor, ""], Bool[Tensor, " column"], Float[Tensor, "chosen channel"]]:
    """Return the residual sum of squares given some members, their columns and weights.

    A column of several owners needs all of them.
    """
    chosen = ~owners[~members].any(0)
    inside = moments[:-channels, :-channels][chosen][:, chosen]
    cross, total = moments[:-channels, -channels:][chosen], moments.diagonal()[-channels:].sum()
    weights = torch.linalg.lstsq(inside, cross, driver="gelsd").solution
    return (total - (cross * weights).sum()).clamp_min(0.0), chosen, weights

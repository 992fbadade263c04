r"""Edges that act in one part of the table only: a test for one change of the size of an effect.

Given the other parents of a target and its own past, with residuals $e_t$ and $z_t$ the fitted effect of a source
without what the other columns explain of it, the residuals of the first $t$ rows add up to

$$S_t = \sum_{s \le t} z_s e_s, \qquad h_t = \frac{\sum_{s \le t} z_s^2}{\sum_s z_s^2}, \qquad
\Omega_t = \sum_{s \le t} z_s^2 e_s^2.$$

$S$ starts and ends at 0. A constant effect keeps it near 0, and an effect that changes moves it away. The statistic is

$$L = \max_t \frac{S_t^2}{\Omega_t (1 - 2 h_t) + h_t^2 \Omega_n},$$

the score test for a change with the largest value over all rows but the first and the last (Andrews 1993). Its variance
allows noise whose size changes. The tail of its distribution has the price of the search (Estrella 2003). The time of
the change is that of the least squares fit, the maximum of $S_t^2 / (h_t (1 - h_t))$. False discoveries are controlled
over the edges of the table.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.candidates import DOUBLE, Candidates, ColumnForm, build_columns
from tacit.assessment.evidence.products import parent_columns
from tacit.assessment.evidence.volatility import with_volatility
from tacit.data import Pairs
from tacit.observation import ObservationModel
from tacit.predictors import SeriesLayout

RATE = 0.05  # of false discoveries among the changes
FEWEST, SHARE = 50, 0.05  # known rows before and after a change, and their share of the rows and of the information
CLEAR, COMPATIBLE = 3.0, 2.0  # standard errors of an effect that is there, and of one that may be absent
ALMOST_NONE = 0.1  # of the larger effect: what counts as none
ABSENT = 0.4  # and the largest estimate of it
TINY = 1e-300
Sizes = Float[Tensor, "target candidate 2"]


def find_changes(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    listed: Bool[Tensor, "target candidate"],
    believed: Bool[Tensor, "target candidate"],
    form: ColumnForm,
    *,
    horizon: int = 1,
    observation: ObservationModel | None = None,
) -> tuple[Int[Tensor, "target candidate"], Sizes]:
    """Return the first pair after the change of each listed edge, and the sizes of its effect before and after it.

    Only edges that act in one part of the table, or with another sign in each, have a pair; the others have -1. The
    pairs must have times. Sizes are relative to that in the whole table. ``believed`` are the parents of each target.
    """
    assert pairs.times is not None, "pairs of series have times"
    order = pairs.times.argsort(stable=True)
    columns = with_volatility(build_columns(pairs, layout, form), candidates, believed, observation)
    first = torch.full(candidates.sources.shape, -1)
    sizes = torch.full((*first.shape, 2), torch.nan, dtype=DOUBLE)
    places, p_values = list[tuple[int, int]](), list[float]()
    for row in listed.any(1).nonzero()[:, 0].tolist():
        target, chosen = int(candidates.targets[row]), (believed[row] | listed[row]) & candidates.used[row]
        parents, owners = parent_columns(columns, candidates, row, chosen)
        always = candidates.always(columns, torch.tensor([row]))[0].mT
        weights = columns.weights[:, target]
        both = torch.cat([parents, always, columns.targets[:, target, :1]], 1).mT
        both = (columns.without_intercepts(both, weights) * weights.sqrt()).mT[order]
        design, values = both[:, :-1], both[:, -1:]
        fitted = torch.linalg.lstsq(design, values, driver="gelsd").solution
        left, known = (values - design @ fitted)[:, 0], columns.observed[order, target].cumsum(0)
        moments = design.mT @ design
        for number, place in enumerate(chosen.nonzero()[:, 0].tolist()):
            if not listed[row, place]:
                continue
            mine = torch.nn.functional.pad(owners[number], (0, always.shape[1]))
            cross = moments[~mine][:, mine] @ fitted[mine]
            explained = torch.linalg.lstsq(moments[~mine][:, ~mine], cross, driver="gelsd").solution
            effect = (design[:, mine] @ fitted[mine] - design[:, ~mine] @ explained)[:, 0]
            found = _change(effect, left, known, horizon)
            if found is not None:
                p_value, after, sizes[row, place] = found
                first[row, place] = order[after]
                places.append((row, place))
                p_values.append(p_value)
    for place, rejected in zip(places, _rejected(p_values), strict=True):
        if not rejected or sizes[place].isnan().any():
            first[place], sizes[place] = -1, torch.nan
    return first, sizes


def _change(
    effect: Float[Tensor, " row"], left: Float[Tensor, " row"], known: Float[Tensor, " row"], horizon: int
) -> tuple[float, int, Float[Tensor, "2"]] | None:
    """Return the p-value of a change, its first row, and the sizes around it, NaN if both parts support the effect.

    None if the effect or the rows do not suffice.
    """
    products, squares = effect * left, effect.square()
    sums, information, noise = products.cumsum(0), squares.cumsum(0), products.square().cumsum(0)
    if float(noise[-1]) < TINY:
        return None
    share = information / information[-1]
    fewest = max(FEWEST * horizon, SHARE * float(known[-1]))
    inside = (known >= fewest) & (known[-1] - known >= fewest) & (share >= SHARE) & (share <= 1 - SHARE)
    if not inside.any():
        return None
    variance = noise * (1 - 2 * share) + share.square() * noise[-1]
    statistic = float((sums.square() / variance.clamp_min(TINY))[inside].max()) / horizon
    p_value = _tail(statistic, (noise / noise[-1])[inside])
    gains = sums.square() / (share * (1 - share)).clamp_min(TINY)
    last = int(gains.masked_fill(~inside, -1.0).argmax())
    sizes, errors = torch.zeros(2, 2, dtype=DOUBLE)
    for side, part in enumerate((slice(None, last + 1), slice(last + 1, None))):
        total = squares[part].sum()
        sizes[side] = 1 + products[part].sum() / total
        apart = left[part] - (sizes[side] - 1) * effect[part]
        errors[side] = (horizon * (squares[part] * apart.square()).sum()).sqrt() / total
    larger, smaller = int(sizes.abs().argmax()), int(sizes.abs().argmin())
    most, least = sizes.abs()[[larger, smaller]].tolist()
    is_clear = bool((sizes.abs() > CLEAR * errors)[larger])
    absent = least <= ABSENT * most and least - COMPATIBLE * float(errors[smaller]) <= ALMOST_NONE * most
    opposite = least > ABSENT * most and float(sizes.prod()) < 0 and least > CLEAR * float(errors[smaller])
    if not (is_clear and (absent or opposite)):
        sizes = torch.full_like(sizes, torch.nan)
    return p_value, last + 1, sizes


def _tail(statistic: float, shares: Float[Tensor, " row"]) -> float:
    r"""Return the probability that the largest statistic of a constant effect exceeds a value, $k = 1$.

    $$P(L > x) \approx \sqrt{\tfrac{x}{2 \pi}}\, e^{-x/2} \Big(\big(1 - \tfrac1x\big) \Lambda + \tfrac2x\Big), \qquad
    \Lambda = \log \frac{\tau_1 (1 - \tau_0)}{\tau_0 (1 - \tau_1)}$$

    for a search from the share $\tau_0$ of the variance to $\tau_1$.
    """
    if statistic <= 1.0:
        return 1.0
    first, last = shares.clamp(1e-6, 1 - 1e-6)[[0, -1]].tolist()
    length = math.log(last * (1 - first) / (first * (1 - last)))
    bound = (1 - 1 / statistic) * length + 2 / statistic
    return min(1.0, math.sqrt(statistic / (2 * math.pi)) * math.exp(-statistic / 2) * bound)


def _rejected(p_values: list[float]) -> list[bool]:
    """Return which tests are rejected at the false discovery rate ``RATE`` (Benjamini and Hochberg 1995)."""
    found = torch.tensor(p_values, dtype=DOUBLE).sort().values
    limits = RATE * torch.arange(1, len(found) + 1) / max(1, len(found))
    below = found[found <= limits]
    return [bool(len(below)) and p <= float(below.max()) for p in p_values]

r"""Lag profiles: the effect of each lag of a source, given the selected parents.

$$y_{i,t} = \text{own past} + \sum_{j \in M} \sum_l w_{ijl}\, x_{j,t-l} + e, \qquad
  \text{effect}_{ijl} = w_{ijl}\, \frac{\mathrm{sd}(x_{j,t-l})}{\mathrm{sd}(y_i)}$$

$M$ are the selected parents of target $i$ and, if it is not one of them, the edge's own source. Every lag has a column,
independent of the form that the evidence uses. More lags than in that form are included if there are enough rows: a
form with too few lags can show that an edge exists, but an effect at a longer lag appears at the oldest lag of the
form. The dominant lag has the largest absolute effect. Neighbouring lags of a strongly autocorrelated source are hard
to distinguish; the share of resamples in which a lag is dominant measures this uncertainty.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.averaging import Tableau
from tacit.assessment.evidence.batched_regressions import MOST_BYTES
from tacit.assessment.evidence.candidates import (
    DOUBLE,
    Candidates,
    ColumnForm,
    Columns,
    Resamples,
    build_columns,
    num_sent,
)
from tacit.assessment.evidence.forms import LAGS, MOST_ROWS, ROWS_PER_COLUMN
from tacit.assessment.evidence.parent_evidence import RESAMPLES, resampled_weights
from tacit.data import Pairs, resamplable
from tacit.predictors import SeriesLayout
from tacit.shapes import EdgeMask

ROWS_TO_READ_MORE = 20  # rows per column that are required for more lags than in the form
ENOUGH_VALUES = 1e7  # inputs of all nodes: with more, evenly spaced rows are used, at least MOST_ROWS
MOST_VALUES = 5e7  # with more, only the lags of the form are used, without resamples
MOST_WORK = 2e10  # multiplications of the resamples: with more, there are no resamples
NO_LIMIT = 2**31
Profiles = Float[Tensor, "target candidate lag"]


@dataclass(frozen=True, eq=False)
class LagProfiles:
    """The effect of each lag, the newest first; NaN for lags that were not used, or if there are too few rows.

    ``shares``  share of the resamples in which each lag has the largest effect; NaN without resamples
    """

    effects: Profiles
    shares: Profiles


def lag_profiles(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    believed: Bool[Tensor, "target candidate"],
    form: ColumnForm,
    *,
    horizon: int = 1,
    block: int = 1,
    seed: int = 0,
    within: EdgeMask | None = None,
) -> LagProfiles:
    """Return the profile of each candidate over as many lags as the rows of its target allow.

    If nodes send several variables or have several targets, it is the profile of the pair with the largest effect. With
    ``within``, the edges that act within the step, profiles start at lag 0, whose column is $x_{j,t}$.
    """
    if within is not None:
        candidates, form = _with_lag_0(candidates, within), replace(form, squares=False, splines=False)
    newer = int(within is not None)  # columns of lag 0
    step = max(1, min(math.ceil(pairs.inputs.numel() / ENOUGH_VALUES), len(pairs) // MOST_ROWS))
    pairs, block = pairs[::step], max(1, block // step)
    small = pairs.inputs.numel() <= MOST_VALUES
    counts = sorted({form.lags, *((*LAGS, layout.window) if small else ())}, reverse=True)
    counts = [count for count in counts if form.lags <= count <= layout.window]
    weights = torch.ones(1, len(pairs), dtype=DOUBLE)
    if small and resamplable(len(pairs), block, pairs.series):
        weights = torch.cat([weights, resampled_weights(pairs, block, RESAMPLES, seed)])
    effects, shares = (
        torch.full((*candidates.used.shape, counts[0] + newer), torch.nan, dtype=DOUBLE) for _ in range(2)
    )
    left, degree = candidates.used.any(1), candidates.used.sum(1)
    for count in counts:
        if not left.any():
            break
        columns = build_columns(pairs, layout, replace(form, lags=count, decay=0.0, products=False))
        if within is not None:
            sources = torch.cat([columns.sources, columns.targets], 2)
            columns = replace(columns, sources=sources, num_lags=columns.num_lags + 1)
        enough = left & _has_rows(columns, candidates, believed, horizon, more=count > form.lags)
        work = len(pairs) * len(weights) * float((columns.group_size * degree[enough]).double().square().sum())
        rows = weights if work <= MOST_WORK else weights[:1]
        for width in torch.unique(degree[enough]).tolist():
            some = (enough & (degree == width)).nonzero()[:, 0]
            found = _of_targets(columns, candidates.chosen(some), believed[some], rows, num_sent(layout), width)
            for values, one in zip((effects, shares), found, strict=True):
                values[some, :width, : count + newer] = one
        left = left & ~enough
    known = candidates.used[..., None]
    if candidates.ages is not None:
        age = torch.arange(effects.shape[2])
        known = known & (candidates.ages[..., :1] <= age) & (age <= candidates.ages[..., 1:])
    return LagProfiles(*(values.masked_fill(~known, torch.nan) for values in (effects, shares)))


def _with_lag_0(candidates: Candidates, within: EdgeMask) -> Candidates:
    """Return candidates with ages counted from lag 0, which is allowed only for edges within the step."""
    acts = within[candidates.targets[:, None].expand_as(candidates.sources), candidates.sources] & candidates.used
    newest, oldest = torch.zeros_like(candidates.sources), torch.full_like(candidates.sources, NO_LIMIT)
    if candidates.ages is not None:
        newest, oldest = candidates.ages.unbind(-1)
    return replace(candidates, ages=torch.stack([(newest + 1).masked_fill(acts, 0), oldest + 1], -1))


def _has_rows(
    columns: Columns, candidates: Candidates, believed: Bool[Tensor, "target candidate"], horizon: int, *, more: bool
) -> Bool[Tensor, " target"]:
    """Return the targets with enough rows for the regression on their selected parents and one more."""
    parents = torch.minimum(believed.sum(1) + 1, candidates.used.sum(1))
    read = candidates.num_always(columns) + columns.group_size * parents
    rows = candidates.num_rows(columns, torch.ones(len(columns.targets), dtype=DOUBLE)) / horizon
    return rows >= read * (ROWS_TO_READ_MORE if more else ROWS_PER_COLUMN)


def _of_targets(
    columns: Columns,
    candidates: Candidates,
    believed: Bool[Tensor, "target candidate"],
    weights: Resamples,
    sent: int,
    width: int,
) -> tuple[Profiles, Profiles]:
    """Return effects and shares of targets with ``width`` candidates each, in batches."""
    first: Int[Tensor, "target place"] = torch.arange(width).expand(len(believed), -1)
    candidates, believed = candidates.picked(first), believed[:, :width]
    size = width * columns.group_size + columns.targets.shape[2]
    at_once = max(1, int(MOST_BYTES / (8 * size**2 * len(weights))))
    source, target = columns.deviations(columns.sources.permute(1, 2, 0)), columns.target_deviations
    source = source[:, : columns.num_linear]  # (node, column)
    found = []
    for some in torch.split(torch.arange(len(believed)), at_once):
        matrices = candidates.chosen(some).matrices(columns, weights).flatten(0, 1)
        tableau = Tableau.start(matrices, width, columns.group_size)
        tableau.include(believed[some].repeat(len(weights), 1))
        linear = tableau.coefficients()[:, :, : columns.num_linear]
        if columns.series is not None:  # columns are scaled over all rows, effects within series
            scales = source[candidates.sources[some]][..., None] / target[candidates.targets[some]][:, None, None]
            linear = linear * scales.repeat(len(weights), 1, 1, 1)
        by_lag = torch.unflatten(linear, 2, (-1, sent)).flatten(3)
        found.append(torch.unflatten(by_lag.flip(2), 0, (len(weights), -1)))
    return _dominant(torch.cat(found, 1))


def _dominant(found: Float[Tensor, "resample target candidate lag channel"]) -> tuple[Profiles, Profiles]:
    """Return the effects in the channel with the largest one, and how often each lag is dominant in resamples."""
    best = found[0].abs().amax(2).argmax(-1)[None, :, :, None, None]
    effects = found.gather(4, best.expand(*found.shape[:4], 1))[..., 0]
    if len(effects) == 1:
        return effects[0], torch.full_like(effects[0], torch.nan)
    largest = effects[1:].abs().argmax(-1)
    return effects[0], torch.nn.functional.one_hot(largest, effects.shape[-1]).to(effects).mean(0)

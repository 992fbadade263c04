r"""Choice of the column form by the Bayesian information criterion, before edges are evaluated.

For every form the parents of each target are added one by one while the criterion

$$-\tfrac{n}{2} \log \mathrm{RSS}_M - \tfrac{q + k}{2} \log n - |M| \log \tfrac{1 - \pi}{\pi}$$

increases ($q$ always included columns, $k$ columns of the parents, $\pi$ = .1). The form with the largest sum over
targets is used. All forms are compared on the same rows; with many nodes or rows, on a subset of them. Two parents that
act through their product may each have no effect alone, so with products the best of all sets is used instead of the
greedy one. Products are used only if they gain at least ``WORTH`` per row and target: if rows depend on each other, the
criterion overestimates their number, and small gains of many columns are unreliable.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.evidence import products
from tacit.assessment.evidence.candidates import Candidates
from tacit.assessment.evidence.columns import ColumnForm, Columns, ScaledValues, num_sent
from tacit.assessment.evidence.tableau import Tableau
from tacit.data import FEWEST_SERIES, Pairs
from tacit.predictors import SeriesLayout

LAGS = (1, 2, 3, 4, 6, 8, 12)
MOST_TARGETS, MOST_CANDIDATES, MOST_ROWS, MOST_PARENTS = 16, 24, 4000, 12
PRIOR = math.log(9.0)
EXACT = 1e-6  # share of a target's variance below which a residual counts as 0
ROWS_PER_COLUMN = 5  # fewer rows per column are not enough to choose a form
WORTH = 0.025  # gain of the criterion: about 5 % of the residual variance of the other forms


def possible_forms(
    pairs: Pairs, layout: SeriesLayout, candidates: Candidates | None = None, *, background: int | None = None
) -> list[ColumnForm]:
    """Return the forms that the window allows; with limited lags, those with one column per lag and no others.

    ``background`` is the number of known columns before those of a background, from which sources may send deviations.
    They do not send deviations from covariates, or from shared drivers.
    """
    kinds, limited = [(False, False), (True, False)] + [(False, True)] * (num_sent(layout) == 1), False
    counts = {count for count in LAGS if count <= layout.window}
    if candidates is not None and candidates.ages is not None:
        kinds, limited = kinds[:1], True
        counts = {count for count in {*counts, layout.window} if count >= candidates.fewest_lags}
    return [
        ColumnForm(count, mean, squares, offsets, with_products, deviations)
        for deviations in ((None,) if background is None else (None, background))
        for count in sorted(counts)
        for mean in ((False,) if count == 1 or limited else (False, True))
        for squares, with_products in kinds
        for offsets in ((False, True) if _several(pairs) else (False,))
    ]


def simplest_form(pairs: Pairs, candidates: Candidates) -> ColumnForm:
    """Return the form with the newest value only, or with the fewest allowed lags; an intercept per series."""
    return ColumnForm(candidates.fewest_lags, offsets=_several(pairs))


def _several(pairs: Pairs) -> bool:
    return pairs.series is not None and len(torch.unique(pairs.series)) > 1


def choose_form(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    horizon: int = 1,
    row_weights: Float[Tensor, "row node"] | None = None,
    *,
    background: int | None = None,
) -> ColumnForm:
    """Return the form with the largest criterion."""
    return max(
        form_scores(pairs, layout, candidates, horizon, row_weights, background=background), key=lambda one: one[1]
    )[0]


def form_scores(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    horizon: int = 1,
    row_weights: Float[Tensor, "row node"] | None = None,
    *,
    background: int | None = None,
) -> list[tuple[ColumnForm, float]]:
    """Return every possible form and its criterion, in nats; with products, less what they must gain."""
    forms = possible_forms(pairs, layout, candidates, background=background)
    nodes, few = candidates.first_targets(MOST_TARGETS).compact()
    rows = _some(pairs)
    some = pairs[rows]
    weights = None if row_weights is None else row_weights[rows][:, nodes]
    scaled = ScaledValues.of(some, layout, max(form.lags for form in forms), nodes, background or 0)
    least = WORTH * len(few.targets) * len(some) / horizon
    return [
        (form, _criterion(replace(scaled.columns(form), row_weights=weights), few, horizon) - form.products * least)
        for form in forms
    ]


def _some(pairs: Pairs) -> Tensor | slice:
    """Return the pairs for the choice: evenly spaced series if there are many, else evenly spaced rows."""
    step = math.ceil(len(pairs) / MOST_ROWS)
    if step <= 1 or pairs.series is None or len(numbers := torch.unique(pairs.series)) < FEWEST_SERIES * step:
        return slice(None, None, max(1, step))
    return torch.isin(pairs.series, numbers[::step])


def _criterion(columns: Columns, candidates: Candidates, horizon: int) -> float:
    if columns.products:
        return _best_sets(columns, candidates, horizon)
    screened = candidates.screened(columns, MOST_CANDIDATES)
    weights = torch.ones(len(columns.targets), dtype=columns.targets.dtype)
    sizes = screened.sizes(columns)
    tableau = Tableau.start(screened.matrices(columns, weights[None])[0], screened.width, columns.group_size, sizes)
    rows = screened.num_rows(columns, weights) / horizon  # (target,)
    sizes, always = sizes * tableau.residuals.shape[1], screened.num_always(columns)
    least = (EXACT * rows)[:, None]  # otherwise a target without noise would dominate the sum
    score = (-rows / 2)[:, None] * tableau.residuals.clamp_min(least).log()
    total = score.sum() - (always / 2 * rows.log()).sum()
    if bool((rows < ROWS_PER_COLUMN * (always + columns.group_size)).any()):
        return -math.inf
    for _ in range(min(MOST_PARENTS, screened.width)):
        now = tableau.residuals[:, None].clamp_min(least[:, None])
        left = (tableau.residuals[:, None] - tableau.changes()).clamp_min(least[:, None]) / now
        gain = (-rows / 2)[:, None] * left.log().sum(-1) - sizes / 2 * rows.log()[:, None] - PRIOR
        gain = gain.masked_fill(tableau.included | ~screened.used, -math.inf)
        best, group = gain.max(1)
        adds = best > 0
        if not adds.any():
            break
        total = total + best[adds].sum()
        tableau.flip_in(adds, group[adds])
    return float(total)


def _best_sets(columns: Columns, candidates: Candidates, horizon: int) -> float:
    """Return the criterion of the best set of each target, with products."""
    screened = products.screened(columns, candidates)
    weights = torch.ones(len(columns.targets), dtype=columns.targets.dtype)
    rows, always = screened.num_rows(columns, weights) / horizon, screened.num_always(columns)
    if bool((rows < ROWS_PER_COLUMN * (always + columns.group_size)).any()):
        return -math.inf
    matrices = products.product_matrices(columns, screened, weights[None])[0]
    channels, logs = columns.targets.shape[2], rows.log()

    def fit(left: Float[Tensor, "target set channel"]) -> Float[Tensor, "target set"]:
        found: Tensor = (-rows / 2)[:, None] * left.clamp_min((EXACT * rows)[:, None, None]).log().sum(-1)
        return found

    best = products.best_of_sets(matrices, screened.used, fit, channels / 2 * logs, PRIOR)
    return float((best - always / 2 * logs).sum())

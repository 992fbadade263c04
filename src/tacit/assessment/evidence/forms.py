r"""The forms of the columns of each target, by the Bayesian information criterion, before edges are evaluated.

For every form the parents of each target are added one by one while the criterion

$$C = -\tfrac{n}{2} \log \mathrm{RSS}_M - \tfrac{q + k}{2} \log n - |M| \log \tfrac{1 - \pi}{\pi}$$

increases ($q$ always included columns, $k$ columns of the parents, $\pi$ = .1). A form $f$ then has the probability
$p_f e^{C_f} / \sum_g p_g e^{C_g}$ for a target. The prior $p_f$ is the share of the targets that have the form, which
is learned from all targets; all forms together have one more target, so that a form of a single target pays for the
search. The sets of parents of each target are averaged in each of its forms. The common form has the largest sum of
criteria over targets.

All forms are compared on the same rows; with many nodes or rows, on a subset of them. Two parents that act through
their product may each have no effect alone, so with products the best of all sets is used instead of the greedy one.
Products are used only if they gain at least ``WORTH`` per row: if rows depend on each other, the criterion
overestimates their number, and small gains of many columns are unreliable.
"""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.evidence import products
from tacit.assessment.evidence.averaging import Tableau
from tacit.assessment.evidence.candidates import DOUBLE, Candidates, ColumnForm, Columns, ScaledValues, num_sent
from tacit.data import FEWEST_SERIES, Pairs
from tacit.predictors import SeriesLayout

LAGS = (1, 2, 3, 4, 6, 8, 12)
DECAYS = {0.15: 2, 0.3: 3, 0.45: 4, 0.6: 6, 0.75: 12}  # and the lags after which a smoothed value hardly changes
SPLINE_LAGS, SPLINE_DECAYS = (1, 2), (0.3, 0.6)
SPLINE_ROWS = 400  # beyond each of the outer knots are 20 values or more
MOST_TARGETS, MOST_CANDIDATES, MOST_ROWS, MOST_PARENTS = 16, 24, 4000, 12
PRIOR = math.log(9.0)
EXACT = 1e-6  # share of a target's variance below which a residual counts as 0
ROWS_PER_COLUMN = 5  # fewer rows per column are not enough to choose a form
MOST_FORMS, LEAST, ROUNDS = 5, 0.05, 8  # of other forms: the most, the smallest probability, iterations for the prior
WORTH = 0.025  # gain of the criterion: about 5 % of the residual variance of the other forms
Forms = list[tuple[ColumnForm, Float[Tensor, " target"]]]


def possible_forms(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates | None = None,
    *,
    background: int | None = None,
    splines: bool = True,
) -> list[ColumnForm]:
    """Return the forms that the window allows; with limited lags, those with one column per lag and no others.

    ``background`` is the number of known columns before those of a background, from which sources may send deviations.
    They do not send deviations from covariates, or from shared drivers.
    """
    kinds = [(False, False, False), (True, False, False)]  # squares, products, curved
    kinds += [(False, False, True)] * (splines and len(pairs) >= SPLINE_ROWS)
    kinds += [(False, True, False)] * (num_sent(layout) == 1)
    counts = {count for count in LAGS if count <= layout.window}
    smoothed = [(min(count, layout.window), decay) for decay, count in DECAYS.items()] if layout.window > 1 else []
    if candidates is not None and candidates.ages is not None:
        kinds, smoothed = kinds[:1], []
        counts = {count for count in {*counts, layout.window} if count >= candidates.fewest_lags}
    return [
        ColumnForm(count, decay, squares, offsets, with_products, deviations, curved)
        for deviations in ((None,) if background is None else (None, background))
        for count, decay in [(count, 0.0) for count in sorted(counts)] + smoothed
        for squares, with_products, curved in kinds
        if not curved or (decay in SPLINE_DECAYS if decay else count in SPLINE_LAGS)
        for offsets in ((False, True) if _several(pairs) else (False,))
    ]


def simplest_form(pairs: Pairs, candidates: Candidates) -> ColumnForm:
    """Return the form with the newest value only, or with the fewest allowed lags; an intercept per series."""
    return ColumnForm(candidates.fewest_lags, offsets=_several(pairs))


def _several(pairs: Pairs) -> bool:
    return pairs.series is not None and len(torch.unique(pairs.series)) > 1


def choose_forms(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    horizon: int = 1,
    row_weights: Float[Tensor, "row node"] | None = None,
    *,
    background: int | None = None,
    splines: bool = True,
) -> Forms:
    """Return the common form, and then other forms of some targets; each with its probability for each target.

    Without ``splines`` there are only lines, squares and products. Intercepts, and whether backgrounds are added to the
    values, are those of the common form. Products of other forms are left out if there are too many candidates for
    their sets.
    """
    few = candidates.first_targets(MOST_TARGETS)
    scores = form_scores(pairs, layout, few, horizon, row_weights, background=background, splines=splines)
    forms = [form for form, _ in scores]
    of_each = torch.stack([score for _, score in scores])  # (form, target)
    common = forms[int(of_each.sum(1).argmax())]
    if of_each.sum(1).max() == -math.inf:  # too few rows to choose
        return [(common, torch.ones(len(candidates.targets), dtype=DOUBLE))]
    likely = _probabilities(of_each, len(forms)).sum(1).argsort(descending=True)
    few_products = candidates.width <= products.MOST_CANDIDATES or common.products
    others = [
        form
        for form in (forms[place] for place in likely.tolist())
        if form != common
        and (form.offsets, form.deviations) == (common.offsets, common.deviations)
        and (few_products or not form.products)
    ]
    chosen = [common, *others[: MOST_FORMS - 1]]
    if len(candidates.targets) > len(few.targets):
        scores = form_scores(pairs, layout, candidates, horizon, row_weights, background=background, forms=chosen)
    criteria = dict(scores)
    probs = _probabilities(torch.stack([criteria[form] for form in chosen]), len(forms))
    probs = probs.masked_fill(probs < LEAST, 0.0)
    probs = probs / probs.sum(0)
    return [(form, one) for form, one in zip(chosen, probs, strict=True) if form == common or one.any()]


def _probabilities(scores: Float[Tensor, "form target"], count: int) -> Float[Tensor, "form target"]:
    """Return the probability of each form for each target; their prior is learned from all targets."""
    prior = torch.full((len(scores), 1), 1 / count, dtype=DOUBLE)
    for _ in range(ROUNDS):
        probs = torch.softmax(scores + prior.log(), 0)
        prior = (probs.sum(1, keepdim=True) + 1 / count) / (scores.shape[1] + 1)
    return torch.softmax(scores + prior.log(), 0)


def form_scores(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    horizon: int = 1,
    row_weights: Float[Tensor, "row node"] | None = None,
    *,
    background: int | None = None,
    forms: list[ColumnForm] | None = None,
    splines: bool = True,
) -> list[tuple[ColumnForm, Float[Tensor, " target"]]]:
    """Return every form and its criterion for each target, in nats; with products, less what they must gain."""
    if forms is None:
        forms = possible_forms(pairs, layout, candidates, background=background, splines=splines)
    nodes, few = candidates.compact()
    rows = _some(pairs)
    some = pairs[rows]
    weights = None if row_weights is None else row_weights[rows][:, nodes]
    scaled = ScaledValues.of(some, layout, max(form.lags for form in forms), nodes, background or 0)
    least = WORTH * len(some) / horizon
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


def _criterion(columns: Columns, candidates: Candidates, horizon: int) -> Float[Tensor, " target"]:
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
    total = score.sum(1) - always / 2 * rows.log()
    if bool((rows < ROWS_PER_COLUMN * (always + columns.group_size)).any()):
        return torch.full_like(total, -math.inf)
    for _ in range(min(MOST_PARENTS, screened.width)):
        now = tableau.residuals[:, None].clamp_min(least[:, None])
        left = (tableau.residuals[:, None] - tableau.changes()).clamp_min(least[:, None]) / now
        gain = (-rows / 2)[:, None] * left.log().sum(-1) - sizes / 2 * rows.log()[:, None] - PRIOR
        gain = gain.masked_fill(tableau.included | ~screened.used, -math.inf)
        best, group = gain.max(1)
        adds = best > 0
        if not adds.any():
            break
        total[adds] += best[adds]
        tableau.flip_in(adds, group[adds])
    return total


def _best_sets(columns: Columns, candidates: Candidates, horizon: int) -> Float[Tensor, " target"]:
    """Return the criterion of the best set of each target, with products."""
    screened = products.screened(columns, candidates)
    weights = torch.ones(len(columns.targets), dtype=columns.targets.dtype)
    rows, always = screened.num_rows(columns, weights) / horizon, screened.num_always(columns)
    if bool((rows < ROWS_PER_COLUMN * (always + columns.group_size)).any()):
        return torch.full_like(rows, -math.inf)
    matrices = products.product_matrices(columns, screened, weights[None])[0]
    channels, logs = columns.targets.shape[2], rows.log()

    def fit(left: Float[Tensor, "target set channel"]) -> Float[Tensor, "target set"]:
        found: Tensor = (-rows / 2)[:, None] * left.clamp_min((EXACT * rows)[:, None, None]).log().sum(-1)
        return found

    best = products.best_of_sets(matrices, screened.used, fit, channels / 2 * logs, PRIOR)
    return best - always / 2 * logs

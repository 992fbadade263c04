r"""Which columns carry the effect of a source: chosen by the Bayesian information criterion, before any edge is judged.

For every form the parents of each target are added one by one while the criterion

$$-\tfrac{n}{2} \log \mathrm{RSS}_M - \tfrac{q + k}{2} \log n - |M| \log \tfrac{1 - \pi}{\pi}$$

grows ($q$ columns always in, $k$ of the parents, $\pi$ = .1). The form with the largest sum over targets is used. All
forms are compared on the same rows. With many nodes or rows a part of them decides.
"""

import math

import torch

from tacit.data import Pairs
from tacit.evidence.candidates import Candidates
from tacit.evidence.columns import ColumnForm, Columns, build_columns
from tacit.evidence.tableau import Tableau
from tacit.predictors.series import SeriesLayout

LAGS = (1, 2, 3, 4, 6, 8, 12)
MOST_TARGETS, MOST_CANDIDATES, MOST_ROWS, MOST_PARENTS = 16, 24, 4000, 12
PRIOR = math.log(9.0)


def possible_forms(pairs: Pairs, layout: SeriesLayout) -> list[ColumnForm]:
    """Return the forms that the window allows."""
    lags = [count for count in LAGS if count <= layout.window]
    several = pairs.series is not None and len(torch.unique(pairs.series)) > 1
    return [
        ColumnForm(count, mean, squares, offsets)
        for count in lags
        for mean in ((False,) if count == 1 else (False, True))
        for squares in (False, True)
        for offsets in ((False, True) if several else (False,))
    ]


def choose_form(pairs: Pairs, layout: SeriesLayout, candidates: Candidates, horizon: int = 1) -> ColumnForm:
    """Return the form with the largest criterion."""
    forms = possible_forms(pairs, layout)
    few = candidates.first_targets(MOST_TARGETS)
    part = slice(None, None, max(1, math.ceil(len(pairs) / MOST_ROWS)))
    scores = [_criterion(build_columns(pairs, layout, form).rows(part), few, horizon) for form in forms]
    return forms[max(range(len(forms)), key=scores.__getitem__)]


def _criterion(columns: Columns, candidates: Candidates, horizon: int) -> float:
    screened = candidates.screened(columns, MOST_CANDIDATES)
    weights = torch.ones(len(columns.targets), dtype=columns.targets.dtype)
    tableau = Tableau.start(screened.matrices(columns, weights), screened.width, columns.group_size)
    rows = screened.num_rows(columns, weights) / horizon  # (target,)
    size, always = columns.group_size * tableau.residuals.shape[1], columns.num_always
    score = (-rows / 2)[:, None] * tableau.residuals.log()
    total = score.sum() - (always / 2 * rows.log()).sum()
    if bool((rows <= 2 * always).any()):
        return -math.inf
    for _ in range(min(MOST_PARENTS, screened.width)):
        left = (tableau.residuals[:, None] - tableau.changes()).clamp_min(1e-300) / tableau.residuals[:, None]
        gain = (-rows / 2)[:, None] * left.log().sum(-1) - (size / 2 * rows.log())[:, None] - PRIOR
        gain = gain.masked_fill(tableau.included | ~screened.used, -math.inf)
        best, group = gain.max(1)
        adds = best > 0
        if not adds.any():
            break
        total = total + best[adds].sum()
        part = Tableau(tableau.matrices[adds], tableau.included[adds], tableau.group_size)
        part.flip(group[adds])
        tableau.matrices[adds], tableau.included[adds] = part.matrices, part.included
    return float(total)

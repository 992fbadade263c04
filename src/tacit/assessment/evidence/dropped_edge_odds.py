r"""Whether a dropped edge improves the predictions of a fitted model.

With the prediction of the model, the own past of target $i$ and all edges of the model always included, the log odds of
adding candidate $j$ are

$$\log \frac{\pi_j}{1 - \pi_j} + \ell(M \cup \{j\}) - \ell(M),$$

where $\ell$ is the marginal likelihood of :mod:`tacit.assessment.evidence.averaging` and $M$ the edges of the model. A
model that predicts better than the regressions has smaller residuals, so that weaker edges are detectable. Products of
two parents are excluded; squares are included.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evidence.averaging import MarginalLikelihood, conditional_log_odds
from tacit.assessment.evidence.batched_regressions import MOST_BYTES
from tacit.assessment.evidence.candidates import Candidates
from tacit.assessment.evidence.columns import DOUBLE, ColumnForm, Columns, build_columns
from tacit.assessment.evidence.tableau import Tableau
from tacit.data import Pairs
from tacit.predictors import SeriesLayout
from tacit.shapes import PointPrediction


def joining_log_odds(
    pairs: Pairs,
    predicted: PointPrediction,
    layout: SeriesLayout,
    candidates: Candidates,
    included: Bool[Tensor, "target candidate"],
    form: ColumnForm,
    density: float,
    *,
    horizon: int = 1,
) -> Float[Tensor, "target candidate"]:
    """Return the log odds of each candidate given the ``included`` ones and the model's prediction of its target."""
    if form.products:
        form = replace(form, products=False, squares=True)
    columns = build_columns(pairs, layout, form)
    columns = replace(columns, own=torch.cat([columns.own, predicted.cpu().to(DOUBLE)], 2))
    width = candidates.width * columns.group_size + columns.targets.shape[2]
    numbers = torch.split(torch.arange(len(candidates.targets)), max(1, int(MOST_BYTES / (8 * width**2))))
    odds = [_of_targets(columns, candidates.chosen(some), included[some], density, horizon) for some in numbers]
    return torch.cat(odds).masked_fill(~candidates.used, -torch.inf)


def _of_targets(
    columns: Columns, some: Candidates, included: Bool[Tensor, "target candidate"], density: float, horizon: int
) -> Float[Tensor, "target candidate"]:
    weights = torch.ones(1, len(columns.targets), dtype=DOUBLE)
    matrices, sizes = some.matrices(columns, weights)[0], some.sizes(columns)
    tableau = Tableau.start(matrices, some.width, columns.group_size, sizes)
    rows, totals = some.num_rows(columns, weights[0]) / horizon, tableau.residuals.clone()
    tableau.include(included)
    prior = torch.where(some.prior.isnan(), torch.logit(torch.tensor(density, dtype=DOUBLE)), some.prior)
    return conditional_log_odds(tableau, MarginalLikelihood(rows, some.num_always(columns), totals), prior)

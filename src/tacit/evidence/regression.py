r"""Evidence from regressions: every node on its own past and on sets of parents, averaged over sets and resamples.

1. The columns of a source are chosen (:mod:`tacit.evidence.forms`).
2. The prior probability $\pi$ of an edge, one number for all edges without a prior of their own, is learned from all
   targets together: $\pi = (a + \sum_{ij} P_{ij}) / (a + b + E)$ over $E$ candidates, the mean of a Beta$(a, b)$ prior
   that has seen the expected number of edges (empirical Bayes).
3. Model averaging (:mod:`tacit.evidence.averaging`) gives $P_{ij}$ on the data and $B_{ij}$, the mean over resamples
   (Huggins and Miller 2023). $P$ is calibrated where the regressions are the right model and overconfident where they
   are not; $B$ claims no more than new data of the same kind would repeat. The answer is their mean

$$\lambda P + (1 - \lambda) B, \qquad \lambda = \min\Big(1, \frac{\sum_{ij} P_{ij} B_{ij}}{\sum_{ij} P_{ij}^2}\Big)^6,$$

   weighted by how far the resamples repeat what the data say. docs/theory.md has the measurements behind this choice.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.data.resampling import bootstrap_rows, resamplable
from tacit.evidence import diagnostics, products
from tacit.evidence.averaging import MarginalLikelihood, averaged, inclusion_probs
from tacit.evidence.candidates import Candidates
from tacit.evidence.columns import DOUBLE, ColumnForm, Columns, build_columns
from tacit.evidence.forms import choose_form
from tacit.evidence.tableau import Tableau
from tacit.predictors.series import SeriesLayout
from tacit.randomness import generator_for

RESAMPLES = 16
BETA = (1.0, 9.0)
ROUNDS = 4  # of learning the prior probability
AGREEMENT_POWER = 6
MOST_CANDIDATES = 40  # of a target, whose sets are averaged
MOST_BYTES = 256e6  # of the matrices at a time
BELIEVED = 0.5
Probs = Float[Tensor, "target candidate"]
Resamples = Float[Tensor, "resample row"]


@dataclass(frozen=True, eq=False)
class ParentEvidence:
    """What the regressions say of the candidates of each target.

    ``screened``   those whose sets were averaged; of the others each was judged by itself
    ``density``    the prior probability of an edge
    ``resamples``  how many were drawn
    ``agreement``  $\\lambda$
    """

    candidates: Candidates
    probs: Probs
    effects: Probs
    screened: Candidates
    density: float
    form: ColumnForm
    resamples: int
    agreement: float
    notes: tuple[str, ...]


def parent_evidence(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    *,
    seed: int = 0,
    horizon: int = 1,
    block: int = 1,
    density: float | None = None,
    resamples: int = RESAMPLES,
    form: ColumnForm | None = None,
    names: tuple[str, ...] = (),
) -> ParentEvidence:
    """Return the probability that each candidate is a parent, and its effect.

    ``density`` is the prior probability of an edge; it is learned when None. ``block`` neighbouring pairs are resampled
    together. Targets ``horizon`` steps ahead overlap, so that the evidence of so many rows counts as that of one.
    """
    form = choose_form(pairs, layout, candidates, horizon) if form is None else form
    columns = build_columns(pairs, layout, form)
    gains = candidates.single_gains(columns)
    ranks = torch.maximum(gains, products.product_gains(columns, candidates)) if form.products else gains
    most = products.MOST_CANDIDATES if form.products else MOST_CANDIDATES
    places = candidates.best(ranks, min(most, candidates.width))
    screened = candidates.picked(places)
    averaging = _Averaging(columns, screened, horizon, generator_for(seed, "parents"))
    once = torch.ones(1, len(pairs), dtype=DOUBLE)
    prior = BETA[0] / sum(BETA) if density is None else density
    probs = averaging(once, prior)[0]
    for _ in range(0 if density is not None else ROUNDS):
        learned = screened.used & screened.prior.isnan()
        count = int((candidates.used & candidates.prior.isnan()).sum())
        prior = float((BETA[0] + probs[learned].sum()) / (sum(BETA) + count))
        probs = averaging(once, prior)[0]
    effects, agreement = averaging.effects(once[0], probs >= BELIEVED), 1.0
    if not resamplable(len(pairs), block, pairs.series):
        resamples = 0
    if resamples:
        bagged = averaging(resampled_weights(pairs, block, resamples, seed), prior).mean(0)
        agreement = min(1.0, float((probs * bagged).sum() / probs.square().sum().clamp_min(1e-12))) ** AGREEMENT_POWER
        probs = agreement * probs + (1 - agreement) * bagged
    said = diagnostics.notes(
        columns,
        screened,
        probs >= BELIEVED,
        names or tuple(map(str, range(pairs.num_nodes))),
        form=form,
        density=prior,
        agreement=agreement,
        horizon=horizon,
    )
    alone = averaging.alone(candidates, gains, prior)
    return ParentEvidence(
        candidates,
        alone.scatter(1, places, probs),
        torch.zeros_like(alone).scatter(1, places, effects),
        screened,
        prior,
        form,
        resamples,
        agreement,
        said,
    )


def likely_parents(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    form: ColumnForm,
    density: float,
    *,
    seed: int = 0,
    horizon: int = 1,
) -> Probs:
    """Return the probability of each candidate on these pairs alone, columns and prior given: a resample's evidence."""
    columns = build_columns(pairs, layout, form)
    averaging = _Averaging(columns, candidates, horizon, generator_for(seed, "parents"))
    return averaging(torch.ones(1, len(pairs), dtype=DOUBLE), density)[0]


def resampled_weights(pairs: Pairs, block: int, resamples: int, seed: int) -> Resamples:
    """Return how often each pair comes in each resample of blocks, or of whole series."""
    generator = generator_for(seed, "evidence")
    series = None if pairs.series is None else pairs.series.cpu()
    rows = [bootstrap_rows(len(pairs), generator=generator, block=block, series=series) for _ in range(resamples)]
    return torch.stack([torch.bincount(one.cpu(), minlength=len(pairs)) for one in rows]).to(DOUBLE)


@dataclass(frozen=True, eq=False)
class _Averaging:
    columns: Columns
    candidates: Candidates
    horizon: int
    generator: Generator

    def __call__(self, weights: Resamples, density: float) -> Float[Tensor, "resample target candidate"]:
        """Return the inclusion probabilities on each resample, some targets at a time."""
        width = self.candidates.width * self.columns.group_size + self.columns.targets.shape[2]
        width += len(products.pairs_of(self.candidates.width)) * self.columns.products
        at_once = max(1, int(MOST_BYTES / (8 * width**2 * len(weights))))
        targets = len(self.candidates.targets)
        parts = [self.candidates.chosen(slice(first, first + at_once)) for first in range(0, targets, at_once)]
        return torch.cat([self._of(part, weights, density) for part in parts], 1)

    def _of(self, part: Candidates, weights: Resamples, density: float) -> Float[Tensor, "resample target candidate"]:
        """Return the inclusion probabilities of some targets, all resamples in one batch."""
        rows = torch.cat([part.num_rows(self.columns, one) for one in weights]) / self.horizon
        prior = torch.where(part.prior.isnan(), torch.logit(torch.tensor(density, dtype=DOUBLE)), part.prior)
        prior = prior.masked_fill(~part.used, -torch.inf).repeat(len(weights), 1)
        if self.columns.products:
            matrices = torch.cat([products.product_matrices(self.columns, part, one) for one in weights])
            probs = averaged(*products.set_scores(matrices, part.width, rows, self.columns.num_always), prior)
        else:
            matrices = torch.cat([part.matrices(self.columns, one) for one in weights])
            tableau = Tableau.start(matrices, part.width, self.columns.group_size)
            likelihood = MarginalLikelihood(rows, self.columns.num_always, tableau.residuals.clone())
            probs = inclusion_probs(tableau, likelihood, prior, self.generator)
        return probs.view(len(weights), len(part.targets), part.width).masked_fill(~part.used, 0.0)

    def alone(self, candidates: Candidates, gains: Probs, density: float) -> Probs:
        """Return the probability of each candidate as the only one, at most its prior: for those screened out."""
        rows = candidates.num_rows(self.columns, torch.ones(len(self.columns.targets), dtype=DOUBLE)) / self.horizon
        channels = self.columns.targets.shape[2]
        likelihood = MarginalLikelihood(rows, self.columns.num_always, torch.ones(len(rows), channels, dtype=DOUBLE))
        left = (1 - gains)[..., None].expand(*gains.shape, channels)
        size = torch.full_like(gains, self.columns.group_size)
        evidence = likelihood(left, size) - likelihood(torch.ones_like(left), torch.zeros_like(size))
        prior = torch.where(candidates.prior.isnan(), torch.tensor(density, dtype=DOUBLE), candidates.prior.sigmoid())
        return torch.sigmoid(evidence.clamp_max(0.0) + torch.logit(prior)).masked_fill(~candidates.used, 0.0)

    def effects(self, weights: Float[Tensor, " row"], believed: Bool[Tensor, "target candidate"]) -> Probs:
        """Return the signed effect of each candidate beside those that are believed."""
        if self.columns.products:
            return products.effects(self.columns, self.candidates, weights, believed)
        return torch.stack([self._effects(weights, believed[row], row) for row in range(len(believed))])

    def _effects(
        self, weights: Float[Tensor, " row"], believed: Bool[Tensor, " candidate"], row: int
    ) -> Float[Tensor, " candidate"]:
        one = self.candidates.chosen(slice(row, row + 1))
        tableau = Tableau.start(one.matrices(self.columns, weights), one.width, self.columns.group_size)
        for group in believed.nonzero()[:, 0]:
            tableau.flip(group[None])
        coefficients = tableau.coefficients()[0]  # (candidate, column, channel)
        values = self.columns.sources[:, one.sources[0]]  # (row, candidate, column)
        values = values - values.mean(0)
        moments = torch.einsum("tca,tcb->cab", values, values) / len(values)
        size = torch.einsum("cao,cab,cbo->co", coefficients, moments, coefficients).clamp_min(0).sqrt()
        channel = size.argmax(1)  # the one that the source moves most
        of_channel = coefficients[torch.arange(len(size)), :, channel]  # (candidate, column)
        linear = of_channel[:, : self.columns.num_linear]  # a square has no sign
        sign = linear.gather(1, linear.abs().argmax(1, keepdim=True))[:, 0].sign()
        return (sign * size.amax(1)).masked_fill(~one.used[0], 0.0)

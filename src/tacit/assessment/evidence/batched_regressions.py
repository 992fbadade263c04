r"""The regressions of all targets on all resamples, in batches, and the odds of dropped edges.

The regressions of all targets on all resamples, in batches of targets: probabilities and effects.

Whether a dropped edge improves the predictions of a fitted model.

With the prediction of the model, the own past of target $i$ and all edges of the model always included, the log odds of
adding candidate $j$ are

$$\log \frac{\pi_j}{1 - \pi_j} + \ell(M \cup \{j\}) - \ell(M),$$

where $\ell$ is the marginal likelihood of :mod:`tacit.assessment.evidence.averaging` and $M$ the edges of the model. A
model that predicts better than the regressions has smaller residuals, so that weaker edges are detectable. Products of
two parents are excluded; squares are included.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from tacit.assessment.evidence import products
from tacit.assessment.evidence.averaging import (
    MOST_ENUMERATED,
    MarginalLikelihood,
    Matrices,
    Tableau,
    averaged,
    conditional_log_odds,
    enumerate_sets,
    inclusion_probs,
)
from tacit.assessment.evidence.candidates import (
    DOUBLE,
    Candidates,
    ColumnForm,
    Columns,
    Resamples,
    build_columns,
    similarities,
)
from tacit.data import Pairs
from tacit.predictors import SeriesLayout
from tacit.shapes import PointPrediction

MOST_BYTES = 256e6  # of matrices at a time
CACHED_BYTES = 24e6  # above this size, batches that fit into the cache are faster
NODES_AT_ONCE = 256
MOST_KEPT = 1e9  # bytes of matrices that are stored for another prior; more are computed again
Probs = Float[Tensor, "target candidate"]
Groups = Bool[Tensor, "target candidate"]
BagProbs = Float[Tensor, "resample target candidate"]


@dataclass(frozen=True, eq=False)
class Regressions:
    """The columns and candidates of all regressions; ``horizon`` rows count as one."""

    columns: Columns
    candidates: Candidates
    horizon: int
    generator: Generator

    def on(self, weights: Resamples, *, keep: bool = False) -> "Resampled":
        """Return the regressions on some resamples; ``keep`` stores the parts that do not depend on the prior."""
        return Resampled(self, weights, keep)

    def alone(self, candidates: Candidates, gains: Probs, density: float) -> Probs:
        """Return the probability of each candidate as the only one, at most its prior; for candidates screened out."""
        rows = candidates.num_rows(self.columns, torch.ones(len(self.columns.targets), dtype=DOUBLE)) / self.horizon
        channels = self.columns.targets.shape[2]
        likelihood = MarginalLikelihood(
            rows, candidates.num_always(self.columns), torch.ones(len(rows), channels, dtype=DOUBLE)
        )
        left = (1 - gains)[..., None].expand(*gains.shape, channels)
        sizes = candidates.sizes(self.columns)
        evidence = likelihood(left, sizes) - likelihood(torch.ones_like(left), torch.zeros_like(sizes))
        prior = torch.where(candidates.prior.isnan(), torch.tensor(density, dtype=DOUBLE), candidates.prior.sigmoid())
        return torch.sigmoid(evidence.clamp_max(0.0) + torch.logit(prior)).masked_fill(~candidates.used, 0.0)


@dataclass(frozen=True, eq=False)
class Resampled:
    """The regressions on some resamples, which are given as row weights."""

    regressions: Regressions
    weights: Resamples
    keep: bool

    def probs(self, density: float) -> BagProbs:
        """Return the inclusion probabilities on each resample."""
        return torch.cat([part.probs(density, self.regressions.generator) for part in self._parts], 1)

    def any_of(self, density: float, groups: Groups) -> Float[Tensor, "resample target"]:
        """Return the probability on each resample that any of a group of candidates of each target is a parent."""
        parts = list(self._parts)
        some = torch.split(groups, [len(part.candidates.targets) for part in parts])
        generator = self.regressions.generator
        found = [part.probs(density, generator, one)[..., 0] for part, one in zip(parts, some, strict=True)]
        return torch.cat(found, 1)

    def similarities(self) -> Float[Tensor, "target candidate candidate"]:
        """Return how close the columns of the candidates of each target are, on the first resample."""
        return torch.cat([part.similarities() for part in self._parts])

    def effects(self, believed: Bool[Tensor, "target candidate"]) -> Probs:
        """Return the signed effect of each candidate given the selected ones, on the first resample."""
        columns, candidates = self.regressions.columns, self.regressions.candidates
        if columns.products:
            return products.effects(columns, candidates, self.weights[0], believed)
        sizes = [len(part.candidates.targets) for part in self._parts]
        moments = _moments(columns)
        of_parts = zip(self._parts, torch.split(believed, sizes), strict=True)
        return torch.cat([part.effects(some, moments) for part, some in of_parts])

    @property
    def _parts(self) -> "Iterable[_Part]":
        return self._kept if self.keep else self._new()

    @cached_property
    def _kept(self) -> "list[_Part]":
        return list(self._new())

    def _new(self) -> "Iterator[_Part]":
        columns, candidates = self.regressions.columns, self.regressions.candidates
        width = candidates.width * columns.group_size + columns.targets.shape[2]
        width += len(products.pairs_of(candidates.width)) * columns.products
        each, targets = 8 * width**2 * len(self.weights), len(candidates.targets)
        at_once = max(1, int((CACHED_BYTES if each * targets > MOST_BYTES else MOST_BYTES) / each))
        for first in range(0, targets, at_once):
            part = candidates.chosen(slice(first, first + at_once))
            yield _Part(columns, part, self.weights, self.regressions.horizon, self.keep and each * targets < MOST_KEPT)


@dataclass(eq=False)
class _Part:
    """Some targets with all resamples as one batch of chains; the targets of a resample are adjacent."""

    columns: Columns
    candidates: Candidates
    weights: Resamples
    horizon: int
    keep: bool

    def probs(
        self, density: float, generator: Generator, groups: Groups | None = None
    ) -> Float[Tensor, "resample target found"]:
        """Return the inclusion probabilities, or one number: the probability of any of a group of candidates."""
        part, count = self.candidates, len(self.weights)
        prior = torch.where(part.prior.isnan(), torch.logit(torch.tensor(density, dtype=DOUBLE)), part.prior)
        prior = prior.masked_fill(~part.used, -torch.inf).repeat(count, 1)
        group = None if groups is None else groups.repeat(count, 1)
        if self.columns.products or part.width <= MOST_ENUMERATED:
            probs = averaged(*self._scores, prior, group)
        else:
            tableau = self._tableau()
            probs = inclusion_probs(tableau, self._likelihood(tableau), prior, generator, group=group)
        if group is not None:
            return probs.view(count, len(part.targets), 1)
        return probs.view(count, len(part.targets), part.width).masked_fill(~part.used, 0.0)

    def similarities(self) -> Float[Tensor, "target candidate candidate"]:
        part, size = self.candidates, 1 if self.columns.products else self.columns.group_size
        matrices = (self._kept_matrices if self.keep else self._matrices())[: len(part.targets)]
        products = matrices[:, : part.width * size, : part.width * size]
        sizes = torch.ones_like(part.prior) if self.columns.products else part.sizes(self.columns)
        return similarities(products, sizes).masked_fill(~(part.used[:, :, None] & part.used[:, None]), 0.0)

    def effects(
        self, believed: Bool[Tensor, "target candidate"], moments: Float[Tensor, "node column column"]
    ) -> Probs:
        r"""Return $\pm \sqrt{w^\top \Sigma w}$: coefficients $w$ of a source, covariance $\Sigma$ of its columns."""
        tableau = self._tableau()
        tableau.include(believed)
        coefficients = tableau.coefficients()  # (target, candidate, column, channel)
        of_source = moments[self.candidates.sources]
        size = torch.einsum("tcao,tcab,tcbo->tco", coefficients, of_source, coefficients).clamp_min(0).sqrt()
        size = size / self.columns.target_deviations[self.candidates.targets][:, None]
        channel = size.argmax(2, keepdim=True)  # the channel with the largest effect
        linear = coefficients[:, :, : self.columns.num_linear]  # a square has no sign
        linear = linear.gather(3, channel[:, :, None].expand(-1, -1, linear.shape[2], 1))[..., 0]
        sign = linear.gather(2, linear.abs().argmax(2, keepdim=True))[..., 0].sign()
        return (sign * size.amax(2)).masked_fill(~self.candidates.used, 0.0)

    @property
    def _rows(self) -> Float[Tensor, " chain"]:
        return torch.cat([self.candidates.num_rows(self.columns, one) for one in self.weights]) / self.horizon

    @property
    def _always(self) -> Float[Tensor, " chain"]:
        return self.candidates.num_always(self.columns).repeat(len(self.weights))

    def _likelihood(self, tableau: Tableau) -> MarginalLikelihood:
        return MarginalLikelihood(self._rows, self._always, tableau.residuals.clone())

    def _tableau(self) -> Tableau:
        matrices = self._kept_matrices.clone() if self.keep else self._matrices()
        sizes = self.candidates.sizes(self.columns).repeat(len(self.weights), 1)
        return Tableau.start(matrices, self.candidates.width, self.columns.group_size, sizes)

    @cached_property
    def _kept_matrices(self) -> Matrices:
        return self._matrices()

    def _matrices(self) -> Matrices:
        if self.columns.products:
            return products.product_matrices(self.columns, self.candidates, self.weights).flatten(0, 1)
        return self.candidates.matrices(self.columns, self.weights).flatten(0, 1)

    @cached_property
    def _scores(self) -> tuple[Float[Tensor, "set candidate"], Float[Tensor, "chain set"]]:
        """All sets and the log marginal likelihood of each."""
        if not self.columns.products:
            tableau = self._tableau()
            return enumerate_sets(tableau, self._likelihood(tableau))
        return products.set_scores(self._matrices(), self.candidates.width, self._rows, self._always)


def _moments(columns: Columns) -> Float[Tensor, "node column column"]:
    """Return the covariance of the columns of each source."""
    found = []
    for values in torch.split(columns.sources.permute(1, 2, 0), NODES_AT_ONCE):
        rows = values.new_ones(len(values), values.shape[2])
        centred = (
            values - values.mean(2, keepdim=True)
            if columns.series is None
            else columns.without_intercepts(values, rows)
        )
        found.append(centred @ centred.mT / values.shape[2])
    return torch.cat(found)


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

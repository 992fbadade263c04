r"""Evidence from regressions: every node on its own past and on sets of parents, averaged over sets and resamples.

1. The columns of a source are chosen (:mod:`tacit.assessment.evidence.forms`).
2. The prior probability $\pi$ of an edge, common to all edges without an individual prior, is learned from all targets:
   $\pi = (a + \sum_{ij} P_{ij}) / (a + b + E)$ over $E$ candidates, the posterior mean of a Beta$(a, b)$ prior given
   the expected number of edges (empirical Bayes).
3. Model averaging (:mod:`tacit.assessment.evidence.averaging`) gives $P_{ij}$ on the data and $B_{ij}$, the mean over
   resamples (bagged posterior, Huggins and Miller 2023). $P$ is calibrated if the regressions are the right model and
   overconfident if they are not; $B$ is more conservative. The result is their weighted mean

$$\lambda P + (1 - \lambda) B, \qquad \lambda = \min\Big(1, \frac{\sum_{ij} P_{ij} B_{ij}}{\sum_{ij} P_{ij}^2}\Big)^6,$$

   with a weight that measures how well the resamples reproduce the full data. benchmarks/TRIED.md has the measurements
   behind this choice.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence import diagnostics, products
from tacit.assessment.evidence.backgrounds import Backgrounds
from tacit.assessment.evidence.batched_regressions import BagProbs, Probs, Regressions, Resampled
from tacit.assessment.evidence.candidates import Candidates, Resamples
from tacit.assessment.evidence.columns import DOUBLE, ColumnForm, build_columns
from tacit.assessment.evidence.forms import choose_form
from tacit.assessment.evidence.working_responses import with_responses
from tacit.data import Pairs, bootstrap_rows, resamplable
from tacit.observation import ObservationModel
from tacit.predictors import SeriesLayout
from tacit.randomness import generator_for

RESAMPLES = 16
BETA = (1.0, 9.0)
ROUNDS = 4  # iterations for the prior probability
AGREEMENT_POWER = 6
MOST_CANDIDATES = 40  # candidates per target whose sets are averaged
BELIEVED = 0.5


@dataclass(frozen=True, eq=False)
class ParentEvidence:
    """The result of the regressions for the candidates of each target.

    ``screened``   candidates whose sets were averaged; each of the others was evaluated alone
    ``believed``   screened candidates with a probability above 1/2
    ``density``    the prior probability of an edge
    ``resamples``  number of resamples
    ``agreement``  $\\lambda$
    """

    candidates: Candidates
    probs: Probs
    effects: Probs
    screened: Candidates
    believed: Bool[Tensor, "target candidate"]
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
    correlated: str | None = diagnostics.CAUTION,
    observation: ObservationModel | None = None,
    backgrounds: Backgrounds | None = None,
) -> ParentEvidence:
    """Return the probability that each candidate is a parent, and its effect.

    With several ``backgrounds`` of a target, the probabilities are averaged over them by their weights.

    ``density`` is the prior probability of an edge; None to learn it. ``block`` neighbouring pairs are resampled
    together. Targets ``horizon`` steps ahead overlap, so the evidence of ``horizon`` rows counts as that of one.
    Targets that are not Gaussian use working responses (:mod:`tacit.assessment.evidence.working_responses`); effects
    are those of linear regressions.
    """
    others = [] if backgrounds is None else [backgrounds.added_to(pairs, layout, k) for k in range(1, backgrounds.most)]
    if backgrounds is not None:
        pairs, layout = backgrounds.added_to(pairs, layout)
    form = choose_form(pairs, layout, candidates, horizon) if form is None else form
    plain = columns = build_columns(pairs, layout, form)
    if observation is not None:
        columns = with_responses(plain, candidates, torch.zeros_like(candidates.used), pairs, observation)
    gains = candidates.single_gains(columns)
    ranks = torch.maximum(gains, products.product_gains(columns, candidates)) if form.products else gains
    most = products.MOST_CANDIDATES if form.products else MOST_CANDIDATES
    places = candidates.best(ranks, min(most, candidates.width))
    screened = candidates.picked(places)
    regressions = Regressions(columns, screened, horizon, generator_for(seed, "parents"))
    every = torch.ones(1, len(pairs), dtype=DOUBLE)
    once = regressions.on(every, keep=True)
    prior = BETA[0] / sum(BETA) if density is None else density
    probs = once.probs(prior)[0]
    if observation is not None:
        columns = with_responses(plain, screened, probs >= BELIEVED, pairs, observation)
        regressions = replace(regressions, columns=columns)
        once = regressions.on(every, keep=True)
        probs = once.probs(prior)[0]
    mixture = [(torch.ones(len(probs), dtype=DOUBLE), torch.arange(len(probs)), once)]
    if backgrounds is not None and others:
        mixture = [(backgrounds.weights(0), torch.arange(len(probs)), once)]
        for rank, (with_other, wider) in enumerate(others, 1):
            weights = backgrounds.weights(rank)
            rows = (weights > 0).nonzero()[:, 0]
            other = build_columns(with_other, wider, form)
            if observation is not None:
                other = with_responses(other, screened, probs >= BELIEVED, with_other, observation)
            some = replace(regressions, columns=other, candidates=screened.chosen(rows))
            mixture.append((weights[rows], rows, some.on(every, keep=True)))
        probs = _mixed(mixture, prior)
    for _ in range(0 if density is not None else ROUNDS):
        learned = screened.used & screened.prior.isnan()
        count = int((candidates.used & candidates.prior.isnan()).sum())
        prior = float((BETA[0] + probs[learned].sum()) / (sum(BETA) + count))
        probs = _mixed(mixture, prior)
    linear = once if observation is None else replace(regressions, columns=plain).on(every)
    effects, agreement = linear.effects(probs >= BELIEVED), 1.0
    if not resamplable(len(pairs), block, pairs.series):
        resamples = 0
    if resamples:
        resampled = resampled_weights(pairs, block, resamples, seed)
        bagged = _mixed([(one, rows, part.regressions.on(resampled)) for one, rows, part in mixture], prior)
        agreement = min(1.0, float((probs * bagged).sum() / probs.square().sum().clamp_min(1e-12))) ** AGREEMENT_POWER
        probs = agreement * probs + (1 - agreement) * bagged
    said = diagnostics.notes(
        plain,
        screened,
        probs >= BELIEVED,
        names or tuple(map(str, range(pairs.num_nodes))),
        form=form,
        density=prior,
        agreement=agreement,
        horizon=horizon,
        correlated=correlated,
    )
    alone = regressions.alone(candidates, gains, prior)
    return ParentEvidence(
        candidates,
        alone.scatter(1, places, probs),
        torch.zeros_like(alone).scatter(1, places, effects),
        screened,
        probs >= BELIEVED,
        prior,
        form,
        resamples,
        agreement,
        said,
    )


def _mixed(mixture: list[tuple[Float[Tensor, " _"], Int[Tensor, " _"], Resampled]], prior: float) -> Probs:
    """Return the probabilities averaged over backgrounds and resamples; each part has some targets, with weights."""
    total: Probs | None = None
    for weights, rows, part in mixture:
        found = weights[:, None] * part.probs(prior).mean(0)
        total = found if total is None else total.index_add(0, rows, found)
    assert total is not None
    return total


def likely_parents(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    form: ColumnForm,
    density: float,
    *,
    weights: Resamples | None = None,
    seed: int = 0,
    horizon: int = 1,
    observation: ObservationModel | None = None,
    believed: Bool[Tensor, "target candidate"] | None = None,
) -> BagProbs:
    """Return the probability of each candidate on each resample, for given columns and prior.

    ``weights`` is the number of times that each pair occurs in each resample. Working responses of an ``observation``
    model are computed at the ``believed`` parents.
    """
    columns = build_columns(pairs, layout, form)
    if observation is not None:
        none = torch.zeros_like(candidates.used)
        columns = with_responses(columns, candidates, none if believed is None else believed, pairs, observation)
    regressions = Regressions(columns, candidates, horizon, generator_for(seed, "parents"))
    weights = torch.ones(1, len(pairs), dtype=DOUBLE) if weights is None else weights
    return regressions.on(weights).probs(density)


def resampled_weights(pairs: Pairs, block: int, resamples: int, seed: int) -> Resamples:
    """Return how often each pair occurs in each resample of blocks or of whole series."""
    generator = generator_for(seed, "evidence")
    series = None if pairs.series is None else pairs.series.cpu()
    rows = [bootstrap_rows(len(pairs), generator=generator, block=block, series=series) for _ in range(resamples)]
    return torch.stack([torch.bincount(one.cpu(), minlength=len(pairs)) for one in rows]).to(DOUBLE)

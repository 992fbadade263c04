r"""Evidence from regressions: every node on its own past and on sets of parents, averaged over sets and resamples.

1. The forms of the columns of a source are found for each target, with their probabilities
   (:mod:`tacit.assessment.evidence.forms`). Everything below is averaged over them.
2. The prior probability $\pi$ of an edge, common to all edges without an individual prior, is learned from all targets:
   $\pi = (a + \sum_{ij} P_{ij}) / (a + b + E)$ over $E$ candidates, the posterior mean of a Beta$(a, b)$ prior given
   the expected number of edges (empirical Bayes).
3. Model averaging (:mod:`tacit.assessment.evidence.averaging`) gives $P_{ij}$ on the data and $B_{ij}$, the mean over
   resamples (bagged posterior, Huggins and Miller 2023). $P$ is calibrated if the regressions are the right model and
   overconfident if they are not; $B$ is more conservative. The result is their weighted mean

$$\lambda P + (1 - \lambda) B, \qquad \lambda = \min\Big(1, \frac{\sum_{ij} P_{ij} B_{ij}}{\sum_{ij} P_{ij}^2}\Big)^6,$$

   with a weight that measures how well the resamples reproduce the full data. benchmarks/TRIED.md has the measurements
   behind this choice.
4. Copies and near-copies that the data do not distinguish become one group (:mod:`.candidates`).
   A group has the probability of any of its edges, with the same weighted mean; $\lambda$ counts it as one edge.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence import diagnostics, products
from tacit.assessment.evidence.backgrounds import Backgrounds
from tacit.assessment.evidence.batched_regressions import BagProbs, Probs, Regressions, Resampled
from tacit.assessment.evidence.candidates import (
    DOUBLE,
    Candidates,
    ColumnForm,
    Columns,
    Groups,
    Resamples,
    build_columns,
    copies_within_step,
    equal_shares,
    first_members,
    near_copies,
    undecided,
)
from tacit.assessment.evidence.drivers import Drivers, find_drivers
from tacit.assessment.evidence.forms import Forms, choose_forms, simplest_form
from tacit.assessment.evidence.misfit import (
    DRIVEN,
    NOISY,
    SMALL,
    SMALLEST,
    WITHIN_STEP,
    beside_others,
    counting_probs,
)
from tacit.assessment.evidence.result import KEEP
from tacit.assessment.evidence.volatility import with_responses, with_volatility
from tacit.data import Pairs, bootstrap_rows, resamplable
from tacit.observation import ObservationModel
from tacit.predictors import SeriesLayout
from tacit.randomness import generator_for

RESAMPLES = 16
BETA = (1.0, 9.0)
ROUNDS = 4  # iterations for the prior probability
AGREEMENT_POWER = 6
MOST_CANDIDATES = 40  # candidates per target whose sets are averaged
NEGLIGIBLE = 0.002  # weight of a form and a background of a target below which they are left out
BELIEVED = 0.5


@dataclass(frozen=True, eq=False)
class ParentEvidence:
    """The result of the regressions for the candidates of each target.

    ``screened``   candidates whose sets were averaged; each of the others was evaluated alone
    ``groups``     groups of copies among the screened candidates: numbers from 1 on in each row, 0 for the others
    ``either``     the probability of each candidate that any of its group is a parent, NaN without a group
    ``believed``   screened candidates with a probability above 1/2; of a group its first member
    ``density``    the prior probability of an edge
    ``resamples``  number of resamples
    ``agreement``  $\\lambda$
    ``notes``      sentences by the names of the findings, which are constants of ``diagnostics``
    ``form``       the common form of all targets
    ``drivers``    the shared drivers of the nodes, if there are likely any that forecast
    ``search``     the forms, the drivers, however unlikely, and the weights of the rows, for another observation model
    ``any_size``   the probabilities with effects of any size
    """

    candidates: Candidates
    probs: Probs
    effects: Probs
    screened: Candidates
    groups: Groups
    either: Probs
    believed: Bool[Tensor, "target candidate"]
    density: float
    form: ColumnForm
    resamples: int
    agreement: float
    notes: dict[str, str]
    drivers: Drivers | None
    search: tuple[Forms, Drivers | None, Float[Tensor, "row node"] | None]
    any_size: Probs


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
    grouped: bool = True,
    driven: bool = True,
    averaged: bool = True,
    smallest: float = SMALLEST,
    earlier: ParentEvidence | None = None,
) -> ParentEvidence:
    """Return the probability that each candidate is a parent, and its effect.

    With several ``backgrounds`` of a target, the probabilities are averaged over them by their weights, and so are its
    forms; ``form`` is that of all targets. ``driven`` allows shared drivers, which are a further background of every
    target.

    ``density`` is the prior probability of an edge; None to learn it. ``block`` neighbouring pairs are resampled
    together. Targets ``horizon`` steps ahead overlap, so the evidence of ``horizon`` rows counts as that of one.
    Targets that are not Gaussian use working responses (:mod:`tacit.assessment.evidence.volatility`); effects
    are those of linear regressions. ``grouped`` allows groups of copies. Without ``averaged``, only the common form
    beside the likeliest background is used. The forms, the drivers and the weights of the rows are those of ``earlier``
    evidence from the same pairs, if it is given.
    """
    beside, covariates = [(torch.ones(len(candidates.targets), dtype=DOUBLE), pairs, layout)], layout.known
    if backgrounds is not None:
        most = backgrounds.most
        beside = [(backgrounds.weights(rank), *backgrounds.added_to(pairs, layout, rank)) for rank in range(most)]
    _, pairs, layout = beside[0]
    none = torch.zeros_like(candidates.used)
    given, driving = None if form is None else [(form, torch.ones(len(candidates.targets), dtype=DOUBLE))], None
    if earlier is not None:
        forms, driving, row_weights = earlier.search
        form = forms[0][0]
    else:
        simple = build_columns(pairs, layout, simplest_form(pairs, candidates))
        row_weights = with_volatility(simple, candidates, none, observation).row_weights
        after = covariates if layout.known > covariates else None
        forms = given or choose_forms(pairs, layout, candidates, horizon, row_weights, background=after)
        form = forms[0][0]
        if driven and horizon == 1 and not (form.decay or form.products):  # a driver imitates noisy values and products
            driving = find_drivers(pairs, layout, candidates, form, row_weights)
    drivers = driving if driving is not None and driving.weight >= BELIEVED else None
    search = forms, driving, row_weights
    if driving is not None:
        weight = driving.weight
        driven_ones = [(weight * share, *driving.added_to(one, its_layout)) for share, one, its_layout in beside]
        others = [((1 - weight) * share, one, its_layout) for share, one, its_layout in beside]
        beside = [*others, *driven_ones] if drivers is None else [*driven_ones, *others]
        _, pairs, layout = beside[0]
        if earlier is None and drivers is not None:  # again, beside the drivers, which curves of sources imitate
            simple = build_columns(pairs, layout, simplest_form(pairs, candidates))
            row_weights = with_volatility(simple, candidates, none, observation).row_weights
            forms = given or choose_forms(pairs, layout, candidates, horizon, row_weights, splines=False)
            form, search = forms[0][0], (forms, driving, row_weights)
    if not averaged:
        every_target = torch.ones(len(candidates.targets), dtype=DOUBLE)
        forms, beside = [(form, every_target)], [(every_target, pairs, layout)]
    plain = build_columns(pairs, layout, form)
    columns = replace(plain, row_weights=row_weights)
    if observation is not None:
        columns = with_responses(columns, candidates, none, pairs, observation)
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
    if observation is not None or row_weights is not None:  # again, given these parents
        columns = _weighted(plain, screened, probs >= BELIEVED, pairs, observation)
        regressions = replace(regressions, columns=columns)
        once = regressions.on(every, keep=True)
        probs = once.probs(prior)[0]
    believed = probs >= BELIEVED
    mixture, of_forms = [(beside[0][0] * forms[0][1], torch.arange(len(probs)), once)], [(plain, columns)]
    for number, (of_form, in_form) in enumerate(forms):
        for rank, (shares, other, its_layout) in enumerate(beside[number == 0 :]):
            least = 0.0 if number > 0 and rank == 0 else NEGLIGIBLE
            of_targets = (shares * in_form > least).nonzero()[:, 0]
            if len(of_targets):
                its_plain = build_columns(other, its_layout, of_form)
                its_columns = _weighted(its_plain, screened, believed, other, observation, of_targets)
                of_forms += [(its_plain, its_columns)] * (number > 0 and rank == 0)
                some = replace(regressions, columns=its_columns, candidates=screened.chosen(of_targets))
                mixture.append(((shares * in_form)[of_targets], of_targets, some.on(every, keep=True)))
    total = torch.zeros(len(probs), dtype=DOUBLE)
    for shares, of_targets, _ in mixture:
        total.index_add_(0, of_targets, shares)
    mixture = [(shares / total[of_targets], of_targets, part) for shares, of_targets, part in mixture]
    probs = _over_backgrounds(mixture, prior, len(probs))
    for _ in range(0 if density is not None else ROUNDS):
        learned = screened.used & screened.prior.isnan()
        count = int((candidates.used & candidates.prior.isnan()).sum())
        prior = float((BETA[0] + probs[learned].sum()) / (sum(BETA) + count))
        probs = _over_backgrounds(mixture, prior, len(probs))
    resamples = resamples if resamplable(len(pairs), block, pairs.series) else 0
    weights = [every, resampled_weights(pairs, block, resamples, seed)] if resamples else [every]
    both = [probs]
    for resampled_rows in weights[1:]:
        resampled = []
        for shares, of_targets, part in mixture:
            kept = shares > 0
            some = replace(part.regressions, candidates=part.regressions.candidates.chosen(kept))
            resampled.append((shares[kept], of_targets[kept], some.on(resampled_rows)))
        both.append(_over_backgrounds(resampled, prior, len(probs)))
    agreement = _agreement(both)
    mean = _mixed(both, agreement)

    # effects within a step may explain what a driver does not forecast, so both are named, unless the model has them
    named = driving is not None and driving.prob >= BELIEVED and (drivers is not None or correlated is not None)

    # the smallest effect that counts, under each form of a target
    counts = torch.zeros_like(mean)
    within = named and drivers is None
    left = diagnostics.residuals(plain, screened, mean >= BELIEVED) if within else None
    for (of_form, in_form), (_, its_columns) in zip(forms, of_forms, strict=True):
        of_targets = (in_form > 0).nonzero()[:, 0]
        if not len(of_targets):
            continue
        leak, num_drivers = NOISY if of_form.decay else SMALL, 0
        if left is not None:
            its_columns, leak = beside_others(its_columns, left, screened.targets), WITHIN_STEP
        if drivers is not None:
            leak, num_drivers = DRIVEN, drivers.columns.shape[2]
        found = counting_probs(
            its_columns,
            screened.chosen(of_targets),
            mean[of_targets],
            num_drivers=num_drivers,
            leak=leak,
            smallest=smallest,
            horizon=horizon,
        )
        counts[of_targets] += in_form[of_targets, None] * found

    # copies: edges between them cannot be tested, and their edges into another target are one group
    left = None
    if (grouped or correlated is not None) and len(probs) <= diagnostics.MOST_NODES:
        left = diagnostics.residuals(plain, screened, mean >= BELIEVED)
    copied = torch.zeros(pairs.num_nodes, pairs.num_nodes, dtype=torch.bool)
    groups, either = torch.zeros_like(screened.sources), torch.full_like(probs, torch.nan)
    if grouped and left is not None:
        copied = copies_within_step(left, screened.targets, pairs.num_nodes)
        between = copied[screened.targets[:, None], screened.sources]
        priors = torch.where(screened.prior.isnan(), prior, screened.prior.sigmoid())
        both = [torch.where(between, one.minimum(priors), one) for one in both]
        similar = once.similarities()
        groups = near_copies(similar, _mixed(both, agreement))
        of_any = [_of_any(regressions, groups, one, prior, seed) for one in weights]
        groups = undecided(groups, _mixed(both, agreement), _mixed(of_any, agreement), KEEP)
        of_any = [one.masked_fill(groups == 0, torch.nan) for one in of_any]
        both = [equal_shares(one, groups, similar) for one in both] if groups.any() else both
        first, in_group = first_members(groups), groups > 0
        agreement = _agreement(
            [torch.where(first, a, one.masked_fill(in_group, 0.0)) for a, one in zip(of_any, both, strict=True)]
        )
        mean, either = _mixed(both, agreement), _mixed(of_any, agreement)
    any_size, mean = mean, torch.where(groups > 0, mean, mean * counts)
    in_model = torch.where(groups > 0, first_members(groups) & (either >= BELIEVED), both[0] * counts >= BELIEVED)
    effects, alone_in_group = torch.zeros_like(mean), in_model & (groups == 0)  # of a member without the others
    likeliest = torch.stack([in_form for _, in_form in forms]).argmax(0)
    for number, (its_plain, its_columns) in enumerate(of_forms):
        of_targets = (likeliest == number).nonzero()[:, 0]
        its_columns = its_columns if observation is None else its_plain
        linear = replace(regressions, columns=its_columns, candidates=screened.chosen(of_targets)).on(every, keep=True)
        for members, which in ((in_model, groups == 0), (alone_in_group, groups > 0)):
            if which[of_targets].any():
                sizes = linear.effects(members[of_targets])
                effects[of_targets] = torch.where(which[of_targets], sizes, effects[of_targets])
    believed = torch.where(groups > 0, in_model, mean >= BELIEVED)
    smoothing = torch.stack([in_form * (of_form.decay > 0) for of_form, in_form in forms]).sum(0) >= BELIEVED
    measured = diagnostics.may_be_measured(pairs, observation)[screened.targets]
    said = diagnostics.notes(
        plain,
        screened,
        believed,
        names or tuple(map(str, range(pairs.num_nodes))),
        form=form,
        density=prior,
        agreement=agreement,
        horizon=horizon,
        left=left,
        copied=copied,
        groups=groups,
        driven=driving.reached if driving is not None and named else None,
        correlated=correlated if drivers is None else None,
        measured=bool((smoothing & measured).any()),
    )
    alone = regressions.alone(candidates, gains, prior)
    return ParentEvidence(
        candidates,
        alone.scatter(1, places, mean),
        torch.zeros_like(alone).scatter(1, places, effects),
        screened,
        groups,
        torch.full_like(alone, torch.nan).scatter(1, places, either),
        believed,
        prior,
        form,
        resamples,
        agreement,
        said,
        drivers,
        search,
        alone.scatter(1, places, any_size),
    )


def _weighted(
    columns: Columns,
    candidates: Candidates,
    believed: Bool[Tensor, "target candidate"],
    pairs: Pairs,
    observation: ObservationModel | None,
    some: Int[Tensor, " _"] | None = None,
) -> Columns:
    """Return the columns with row weights for targets with changing variances, and with working responses of some."""
    columns = with_volatility(columns, candidates, believed, observation)
    if observation is None:
        return columns
    if some is not None:
        candidates, believed = candidates.chosen(some), believed[some]
    return with_responses(columns, candidates, believed, pairs, observation)


def _over_backgrounds(
    mixture: list[tuple[Float[Tensor, " _"], Int[Tensor, " _"], Resampled]], prior: float, num_targets: int
) -> Probs:
    """Return the probabilities averaged over backgrounds and resamples; each part has some targets, with weights."""
    total = torch.zeros(num_targets, mixture[0][2].regressions.candidates.width, dtype=DOUBLE)
    for weights, of_targets, part in mixture:
        if len(of_targets):
            total.index_add_(0, of_targets, weights[:, None] * part.probs(prior).mean(0))
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
    believed = torch.zeros_like(candidates.used) if believed is None else believed
    columns = _weighted(columns, candidates, believed, pairs, observation)
    regressions = Regressions(columns, candidates, horizon, generator_for(seed, "parents"))
    weights = torch.ones(1, len(pairs), dtype=DOUBLE) if weights is None else weights
    return regressions.on(weights).probs(density)


def resampled_weights(pairs: Pairs, block: int, resamples: int, seed: int) -> Resamples:
    """Return how often each pair occurs in each resample of blocks or of whole series."""
    generator = generator_for(seed, "evidence")
    series = None if pairs.series is None else pairs.series.cpu()
    rows = [bootstrap_rows(len(pairs), generator=generator, block=block, series=series) for _ in range(resamples)]
    return torch.stack([torch.bincount(one.cpu(), minlength=len(pairs)) for one in rows]).to(DOUBLE)


def _agreement(both: list[Probs]) -> float:
    r"""Return $\lambda$ for the probabilities on the data and their mean over resamples, if there are resamples."""
    probs, bagged = both[0], both[-1]
    if len(both) == 1:
        return 1.0
    return min(1.0, float((probs * bagged).sum() / probs.square().sum().clamp_min(1e-12))) ** AGREEMENT_POWER


def _mixed(both: list[Probs], agreement: float) -> Probs:
    return both[0] if len(both) == 1 else agreement * both[0] + (1 - agreement) * both[1]


def _of_any(regressions: Regressions, groups: Groups, weights: Resamples, density: float, seed: int) -> Probs:
    """Return the mean probability over resamples that any candidate of a group is a parent, for each of its members."""
    found = torch.full(groups.shape, torch.nan, dtype=DOUBLE)
    for number in range(1, 1 + int(groups.max())):
        mine = groups == number
        rows = mine.any(1).nonzero()[:, 0]
        some = replace(
            regressions, candidates=regressions.candidates.chosen(rows), generator=generator_for(seed, "groups")
        )
        of_rows = some.on(weights).any_of(density, mine[rows]).mean(0)
        found[rows] = torch.where(mine[rows], of_rows[:, None], found[rows])
    return found

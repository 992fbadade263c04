r"""The score of every set of parents within the step, for each target; lagged parents are selected for each set.

For target $i$ with the set $S$ of parents within the step and the set $L$ of lagged parents the score is

$$s_i(S, L) = -\tfrac{n - q}{2} \log \frac{\mathrm{RSS}_{S, L}}{\mathrm{RSS}_\emptyset} - \tfrac{|S| + k |L|}{2}
  \log(1 + n) + |S| \log \tfrac{\pi_0}{1 - \pi_0} + |L| \log \tfrac{\pi}{1 - \pi}$$

with $n$ rows, $q$ always included columns and $k$ columns per lagged parent. Summed over targets with the same rows it
is equal for all Markov equivalent graphs, as a Gaussian likelihood must be. For every $S$ the best $L^*$ is found by
single changes, starting from no lagged parent and from all of them. The sum over all $L$ treats the candidates as
independent around $L^*$, with $o_j$ the log odds of candidate $j$ given $L^*$:

$$\log \sum_L e^{s(S, L)} \approx s(S, L^*) + \sum_j \log(1 + e^{-|o_j|})$$

The residuals of this regression show the shape of the noise (:mod:`tacit.assessment.evidence.within_step`).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.averaging import (
    FLOOR,
    LIMIT,
    MOST_COLUMNS,
    TINY,
    MarginalLikelihood,
    Tableau,
    conditional_log_odds,
    lost_chains,
)
from tacit.assessment.evidence.candidates import DOUBLE, Candidates, Columns
from tacit.assessment.evidence.within_step import shape_evidence

MOST_CHANGES = 60
LOST = -1e9  # the score of a set whose regression is numerically invalid
MOST_NUMBERS = 2**22  # of matrices or residuals at a time


class SchwarzLikelihood(MarginalLikelihood):
    """The maximised Gaussian likelihood with a penalty per column (Schwarz)."""

    def fit(self, residuals: Float[Tensor, "chain group channel"]) -> Float[Tensor, "chain group"]:
        """Return the part that does not depend on the number of columns."""
        left = (residuals / self.totals[:, None].clamp_min(1e-300)).clamp(1e-12, 1.0)
        return left.log().sum(-1).mul(-self._free / 2)


@dataclass(frozen=True, eq=False)
class TargetScores:
    """The scores of all sets of one target, in the order of their numbers.

    ``shapes``  the log Bayes factor of the noise against a Gaussian, given each set
    ``lagged``  the probability of each lagged candidate, given each set
    """

    scores: Float[Tensor, " set"]
    shapes: Float[Tensor, " set"]
    lagged: Float[Tensor, "set candidate"]


def target_scores(
    columns: Columns,
    candidates: Candidates,
    place: int,
    now: Int[Tensor, " member"],
    density: float,
    *,
    weights: Float[Tensor, " row"] | None = None,
    shapes: bool = False,
) -> TargetScores:
    """Return the scores of one target, given its candidates ``now`` within the step.

    ``candidates`` are the lagged ones, with prior probability ``density``. Rows in which the target or one of its
    candidates within the step is missing are excluded.
    """
    target = TargetColumns.of(columns, candidates.chosen(torch.tensor([place])), now, weights)
    prior = torch.where(target.prior.isnan(), torch.logit(torch.tensor(density, dtype=DOUBLE)), target.prior)
    members = (torch.arange(2 ** len(now))[:, None] >> torch.arange(len(now)) & 1).to(DOUBLE)
    largest = max(target.products.numel(), target.left.shape[1] if shapes else 1)
    parts = [_scores(target, some, prior, shapes) for some in torch.split(members, max(1, MOST_NUMBERS // largest))]
    scores, noises, probs = (torch.cat(part) for part in zip(*parts, strict=True))
    lagged = probs.new_zeros(len(probs), candidates.width)
    lagged[:, target.used] = probs
    return TargetScores(scores, noises, lagged)


@dataclass(frozen=True, eq=False)
class TargetColumns:
    """The residualised columns of one target: those within the step, those of lagged groups, and the target.

    ``products``  weighted cross products of all columns; columns of lags that are not allowed explain nothing
    ``sizes``     number of columns of each lagged group
    ``used``      positions of these groups among the candidates
    """

    left: Float[Tensor, "column row"]
    products: Float[Tensor, "column column"]
    weights: Float[Tensor, " row"]
    num_now: int
    group_size: int
    num_always: int
    sources: Int[Tensor, " group"]
    sizes: Float[Tensor, " group"]
    prior: Float[Tensor, " group"]
    used: Bool[Tensor, " candidate"]

    @classmethod
    def of(
        cls,
        columns: Columns,
        one: Candidates,
        now: Int[Tensor, " member"],
        weights: Float[Tensor, " row"] | None = None,
    ) -> "TargetColumns":
        """Return the columns of the one target of ``one``."""
        target, own = int(one.targets[0]), one.own_columns(columns)[0]
        used = one.used[0] & own.any(1)
        known = columns.observed[:, [target, *now.tolist()]].prod(1)
        weights = known if weights is None else weights * known
        gone = ~own[used].flatten()
        within = columns.targets[:, [*now.tolist(), target], 0].mT
        sources = one.sources[0][used]
        lagged = columns.by_node(sources[None])[0].masked_fill(gone[:, None], 0.0)
        values = torch.cat([within[:-1], lagged, within[-1:]])
        left, products = _residualised(columns, values, one.always(columns, torch.tensor([0]))[0], weights)
        where = torch.nn.functional.pad(gone, (len(now), 1))
        products = products.masked_fill(where[:, None] | where, 0.0)
        products.diagonal().masked_fill_(where, 1.0)
        sizes = one.sizes(columns)[0][used]
        always = int(one.num_always(columns)[0])
        return cls(
            left, products, weights, len(now), columns.group_size, always, sources, sizes, one.prior[0][used], used
        )

    def given(
        self, members: Float[Tensor, "set member"]
    ) -> tuple[Float[Tensor, "set column column"], Float[Tensor, "set member column"]]:
        """Return the cross products of the other columns given each set, and their regressions on the set."""
        now = self.num_now
        inside = members[:, :, None] * members[:, None] * self.products[:now, :now] + torch.diag_embed(1 - members)
        cross = members[:, :, None] * self.products[:now, now:]
        solved = torch.linalg.solve(inside, cross) if now else cross
        return self.products[now:, now:] - cross.mT @ solved, solved

    def tableau(self, products: Float[Tensor, "set column column"]) -> Tableau:
        """Return the tableau of regressions on lagged groups, with empty sets."""
        return Tableau.start(products, len(self.sources), self.group_size, self.sizes.expand(len(products), -1))


def _residualised(
    columns: Columns,
    values: Float[Tensor, "column row"],
    always: Float[Tensor, "fixed row"],
    weights: Float[Tensor, " row"],
) -> tuple[Float[Tensor, "column row"], Float[Tensor, "column column"]]:
    """Residualise the columns on the always included ones; return them and their cross products."""
    both = columns.without_intercepts(torch.cat([values, always]), weights)
    values, always = both[: len(values)], both[len(values) :]
    gram = (always * weights) @ always.mT
    gram.diagonal().add_(1e-10 * gram.diagonal() + 1e-9)
    before = (values.square() * weights).sum(1)
    left = values - torch.linalg.solve(gram, (always * weights) @ values.mT).mT @ always
    products = (left * weights) @ left.mT
    products.diagonal()[:-1].add_(TINY * (before[:-1] + FLOOR))
    return left, products


def _scores(
    target: TargetColumns, members: Float[Tensor, "set member"], prior: Float[Tensor, " group"], shapes: bool
) -> tuple[Float[Tensor, " set"], Float[Tensor, " set"], Float[Tensor, "set group"]]:
    """Return scores, shapes and probabilities of lagged groups for some sets."""
    products, solved = target.given(members)
    rows, count = target.weights.sum(), len(members)
    always, totals = rows.new_full((count,), float(target.num_always)), target.products[-1:, -1:].expand(count, 1)
    likelihood = SchwarzLikelihood(rows.expand(count), always, totals)
    searches = [_climb(target, products, members, likelihood, prior, full=full) for full in (False, True)]
    better = searches[1][0] > searches[0][0]
    score, odds, lagged = (
        torch.where(better.view(-1, *[1] * (new.ndim - 1)), new, old) for old, new in zip(*searches, strict=True)
    )
    most = MOST_COLUMNS * (rows - target.num_always)
    used = members.sum(1) + ((odds > 0).to(DOUBLE) @ target.sizes)
    score = score.masked_fill((used > most) & (members.sum(1) > 0), -torch.inf)
    if not shapes:
        return score, torch.zeros_like(score), odds.sigmoid()
    now = (solved[:, :, -1:] - solved[:, :, :-1] @ lagged[..., None])[..., 0] * members
    residuals = target.left[-1] - torch.cat([now, lagged], 1) @ target.left[:-1]
    return score, shape_evidence(residuals, target.weights), odds.sigmoid()


def _climb(
    target: TargetColumns,
    products: Float[Tensor, "set column column"],
    members: Float[Tensor, "set member"],
    likelihood: MarginalLikelihood,
    prior: Float[Tensor, " group"],
    *,
    full: bool,
) -> tuple[Float[Tensor, " set"], Float[Tensor, "set group"], Float[Tensor, "set lagged_column"]]:
    """Change the lagged parents one at a time while the score increases, starting from none or from all of them.

    Two sources may explain a target only together, so both starts are needed. Return the score, the log odds of each
    group at the end, and the coefficients.
    """
    tableau, priors = target.tableau(products.clone()), prior.expand(len(members), -1)
    odds = priors
    if full:
        first = target.sizes.cumsum(0) <= MOST_COLUMNS * (target.weights.sum() - target.num_always)
        tableau.include(first.expand_as(tableau.included))
    for _ in range(MOST_CHANGES if len(prior) else 0):
        odds = conditional_log_odds(tableau, likelihood, priors)
        best, group = torch.where(tableau.included, -odds, odds).max(1)
        grows = best > 1e-9
        if not grows.any():
            break
        tableau.flip_in(grows, group[grows])
    lost = lost_chains(tableau, likelihood) | odds.isnan().any(1)
    included, odds = tableau.included.to(DOUBLE), odds.masked_fill(lost[:, None], -LIMIT)
    score = likelihood.fit(tableau.residuals[:, None])[:, 0] + included @ prior
    score = score - (included @ target.sizes + members.sum(1)) * likelihood.per_column[:, 0]
    score = (score + torch.nn.functional.softplus(-odds.abs()).sum(1)).masked_fill(lost, LOST)
    weights = (tableau.coefficients()[..., 0] * included[..., None]).flatten(1)
    return score, odds, weights.masked_fill(lost[:, None], 0.0)

r"""The score of every set of parents within the step, for each target: lagged parents are chosen anew beside each set.

For target $i$ with the set $S$ of parents within the step and the set $L$ of lagged parents the score is

$$s_i(S, L) = -\tfrac{n - q}{2} \log \frac{\mathrm{RSS}_{S, L}}{\mathrm{RSS}_\emptyset} - \tfrac{|S| + k |L|}{2}
  \log(1 + n) + |S| \log \tfrac{\pi_0}{1 - \pi_0} + |L| \log \tfrac{\pi}{1 - \pi}$$

with $n$ rows, $q$ columns always in and $k$ columns of a lagged parent. Summed over targets it is the same for all
graphs that have the same conditional independences (Markov equivalence), as a Gaussian likelihood must be. For every
$S$ the best $L^*$ is found by single changes, and the sum over all $L$ is taken as if the candidates were independent
around it: $\log \sum_L e^{s(S, L)} \approx s(S, L^*) + \sum_j \log(1 + e^{-|o_j|})$, with $o_j$ the log odds of
candidate $j$ given $L^*$. The residuals of this regression show the shape of the noise
(:mod:`tacit.assessment.evidence.noise_shapes`).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.averaging import MarginalLikelihood, conditional_log_odds
from tacit.assessment.evidence.candidates import Candidates, Resamples
from tacit.assessment.evidence.columns import DOUBLE, Columns
from tacit.assessment.evidence.noise_shapes import shape_evidence
from tacit.assessment.evidence.tableau import FLOOR, TINY, Tableau

MOST_CHANGES = 60
MOST_NUMBERS = 2**22  # of matrices or residuals at a time


class SchwarzLikelihood(MarginalLikelihood):
    """The Gaussian likelihood at its maximum, with the price of each column."""

    def fit(self, residuals: Float[Tensor, "chain group channel"]) -> Float[Tensor, "chain group"]:
        """Return the part that does not depend on the number of columns."""
        left = (residuals / self.totals[:, None].clamp_min(1e-300)).clamp(1e-12, 1.0)
        return left.log().sum(-1).mul(-self._free / 2)


@dataclass(frozen=True, eq=False)
class TargetScores:
    """The scores of all sets of one target, for each version of the data.

    ``shapes``  the log Bayes factor of the noise against a Gaussian, beside each set
    ``lagged``  the probability of each lagged candidate beside each set
    """

    scores: Float[Tensor, "version set"]
    shapes: Float[Tensor, "version set"]
    lagged: Float[Tensor, "version set candidate"]


def target_scores(
    columns: Columns,
    candidates: Candidates,
    place: int,
    now: Int[Tensor, " member"],
    weights: Resamples,
    density: float,
    *,
    shapes: bool,
) -> TargetScores:
    """Return the scores of one target, given its candidates ``now`` within the step; without those of their number.

    ``candidates`` are the lagged ones. Rows where the target or one of its candidates is missing do not count.
    """
    one = candidates.chosen(torch.tensor([place]))
    target = int(one.targets[0])
    known = columns.observed[:, [target, *now.tolist()]].prod(1)
    used = one.used[0] & one.own_columns(columns)[0].any(1)
    sources, sizes = one.sources[0][used], one.sizes(columns)[0][used]
    gone = ~one.own_columns(columns)[0][used].flatten()
    groups, size = len(sources), columns.group_size
    lagged = columns.by_node(sources[None])[0].masked_fill(gone[:, None], 0.0)
    within = columns.targets[:, [*now.tolist(), target], 0].mT
    values = torch.cat([within[:-1], lagged, within[-1:]])
    always = one.always(columns, torch.tensor([0]))[0]
    prior = torch.where(one.prior[0].isnan(), torch.logit(torch.tensor(density, dtype=DOUBLE)), one.prior[0])[used]
    found = [
        _of_version(
            *residualised(columns, values, always, weight * known),
            weight * known,
            len(now),
            (groups, size, sizes),
            columns.num_always,
            prior,
            gone,
            shapes=shapes,
        )
        for weight in weights
    ]
    scores, noise, probs = (torch.stack(part) for part in zip(*found, strict=True))
    spread = probs.new_zeros(*probs.shape[:2], one.width)
    spread[..., used] = probs
    return TargetScores(scores, noise, spread)


def residualised(
    columns: Columns, values: Float[Tensor, "column row"], always: Float[Tensor, "fixed row"], weights: Tensor
) -> tuple[Float[Tensor, "column row"], Float[Tensor, "column column"]]:
    """Return what the columns that are always in leave of the others, and its cross products."""
    both = columns.without_intercepts(torch.cat([values, always]), weights)
    values, always = both[: len(values)], both[len(values) :]
    gram = (always * weights) @ always.mT
    gram.diagonal().add_(1e-10 * gram.diagonal() + 1e-9)
    before = (values.square() * weights).sum(1)
    left = values - torch.linalg.solve(gram, (always * weights) @ values.mT).mT @ always
    products = (left * weights) @ left.mT
    products.diagonal()[:-1].add_(TINY * (before[:-1] + FLOOR))
    return left, products


def _of_version(
    left: Float[Tensor, "column row"],
    products: Float[Tensor, "column column"],
    weights: Float[Tensor, " row"],
    num_now: int,
    groups: tuple[int, int, Float[Tensor, " group"]],
    num_always: int,
    prior: Float[Tensor, " group"],
    gone: Bool[Tensor, " column"],
    *,
    shapes: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores, shapes and probabilities of lagged candidates of one target and version."""
    num_groups, size, sizes = groups
    if gone.any():
        where = torch.nn.functional.pad(gone, (num_now, 1))
        products = products.masked_fill(where[:, None] | where[None], 0.0)
        products.diagonal().masked_fill_(where, 1.0)
    members = (torch.arange(2**num_now)[:, None] >> torch.arange(num_now) & 1).to(DOUBLE)
    at_once = max(1, MOST_NUMBERS // max(products.numel(), left.shape[1] if shapes else 1))
    rows = weights.sum()
    found = []
    for some in torch.split(members, at_once):
        count = len(some)
        inside = some[:, :, None] * some[:, None] * products[:num_now, :num_now]
        inside += torch.diag_embed(1 - some)
        cross = some[:, :, None] * products[:num_now, num_now:]
        solved = torch.linalg.solve(inside, cross) if num_now else cross  # (set, now, rest)
        rest = products[num_now:, num_now:] - cross.mT @ solved
        likelihood = SchwarzLikelihood(
            rows.expand(count), rows.new_full((count,), float(num_always)), products[-1:, -1:].expand(count, 1)
        )
        tableau = Tableau.start(rest.clone(), num_groups, size, sizes.expand(count, -1))
        odds = _best_sets(tableau, likelihood, prior)
        included = tableau.included.to(DOUBLE)
        columns = included @ sizes + some.sum(1)
        score = likelihood.fit(tableau.residuals[:, None])[:, 0] - columns * likelihood.per_column[:, 0]
        score = score + included @ prior + torch.nn.functional.softplus(-odds.abs()).sum(1)
        noise = torch.zeros_like(score)
        if shapes:
            beta = tableau.coefficients()[..., 0] * included[..., None]
            lagged = beta.flatten(1)  # (set, column)
            now = (solved[:, :, -1:] - solved[:, :, :-1] @ lagged[..., None])[..., 0] * some
            residuals = left[-1] - torch.cat([now, lagged], 1) @ left[:-1]
            noise = shape_evidence(residuals, weights)
        found.append((score, noise, odds.sigmoid()))
    scores, noises, probs = (torch.cat(part) for part in zip(*found, strict=True))
    return scores, noises, probs


def _best_sets(
    tableau: Tableau, likelihood: MarginalLikelihood, prior: Float[Tensor, " group"]
) -> Float[Tensor, "chain group"]:
    """Change the sets one group at a time while the score grows; return the log odds of each group at the end."""
    priors = prior.expand(len(tableau.included), -1)
    for _ in range(MOST_CHANGES):
        odds = conditional_log_odds(tableau, likelihood, priors)
        gains = torch.where(tableau.included, -odds, odds)
        if not gains.shape[1]:
            return odds
        best, group = gains.max(1)
        grows = best > 1e-9
        if not grows.any():
            return odds
        tableau.flip_in(grows, group[grows])
    return conditional_log_odds(tableau, likelihood, priors)

r"""Bayesian model averaging over the parents of each node.

For a set $M$ of parents with $k$ columns, a unit-information g-prior ($g = n$) on their coefficients gives the log
marginal likelihood, up to a constant,

$$\ell(M) = \tfrac{n - q - k}{2} \log(1 + g) - \tfrac{n - q}{2} \log\big(1 + g (1 - R^2_M)\big),$$

where $R^2_M$ is the partial one and $q$ the number of columns that are always included; several target columns are
summed. With prior odds $\pi_j / (1 - \pi_j)$ for each candidate, an edge exists with probability

$$P(j \in M \mid \text{data}) = \sum_{M \ni j} p(M) e^{\ell(M)} \Big/ \sum_M p(M) e^{\ell(M)}.$$

With few candidates all sets are enumerated, one flip at a time (Gray code). With more candidates the sets are sampled
by the weighted tempered Gibbs sampler of Zanella and Roberts (2019). With $\gamma_j = 1$ for $j \in M$, the group to
flip is drawn with weight $\omega_j = \eta_j / p(\gamma_j \mid \gamma_{-j})$,
$\eta_j = p(\gamma_j = 1 \mid \gamma_{-j}) + c / K$. Each state has weight $1 / \sum_j \omega_j$. The inclusion
probabilities are means of the full conditionals, which the tableau provides for all candidates at once.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from tacit.assessment.evidence.tableau import Tableau

MOST_ENUMERATED = 9  # candidates: 512 sets
STEPS = 150  # flips of the sampler after the burn-in PART
PART = 0.4
FOCUS = 0.5  # c: larger values visit unlikely candidates more often
MOST_COLUMNS = 1 / 3  # of the rows: larger sets of parents have probability 0
CONSTANT = 1e-12  # a target with a smaller sum of squares is constant
LIMIT = 50.0  # bound on log odds
ROUNDING = 1e-6  # relative error of a sum of squares above which a chain is restarted
PerChain = Float[Tensor, " chain"]
LogOdds = Float[Tensor, "chain group"]
Groups = Bool[Tensor, "chain group"]
Found = Float[Tensor, "chain found"]  # one number per candidate, or one number


@dataclass(frozen=True)
class MarginalLikelihood:
    """$\\ell(M)$ for all chains; ``rows`` is $n$, and ``always`` the number of always included columns, $q$."""

    rows: PerChain
    always: PerChain
    totals: Float[Tensor, "chain channel"]  # residual sums of squares without any parent

    def __call__(
        self, residuals: Float[Tensor, "chain group channel"], columns: Float[Tensor, "chain group"]
    ) -> Float[Tensor, "chain group"]:
        """Return the log marginal likelihoods of sets from their residual sums of squares and numbers of columns."""
        return self.fit(residuals) + (self._free - columns) * self.per_column

    def fit(self, residuals: Float[Tensor, "chain group channel"]) -> Float[Tensor, "chain group"]:
        """Return the part of the log marginal likelihoods that does not depend on the number of columns."""
        totals = self.totals[:, None]
        left = residuals / totals.clamp_min(CONSTANT)
        left = left.masked_fill_(totals <= CONSTANT, 1.0).clamp_(1e-12, 1.0)
        logs = left.mul_(self.rows[:, None, None]).log1p_()
        return (logs[..., 0] if logs.shape[-1] == 1 else logs.sum(-1)).mul_(-self._free / 2)

    @property
    def per_column(self) -> Float[Tensor, "chain 1"]:
        """Penalty per column."""
        return self.totals.shape[1] / 2 * torch.log1p(self.rows)[:, None]

    @property
    def _free(self) -> Float[Tensor, "chain 1"]:
        return (self.rows - self.always).clamp_min(1.0)[:, None]


def inclusion_probs(
    tableau: Tableau,
    likelihood: MarginalLikelihood,
    prior: LogOdds,
    generator: Generator,
    steps: int = STEPS,
    group: Groups | None = None,
) -> Found:
    """Return $P(j \\in M)$ for every chain and candidate; the tableau is overwritten.

    ``group``  candidates of each chain; the result is then $P(M \\cap G \\ne \\emptyset)$, one number per chain
    """
    if tableau.included.shape[1] <= MOST_ENUMERATED:
        sizes, scores = enumerate_sets(tableau, likelihood)
        return averaged(sizes, scores, prior, group)
    return _sampled(tableau, likelihood, prior, generator, steps, group)


def enumerate_sets(
    tableau: Tableau, likelihood: MarginalLikelihood
) -> tuple[Float[Tensor, "set group"], Float[Tensor, "chain set"]]:
    """Return all sets, as rows of 0 and 1, and the log marginal likelihood of each."""
    chains, groups = tableau.included.shape
    sets, left = [], []
    for number in range(2**groups):
        sets.append(tableau.included[0].clone())
        left.append(tableau.residuals.clone())
        if number + 1 < 2**groups:
            lowest = ((number + 1) & -(number + 1)).bit_length() - 1  # the bit that a Gray code changes next
            tableau.flip(torch.full((chains,), lowest))
    members = torch.stack(sets).to(tableau.matrices)
    return members, likelihood(torch.stack(left, 1), tableau.sizes @ members.mT)


def averaged(
    sets: Float[Tensor, "set group"], scores: Float[Tensor, "chain set"], prior: LogOdds, group: Groups | None = None
) -> Found:
    """Return the inclusion probabilities from the scores of all sets, or the probability of any of a group."""
    probs = torch.softmax(scores + prior.clamp(-LIMIT, LIMIT) @ sets.mT, 1)
    return probs @ sets if group is None else (probs * (group.to(sets) @ sets.mT > 0)).sum(1, keepdim=True)


def conditional_log_odds(
    tableau: Tableau, likelihood: MarginalLikelihood, prior: LogOdds, joins: LogOdds | None = None
) -> LogOdds:
    """Return the conditional log odds of each candidate; ``joins`` is 1 for excluded and -1 for included candidates."""
    sizes, included = tableau.sizes, tableau.included
    joins = 1.0 - 2.0 * included.to(prior) if joins is None else joins
    now = likelihood.fit(tableau.residuals[:, None])
    after = likelihood.fit(tableau.residuals[:, None] - tableau.changes())
    odds = after.sub_(now).mul_(joins).add_(prior).sub_(sizes * likelihood.per_column)
    most = MOST_COLUMNS * (likelihood.rows - likelihood.always)
    full = (sizes * included).sum(1, keepdim=True) + sizes > most[:, None]
    if full.any():
        odds.masked_fill_(~included & full, -LIMIT)
    return odds.clamp_(-LIMIT, LIMIT)


def lost_chains(tableau: Tableau, likelihood: MarginalLikelihood) -> Bool[Tensor, " chain"]:
    """Return the chains with invalid sums of squares: rounding errors accumulated over flips of collinear columns."""
    share = tableau.residuals / likelihood.totals.clamp_min(CONSTANT)
    return ~((share >= -ROUNDING) & (share <= 1 + ROUNDING)).all(1)


def _sampled(
    tableau: Tableau,
    likelihood: MarginalLikelihood,
    prior: LogOdds,
    generator: Generator,
    steps: int,
    group: Groups | None,
) -> Found:
    total = torch.zeros_like(prior if group is None else prior[:, :1])
    weights = prior.new_zeros(len(prior), 1)
    joins = 1.0 - 2.0 * tableau.included.to(prior)
    first, start = round(PART * steps), tableau.matrices.clone()
    for step in range(-first, steps):
        lost = lost_chains(tableau, likelihood)
        if lost.any():
            tableau.matrices[lost], tableau.included[lost], joins[lost] = start[lost], False, 1.0
        probs = conditional_log_odds(tableau, likelihood, prior, joins).sigmoid_()
        stays = joins.clamp_min(0.0).sub_(probs).abs_().clamp_min_(1e-22)  # the probability of the current state
        flip_weights = (probs + FOCUS / probs.shape[1]).div_(stays)
        all_weights = flip_weights.sum(1, keepdim=True)
        race = torch.empty_like(probs).exponential_(generator=generator)
        winner = flip_weights.div_(race).argmax(1, keepdim=True)  # each with probability flip_weights / all_weights
        if step >= 0:
            probs = probs if group is None else _any_of(probs, tableau.included, group)
            total += probs.div_(all_weights)
            weights += 1 / all_weights
        tableau.flip(winner[:, 0])
        joins.scatter_(1, winner, -joins.gather(1, winner))
    return total / weights


def _any_of(probs: LogOdds, included: Groups, group: Groups) -> Found:
    """Return the probability of any member, the mean over members of that given all other candidates."""
    inside = included & group
    by_others = inside.sum(1, keepdim=True) - inside.int() > 0
    return (probs.masked_fill(by_others, 1.0) * group).sum(1, keepdim=True) / group.sum(1, keepdim=True)

r"""Bayesian model averaging over the parents of each node.

For a set $M$ of parents with $k$ columns, a unit-information g-prior ($g = n$) on their coefficients gives the log
marginal likelihood, up to a constant,

$$\ell(M) = \tfrac{n - q - k}{2} \log(1 + g) - \tfrac{n - q}{2} \log\big(1 + g (1 - R^2_M)\big),$$

$R^2_M$ the partial one, $q$ the columns that are always in; several target columns add up. With prior odds
$\pi_j / (1 - \pi_j)$ for each candidate, an edge exists with probability

$$P(j \in M \mid \text{data}) = \sum_{M \ni j} p(M) e^{\ell(M)} \Big/ \sum_M p(M) e^{\ell(M)}.$$

With few candidates all sets are visited, one flip at a time (Gray code). With more the sets are sampled by the weighted
tempered Gibbs sampler of Zanella and Roberts (2019). With $\gamma_j = 1$ for $j \in M$, the group to flip is drawn with
weight $\omega_j = \eta_j / p(\gamma_j \mid \gamma_{-j})$, $\eta_j = p(\gamma_j = 1 \mid \gamma_{-j}) + c / K$. Each
state counts with weight $1 / \sum_j \omega_j$. The inclusion probabilities are means of the full conditionals, which
the tableau gives for all candidates at once.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.evidence.tableau import Tableau

MOST_ENUMERATED = 9  # candidates: 512 sets
STEPS = 150  # flips of the sampler after the first PART of them
PART = 0.4
FOCUS = 0.5  # c: how often the sampler looks at unlikely candidates
MOST_COLUMNS = 1 / 3  # of the rows: larger sets of parents have probability 0
CONSTANT = 1e-12  # a sum of squares below this is that of a constant target: nothing explains it
LIMIT = 50.0  # of log odds
PerChain = Float[Tensor, " chain"]
LogOdds = Float[Tensor, "chain group"]


@dataclass(frozen=True)
class MarginalLikelihood:
    """$\\ell(M)$ for all chains; ``rows`` are those that count, $n$, and ``always`` the columns always in, $q$."""

    rows: PerChain
    always: int
    totals: Float[Tensor, "chain channel"]  # residual sums of squares without any parent

    def __call__(
        self, residuals: Float[Tensor, "chain group channel"], columns: Float[Tensor, "chain group"]
    ) -> Float[Tensor, "chain group"]:
        """Return the log marginal likelihoods of sets with these residual sums of squares and numbers of columns."""
        rows = self.rows[:, None, None]
        totals = self.totals[:, None]
        left = torch.where(totals > CONSTANT, residuals / totals.clamp_min(CONSTANT), 1.0).clamp(1e-12, 1.0)
        free = (rows - self.always).clamp_min(1.0)
        fit = -free / 2 * torch.log1p(rows * left) + (free - columns[..., None]) / 2 * torch.log1p(rows)
        return fit.sum(-1)


def inclusion_probs(
    tableau: Tableau, likelihood: MarginalLikelihood, prior: LogOdds, generator: Generator, steps: int = STEPS
) -> LogOdds:
    """Return $P(j \\in M)$ for every chain and candidate; the tableau is used up."""
    if tableau.included.shape[1] <= MOST_ENUMERATED:
        sizes, scores = enumerate_sets(tableau, likelihood)
        return averaged(sizes, scores, prior)
    return _sampled(tableau, likelihood, prior, generator, steps)


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
    columns = (tableau.group_size * members.sum(1)).expand(chains, -1)
    return members, likelihood(torch.stack(left, 1), columns)


def averaged(sets: Float[Tensor, "set group"], scores: Float[Tensor, "chain set"], prior: LogOdds) -> LogOdds:
    """Return the inclusion probabilities from the scores of all sets."""
    return torch.softmax(scores + prior.clamp(-LIMIT, LIMIT) @ sets.mT, 1) @ sets


def conditional_log_odds(tableau: Tableau, likelihood: MarginalLikelihood, prior: LogOdds) -> LogOdds:
    """Return the log odds of each candidate given all others as they are."""
    size = tableau.group_size
    columns = size * tableau.included.sum(1, keepdim=True).to(prior)
    now = _current(tableau, likelihood)
    other = columns + torch.where(tableau.included, -size, size)
    after = likelihood(tableau.residuals[:, None] - tableau.changes(), other)
    gain = torch.where(tableau.included, now - after, after - now)
    most = (MOST_COLUMNS * (likelihood.rows - likelihood.always))[:, None]
    blocked = ~tableau.included & (other > most)
    return (gain + prior).masked_fill(blocked, -LIMIT).clamp(-LIMIT, LIMIT)


def _current(tableau: Tableau, likelihood: MarginalLikelihood) -> Float[Tensor, "chain 1"]:
    columns = tableau.group_size * tableau.included.sum(1, keepdim=True)
    return likelihood(tableau.residuals[:, None], columns.to(tableau.matrices))


def _sampled(
    tableau: Tableau, likelihood: MarginalLikelihood, prior: LogOdds, generator: Generator, steps: int
) -> LogOdds:
    total = torch.zeros_like(prior)
    weights = prior.new_zeros(len(prior), 1)
    first = round(PART * steps)
    for step in range(-first, steps):
        probs = torch.sigmoid(conditional_log_odds(tableau, likelihood, prior))
        stays = torch.where(tableau.included, probs, 1 - probs).clamp_min(1e-22)
        flip_weights = (probs + FOCUS / probs.shape[1]) / stays
        all_weights = flip_weights.sum(1, keepdim=True)
        if step >= 0:
            total += probs / all_weights
            weights += 1 / all_weights
        tableau.flip(torch.multinomial(flip_weights / all_weights, 1, generator=generator)[:, 0])
    return total / weights

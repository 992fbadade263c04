r"""Standard errors of regimes that were fitted by the exact likelihood.

$$I = \sum_n s_n s_n^\top + P, \qquad C = I^{-1}\, L\, I^{-1}$$

$s_n$ are the scores of the pairs in the scale of probabilities, $P$ the precision of the prior, and $L$ their long-run
covariance: regimes of a series often last, so that the scores of neighbouring pairs are correlated. Of $C$ and
$I^{-1}$ the larger variance is used. It is very large in directions that the data do not determine. Errors of marginals
are by the delta method.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.regimes.block_likelihood import BlockFit, BlockLikelihood
from tacit.assessment.regimes.fitted import Estimate
from tacit.local import Dependence, safe_inverse

QUANTILE = 1.96

Slopes = Float[Tensor, "function number"]


class BlockEstimates(NamedTuple):
    """Probabilities (regime, gate), weights and marginals of a block, with standard errors."""

    probs: Estimate
    weights: Estimate
    marginals: Estimate


def block_estimates(
    likelihood: BlockLikelihood, numbers: Float[Tensor, " number"], fit: BlockFit, dependence: Dependence
) -> BlockEstimates:
    """Return the numbers of a block with standard errors."""
    count, gates = fit.logits.shape
    scores = likelihood.natural_scores(numbers)
    information = scores.mT @ scores + likelihood.precision
    inverse = safe_inverse(information)
    spread = inverse @ dependence.covariances(scores) @ inverse
    first, probs, weights = likelihood.num_own, torch.sigmoid(fit.logits), fit.weights

    def variances(slopes: Slopes) -> Float[Tensor, " function"]:
        found = [((slopes @ one[first:, first:]) * slopes).sum(1) for one in (inverse, spread)]
        return torch.maximum(*found).clamp_min(0)

    every = torch.eye(count * gates + count - 1).double()
    last = -every[count * gates :].sum(0, keepdim=True)  # the weights sum to 1
    slopes = torch.zeros(gates, len(every)).double()
    for gate in range(gates):
        slopes[gate, gate : count * gates : gates] = weights
        slopes[gate, count * gates :] = probs[:-1, gate] - probs[-1, gate]
    marginals = _estimate(weights @ probs, variances(slopes).sqrt())
    of_probs = variances(every[: count * gates]).sqrt().view(count, gates)
    of_weights = variances(torch.cat([every[count * gates :], last])).sqrt()
    return BlockEstimates(_estimate(probs, of_probs), _estimate(weights, of_weights), marginals)


def _estimate(values: Tensor, errors: Tensor) -> Estimate:
    """Return values with errors and 95% intervals, within 0 and 1."""
    reach = QUANTILE * errors
    return Estimate(values, errors, (values - reach).clamp_min(0), (values + reach).clamp_max(1)).bounded()

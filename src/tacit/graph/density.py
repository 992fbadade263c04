r"""The weight of a prior for sparse graphs, from the expected density.

Every edge exists with prior probability $p$, the expected density. Each edge adds $k$ fitted weights, which lower the
log evidence by $\tfrac k2 \log n$ nats (Schwarz 1978). The prior odds include this term:

$$\operatorname{logit} q = \operatorname{logit} p - \tfrac k2 \log n$$

The loss is not in nats but is the energy score of Gaussian noise. If the residual standard deviation $\sigma$ decreases
by $d\sigma$, the log-likelihood of a pair increases by $d\sigma / \sigma$ nats, and its score, $\sigma / \sqrt\pi$ on
average, decreases by $d\sigma / \sqrt\pi$. So one nat corresponds to $\sigma / \sqrt\pi$ of a node's score. The loss at
node scope is the mean over $n$ pairs and $N$ nodes, while an edge changes only one node:

$$\text{penalty} = w\, \mathrm{KL}(P_\theta, P_q), \qquad w = \frac{\sigma}{\sqrt\pi\; n N}$$
"""

import math

from tacit.errors import require, require_int
from tacit.graph.priors import EdgePrior


def density_prior(density: float, sigma: float, num_pairs: int, num_nodes: int, num_weights: int = 1) -> EdgePrior:
    r"""Return the edge prior for an expected density, for the energy score at node scope.

    ``density``      expected share of the possible edges, $p$
    ``sigma``        residual standard deviation of a regression, in the units of the targets, $\sigma$
    ``num_pairs``    number of training pairs, $n$
    ``num_nodes``    number of nodes that the loss averages over, $N$
    ``num_weights``  weights per edge, one per lag in a filter, $k$; 0 for a predictor that shares its weights

    >>> prior = density_prior(0.1, sigma=0.6, num_pairs=100, num_nodes=10)
    >>> round(prior.probs.item(), 4), round(prior.weight, 6)  # odds of 1 to 9, made 10 times as long by the weight
    (0.011, 0.000339)
    """
    require(
        isinstance(density, int | float) and 0 < density < 1,
        f"density must be a share strictly between 0 and 1, got {density!r}; pass for example 0.1",
    )
    require(
        isinstance(sigma, int | float) and 0 < sigma < math.inf,
        f"sigma must be a positive number, got {sigma!r}; pass the standard deviation of a regression's residuals",
    )
    require_int("num_pairs", num_pairs)
    require_int("num_nodes", num_nodes)
    require_int("num_weights", num_weights, 0)
    logit = math.log(density / (1 - density)) - num_weights / 2 * math.log(num_pairs)
    return EdgePrior(1 / (1 + math.exp(-logit)), sigma / (math.sqrt(math.pi) * num_pairs * num_nodes))

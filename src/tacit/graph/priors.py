r"""Priors of edges, as a penalty, and their weight from the expected density.

Priors of edges, as a penalty.

$$\mathrm{KL}(P_\theta, P_p) = \sum_{ij} \theta_{ij} \log \frac{\theta_{ij}}{p_{ij}}
  + (1 - \theta_{ij}) \log \frac{1 - \theta_{ij}}{1 - p_{ij}}$$

The sum runs over the entries that are not fixed, or over some of them; in a symmetric graph over $i \le j$. The penalty
can be combined with every loss, and the reported loss includes it. A fit whose edges were selected by regressions has
no such penalty: the prior share of existing edges is used in :mod:`tacit.assessment.evidence.parent_evidence`.

The weight of a prior for sparse graphs, from the expected density.

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

import torch
from torch import Tensor, nn

from tacit.errors import InputError, require, require_int
from tacit.graph.bernoulli import require_symmetric
from tacit.graph.distribution import GraphDistribution
from tacit.shapes import EdgeMask, Scalar


class EdgePrior(nn.Module):
    r"""Prior probabilities of edges, $P(A_{ij} = 1) = p$ or $p_{ij}$, with a weight relative to the loss of one pair.

    Weight 1 gives the ELBO of one pair. With $n$ pairs and a log-likelihood as the loss, weight $1/n$ counts the prior
    once instead of once per pair.

    >>> from tacit.graph import BernoulliGraph
    >>> graph = BernoulliGraph(torch.tensor([[0.5, 0.1], [0.1, 0.1]]))
    >>> round(EdgePrior(0.1).penalty(graph).item(), 4)  # only the first edge differs: .5 log 5 + .5 log(5 / 9)
    0.5108
    """

    probs: Tensor
    edges: EdgeMask | None

    def __init__(self, probs: float | Tensor, weight: float = 1.0, edges: EdgeMask | None = None) -> None:
        """Set one probability for all edges, or a matrix; the mask ``edges`` restricts the penalty to some edges."""
        super().__init__()
        require(
            isinstance(weight, int | float) and not isinstance(weight, bool) and 0 < weight < math.inf,
            f"weight of a prior must be positive, got {weight!r}; leave the prior out to switch it off",
        )
        if not isinstance(probs, Tensor):
            try:
                probs = torch.as_tensor(probs, dtype=torch.get_default_dtype())
            except (TypeError, ValueError, RuntimeError):
                raise InputError(
                    f"prior must be one probability or a matrix of floats, got {probs!r}; pass for example 0.1"
                ) from None
        require(
            probs.is_floating_point() and probs.ndim in (0, 2),
            f"prior must be one probability or a matrix of floats, got {probs.dtype} of shape "
            f"{tuple(probs.shape)}; pass a number, or one probability per ordered pair of nodes",
        )
        outside = ~((probs > 0) & (probs < 1))
        if outside.any():
            place = tuple(int(i) for i in outside.nonzero()[0])
            where = f" at [{place[0]}, {place[1]}]" if place else ""
            raise InputError(
                f"prior must have probabilities strictly between 0 and 1, got {probs[place].item():g}{where}; "
                "to require or forbid an edge, fix it in BernoulliGraph"
            )
        require(
            edges is None or (edges.dtype == torch.bool and edges.ndim == 2),
            "edges of a prior must be a matrix of booleans; pass one true or false per ordered pair of nodes",
        )
        self.weight = float(weight)
        self.register_buffer("edges", None if edges is None else edges.clone())
        self.register_buffer("probs", probs.detach().clone())

    def extra_repr(self) -> str:
        """Return the common probability or the shape of the matrix, and the weight."""
        probs = f"{self.probs.item():g}" if self.probs.ndim == 0 else f"matrix of {tuple(self.probs.shape)}"
        return f"{probs}, weight={self.weight:g}"

    def check(self, graph: GraphDistribution) -> None:
        """Raise :class:`InputError` if a matrix of priors does not have the shape of the graph, or its symmetry."""
        graph.require_edge_probs("prior")
        expected = graph.edge_shape
        require(
            self.probs.ndim == 0 or tuple(self.probs.shape) == expected,
            f"prior must have shape {expected} like the graph, got {tuple(self.probs.shape)}; "
            "pass one probability per ordered pair of nodes, or one for all",
        )
        require(
            self.edges is None or tuple(self.edges.shape) == expected,
            f"edges of a prior must have shape {expected} like the graph; pass one true or false per ordered pair of "
            "nodes",
        )
        if graph.symmetric and self.probs.ndim == 2:
            require_symmetric("prior", self.probs, "give both entries of a pair the same probability")
        if graph.symmetric and self.edges is not None:
            require_symmetric("edges of a prior", self.edges, "take both entries of a pair or none")

    def penalty(self, graph: GraphDistribution) -> Scalar:
        """Return the weighted KL divergence from this prior."""
        probs, (log_present, log_absent) = graph.edge_probs, graph.log_probs()
        # theta log theta is 0 at theta = 0
        log_present, log_absent = (torch.where(log.isinf(), 0.0, log) for log in (log_present, log_absent))
        divergence = probs * (log_present - self.probs.log()) + (1 - probs) * (log_absent - (-self.probs).log1p())
        left_out = graph.fixed if self.edges is None else graph.fixed | ~self.edges
        return self.weight * graph.upper_triangle(torch.where(left_out, 0.0, divergence)).sum()


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

r"""Edges that depend on the situation, and how often each acts in a situation.

$$\hat\theta(c) = \sigma(z), \qquad z = a + b \cdot \phi(c), \qquad
\mathrm{se}(z)^2 = (1, \phi)\, C\, (1, \phi)^\top$$

$C$ is the covariance of the estimates of $(a, b)$. Intervals are computed for the logit, so they stay within 0 and 1.
Several variables are additive: in the table of one variable the others are at their average, $\phi = 0$.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.uncertainty import adjusted_p_values
from tacit.graph import ConditionalBernoulliGraph, ContextVariable
from tacit.local import QUANTILE
from tacit.shapes import EdgeMask
from tacit.training import LatentGraphModel

FDR = 0.1  # expected share of constant edges among those called varying
ANY = 0.05  # probability that any edge is called varying if none is


class SituationProbs(NamedTuple):
    """How often edges act at each value of a variable's grid, with standard errors and intervals."""

    probability: Float[Tensor, "edge place"]
    std_error: Float[Tensor, "edge place"]
    low: Float[Tensor, "edge place"]
    high: Float[Tensor, "edge place"]


@dataclass(frozen=True, eq=False)
class VaryingEdges:
    r"""The result of the tests of edges that may depend on the situation.

    ``model``        the fit in which the edges of ``varies`` depend on it; None if there are none
    ``tested``       the edges that exist and act at times, by the likelihood; others are not tested
    ``p_values``     p-values of the tests, NaN elsewhere
    ``covariances``  covariances of $(a, b)$ of the edges of ``varies``, in the order of ``varies.nonzero()``;
                     NaN after training
    ``notes``        sentences on the limits of the result
    ``quantile``     standard errors from the estimate to the ends of an interval
    """

    model: LatentGraphModel | None
    tested: EdgeMask
    varies: EdgeMask
    p_values: Float[Tensor, "row slot"]
    covariances: Float[Tensor, "edge number number"]
    notes: tuple[str, ...] = ()
    quantile: float = QUANTILE

    @property
    def graph(self) -> ConditionalBernoulliGraph:
        """The graph of the model."""
        assert self.model is not None
        assert isinstance(self.model.graph, ConditionalBernoulliGraph)
        return self.model.graph

    def by_situation(self, variable: ContextVariable) -> SituationProbs:
        """Return how often the edges of ``varies`` act at the values of a variable's grid."""
        graph, chosen = self.graph, self.graph.feature_slice(variable)
        return situation_probs(
            graph.symmetrize(graph.raw.detach())[self.varies],
            graph.weights().detach()[self.varies][:, chosen],
            _of_variable(self.covariances, chosen),
            graph.variable(variable.name).on_grid().detach(),
            self.quantile,
        )


def situation_probs(
    logits: Float[Tensor, " edge"],
    weights: Float[Tensor, "edge feature"],
    covariances: Float[Tensor, "edge number number"],
    features: Float[Tensor, "place feature"],
    quantile: float = QUANTILE,
) -> SituationProbs:
    """Return probabilities and intervals from logits and weights; ``covariances`` are joint for both.

    >>> places = torch.tensor([[0.0], [1.0]])
    >>> found = situation_probs(torch.zeros(1), torch.ones(1, 1), 0.01 * torch.eye(2)[None], places)
    >>> [[round(value, 3) for value in row] for row in found.probability.tolist() + found.std_error.tolist()]
    [[0.5, 0.731], [0.025, 0.028]]
    """
    design = torch.cat([torch.ones_like(features[:, :1]), features], 1).to(covariances)  # (place, number)
    centre = logits[:, None].to(design) + weights.to(design) @ features.to(design).mT  # (edge, place)
    error = torch.einsum("pn,enm,pm->ep", design, covariances, design).clamp_min(0).sqrt()
    probs = torch.sigmoid(centre)
    low, high = torch.sigmoid(centre - quantile * error), torch.sigmoid(centre + quantile * error)
    return SituationProbs(probs, probs * (1 - probs) * error, low, high)


def called_varying(p_values: Float[Tensor, "row slot"], fdr: float = FDR) -> EdgeMask:
    r"""Return the edges whose tests are rejected at a false discovery rate, if any edge varies at all.

    With $p_{(1)} \le \dots \le p_{(m)}$ edges are selected up to the largest $k$ with $p_{(k)} \le k / m$ times ``fdr``
    (Benjamini and Hochberg 1995). None is selected unless $\min_k m\, p_{(k)} / k \le$ ``ANY`` = .05 (Simes 1986): if
    no edge varies, some edge is selected in 5% of data sets instead of 10%.

    >>> called_varying(torch.tensor([[0.001, 0.04], [0.5, torch.nan]])).tolist()
    [[True, True], [False, False]]
    >>> called_varying(torch.tensor([[0.03, 0.7]])).tolist()
    [[False, False]]
    """
    tested = ~p_values.isnan()
    varies = torch.zeros_like(tested)
    if tested.any():
        adjusted = adjusted_p_values(p_values[tested].double().cpu().numpy())
        if adjusted.min() <= min(ANY, fdr):
            varies[tested] = torch.as_tensor(adjusted <= fdr, device=varies.device)
    return varies


def _of_variable(
    covariances: Float[Tensor, "edge number number"], chosen: slice
) -> Float[Tensor, "edge number number"]:
    """Return the covariances of the logit and the weights of one variable."""
    numbers = [0, *range(1 + chosen.start, 1 + chosen.stop)]
    return covariances[:, numbers][:, :, numbers]

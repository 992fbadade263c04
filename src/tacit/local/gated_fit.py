"""The fit of one node whose edges are weights times gates, and initial values of further fits derived from it."""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.observation import ObservationModel


@dataclass(frozen=True, eq=False)
class GatedFit:
    r"""A maximum of the likelihood: own weights, edge weights, logits of the gated edges, and the noise.

    ``log_likelihood``  without the prior
    ``slopes``          $s_j$, coefficients of the features in the logit of an edge; None: all edges are constant
    ``varying``         the edges whose slopes are learned; the slopes of others are fixed
    ``spread``          $\gamma$, coefficients of the logarithm of the noise's scale
    """

    own: Float[Tensor, " own"]
    edges: Float[Tensor, "source lag"]
    logits: Float[Tensor, " source"]
    gated: Bool[Tensor, " source"]
    observation: ObservationModel
    log_likelihood: float = -math.inf
    slopes: Float[Tensor, "source feature"] | None = None
    varying: Bool[Tensor, " source"] | None = None
    spread: Float[Tensor, " term"] | None = None

    @property
    def weights(self) -> Float[Tensor, " column"]:
        """The weights of the columns of the design."""
        return torch.cat([self.own, self.edges.flatten()])

    @property
    def num_parameters(self) -> int:
        """The number of learned parameters."""
        slopes = 0 if self.slopes is None or self.varying is None else int(self.varying.sum()) * self.slopes.shape[1]
        noise = sum(value.numel() for value in self.observation.parameters())
        noise += 0 if self.spread is None else len(self.spread)
        return self.own.numel() + self.edges.numel() + int(self.gated.sum()) + slopes + noise

    @property
    def edge_probs(self) -> Float[Tensor, " source"]:
        """The probability that each edge acts if its features are 0; 1 for edges without a gate."""
        return torch.where(self.gated, torch.sigmoid(self.logits), 1.0)

    def with_gate(self, source: int, prob: float) -> "GatedFit":
        """Return initial values with one more gated edge and unchanged mean effect."""
        logits, gated, edges = self.logits.clone(), self.gated.clone(), self.edges.clone()
        edges[source] = edges[source] * float(self.edge_probs[source]) / prob
        gated[source], logits[source] = True, math.log(prob / (1 - prob))
        return replace(self, logits=logits, gated=gated, edges=edges)

    def without_gate(self, source: int) -> "GatedFit":
        """Return initial values with an edge that always acts and unchanged mean effect."""
        gated, edges = self.gated.clone(), self.edges.clone()
        edges[source] = edges[source] * float(self.edge_probs[source])
        gated[source] = False
        return replace(self, gated=gated, edges=edges)

    def with_constant_noise(self) -> "GatedFit":
        """Return initial values in which the scale of the noise does not depend on the row."""
        return self if self.spread is None else replace(self, spread=torch.zeros_like(self.spread))

    def with_slopes(self, varying: Bool[Tensor, " source"], num_features: int) -> "GatedFit":
        """Return initial values in which only the given gated edges depend on their features."""
        slopes = self.edges.new_zeros(len(self.gated), num_features) if self.slopes is None else self.slopes
        varying = varying & self.gated
        return replace(self, slopes=torch.where(varying[:, None], slopes, 0.0), varying=varying)

"""A fit of one node whose edges are weights times gates, and the starts of other fits that are made of it."""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.observation import ObservationModel


@dataclass(frozen=True, eq=False)
class GatedFit:
    r"""The maximum: own weights, those of the edges, logits of probabilities (of gated edges) and the noise.

    ``log_likelihood``  without the prior
    ``slopes``          $s_j$, by which the logit of an edge follows its features; None: all edges are constant
    ``varying``         the edges whose slopes are learned; others keep them
    """

    own: Float[Tensor, " own"]
    edges: Float[Tensor, "source lag"]
    logits: Float[Tensor, " source"]
    gated: Bool[Tensor, " source"]
    observation: ObservationModel
    log_likelihood: float = -math.inf
    slopes: Float[Tensor, "source feature"] | None = None
    varying: Bool[Tensor, " source"] | None = None

    @property
    def edge_probs(self) -> Float[Tensor, " source"]:
        """How often each edge acts where its features are 0; 1 where it is not gated."""
        return torch.where(self.gated, torch.sigmoid(self.logits), 1.0)

    def with_gate(self, source: int, prob: float) -> "GatedFit":
        """Return a start where one more edge is gated, its mean effect as it was."""
        logits, gated, edges = self.logits.clone(), self.gated.clone(), self.edges.clone()
        edges[source] = edges[source] * float(self.edge_probs[source]) / prob
        gated[source], logits[source] = True, math.log(prob / (1 - prob))
        return replace(self, logits=logits, gated=gated, edges=edges)

    def without_gate(self, source: int) -> "GatedFit":
        """Return a start where an edge always acts, its mean effect as it was."""
        gated, edges = self.gated.clone(), self.edges.clone()
        edges[source] = edges[source] * float(self.edge_probs[source])
        gated[source] = False
        return replace(self, gated=gated, edges=edges)

    def with_slopes(self, varying: Bool[Tensor, " source"], num_features: int) -> "GatedFit":
        """Return a start where exactly these of the gated edges may follow their features; others are constant."""
        slopes = self.edges.new_zeros(len(self.gated), num_features) if self.slopes is None else self.slopes
        varying = varying & self.gated
        return replace(self, slopes=torch.where(varying[:, None], slopes, 0.0), varying=varying)

"""Conversion between a model with its pairs and the moment regressions of each node."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.uncertainty.moments import NodeData
from tacit.data import Pairs
from tacit.predictors import GraphFilter, LinearParts
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel, filter_parameters, has_gated_weights


def has_moment_estimate(model: LatentGraphModel) -> bool:
    """Return whether mean and variance of the targets determine how often edges act.

    They do for gated weights and additive noise with its own variance.
    """
    return has_gated_weights(model) and model.observation.by_moments


@dataclass(frozen=True, eq=False)
class MomentData:
    """The data of the regressions, the possible edges, and the inputs that they may use (None for all).

    If edges act within a step, the target of a source is one more input, and a pair counts for a node if the targets of
    all its sources within the step are observed. ``always`` are edges that are assumed to act always.
    """

    parts: LinearParts
    targets: Float[Tensor, "pair node"]
    weights: Float[Tensor, "pair node"]
    present: EdgeMask
    follows_input: bool
    allowed: Float[Tensor, "node node sent"] | None = None
    always: EdgeMask | None = None

    @classmethod
    def of(cls, model: LatentGraphModel, pairs: Pairs) -> "MomentData":
        """Return the data of a model for which :func:`has_moment_estimate` is true."""
        graph, predictor = model.graph, model.predictor
        assert isinstance(predictor, GraphFilter)
        observed = torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed
        parts = predictor.linear_parts(pairs.inputs, pairs.targets * observed)
        assert parts is not None
        present = graph.learned | (graph.edge_probs.detach() > 0)
        return cls(
            LinearParts(*(part.double() for part in parts)),
            (pairs.targets - parts.offset)[..., 0].double(),
            predictor.complete(observed)[..., 0].double(),
            present.clone().fill_diagonal_(False),
            model.observation.follows_input,
            predictor.allowed_columns,
            predictor.always,
        )

    def sources(self, node: int) -> Int[Tensor, " source"]:
        """Return the sources that a node can read."""
        return self.present[node].nonzero()[:, 0]

    def columns(self, node: int) -> int:
        """Return the numbers of coefficients of the mean and of the variance of a node."""
        own, lags, sources = self.parts.own.shape[2], self.parts.sent.shape[2], len(self.sources(node))
        return own + 1 + sources * (lags + 1) + (4 if self.follows_input else 2)

    def node(self, node: int) -> NodeData:
        """Return the regressions of one node."""
        own = self.parts.own[:, node]
        one = torch.ones_like(own[:, :1])
        spread = [one, own.square().mean(1, keepdim=True)]
        if self.follows_input:
            spread += [own.mean(1, keepdim=True), own.abs().mean(1, keepdim=True)]
        sources = self.sources(node)
        sent = self.parts.sent[:, sources].transpose(0, 1)  # (source, pair, lag)
        if self.allowed is not None:
            sent = sent * self.allowed[node, sources][:, None].to(sent)  # a column of zeros gets the weight 0
        return NodeData(self.targets[:, node], torch.cat([own, one], 1), sent, torch.cat(spread, 1))


def fitted_parameters(
    model: LatentGraphModel,
    edge_probs: EdgeProbs,
    own: Float[Tensor, "node column"],
    means: Float[Tensor, "node node lag"],
    sigmas: Float[Tensor, " node"],
    fitted: Bool[Tensor, " node"],
) -> dict[str, Tensor]:
    r"""Return the parameters of the model from these regressions, by name: an edge's weight is its mean over $\theta$.

    The mean prediction of the model then equals that of the regressions. The parameters of nodes that are not
    ``fitted`` do not change.
    """
    weights = torch.where(edge_probs[..., None] > 0, means / edge_probs[..., None].to(means), 0.0)
    noise, present = model.observation.with_deviations(sigmas[:, None]), dict(model.observation.named_parameters())
    noise = {
        name: torch.where(fitted.view(-1, *[1] * (value.ndim - 1)), value, present[name].detach())
        for name, value in noise.items()
    }
    return filter_parameters(model, own, weights[..., None], edge_probs, noise, fitted)

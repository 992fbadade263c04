"""From a model and its pairs to the regressions of each node: which models have them, and where results go."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.uncertainty.moments import NodeData
from tacit.data import Pairs
from tacit.predictors import GraphFilter, LinearParts
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel, has_gated_weights


def has_moment_estimate(model: LatentGraphModel) -> bool:
    """Do mean and variance of the targets tell how often edges act?

    They do for gated weights and noise that is added to the output, with a size of its own.
    """
    return has_gated_weights(model) and model.observation.by_moments


@dataclass(frozen=True, eq=False)
class MomentData:
    """The pairs as the regressions see them, which edges can act, and with which inputs; None is all of them.

    Where edges act within a step, the target of a source is one more input, and a pair counts for a node where the
    targets of all its sources within the step are known. ``always`` are edges that are taken to act always.
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
        """Return the data of a model that :func:`has_moment_estimate`."""
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
        """Return how many coefficients the mean and the variance of a node have."""
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
    r"""Return the parameters of the model with these regressions, by name: an edge's weight is its mean over $\theta$.

    What the regressions say of the mean is then what the model predicts in the mean. Nodes that are not ``fitted`` keep
    the parameters they have.
    """
    predictor, graph = model.predictor, model.graph
    assert isinstance(predictor, GraphFilter)
    weights = torch.where(edge_probs[..., None] > 0, means / edge_probs[..., None].to(means), 0.0)
    filled = predictor.with_weights(own[:, :-1, None], weights[..., None], own[:, -1:])
    noise = model.observation.with_deviations(sigmas[:, None])
    raw = torch.where(graph.learned, graph.link.raw(edge_probs.to(graph.raw)), graph.raw.detach())
    found = {
        f"graph.{graph.link.parameter}": raw,
        **{f"predictor.{name}": value.detach() for name, value in filled.named_parameters()},
        **{f"observation.{name}": value.detach() for name, value in noise.items()},
    }
    present = model.state_dict()
    return {
        name: torch.where(fitted.view(-1, *[1] * (value.ndim - 1)), value, present[name])
        for name, value in found.items()
    }

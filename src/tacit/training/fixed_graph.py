r"""A model whose graph is fixed at given probabilities, so that only the predictor is learned."""

import copy

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.func import functional_call

from tacit.data import Pairs
from tacit.graph import BernoulliGraph, Context, GraphDistribution
from tacit.losses import Loss
from tacit.randomness import draw_uniforms
from tacit.shapes import EdgeProbs, PairLoss
from tacit.training.model import LatentGraphModel

CHUNK = 128  # pairs evaluated at once


def with_fixed_graph(model: LatentGraphModel, edge_probs: EdgeProbs) -> LatentGraphModel:
    """Return a copy of a model with every edge fixed, trained by its own loss and without a prior for the edges.

    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, predictor = BernoulliGraph(torch.full((2, 2), 0.5)), HopPredictor(torch.ones(1, 1, 1))
    >>> fixed = with_fixed_graph(LatentGraphModel(graph, predictor, EnergyScore()), torch.eye(2))
    >>> fixed.graph.edge_probs.tolist(), bool(fixed.graph.fixed.all())
    ([[1.0, 0.0], [0.0, 1.0]], True)
    """
    model.graph.require_all_pairs("with_fixed_graph")
    graph = BernoulliGraph(
        edge_probs.detach(),
        fixed=torch.ones_like(model.graph.fixed),
        link=model.graph.link,
        symmetric=model.graph.symmetric,
    )
    num_graphs = max(model.num_graphs, model.loss.min_graphs)
    predictor, observation = copy.deepcopy(model.predictor), copy.deepcopy(model.observation)
    return LatentGraphModel(
        graph,
        predictor,
        model.loss,
        observation=observation,
        num_graphs=num_graphs,
        share_graphs=model.share_graphs,
    )


def with_graph(
    model: LatentGraphModel, graph: GraphDistribution, loss: Loss | None = None, num_graphs: int | None = None
) -> LatentGraphModel:
    """Return a copy of a model with another graph and no prior, optionally with another loss or number of graphs."""
    loss = model.loss if loss is None else loss
    return LatentGraphModel(
        copy.deepcopy(graph),
        copy.deepcopy(model.predictor),
        loss,
        observation=copy.deepcopy(model.observation),
        num_graphs=max(num_graphs or model.num_graphs, loss.min_graphs),
        share_graphs=model.share_graphs,
    ).to(model.graph.raw)


@torch.no_grad()
def pair_losses(
    model: LatentGraphModel, parameters: dict[str, Tensor], pairs: Pairs, *, generator: Generator
) -> tuple[PairLoss, Float[Tensor, " batch"]]:
    """Return the loss of each pair, times its weight, and the weights; ``parameters`` replace those of the model."""
    losses, weights = [], []
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        shape = model.uniforms_shape(len(chunk))
        uniforms = draw_uniforms(*shape, generator=generator, dtype=chunk.inputs.dtype).to(chunk.inputs.device)
        batch = (chunk.inputs, chunk.targets, uniforms, chunk.observed, Context.of(chunk))
        _, (loss, weight, *_) = functional_call(model, parameters, batch)
        losses.append(loss)
        weights.append(weight)
    return torch.cat(losses), torch.cat(weights)

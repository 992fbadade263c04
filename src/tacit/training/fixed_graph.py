r"""A model whose graph is fixed at given probabilities, so that only the predictor is learned.

Losses of two such models are compared pair by pair under the same random numbers,

$$\Delta = \frac{\sum_b d_b}{\sum_b w_b}, \quad d_b = l'_b - l_b, \qquad
  \mathrm{se}(\Delta)^2 = \frac{B}{B - 1} \frac{\mathrm{Var} \sum_b (d_b - \bar d)}{(\sum_b w_b)^2},$$

where $l_b$ is the loss of validation pair $b$ and $w_b$ its weight, 1 unless targets are missing. Variation in
difficulty between pairs cancels in the difference. The variance allows for pairs that depend on each other
(:class:`~tacit.local.Dependence`).
"""

import copy
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.func import functional_call

from tacit.data import Pairs
from tacit.graph import BernoulliGraph, Context, GraphDistribution
from tacit.local import Dependence, is_clear
from tacit.losses import Loss
from tacit.randomness import draw_uniforms
from tacit.shapes import EdgeProbs, PairLoss
from tacit.training.model import LatentGraphModel

CHUNK = 128  # pairs evaluated at once


class Difference(NamedTuple):
    """The difference of two losses, and its standard error."""

    mean: float
    std_error: float

    @property
    def clearly_lower(self) -> bool:
        """True if the first loss is clearly lower."""
        return is_clear(-self.mean, self.std_error)

    @property
    def clearly_higher(self) -> bool:
        """True if the first loss is clearly higher."""
        return is_clear(self.mean, self.std_error)


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


def paired_difference(
    other: PairLoss, own: PairLoss, weights: Float[Tensor, " batch"], dependence: Dependence | None = None
) -> Difference:
    """Return the difference of the mean losses, ``other`` minus ``own``, with its standard error.

    >>> difference = paired_difference(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 2.0]), torch.ones(2))
    >>> difference.mean, round(difference.std_error, 6)
    (1.0, 1.0)
    """
    difference, total = (other - own).double(), float(weights.sum())
    mean, count = float(difference.sum()) / total, len(difference)
    if count < 2:
        return Difference(mean, torch.inf)
    away = (difference - difference.mean())[:, None]
    variance = float((dependence or Dependence()).covariance(away, away))
    return Difference(mean, (variance * count / (count - 1)) ** 0.5 / total)

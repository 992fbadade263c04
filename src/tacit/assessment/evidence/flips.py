r"""The loss as a function of one edge's probability, with all other parameters fixed.

The losses compare two graphs at a time, so the expected loss of a pair is a parabola in the probability $q$ of an edge,

$$L(q) = L(0) + \beta q + \gamma q^2,$$

which three points determine. Every sampled graph is evaluated without and with the edge: graphs without it give $L(0)$,
graphs with it $L(1)$, and both together $L(\tfrac12)$; the two forms of one graph are not compared with each other.
Each is an unbiased estimate, and common noise cancels in their differences. Losses that do not compare graphs are
linear in $q$, a special case.

If the other parameters are optimal without the edge, $-\beta$ is the score for its insertion. $L(0) - L(q)$ is an upper
bound of the cost of its removal, because other edges may compensate for it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.graph import Context
from tacit.randomness import draw_uniforms
from tacit.shapes import Graphs, Samples, TargetParams
from tacit.training import LatentGraphModel

Edges = Int[Tensor, "edge 2"]  # row and column: target and source
PAIRS_AT_ONCE, ENTRIES_AT_ONCE = 256, 2**20


class Parabolas(NamedTuple):
    r"""The loss of every pair as a function of each edge's probability: ``slope`` $\beta$, ``curvature`` $\gamma$."""

    slope: Float[Tensor, "edge batch"]
    curvature: Float[Tensor, "edge batch"]

    def rise_without(self, probs: Float[Tensor, " edge"]) -> Float[Tensor, "edge batch"]:
        """Return the increase of the loss of each pair if an edge with the given probability is removed."""
        probs = probs.to(self.slope)[:, None]
        return -(self.slope + self.curvature * probs) * probs


@torch.no_grad()
def loss_parabolas(
    model: LatentGraphModel, pairs: Pairs, edges: Edges, *, num_graphs: int, generator: Generator
) -> Parabolas:
    """Return the parabola of every pair and edge, from ``num_graphs`` graphs for each pair.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> model = LatentGraphModel(BernoulliGraph(torch.zeros(2, 2)), HopPredictor(torch.ones(1, 1, 1)), EnergyScore())
    >>> pairs = Pairs(torch.ones(1, 2, 1), torch.ones(1, 2, 1).tanh())
    >>> rng = Generator().manual_seed(0)
    >>> found = loss_parabolas(model, pairs, torch.tensor([[0, 1]]), num_graphs=2, generator=rng)
    >>> [round((part / pairs.targets[0, 0]).item(), 4) for part in found]  # half of 1 - 2 q + q^2, and half of 1
    [-1.0, 0.5]
    """
    parts = []
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        chunk = pairs[start : start + PAIRS_AT_ONCE]
        losses = torch.cat(list(_three_points(model, chunk, edges, num_graphs, generator)))  # (edge, batch, point)
        parts.append(losses)
    none, half, always = torch.cat(parts, 1).unbind(-1)
    curvature = 2 * (none - 2 * half + always)
    return Parabolas(always - none - curvature, curvature)


def _three_points(
    model: LatentGraphModel, pairs: Pairs, edges: Edges, num_graphs: int, generator: Generator
) -> Iterator[Float[Tensor, "edge batch 3"]]:
    graph, loss = model.graph_for(pairs.inputs, Context.of(pairs)), model.loss.with_baseline("none")
    count, (rows, columns) = len(pairs), graph.uniforms_shape
    channels = model.noise_channels
    shape = (count, num_graphs, max(rows, graph.num_nodes if channels else 0), columns + channels)
    uniforms = draw_uniforms(*shape, generator=generator, dtype=pairs.inputs.dtype).to(pairs.inputs.device)
    graphs = graph.sample_from(uniforms[..., :rows, :columns])
    noise = uniforms[..., : graph.num_nodes, columns:]
    at_once = max(1, ENTRIES_AT_ONCE // graphs.numel())
    for some in torch.split(edges, at_once):
        forms = without_and_with(graphs, some, symmetric=graph.symmetric)
        described = model.describe(pairs.inputs, forms.flatten(1, 3))  # (batch, edge * graph * form, node, number)
        both = (
            described.view(count, len(some), 2 * num_graphs, *described.shape[2:]).transpose(0, 1).flatten(0, 1)
        )  # (edge * batch, graph * form, ...)
        if channels:  # the two forms of a graph share their noise
            both = _noisy(model, both, noise.repeat_interleave(2, 1).repeat(len(some), 1, 1, 1))
        targets = pairs.targets.repeat(len(some), 1, 1)
        observed = None if pairs.observed is None else pairs.observed.repeat(len(some), 1, 1)
        points = (
            loss(both[:, 0::2], targets, observed).value,
            loss(both, targets, observed, group_size=2).value,
            loss(both[:, 1::2], targets, observed).value,
        )
        yield torch.stack([point.mean(-1) for point in points], -1).view(len(some), count, 3)


def without_and_with(graphs: Graphs, edges: Edges, *, symmetric: bool) -> Float[Tensor, "draw edge graph 2 row slot"]:
    """Return every graph without and with each of the edges; both entries of a pair if symmetric."""
    forms = graphs[:, None, :, None].repeat(1, len(edges), 1, 2, 1, 1)
    number, (row, column) = torch.arange(len(edges), device=edges.device), edges.unbind(1)
    for form in (0, 1):
        forms[:, number, :, form, row, column] = float(form)
        if symmetric:
            forms[:, number, :, form, column, row] = float(form)
    return forms


def _noisy(model: LatentGraphModel, described: TargetParams, noise: Tensor) -> Samples:
    return model.observation.sample(described, noise)

"""Graphs and noise that all rows of a prediction share, so that a row does not depend on those beside it."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.graph import Context
from tacit.predictors import num_hops_of
from tacit.shapes import Inputs, PointPrediction, Samples, TargetParams, Uniforms
from tacit.training import LatentGraphModel

PAIRS = 64  # they share their graphs, so that the number is part of the result
# Numbers at once: 2^27 floats are half a gigabyte. A pair is taken to need for every graph what the predictor returns;
# over a table of candidates WIDTH numbers of each node, and with two hops or more of each slot.
MOST_NUMBERS = 2**27
WIDTH = 32
Windows = Float[Tensor, "pair path node in_channel"]


def pairs_at_once(model: LatentGraphModel, num_graphs: int) -> int:
    """Return how many pairs share their graphs, or the numbers these are made of: 64, and fewer with many nodes."""
    candidates = model.graph.candidates
    numbers = max(model.observation.num_given, model.observation.working_numbers)
    if candidates is None:
        own = model.graph.num_nodes if model.graph.context_fields else 0  # a graph for each pair
        return max(1, min(PAIRS, MOST_NUMBERS // (num_graphs * model.graph.num_nodes * max(numbers, own))))
    local = num_hops_of(model.predictor) == 1
    each = num_graphs * WIDTH * (candidates.num_nodes if local else candidates.sources.numel())
    return max(1, min(PAIRS, MOST_NUMBERS // each))


class SharedDraws:
    """``num_graphs`` graphs, and for each graph one noise of every target; pairs are passed a few at a time."""

    def __init__(self, model: LatentGraphModel, num_graphs: int, generator: Generator) -> None:
        self.model, self.generator = model, generator
        self.pairs_at_once = pairs_at_once(model, num_graphs)
        like, nodes = model.graph.raw, model.graph.num_nodes
        channels = (model.observation.channels or 0) * model.observation.num_uniforms
        shapes = (1, num_graphs, *model.graph.uniforms_shape), (1, num_graphs, nodes, channels)
        self._edges, noise, places = (
            torch.rand(shape, generator=generator, device=generator.device, dtype=like.dtype).to(like.device)
            for shape in (*shapes, shapes[1])
        )
        # One uniform in each of the intervals of length 1 / S, in random order: all rows share them, and their error.
        self._noise = (places.argsort(1).to(like.dtype) + noise) / num_graphs

    def described(self, pairs: Pairs) -> TargetParams:
        """Return what describes each target under each graph."""
        return self._described(pairs.inputs, Context.of(pairs), self._edges)

    def described_paths(self, windows: Windows, context: Context) -> TargetParams:
        """Return what describes the next value of each path under the graph at its place.

        ``context`` has a row for each pair and path. Where the paths of a pair share their window, it is there once.
        """
        pairs, paths = windows.shape[:2]
        if paths == 1:
            return self._described(windows[:, 0], context, self._edges)
        edges = self._edges.expand(pairs, -1, -1, -1).flatten(0, 1)[:, None]  # (pair * path, 1, row, column)
        found = self._described(windows.flatten(0, 1), context, edges)
        return found.view(pairs, paths, *found.shape[2:])

    @torch.no_grad()
    def mean(self, pairs: Pairs) -> PointPrediction:
        """Return the mean over graphs; noise has none."""
        return self.model.observation.mean(self.described(pairs)).mean(1)

    def values(self, pairs: Pairs) -> Samples:
        """Return samples whose noise is that of every other pair as well, for quantiles."""
        return self.with_noise(self.described(pairs))

    @torch.no_grad()
    def with_noise(self, described: TargetParams) -> Samples:
        """Return samples of described targets, with the noise that all pairs share."""
        if not self.model.observation.random:
            return self.model.observation.mean(described)
        smallest = torch.finfo(self._noise.dtype).eps
        uniforms = self._noise.clamp(smallest, 1 - smallest).expand(len(described), -1, -1, -1)
        return self.model.observation.sample(described, uniforms)

    @torch.no_grad()
    def own_values(self, pairs: Pairs) -> Samples:
        """Return samples with a noise of each pair's own."""
        return self.model.observation.draw(self.described(pairs), generator=self.generator)

    @torch.no_grad()
    def _described(self, inputs: Inputs, context: Context, edges: Uniforms) -> TargetParams:
        graph = self.model.graph_for(inputs, context)
        return self.model.describe(inputs, graph.as_operator(graph.sample_from(edges)))

"""Graphs and noise that all rows of a prediction share, so that a row does not depend on the other rows."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.graph import Context
from tacit.predictors import num_hops_of
from tacit.shapes import Inputs, PointPrediction, Samples, TargetParams, Uniforms
from tacit.training import LatentGraphModel

PAIRS = 64  # they share their graphs, so the result depends on this number
# Numbers in memory at once: 2^27 floats are half a gigabyte. A pair needs, for every graph, the predictor's output.
MOST_NUMBERS = 2**27
Windows = Float[Tensor, "pair path node in_channel"]


def pairs_at_once(model: LatentGraphModel, num_graphs: int) -> int:
    """Return how many pairs share their graphs (or the uniforms of these): 64, or fewer with many nodes."""
    graph, numbers = model.graph, max(model.observation.num_given, model.observation.working_numbers)
    own = graph.edge_shape[1] if graph.context_fields else 0  # a graph for each pair
    gathered = graph.layout.most_pairs(num_graphs, local=num_hops_of(model.predictor) == 1)
    return max(1, min(PAIRS, MOST_NUMBERS // (num_graphs * graph.num_nodes * max(numbers, own)), gathered))


class SharedDraws:
    """``num_graphs`` graphs, each with one noise sample per target, that all pairs share."""

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
        # Stratified: one uniform in each interval of length 1 / S, in random order, because all rows share their error.
        self._noise = (places.argsort(1).to(like.dtype) + noise) / num_graphs

    def described(self, pairs: Pairs) -> TargetParams:
        """Return the distribution parameters of each target under each graph."""
        return self._described(pairs.inputs, Context.of(pairs), self._edges)

    def described_paths(self, windows: Windows, context: Context) -> TargetParams:
        """Return the distribution parameters of the next value of each path under the graph of that path.

        ``context`` has a row for each pair and path. If the paths of a pair share their window, it is given once.
        """
        pairs, paths = windows.shape[:2]
        if paths == 1:
            return self._described(windows[:, 0], context, self._edges)
        edges = self._edges.expand(pairs, -1, -1, -1).flatten(0, 1)[:, None]  # (pair * path, 1, row, column)
        found = self._described(windows.flatten(0, 1), context, edges)
        return found.view(pairs, paths, *found.shape[2:])

    @torch.no_grad()
    def mean(self, pairs: Pairs) -> PointPrediction:
        """Return the mean over graphs of the conditional means, without noise."""
        return self.model.observation.mean(self.described(pairs)).mean(1)

    def values(self, pairs: Pairs) -> Samples:
        """Return samples with noise that all pairs share, for quantiles."""
        return self.with_noise(self.described(pairs))

    @torch.no_grad()
    def with_noise(self, described: TargetParams) -> Samples:
        """Return samples of targets with given distribution parameters, with noise that all pairs share."""
        if not self.model.observation.random:
            return self.model.observation.mean(described)
        smallest = torch.finfo(self._noise.dtype).eps
        uniforms = self._noise.clamp(smallest, 1 - smallest).expand(len(described), -1, -1, -1)
        return self.model.observation.sample(described, uniforms)

    @torch.no_grad()
    def own_values(self, pairs: Pairs) -> Samples:
        """Return samples with independent noise for each pair."""
        return self.model.observation.draw(self.described(pairs), generator=self.generator)

    @torch.no_grad()
    def _described(self, inputs: Inputs, context: Context, edges: Uniforms) -> TargetParams:
        graph = self.model.graph_for(inputs, context)
        return self.model.describe(inputs, graph.as_operator(graph.sample_from(edges)))

r"""The graphs in which the effect of an edge is evaluated.

Half of the graphs come from $P_\theta$. For the others the probability of every free edge is moved towards 1/2,

$$\theta^{(w)} = (1 - w)\,\theta + w / 2, \qquad 0 < w < 1,$$

because the current $\theta$ can hide an edge: with two hops the edge $k \to j$ affects node $i$ only if $j \to i$ is
present. An edge is not identifiable only if this is so for any $\theta$. The first half covers graphs of the current
density, because probabilities of 1/2 could saturate the predictor. Fixed edges do not change.
"""

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tacit.errors import require_int
from tacit.graph import GraphDistribution

Contexts = Float[Tensor, "graph node node"]
Edges = Int[Tensor, "edge 2"]  # row and column: target and source
PULLED_SHARE = 0.5


def free_edges(graph: GraphDistribution) -> Edges:
    """Return the positions of all learned edges; for a symmetric graph those with i <= j, one for each pair.

    >>> from tacit.graph import BernoulliGraph
    >>> free_edges(BernoulliGraph(torch.full((2, 2), 0.5), fixed=torch.eye(2, dtype=torch.bool))).tolist()
    [[0, 1], [1, 0]]
    """
    free = ~graph.fixed
    return (free.triu() if graph.symmetric else free).nonzero()


@torch.no_grad()
def draw_contexts(graph: GraphDistribution, num_graphs: int, *, generator: Generator, pulled: bool = True) -> Contexts:
    """Draw graphs; the second half with probabilities moved towards 1/2, each with another weight (optional).

    >>> from tacit.graph import BernoulliGraph
    >>> graph = BernoulliGraph(torch.zeros(2, 2), fixed=torch.eye(2, dtype=torch.bool))
    >>> graphs = draw_contexts(graph, 100, generator=Generator().manual_seed(0))
    >>> graphs[:50].max().item(), graphs[50:].amax(0).tolist()
    (0.0, [[0.0, 1.0], [1.0, 0.0]])
    """
    require_int("num_graphs", num_graphs)
    probs = graph.edge_probs
    num_pulled = round(PULLED_SHARE * num_graphs) if pulled else 0
    weights = probs.new_zeros(num_graphs)
    weights[num_graphs - num_pulled :] = (torch.arange(num_pulled).to(probs) + 0.5) / max(1, num_pulled)
    moved = torch.lerp(probs.expand(num_graphs, -1, -1), torch.full_like(probs, 0.5), weights[:, None, None])
    uniforms = torch.rand(moved.shape, generator=generator, device=generator.device, dtype=probs.dtype)
    return (graph.symmetrize(uniforms.to(probs.device)) < torch.where(graph.fixed, probs, moved)).to(probs.dtype)


def flipped(contexts: Contexts, edges: Edges, *, symmetric: bool) -> Float[Tensor, "edge graph node node"]:
    """Return every graph with one edge flipped, for each of the edges; both entries of a pair if symmetric.

    >>> flipped(torch.zeros(1, 2, 2), torch.tensor([[0, 1]]), symmetric=True).tolist()
    [[[[0.0, 1.0], [1.0, 0.0]]]]
    """
    graphs = contexts.expand(len(edges), *contexts.shape).clone()
    number, (row, column) = torch.arange(len(edges), device=edges.device), edges.unbind(1)
    turned = 1 - graphs[number, :, row, column]  # (edge, graph)
    graphs[number, :, row, column] = turned
    if symmetric:
        graphs[number, :, column, row] = turned
    return graphs

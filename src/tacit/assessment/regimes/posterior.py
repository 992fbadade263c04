r"""Posterior probability of each regime for each observation.

$$P(k \mid x, y) \propto \pi_k \prod_i \frac1S \sum_s p\big(y_i \mid x, A_s^{(k)}\big)$$

$A_s^{(k)}$ are graphs of regime $k$, shared by all pairs. The product runs over the nodes of the block: all of them, or
one if each node has its own regimes. Given the regime the rows are independent, so for one hop this is exact in the
limit of many graphs. With more hops nodes share edges, which the product ignores.

$p$ is the density of the observation model. Without noise, or without a density, it is a Gaussian kernel of width

$$h_i = 0.1\, d_i + 0.01\, \sqrt{\mathrm{mean}_j\, d_j^2}, \qquad d_i = \mathrm{sd}_s(\hat y_{si})$$

with a small probability of an outlier, so that a single node cannot dominate. $\hat y_s$ is the output under graph $s$,
so the width depends only on the pair and the model. Missing targets are ignored.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.errors import require, require_int
from tacit.graph import MixtureGraph
from tacit.observation import ObservationModel
from tacit.predictors import num_hops_of
from tacit.shapes import Graphs, Samples, TargetParams, Targets
from tacit.training import LatentGraphModel

NUM_GRAPHS = 256
WIDTH, FLOOR = 0.1, 0.01  # of the kernel: share of the spread over graphs, of the node and of all nodes
FEWEST = 16  # graphs of each regime of a node, if regimes are sampled
ODD = 1e-3  # probability of an outlier, per target
CHUNK_NUMBERS = 2**23  # outputs at once

RegimeProbability = Float[Tensor, "pair block regime"]


@torch.no_grad()
def regime_posterior(
    model: LatentGraphModel, pairs: Pairs, *, generator: Generator, num_graphs: int = NUM_GRAPHS
) -> RegimeProbability:
    """Return the probability of each regime of each block, given inputs and targets of a pair.

    ``num_graphs``  graphs for each regime
    """
    graph = model.graph
    require(
        isinstance(graph, MixtureGraph),
        f"regime_posterior requires a graph with regimes, got {type(graph).__name__}; use regimes_by_likelihood",
    )
    assert isinstance(graph, MixtureGraph)
    require_int("num_graphs", num_graphs, 2)
    graphs, regime = _graphs(graph, num_graphs, num_hops_of(model.predictor) == 1, generator)
    chunk = max(1, CHUNK_NUMBERS // (graphs.shape[1] * pairs.num_nodes))
    parts = [_node_logs(model, pairs[start : start + chunk], graphs, regime) for start in range(0, len(pairs), chunk)]
    logs = torch.cat(parts)
    of_block = logs if graph.blocks == "rows" else logs.sum(1, keepdim=True)
    return (of_block + graph.weight_logits.detach().log_softmax(-1)).softmax(-1)


def _graphs(
    graph: MixtureGraph, num_graphs: int, one_hop: bool, generator: Generator
) -> tuple[Graphs, Int[Tensor, "graph node"]]:
    """Return graphs and the regime for which each node is evaluated in them, -1 for none.

    With regimes of the whole graph, or if a node depends only on its own row, all rows of a graph have the same regime.
    Otherwise the regimes of the rows are sampled, and those of a node are averaged over the regimes of other nodes.
    """
    like = graph.raw
    if graph.blocks == "all" or one_hop:
        regime = torch.arange(graph.num_regimes, device=like.device).repeat_interleave(num_graphs)
        of_block = judged = regime[:, None].expand(-1, graph.num_blocks)
    else:
        of_block, judged = (each.to(like.device) for each in _drawn_regimes(graph, num_graphs, generator))
    rows, slots = graph.edge_shape
    uniforms = torch.rand(len(of_block), rows, slots, generator=generator, device=generator.device).to(like)
    probs = graph.regime_probs[of_block[:, graph.block_of_row], torch.arange(rows, device=like.device)]
    graphs = (graph.symmetrize(uniforms) < probs).to(like)[None]
    return graphs, judged.expand(-1, graph.num_nodes)


def _drawn_regimes(
    graph: MixtureGraph, num_graphs: int, generator: Generator
) -> tuple[Int[Tensor, "graph block"], Int[Tensor, "graph block"]]:
    """Return regimes sampled by their weights, and those for which each block is evaluated, -1 for none.

    If a regime of a block occurs in fewer than ``FEWEST`` graphs, as many graphs are added for it, in which the other
    blocks are sampled but not evaluated.
    """
    weights, fewest = graph.regime_weights.detach().to(generator.device), min(FEWEST, num_graphs)
    drawn = torch.multinomial(weights, num_graphs * graph.num_regimes, True, generator=generator).mT
    counts = torch.nn.functional.one_hot(drawn, graph.num_regimes).sum(0)  # (block, regime)
    block, regime = (counts < fewest).nonzero().repeat_interleave(fewest, 0).unbind(1)
    if not len(block):
        return drawn, drawn
    further = torch.multinomial(weights, len(block), True, generator=generator).mT
    own = torch.arange(graph.num_blocks, device=block.device) == block[:, None]
    further = torch.where(own, regime[:, None], further)
    return torch.cat([drawn, further]), torch.cat([drawn, torch.where(own, regime[:, None], -1)])


def _node_logs(
    model: LatentGraphModel,
    pairs: Pairs,
    graphs: Graphs,
    regime: Int[Tensor, "graph node"],
) -> Float[Tensor, "pair node regime"]:
    """Return the log of the mean density of each node's targets over the graphs of each regime."""
    graph = model.graph
    assert isinstance(graph, MixtureGraph)
    described = model.describe(pairs.inputs, graph.as_operator(graphs))
    logs = _log_density(model.observation, described, pairs.targets)  # (pair, graph, node, channel)
    if pairs.observed is not None:
        logs = torch.where(pairs.observed[:, None] > 0, logs, 0.0)
    logs = logs.sum(-1)
    means = []
    for number in range(graph.num_regimes):
        inside = regime == number  # (graph, node)
        own = torch.where(inside, logs, -torch.inf).logsumexp(1)
        means.append(own - inside.sum(0).log())
    return torch.stack(means, -1)


def _log_density(observation: ObservationModel, described: TargetParams, targets: Targets) -> Samples:
    """Return the log density of the targets under each graph."""
    if type(observation).log_prob is not ObservationModel.log_prob:
        return observation.log_prob(described, targets)
    means = observation.mean(described)
    spread = means.std(1, keepdim=True)  # (pair, 1, node, channel)
    scale = spread.square().mean(2, keepdim=True).sqrt().clamp_min(torch.finfo(spread.dtype).eps)
    width = WIDTH * spread + FLOOR * scale
    away = (targets[:, None] - means) / width
    near = -0.5 * away.square() - width.log() - 0.5 * math.log(2 * math.pi)
    odd = (ODD / (spread + scale)).log()
    return torch.logaddexp(near, odd.expand_as(near))

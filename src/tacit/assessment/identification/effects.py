r"""The relative effect of each edge: the change of the predictions when only this edge is flipped.

$$d_a(x, A) = f(x, A^{a=1}) - f(x, A^{a=0}), \qquad
  \mathrm{effect}_a = \max_{i, c} \frac{\sqrt{E_{x, A}\, d_{a, ic}(x, A)^2}}{s_{ic}}$$

The effect is the maximum over nodes and not the mean, because an edge affects few nodes: a mean over 120 nodes would
dilute any effect by a factor of ten. An effect of 1 changes a prediction by one standard deviation of its target; with
an effect of 0, no data can show whether the edge is present.

**The unit** $s_{ic}$ is the standard deviation of the targets of node $i$, channel $c$, over the pairs; without
targets, that of the predictions, $\sqrt{\mathrm{Var}\,\mu + E\,\sigma^2}$ over inputs and graphs. ``scales`` of the
observation model converts it to a unit for each distribution parameter: means and sigmas use the spread of the target.

**The graphs** $A$: half of them come from $P_\theta$. For the others the probability of every free edge is moved
towards 1/2,

$$\theta^{(w)} = (1 - w)\,\theta + w / 2, \qquad 0 < w < 1,$$

because the current $\theta$ can hide an edge: with two hops the edge $k \to j$ affects node $i$ only if $j \to i$ is
present. An edge is not identifiable only if this is so for any $\theta$. The first half covers graphs of the current
density, because probabilities of 1/2 could saturate the predictor. Fixed edges do not change.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from tacit.errors import require, require_int
from tacit.graph import GraphDistribution
from tacit.observation import NoNoise, ObservationModel
from tacit.shapes import EdgeProbs, Inputs, Observed, TargetParams, Targets
from tacit.training import LatentGraphModel

# A standard deviation below this share of the magnitude is rounding.
CONSTANT = 1e-6
Contexts = Float[Tensor, "graph node node"]
Edges = Int[Tensor, "edge 2"]  # row and column: target and source
PULLED_SHARE = 0.5
# Up to this many edges are evaluated together, so that any two can be compared; with more, those of one target node.
TOGETHER = 1024
# Outputs computed for all flips, and the fewest and most inputs and graphs: 64 and 32 at 12 nodes, 4 and 4 at 120.
OUTPUTS = 2**24
INPUTS, GRAPHS = (4, 64), (4, 32)
# Numbers in memory for one call of the predictor, whose hidden layers are assumed to be this many times its output.
NUMBERS_AT_ONCE, HIDDEN = 2**21, 8


class Spread(NamedTuple):
    """A positive unit for each distribution parameter of a target, and the nodes with constant targets."""

    values: Float[Tensor, "node output"]
    constant: Bool[Tensor, " node"]


def target_spread(
    targets: Targets, observed: Observed | None = None, *, observation: ObservationModel | None = None
) -> Spread:
    """Return the spread of targets, without missing values.

    The spread of a constant target is replaced by the root mean square of the others, or by 1 if all are constant, and
    its node is marked in ``constant``. A target that was never observed has an infinite spread, so effects on it are 0.

    >>> spread = target_spread(torch.tensor([[[1.0], [3.0]], [[1.0], [5.0]]]))
    >>> spread.values.tolist(), spread.constant.tolist()
    ([[1.0], [1.0]], [True, False])
    """
    seen = ~targets.isnan() if observed is None else observed > 0
    unseen = ~seen.any(0)
    count = seen.sum(0).clamp_min(1)
    known = torch.where(seen, targets, 0.0)
    mean = known.sum(0) / count
    variance = (torch.where(seen, targets - mean, 0.0).square().sum(0) / count).to(targets.dtype)
    require(
        bool(torch.isfinite(variance).all()),
        "targets must have finite numbers, got infinity; remove them, or mark them as missing",
    )
    values, constant = _filled(variance.sqrt(), mean.abs())
    values = torch.where(unseen, torch.inf, values)
    return Spread((observation or NoNoise()).scales(values), constant & ~unseen.all(-1))


def predictive_spread(described: TargetParams, observation: ObservationModel) -> Spread:
    """Return the spread of predictions over pairs and graphs, including the noise."""
    means = observation.mean(described)
    variance = means.var((0, 1), correction=0) + observation.variance(described).mean((0, 1))  # (node, channel)
    values, constant = _filled(variance.sqrt(), means.mean((0, 1)).abs())
    return Spread(observation.scales(values), constant)


def _filled(
    deviation: Float[Tensor, "node channel"], size: Float[Tensor, "node channel"]
) -> tuple[Float[Tensor, "node channel"], Bool[Tensor, " node"]]:
    constant = deviation <= CONSTANT * torch.maximum(size, deviation.max())
    varying = deviation[~constant]
    borrowed = varying.square().mean().sqrt() if len(varying) else deviation.new_ones(())
    return torch.where(constant, borrowed, deviation), constant.all(-1)


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


class Flips(NamedTuple):
    """The effects of flipping some edges: ``differences`` $d_a$, and the contexts in which the edge was present."""

    edges: Edges
    present: Float[Tensor, "edge graph"]
    differences: Float[Tensor, "edge batch graph node output"]


class Trials(NamedTuple):
    """Inputs and graphs on which effects are evaluated, and the spread to which they are relative."""

    inputs: Inputs
    contexts: Contexts
    spread: Spread


def prepare_trials(
    model: LatentGraphModel,
    inputs: Inputs,
    targets: Targets | None = None,
    *,
    generator: Generator,
    observed: Observed | None = None,
    contexts: Contexts | None = None,
    edges: Edges | None = None,
) -> Trials:
    """Choose inputs and graphs, as many as the number of edges allows, and compute the spread.

    ``edges`` are the edges to evaluate, by default all learned edges. With given ``contexts`` all inputs are used.
    """
    nodes = model.graph.num_nodes
    require(len(inputs) > 0, "inputs must have at least one pair, got none; pass some of the data")
    require(
        inputs.ndim == 3 and inputs.shape[1] == nodes,
        f"inputs must have shape (pairs, {nodes} nodes, channels) like the graph, got {tuple(inputs.shape)}; pass the "
        "inputs that the model was built for",
    )
    require(
        targets is None or (targets.ndim == 3 and targets.shape[1] == nodes and len(targets) > 0),
        f"targets must have shape (pairs, {nodes} nodes, channels) like the graph, got "
        f"{() if targets is None else tuple(targets.shape)}; pass the targets that belong to the inputs",
    )
    if contexts is None:
        num_edges = max(1, len(free_edges(model.graph) if edges is None else edges))
        affordable = OUTPUTS // (num_edges * model.graph.num_nodes * model.observation.num_given)
        num_inputs = min(INPUTS[1], max(INPUTS[0], math.isqrt(2 * affordable)))
        num_graphs = min(GRAPHS[1], max(GRAPHS[0], affordable // num_inputs))
        contexts = draw_contexts(model.graph, num_graphs, generator=generator)
        order = torch.randperm(len(inputs), generator=generator, device=generator.device)
        some = inputs[order[:num_inputs].to(inputs.device)]
    else:
        some = inputs
    if targets is None:
        spread = predictive_spread(model.describe(some, contexts[None]), model.observation)
    else:
        spread = target_spread(targets, observed, observation=model.observation)
    return Trials(some, contexts, spread)


def flip_edges(model: LatentGraphModel, trials: Trials, edges: Edges | None = None) -> Iterator[Flips]:
    """Yield the flips of all learned edges, or of given edges: all at once if there are few, else node by node."""
    edges = free_edges(model.graph) if edges is None else edges
    rows = range(model.graph.num_nodes)
    groups = [edges] if len(edges) <= TOGETHER else [edges[edges[:, 0] == row] for row in rows]
    before = model.describe(trials.inputs, trials.contexts[None])  # (batch, graph, node, output)
    graphs, (nodes, outputs) = len(trials.contexts), before.shape[2:]
    at_once = max(1, NUMBERS_AT_ONCE // (graphs * nodes * (nodes + HIDDEN * outputs * len(trials.inputs))))
    for group in (group for group in groups if len(group)):
        present = trials.contexts[:, group[:, 0], group[:, 1]].mT  # (edge, graph)
        changes = []
        for some in torch.split(group, at_once):
            flips = flipped(trials.contexts, some, symmetric=model.graph.symmetric)
            after = model.describe(trials.inputs, flips.flatten(0, 1)[None])  # (batch, edge * graph, node, output)
            by_edge = after.reshape(len(after), len(some), -1, *after.shape[2:])  # (batch, edge, graph, node, output)
            changes.append(by_edge.transpose(0, 1) - before)
        yield Flips(group, present, torch.cat(changes) * (1 - 2 * present)[:, None, :, None, None])


def place_effects(
    effects: EdgeProbs,
    flips: Flips,
    spread: Spread,
    *,
    symmetric: bool,
    weights: Float[Tensor, " graph"] | None = None,
) -> None:
    """Write the effects of some edges to their entries; to both entries of a pair if the graph is symmetric."""
    squares = flips.differences.square().mean(1)  # (edge, graph, node, output)
    counts = torch.ones_like(flips.present[0]) if weights is None else weights
    mean = torch.einsum("egno,g->eno", squares, counts / counts.sum())
    row, column = flips.edges.unbind(1)
    effects[row, column] = (mean.sqrt() / spread.values).amax((1, 2)).to(effects.dtype)
    if symmetric:
        effects[column, row] = effects[row, column]

r"""The effect of an edge: the change of the predictions when only this edge is flipped.

$$d_a(x, A) = f(x, A^{a=1}) - f(x, A^{a=0}), \qquad
  \mathrm{effect}_a = \max_{i, c} \frac{\sqrt{E_{x, A}\, d_{a, ic}(x, A)^2}}{s_{ic}}$$

$s_{ic}$ is the standard deviation of the target of output $c$ of node $i$
(:mod:`tacit.assessment.identification.spread`). The effect is the maximum over nodes and not the mean, because an edge
affects few nodes: a mean over 120 nodes would dilute any effect by a factor of ten. An effect of 1 changes a prediction
by one standard deviation of its target; with an effect of 0, no data can show whether the edge is present. The graphs
$A$ are those of :mod:`tacit.assessment.identification.contexts`.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.assessment.identification.contexts import Contexts, Edges, draw_contexts, flipped, free_edges
from tacit.assessment.identification.spread import Spread, predictive_spread, target_spread
from tacit.errors import require
from tacit.shapes import EdgeProbs, Inputs, Observed, Targets
from tacit.training import LatentGraphModel

# Up to this many edges are evaluated together, so that any two can be compared; with more, those of one target node.
TOGETHER = 1024
# Outputs computed for all flips, and the fewest and most inputs and graphs: 64 and 32 at 12 nodes, 4 and 4 at 120.
OUTPUTS = 2**24
INPUTS, GRAPHS = (4, 64), (4, 32)
# Numbers in memory for one call of the predictor, whose hidden layers are assumed to be this many times its output.
NUMBERS_AT_ONCE, HIDDEN = 2**21, 8


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
    _require_fitting(model, inputs, targets)
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
        parts = [_changes(model, trials, before, some) for some in torch.split(group, at_once)]
        yield Flips(group, present, torch.cat(parts) * (1 - 2 * present)[:, None, :, None, None])


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


def _changes(model: LatentGraphModel, trials: Trials, before: Tensor, edges: Edges) -> Tensor:
    """Return f after each flip minus f before: (edge, batch, graph, node, output)."""
    graphs = flipped(trials.contexts, edges, symmetric=model.graph.symmetric)
    after = model.describe(trials.inputs, graphs.flatten(0, 1)[None])  # (batch, edge * graph, node, output)
    by_edge = after.reshape(len(after), len(edges), -1, *after.shape[2:])  # (batch, edge, graph, node, output)
    return by_edge.transpose(0, 1) - before


def _require_fitting(model: LatentGraphModel, inputs: Inputs, targets: Targets | None) -> None:
    nodes = model.graph.num_nodes
    require(len(inputs) > 0, "inputs must have at least one pair, got none; pass some of the data")
    require(
        inputs.ndim == 3 and inputs.shape[1] == nodes,
        f"inputs must have shape (pairs, {nodes} nodes, channels) like the graph, got {tuple(inputs.shape)}; pass the "
        "inputs that the model was built for",
    )
    if targets is not None:
        require(
            targets.ndim == 3 and targets.shape[1] == nodes and len(targets) > 0,
            f"targets must have shape (pairs, {nodes} nodes, channels) like the graph, got {tuple(targets.shape)}; "
            "pass the targets that belong to the inputs",
        )

r"""The condition of the paper's theorem: is there an input $x$ at which $A \mapsto f(x, A)$ is injective?

If there is, the true $\theta$ is the only minimum of a proper loss (for a known predictor). The compared graphs differ
in learned edges with an effect; all other edges are fixed at their more likely value. Two graphs differ at $x$ if

$$\max_{i, c} |f_{ic}(x, A) - f_{ic}(x, A')| / s_{ic} > 10^{-9},$$

computed in float64; $s$ is the spread of the predictions. With at most 12 edges all graphs are compared with each
other, and the result is exact for the tested inputs. With more edges, pairs of graphs are sampled: all flips of one
edge (at most 4,096), some of two, some of three to eight edges into one node (these predictions are closest to each
other), and independent graphs. Then a pair with equal predictions disproves injectivity at $x$, but different
predictions of all pairs do not prove it.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from tacit.assessment.identification.effects import Contexts, Edges, draw_contexts, free_edges, predictive_spread
from tacit.shapes import EdgeMask, Inputs
from tacit.training import LatentGraphModel

Others = Float[Tensor, "other node node"]
Choices = Int[Tensor, "graph edge"]  # which of some edges are present
Turns = Bool[Tensor, "pair edge"]  # which of some edges the second graph of a pair has flipped
Predict = Callable[[Contexts], Float[Tensor, "batch graph number"]]
# Pairs of each kind, and of single flips: all of them up to 64 nodes.
SAMPLED, SINGLES = 1024, 4096
ROW_FLIPS = (3, 8)
NUMBERS_AT_ONCE = 2**20
ENUMERATED_EDGES = 12
DISTINCT = 1e-9
# The number of comparisons determines the number of tested inputs: 4 for 4,096 graphs, at most 32.
COMPARISONS, MOST_INPUTS = 2**26, 32
SAMPLED_INPUTS, BASES = 8, 8


def all_choices(num_edges: int, device: torch.device) -> Choices:
    """Return every set of edges.

    >>> all_choices(2, torch.device("cpu")).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    numbers = torch.arange(2**num_edges, device=device)[:, None]
    return (numbers >> torch.arange(num_edges, device=device)) & 1


def with_edges(graphs: Contexts, places: Edges, values: Tensor, *, symmetric: bool) -> Contexts:
    """Return the graphs with ``values`` (graph, edge) at given entries; in both entries of a pair if symmetric."""
    changed = graphs.clone()
    changed[:, places[:, 0], places[:, 1]] = values.to(changed.dtype)
    if symmetric:
        changed[:, places[:, 1], places[:, 0]] = values.to(changed.dtype)
    return changed


def closest_of_all(outputs: Float[Tensor, "batch graph number"]) -> Float[Tensor, " batch"]:
    """Return the smallest distance between the outputs of any two graphs, for each input, in the maximum norm.

    >>> closest_of_all(torch.tensor([[[0.0, 0.0], [5.0, 1.0], [5.0, 4.0]]])).tolist()
    [3.0]
    """
    graphs, closest = outputs.shape[1], []
    for own in outputs:  # (graph, number)
        nearest = torch.inf
        for rows in torch.split(torch.arange(graphs, device=own.device), max(1, NUMBERS_AT_ONCE // graphs)):
            distances = torch.cdist(own[rows], own, p=torch.inf)
            distances[torch.arange(len(rows), device=own.device), rows] = torch.inf  # from itself
            nearest = min(nearest, distances.min().item())
        closest.append(nearest)
    return outputs.new_tensor(closest)


def closest_of_sampled(
    predict: Predict, bases: Contexts, others: Others, places: Edges, *, symmetric: bool, generator: Generator
) -> tuple[Float[Tensor, " batch"], int]:
    """Return the smallest distance between sampled pairs of graphs for each input, and the number of pairs.

    The first graph of a pair is one of the ``bases``; the second is the same graph with some edges flipped, so the two
    always differ. In the last pairs the second graph is one of ``others``.
    """
    before = predict(bases)  # (batch, base, number)
    closest, pairs = before.new_full((len(before),), torch.inf), 0
    present = bases[:, places[:, 0], places[:, 1]] > 0  # (base, edge)
    towards = others[:, places[:, 0], places[:, 1]] > 0
    at_once = max(64, NUMBERS_AT_ONCE // bases.shape[-1] ** 2)
    for turns in _turns(places, present, towards, generator):
        for rows in torch.split(torch.arange(len(turns), device=bases.device), at_once):
            base = rows % len(bases)
            graphs = with_edges(bases[base], places, present[base] ^ turns[rows], symmetric=symmetric)
            distances = (predict(graphs) - before[:, base]).abs().amax(-1)  # (batch, pair)
            closest, pairs = torch.minimum(closest, distances.amin(1)), pairs + len(rows)
    return closest, pairs


def _turns(
    places: Edges, present: Bool[Tensor, "base edge"], towards: Bool[Tensor, "other edge"], generator: Generator
) -> Iterator[Turns]:
    """Yield sets of edges to flip: single edges; two; several edges into one node; differences to other graphs."""
    count, device = len(places), places.device
    order = torch.randperm(count, generator=generator, device=generator.device)[:SINGLES].to(device)
    for part in torch.split(order, SAMPLED):
        yield torch.nn.functional.one_hot(part, count).bool()
    keys = torch.rand(SAMPLED, count, generator=generator, device=generator.device).to(device)
    yield _smallest(keys, 2)
    keys = torch.rand(SAMPLED, count, generator=generator, device=generator.device).to(device)
    node = torch.randint(count, (SAMPLED, 1), generator=generator, device=generator.device).to(device)
    same_row = places[:, 0] == places[node, 0]  # (pair, edge): into the node of a random edge
    size = torch.randint(ROW_FLIPS[0], ROW_FLIPS[1] + 1, (SAMPLED, 1), generator=generator, device=generator.device)
    yield _smallest(keys + ~same_row, size.to(device)) & same_row
    base = torch.arange(len(towards), device=device) % len(present)
    turns = towards ^ present[base]
    turns[:, 0] |= ~turns.any(1)  # flip at least one edge
    yield turns


def _smallest(keys: Float[Tensor, "pair edge"], size: int | Int[Tensor, "pair 1"]) -> Turns:
    """Return a mask of the ``size`` smallest keys of each row."""
    return keys.argsort(1).argsort(1) < size


@dataclass(frozen=True)
class Injectivity:
    """The result of the injectivity check.

    ``share``    the share of the inputs at which all compared graphs gave different predictions
    ``closest``  the smallest relative distance of two graphs' outputs, at the input where it is largest
    """

    enumerated: bool
    num_edges: int
    num_inputs: int
    comparisons: int
    share: float
    closest: float

    @property
    def holds(self) -> bool:
        """True if there was an input at which all compared graphs gave different predictions."""
        return self.share > 0

    def sentence(self) -> str:
        """The result as a sentence, proven or sampled."""
        if self.num_edges == 0:
            return "No learned edge is identifiable from the predictions."
        edges = f"the {self.num_edges} learned edges that have an effect"
        what = f"all {2**self.num_edges:,} graphs" if self.enumerated else f"{self.comparisons:,} pairs of graphs"
        inputs = f"{round(self.share * self.num_inputs)} of {self.num_inputs} inputs"
        if not self.holds:
            none = (
                f"at each of the {self.num_inputs} tested inputs some of {what} over {edges} give the same prediction"
            )
            return f"The condition of the theorem was not met: {none}."
        if self.enumerated:
            return f"The condition of the theorem holds: {what} over {edges} give different predictions at {inputs}."
        apart = f"{what} over {edges} gave different predictions at {inputs}"
        return f"The condition of the theorem was not refuted: {apart}; sampled, not proven."


@torch.no_grad()
def check_injectivity(
    model: LatentGraphModel, inputs: Inputs, *, generator: Generator, edges: EdgeMask | None = None
) -> Injectivity:
    """Compare graphs that differ in ``edges``, by default all learned edges, at some of the inputs.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, predictor = BernoulliGraph(torch.full((2, 2), 0.5)), HopPredictor(torch.ones(1, 1, 1))
    >>> model, rng = LatentGraphModel(graph, predictor, EnergyScore()), Generator().manual_seed(0)
    >>> check_injectivity(model, torch.tensor([[[0.5], [0.8]]]), generator=rng).holds
    True
    >>> check_injectivity(model, torch.tensor([[[0.5], [0.5]]]), generator=rng).holds  # which of the two is read?
    False
    """
    model.graph.require_all_pairs("check_injectivity")
    graph, places = model.graph, free_edges(model.graph)
    varied = ~graph.fixed if edges is None else ~graph.fixed & edges.to(graph.fixed.device)
    places = places[varied[places[:, 0], places[:, 1]]]
    enumerated = len(places) <= ENUMERATED_EDGES
    num_inputs = min(MOST_INPUTS, COMPARISONS // 4 ** len(places)) if enumerated else SAMPLED_INPUTS
    order = torch.randperm(len(inputs), generator=generator, device=generator.device)[:num_inputs]
    some = inputs[order.to(inputs.device)].double()
    if len(places) == 0:
        return Injectivity(True, 0, len(some), 0, 1.0, torch.inf)
    drawn = draw_contexts(graph, BASES, generator=generator, pulled=False).double()
    bases = torch.where(varied, drawn, (graph.edge_probs > 0.5).double())

    # Predictions in units of the spread, in double precision, some graphs at a time.
    exact = copy.deepcopy(model).double()
    spread, nodes = predictive_spread(exact.describe(some, bases[None]), exact.observation), bases.shape[-1]
    at_once = max(1, NUMBERS_AT_ONCE // (nodes * (nodes + len(some))))

    def predict(graphs: Contexts) -> Float[Tensor, "batch graph number"]:
        parts = [exact.describe(some, part[None]) / spread.values for part in torch.split(graphs, at_once)]
        return torch.cat(parts, 1).flatten(2)

    if enumerated:
        choices = all_choices(len(places), places.device)
        graphs = with_edges(bases[:1].expand(len(choices), -1, -1), places, choices, symmetric=graph.symmetric)
        closest, pairs = closest_of_all(predict(graphs)), len(choices) * (len(choices) - 1) // 2
    else:
        others = draw_contexts(graph, SAMPLED, generator=generator)
        closest, pairs = closest_of_sampled(
            predict, bases, others, places, symmetric=graph.symmetric, generator=generator
        )
    share = (closest > DISTINCT).double().mean().item()
    return Injectivity(enumerated, len(places), len(some), pairs, share, closest.max().item())

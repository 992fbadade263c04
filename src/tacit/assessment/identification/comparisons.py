"""Pairs of graphs to compare, and the distances between their predictions; used by ``injectivity``."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from tacit.assessment.identification.contexts import Contexts, Edges

Others = Float[Tensor, "other node node"]
Choices = Int[Tensor, "graph edge"]  # which of some edges are present
Turns = Bool[Tensor, "pair edge"]  # which of some edges the second graph of a pair has flipped
Predict = Callable[[Contexts], Float[Tensor, "batch graph number"]]
# Pairs of each kind, and of single flips: all of them up to 64 nodes.
SAMPLED, SINGLES = 1024, 4096
ROW_FLIPS = (3, 8)
NUMBERS_AT_ONCE = 2**20


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

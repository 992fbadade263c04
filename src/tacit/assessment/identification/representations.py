r"""Equivalent solutions: with a learned predictor, another graph may predict as well.

The data depend on $(\theta, \psi)$ only through the distribution of $f_\psi(x, A)$. A learned predictor can compensate
a change of the graph: $\sum_j (1 - A_{ij}) x_j = \sum_j x_j - \sum_j A_{ij} x_j$, so the complement graph with a
flipped sign of a weight predicts the same, if the predictor can add $\sum_j x_j$; and a weight of a node's own value
can replace a self-loop. For each such graph $\theta'$ only the predictor is trained, from its current parameters and
from random ones, for complements also with a flipped sign of one tensor, and the best result is compared with the
current solution. It is equivalent unless its validation loss is higher both by more than two standard errors of the
paired difference and by more than 0.5% of the skill of the predictions, that is, of the loss with the targets of other
pairs minus the loss.

Not finding an equivalent graph proves nothing: the search is short, and there are other changes than these. The best
start is chosen on the same validation pairs, which slightly favours the other graph.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.errors import require
from tacit.graph import GraphDistribution
from tacit.local import Difference, paired_difference
from tacit.predictors import initial_parameters
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import (
    CosineDecay,
    FitSettings,
    LatentGraphModel,
    LiftName,
    Progress,
    fit,
    pair_losses,
    with_fixed_graph,
)

COMPLEMENT = "the complement graph"
WHOLE_COMPLEMENT = "the complement graph, self-loops included"
LOOPS_OFF = "the graph with self-loops off"
LOOPS_ON = "the graph with self-loops on"
CERTAIN = "the deterministic graph of the edges above 0.5"
COMPLEMENTS = (COMPLEMENT, WHOLE_COMPLEMENT)
# Graphs are equal if all of their probabilities differ by less than this.
SAME_GRAPH = 0.05
Start = dict[str, Tensor]
SETTINGS = FitSettings(epochs=10, schedule=CosineDecay(0.05))
# Training pairs, tensors with a flipped sign (the largest first), and random starts: some seconds on two cores.
MOST_PAIRS, MOST_SIGNS, FRESH_STARTS = 4096, 6, 2
# Share of the skill of the predictions: the accuracy of a short training. On the paper's system, where self-loops have
# probability 0.75, switching them on costs 1.4%.
TOLERANCE = 0.005


def other_graphs(graph: GraphDistribution) -> dict[str, EdgeProbs]:
    r"""Return named changes of the learned edges; changes without an effect are left out.

    They are the complement, $1 - \theta$, which a predictor can compensate by sums over all nodes; self-loops switched
    off or on, which a node's own path can replace; and the deterministic graph, because an edge that is always present
    with a smaller weight resembles an edge that acts at times.

    >>> from tacit.graph import BernoulliGraph
    >>> graph = BernoulliGraph(torch.tensor([[0.0, 0.25], [1.0, 0.0]]), fixed=torch.eye(2, dtype=torch.bool))
    >>> [probs.tolist() for probs in other_graphs(graph).values()]  # the complement, and without chance
    [[[0.0, 0.75], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]
    """
    graph.require_all_pairs("other_graphs")
    probs = graph.edge_probs.detach()
    itself = torch.eye(graph.num_nodes, dtype=torch.bool, device=probs.device)
    loops, others = ~graph.fixed & itself, ~graph.fixed & ~itself
    changed = {
        COMPLEMENT: torch.where(others, 1 - probs, probs),
        WHOLE_COMPLEMENT: torch.where(others | loops, 1 - probs, probs),
        LOOPS_OFF: torch.where(loops, 0.0, probs),
        LOOPS_ON: torch.where(loops, 1.0, probs),
        CERTAIN: torch.where(graph.fixed, probs, (probs > 0.5).to(probs.dtype)),
    }
    if not loops.any() or not others.any():
        del changed[WHOLE_COMPLEMENT]
    return {name: new for name, new in changed.items() if not same_graph(new, probs, ~graph.fixed)}


def same_graph(one: EdgeProbs, other: EdgeProbs, edges: EdgeMask) -> bool:
    """Return whether the probabilities of some edges are equal up to a tolerance."""
    return not bool(((one - other).abs() > SAME_GRAPH)[edges].any())


@dataclass(frozen=True)
class Representation:
    """Another graph, the predictor that was trained for it, and its comparison with the current solution.

    ``difference``  validation loss minus that of the current solution, with its standard error
    ``tolerance``   differences below this are ignored
    """

    name: str
    edge_probs: EdgeProbs
    parameters: Start
    difference: Difference
    tolerance: float

    @property
    def equivalent(self) -> bool:
        """True if it predicts as well within the accuracy of the comparison."""
        return not self.difference.clearly_higher or self.difference.mean <= self.tolerance

    def sentence(self) -> str:
        """Say it."""
        by = f"validation loss {self.difference.mean:+.2g} with standard error {self.difference.std_error:.1g}"
        if self.equivalent:
            return f"{self.name[0].upper()}{self.name[1:]} with another predictor predicts as well ({by})."
        return f"{self.name[0].upper()}{self.name[1:]} predicts worse with every predictor that was tried ({by})."


def find_representations(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    *,
    generator: Generator,
    names: Collection[str] | None = None,
    settings: FitSettings | None = None,
    lift: LiftName = "auto",
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[Representation]:
    """Search for other graphs with which a retrained predictor predicts as well; the model itself is not changed.

    Returns one result for each tested graph, equivalent or not; empty if the predictor is known. ``names`` selects from
    :func:`~tacit.assessment.identification.representations.other_graphs`, by default all. ``settings``, ``lift``,
    ``compile`` and ``on_progress`` are those of :func:`tacit.training.fit`.
    """
    model.graph.require_all_pairs("find_representations")
    for name, pairs in (("train", train), ("validation", validation)):
        require(isinstance(pairs, Pairs), f"{name} must be Pairs, got {type(pairs).__name__}; build them")
        require(
            pairs.num_nodes == model.graph.num_nodes,
            f"{name} must have {model.graph.num_nodes} nodes like the graph, got {pairs.num_nodes}; pass the model's "
            "data",
        )
    device, dtype = train.inputs.device, train.inputs.dtype
    others = other_graphs(model.graph)
    graphs = {name: probs.to(device, dtype) for name, probs in others.items() if names is None or name in names}
    starts = {name: predictor_starts(model, generator, signs=name in COMPLEMENTS) for name in graphs}
    if not any(starts.values()):
        return []
    present = with_fixed_graph(model, model.graph.edge_probs.detach()).to(device, dtype)
    if train.observed is not None or validation.observed is not None:
        train, validation = train.with_mask(), validation.with_mask()
    seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
    own, weights = pair_losses(present, {}, validation, generator=generator_for(seed, "compare", device))
    rolled = None if validation.observed is None else validation.observed.roll(1, 0)
    shuffled = Pairs(validation.inputs, validation.targets.roll(1, 0), rolled)
    others_targets, other_weights = pair_losses(present, {}, shuffled, generator=generator_for(seed, "compare", device))
    worth = (others_targets.sum() / other_weights.sum() - own.sum() / weights.sum()).item()
    tried = _train(present, graphs, starts, train, validation, settings or SETTINGS, lift, compile, on_progress)
    found = []
    for name, parameters in tried.items():
        fixed = {"graph.fixed_probs": graphs[name]}
        losses, _ = pair_losses(
            present, parameters | fixed, validation, generator=generator_for(seed, "compare", device)
        )
        difference = paired_difference(losses, own, weights)
        found.append(Representation(name, graphs[name], parameters, difference, TOLERANCE * max(worth, 0.0)))
    return found


def predictor_starts(model: LatentGraphModel, generator: Generator, *, signs: bool = True) -> list[Start]:
    """Return initial predictor parameters: current, with the sign of a tensor flipped, and random; none if known."""
    named = model.named_parameters()
    present = {name: value.detach() for name, value in named if value.requires_grad and not name.startswith("graph.")}
    if not present:
        return []
    own = [name for name in present if name.startswith("predictor.")]
    largest = sorted(own, key=lambda name: -present[name].numel())[:MOST_SIGNS]
    turned = [present | {name: -present[name]} for name in largest] if signs else []
    starts = [present, *turned]
    for _ in range(FRESH_STARTS):
        parts = {part: initial_parameters(getattr(model, part), generator) for part in ("predictor", "observation")}
        fresh = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
        starts.append({name: fresh[name] for name in present})
    return starts


def _train(
    present: LatentGraphModel,
    graphs: dict[str, EdgeProbs],
    starts: dict[str, list[Start]],
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    lift: LiftName,
    compile: bool,
    on_progress: Callable[[Progress], None] | None,
) -> dict[str, Start]:
    """Return the best predictor's parameters for each graph; every graph and start is a replica of one fit."""
    names = [name for name in graphs for _ in starts[name]]
    every = [start for name in graphs for start in starts[name]]
    seeds = range(len(names))
    stacks = {name: torch.stack([start[name] for start in every]) for name in every[0]}
    trained = with_fixed_graph(present, present.graph.edge_probs).to(train.inputs.device, train.inputs.dtype)
    stack = torch.stack([graphs[name] for name in names])
    result = fit(
        trained, train[:MOST_PAIRS], validation, settings, seeds=seeds, lift=lift, compile=compile,
        starts=stacks, constants={"graph.fixed_probs": stack}, on_progress=on_progress,
    )  # fmt: skip
    if result.interrupted:
        raise KeyboardInterrupt
    losses = [replica.validation_loss for replica in result.replicas]
    best = {name: min((r for r in seeds if names[r] == name), key=losses.__getitem__) for name in graphs}
    parameters = {name: value for name, value in result.parameters.items() if not name.startswith("graph.")}
    return {name: {key: value[r] for key, value in parameters.items()} for name, r in best.items()}

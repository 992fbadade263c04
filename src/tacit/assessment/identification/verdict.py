r"""The verdict on the identifiability of edges, with reasons.

An edge is not identifiable if

- its relative effect is below $10^{-4}$: flipping it changes no prediction;
- with ``num_pairs`` $= n$ given, $\mathrm{effect} \cdot \sqrt n < 2$: its effect is too weak for $n$ pairs. From one
  output of spread $s$, $\theta_a$ has a standard error of about
  $s / (d_a \sqrt n) = 1 / (\mathrm{effect} \cdot \sqrt n)$; above 1/2, probabilities 0 and 1 are within two standard
  errors of each other;
- it has a twin (see below): the number of present edges is identifiable, not which.

In large graphs an edge is evaluated on few inputs and graphs. Edges that then seem to have no effect, or a weak one,
are evaluated again on many inputs and graphs.

Edges $a$ and $b$ are twins if exchanging them changes nothing, $f(x, a{=}1, b{=}0) = f(x, a{=}0, b{=}1)$, for example
if two nodes always send equal values. In a graph with both or neither of them, this means $d_a(x, A) = d_b(x, A)$; in a
graph with one of them, the effects are those of a first and of a second edge and need not be equal (tanh). So the two
vectors of effects over inputs, outputs and the graphs $g$ with $A_a = A_b$ are compared:

$$\cos = \frac{\langle d_a, d_b \rangle_{ab}}{|d_a|_{ab}\, |d_b|_{ab}} > 1 - 10^{-4}, \qquad
  \Big| \frac{|d_a|_{ab}}{|d_b|_{ab}} - 1 \Big| < 0.01,
  \qquad \langle u, v \rangle_{ab} = \sum_{g: A_a = A_b} u_g \cdot v_g$$

Edges with opposite effects are not twins, and neither are edges without an effect. In large graphs only edges into the
same node are compared. They use few inputs and graphs at first, and among a million pairs of short vectors some agree
by chance: pairs that agree are tested again on other inputs and graphs, which can be many because few edges remain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float, UInt8
from torch import Generator, Tensor

from tacit.assessment.identification.effects import Flips, Spread, flip_edges, free_edges, place_effects, prepare_trials
from tacit.assessment.identification.injectivity import Injectivity, check_injectivity
from tacit.assessment.identification.separation import can_separate, separation_errors
from tacit.errors import require, require_int
from tacit.graph import NamedNodes
from tacit.local import CLEAR
from tacit.shapes import EdgeMask, EdgeProbs, Inputs, Observed, Targets
from tacit.training import LatentGraphModel

LISTED = 5
Place = tuple[int, int]  # row and column: target and source
Flag = Literal["", "yes", "no"]
COSINE, LENGTH = 1e-4, 0.01
# A smaller relative effect counts as none: float32 rounds at a thousandth of it.
NEGLIGIBLE = 1e-4
INSEPARABLE = 0.25  # standard error from which a 95% interval contains every probability
YES_NO = (
    "For yes-or-no targets only the shape of the response separates how often an edge acts from how strongly; if "
    "effects are small, the data determine only their product."
)
FLAGS: tuple[Flag, ...] = ("", "yes", "no")  # whether an edge is identifiable; empty for fixed edges


def count_of(number: int, thing: str) -> str:
    """Format a number with its noun.

    >>> count_of(1, "edge"), count_of(1200, "edge")
    ('1 edge', '1,200 edges')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def listed(words: Sequence[str]) -> str:
    """Join some words with commas, and add how many more there are.

    >>> listed(["a", "b"]), listed(list("abcdefgh"))
    ('a and b', 'a, b, c, d, e and 3 more')
    """
    shown = list(words[:LISTED]) if len(words) > LISTED + 1 else list(words)
    rest = len(words) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def count_edges(mask: EdgeMask, *, symmetric: bool) -> int:
    """Return the number of edges in a mask; pairs of a symmetric mask are counted once."""
    return int((mask.triu() if symmetric else mask).sum())


def describe_edges(mask: EdgeMask, learned: EdgeMask, nodes: NamedNodes) -> str:
    """Describe the edges of a mask: the whole diagonal, all into a node, all out of a node, and the rest one by one.

    >>> import torch
    >>> learned = torch.ones(3, 3, dtype=torch.bool)
    >>> describe_edges(torch.eye(3, dtype=torch.bool), learned, NamedNodes(("a", "b", "c")))
    "every node's edge to itself"
    >>> mask = torch.zeros(3, 3, dtype=torch.bool)
    >>> mask[1], mask[0, 2] = True, True
    >>> describe_edges(mask, learned, NamedNodes(("a", "b", "c")))
    "all edges into b, whose output ignores its inputs; 'c -> a'"
    """
    left, learned = mask.cpu().clone(), learned.cpu().clone()
    phrases = []
    own = learned.diagonal()
    if int(own.sum()) > 1 and bool((left.diagonal() == own).all()):
        phrases.append("every node's edge to itself")
        left.fill_diagonal_(False)
        learned.fill_diagonal_(False)
    if nodes.symmetric:
        phrases += _whole_lines(left, learned, nodes, lambda name: f"all edges of {name}")
        left = left.triu()
    else:
        reads = "all edges into {}, whose output ignores its inputs".format
        phrases += _whole_lines(left, learned, nodes, reads)
        phrases += _whole_lines(left.mT, learned.mT, nodes, "all edges out of {}, which change no prediction".format)
    places = left.nonzero().tolist()
    if places:
        phrases.append(listed([nodes.edge(source, target) for target, source in places]))
    return "; ".join(phrases)


def _whole_lines(left: EdgeMask, learned: EdgeMask, nodes: NamedNodes, phrase: Callable[[str], str]) -> list[str]:
    """Name the rows whose learned edges are all in the mask, and remove them from the mask."""
    whole = (learned.sum(1) > 1) & ((left & learned) == learned).all(1) & left.any(1)
    numbers: list[int] = whole.nonzero().flatten().tolist()
    for row in numbers:
        left[row] = learned[row] = False
        if nodes.symmetric:
            left[:, row] = learned[:, row] = False
    return [phrase(listed([nodes.names[row] for row in numbers]))] if numbers else []


def confirmed_twins(
    model: LatentGraphModel,
    inputs: Inputs,
    targets: Targets | None,
    candidates: list[tuple[Place, Place]],
    *,
    generator: Generator,
    observed: Observed | None = None,
) -> list[tuple[Place, Place]]:
    """Return the pairs of edges that are also twins on new inputs and graphs."""
    if not candidates:
        return []
    places = sorted({place for pair in candidates for place in pair})
    edges = torch.tensor(places, device=inputs.device)
    trials = prepare_trials(model, inputs, targets, generator=generator, observed=observed, edges=edges)
    again = {pair for flips in flip_edges(model, trials, edges) for pair in twins_among(flips, trials.spread)}
    return [pair for pair in candidates if pair in again]


def twins_among(flips: Flips, spread: Spread) -> list[tuple[Place, Place]]:
    """Return the twins among some edges."""
    differences = (flips.differences / spread.values).transpose(1, 2).flatten(2)  # (edge, graph, number)
    present, absent = flips.present, 1 - flips.present
    inner = sum(_inner(differences * there[..., None]) for there in (present, absent))
    squares = differences.square().sum(-1)  # (edge, graph)
    own = (squares * present) @ present.mT + (squares * absent) @ absent.mT  # [a, b]: |d_a|^2 where A_a = A_b
    agreeing = present @ present.mT + absent @ absent.mT
    numbers = agreeing * flips.differences.shape[1]  # graphs times inputs
    lengths = own.sqrt()
    felt = lengths > NEGLIGIBLE * numbers.sqrt()
    same_way = inner > (1 - COSINE) * lengths * lengths.mT
    same_length = (lengths - lengths.mT).abs() < LENGTH * lengths.mT
    twins = (felt & felt.mT & same_way & same_length & same_length.mT).triu(1)
    edges: list[list[int]] = flips.edges.tolist()
    return [((edges[a][0], edges[a][1]), (edges[b][0], edges[b][1])) for a, b in twins.nonzero().tolist()]


def _inner(vectors: Float[Tensor, "edge graph number"]) -> Float[Tensor, "edge edge"]:
    flat = vectors.flatten(1)
    return flat @ flat.mT


@dataclass(frozen=True)
class Identifiability:
    """The identifiable edges. In matrices, rows are targets and columns are sources.

    ``effects``       relative effect of flipping each edge; 0 for fixed edges
    ``learned``       edges that are not fixed
    ``without_effect``, ``too_weak``, ``twins``  why edges are not ``identifiable``
    ``injectivity``   the condition of the theorem, or None if it was not tested
    ``constant``      nodes with constant targets
    ``errors``        standard error of each probability if the strengths of edges are learned too; None if it was not
                      computed (:mod:`tacit.assessment.identification.separation`)
    ``yes_no``        whether some targets are binary
    """

    effects: EdgeProbs
    learned: EdgeMask
    without_effect: EdgeMask
    too_weak: EdgeMask
    twins: list[tuple[Place, Place]]
    injectivity: Injectivity | None
    nodes: NamedNodes
    num_pairs: int | None = None
    constant: list[int] = field(default_factory=list)
    errors: EdgeProbs | None = None
    yes_no: bool = False

    @property
    def inseparable(self) -> EdgeMask:
        """Mask of identifiable edges for which how often they act cannot be separated from how strongly."""
        return self.identifiable & (self.errors >= INSEPARABLE) if self.errors is not None else self.learned & False

    @property
    def identifiable(self) -> EdgeMask:
        """Mask of the learned edges that are identifiable."""
        return self.learned & ~self.without_effect & ~self.too_weak & ~self._with_twin

    def flag(self, i: int, j: int) -> Flag:
        """Return whether the edge from node j to node i is identifiable; empty for a fixed edge."""
        return FLAGS[int(self.flags()[i, j])]

    def flags(self) -> UInt8[Tensor, "node node"]:
        """Return the flags of all edges as indices of ``FLAGS``."""
        codes = torch.where(self.identifiable, FLAGS.index("yes"), FLAGS.index("no"))
        return torch.where(self.learned, codes, FLAGS.index("")).to("cpu", torch.uint8)

    @property
    def reasons(self) -> list[str]:
        """One sentence for each reason why some edges are not identifiable; empty if all are."""
        lines = []
        if self.without_effect.any():
            lines.append(self._line(self.without_effect, "flipping {} changes no prediction"))
        if self.too_weak.any():
            lines.append(self._line(self.too_weak, f"the effect of {{}} is too weak for {self.num_pairs:,} pairs"))
        if self.twins:
            edges = [" and ".join(self.nodes.edge(column, row) for row, column in pair) for pair in self.twins]
            number = count_of(count_edges(self._with_twin, symmetric=self.nodes.symmetric), "edge")
            why = "each has the same effect as another, so only the number of present edges is identifiable"
            lines.append(f"{number} cannot be distinguished: {why} ({listed(edges)}).")
        return lines

    def sentences(self) -> list[str]:
        """Return all results as sentences."""
        total = count_edges(self.learned, symmetric=self.nodes.symmetric)
        good = count_edges(self.identifiable, symmetric=self.nodes.symmetric)
        every = "The learned edge" if total == 1 else f"All {total:,} learned edges"
        whole = every if good == total else f"{good:,} of {count_of(total, 'learned edge')}"
        are = "is" if good == 1 else "are"
        lines = [f"{whole} {are} identifiable from the predictions." if total else "No edge is learned.", *self.reasons]
        if self.constant:
            names = listed([self.nodes.names[node] for node in self.constant])
            lines.append(f"The targets of {names} never vary; effects there are relative to the spread of the others.")
        lines += self._separation()
        return lines if self.injectivity is None else [*lines, self.injectivity.sentence()]

    def _separation(self) -> list[str]:
        """Return a sentence on the edges whose probability cannot be separated from their strength."""
        if self.errors is None or not self.identifiable.any():
            return []
        lines = [YES_NO] if self.yes_no else []
        number = count_edges(self.inseparable, symmetric=self.nodes.symmetric)
        if number:
            acts = "1 edge acts" if number == 1 else f"{number:,} edges act"
            pairs = "" if self.num_pairs is None else f" with {self.num_pairs:,} pairs"
            mask = self.inseparable.triu() if self.nodes.symmetric else self.inseparable
            edges = listed([self.nodes.edge(column, row) for row, column in mask.nonzero().tolist()])
            lines.append(
                f"How often {acts} cannot be separated from how strongly{pairs}: the standard error of the probability "
                f"is {INSEPARABLE:g} or more if the strength is learned too ({edges})."
            )
        return lines

    def _line(self, mask: EdgeMask, why: str) -> str:
        number = count_edges(mask, symmetric=self.nodes.symmetric)
        why = why.format("it" if number == 1 else "them")
        return (
            f"{count_of(number, 'edge')} cannot be learned: {why} ({describe_edges(mask, self.learned, self.nodes)})."
        )

    @property
    def _with_twin(self) -> EdgeMask:
        mask = torch.zeros_like(self.learned)
        for row, column in {place for pair in self.twins for place in pair}:
            mask[row, column] = True
        return mask | mask.mT if self.nodes.symmetric else mask


@torch.no_grad()
def identify(
    model: LatentGraphModel,
    inputs: Inputs,
    targets: Targets | None = None,
    *,
    generator: Generator,
    observed: Observed | None = None,
    num_pairs: int | None = None,
    nodes: Sequence[str] | None = None,
    injectivity: bool = True,
) -> Identifiability:
    """Evaluate every learned edge on some of the inputs, and return which edges are identifiable.

    ``num_pairs``    number of training pairs; without it no edge is called too weak
    ``nodes``        the names of the nodes, by default their numbers
    ``injectivity``  whether to test the condition of the theorem too

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import ConvolutionStack
    >>> rng = Generator().manual_seed(0)
    >>> stack = ConvolutionStack.random([1, 1], self_loops=True, generator=rng)
    >>> model = LatentGraphModel(BernoulliGraph(torch.full((2, 2), 0.5)), stack, EnergyScore())
    >>> found = identify(model, torch.randn(8, 2, 1, generator=rng), generator=rng)
    >>> found.flag(0, 1), found.flag(1, 1), found.reasons
    ('yes', 'no', ["2 edges cannot be learned: flipping them changes no prediction (every node's edge to itself)."])
    """
    model.graph.require_all_pairs("identify")
    graph = model.graph
    if num_pairs is not None:
        require_int("num_pairs", num_pairs)
    names = tuple(f"node {number}" for number in range(graph.num_nodes)) if nodes is None else tuple(nodes)
    require(
        len(names) == graph.num_nodes,
        f"nodes must have a name for each of the {graph.num_nodes} nodes, got {len(names)}; pass the names in order",
    )
    trials = prepare_trials(model, inputs, targets, generator=generator, observed=observed)
    effects, twins = torch.zeros_like(graph.fixed_probs), []
    for flips in flip_edges(model, trials):
        place_effects(effects, flips, trials.spread, symmetric=graph.symmetric)
        twins += twins_among(flips, trials.spread)
    twins = confirmed_twins(model, inputs, targets, twins, generator=generator, observed=observed)
    learned, needed = ~graph.fixed, max(NEGLIGIBLE, CLEAR / (num_pairs or torch.inf) ** 0.5)
    doubtful = free_edges(graph)
    doubtful = doubtful[~(effects[doubtful[:, 0], doubtful[:, 1]] >= needed)]
    again = prepare_trials(model, inputs, targets, generator=generator, observed=observed, edges=doubtful)
    for flips in flip_edges(model, again, doubtful):
        place_effects(effects, flips, again.spread, symmetric=graph.symmetric)
    without = learned & ~(effects >= NEGLIGIBLE)
    weak = torch.zeros_like(learned)
    if num_pairs is not None:
        weak = learned & ~without & (effects < needed)
    errors = None
    if targets is not None and can_separate(model) and bool(learned.any()):
        given: dict[str, Any] = {"generator": generator, "observed": observed, "num_pairs": num_pairs}
        errors = separation_errors(model, inputs, targets, **given)
    check = check_injectivity(model, inputs, generator=generator, edges=~without) if injectivity else None
    constant: list[int] = trials.spread.constant.nonzero().flatten().tolist()
    named = NamedNodes(names, graph.symmetric)
    yes_no = "two values" in (model.observation.supports or (model.observation.support,))
    return Identifiability(effects, learned, without, weak, twins, check, named, num_pairs, constant, errors, yes_no)

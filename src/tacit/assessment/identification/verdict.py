r"""Identifiability of edges, with reasons.

An edge is not identifiable if

- its relative effect is below $10^{-4}$: flipping it changes no prediction;
- with ``num_pairs`` $= n$ given, $\mathrm{effect} \cdot \sqrt n < 2$: its effect is too weak for $n$ pairs. From one
  output of spread $s$, $\theta_a$ has a standard error of about
  $s / (d_a \sqrt n) = 1 / (\mathrm{effect} \cdot \sqrt n)$; above 1/2, probabilities 0 and 1 are within two standard
  errors of each other;
- it has a twin (:mod:`tacit.assessment.identification.twins`): the number of present edges is identifiable, not which.

In large graphs an edge is evaluated on few inputs and graphs. Edges that then seem to have no effect, or a weak one,
are evaluated again on many inputs and graphs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Generator, Tensor

from tacit.assessment.identification.contexts import free_edges
from tacit.assessment.identification.effects import flip_edges, place_effects, prepare_trials
from tacit.assessment.identification.injectivity import Injectivity, check_injectivity
from tacit.assessment.identification.separation import can_separate, separation_errors
from tacit.assessment.identification.twins import NEGLIGIBLE, Place, confirmed_twins, twins_among
from tacit.assessment.identification.words import count_edges, count_of, describe_edges, listed
from tacit.edges import FLAGS
from tacit.errors import require, require_int
from tacit.graph import NamedNodes
from tacit.local import CLEAR
from tacit.shapes import EdgeMask, EdgeProbs, Inputs, Observed, Targets
from tacit.training import LatentGraphModel

INSEPARABLE = 0.25  # standard error from which a 95% interval contains every probability
YES_NO = (
    "For yes-or-no targets only the shape of the response separates how often an edge acts from how strongly; if "
    "effects are small, the data determine only their product."
)


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

    def flag(self, i: int, j: int) -> str:
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

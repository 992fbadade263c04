r"""What is known of the edges before any data: some are ruled out, some are certain, some are more likely than others.

==============  ==========================================================  ===================================
rule            meaning                                                     $\theta_{ij}$
==============  ==========================================================  ===================================
``forbidden``   the edge cannot be                                          exactly 0, never learned
``required``    the edge is always there                                    exactly 1, never learned
``candidates``  between two nodes, no others can be (all can, when None)    exactly 0 for the others
``self_loops``  can a node read itself?                                     exactly 0 on the diagonal if not
``symmetric``   edges have no direction: what holds for one way holds for   $\theta_{ij} = \theta_{ji}$, one coin
                the other
``priors``      a belief, as a probability strictly between 0 and 1         learned, drawn to it by a penalty
==============  ==========================================================  ===================================
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Generator

from tacit.errors import InputError, require
from tacit.graph.bernoulli import INITIAL_PROBS, BernoulliGraph, require_range
from tacit.graph.links import Link
from tacit.graph.nodes import Edge, NamedNodes
from tacit.graph.priors import EdgePrior
from tacit.shapes import EdgeMask, EdgeProbs


@dataclass(frozen=True, eq=False)
class EdgeRules:
    """Rules for the edges between named nodes; an edge is (source, target), by names or by numbers.

    Rules that contradict each other are refused, naming the edge. ``candidates`` may also be a mask, true at
    [target, source] like the rows and columns of a graph; self-loops are ruled by ``self_loops`` alone.

    >>> rules = EdgeRules(("a", "b", "c"), forbidden={("a", "b")}, required={("c", "a")}, priors={("b", "a"): 0.9})
    >>> graph = rules.build(generator=Generator().manual_seed(0))
    >>> graph.edge_probs[1, 0].item(), graph.edge_probs[0, 2].item(), int(rules.allowed.sum())
    (0.0, 1.0, 4)
    """

    nodes: tuple[str, ...]
    forbidden: Collection[Edge] = frozenset()
    required: Collection[Edge] = frozenset()
    symmetric: bool = False
    self_loops: bool = False
    candidates: Collection[Edge] | EdgeMask | None = None
    priors: Mapping[Edge, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        believed = ~self._beliefs.isnan()
        self._refuse(self._required & self._forbidden, "required and forbidden both name edge {}; drop one of them")
        self._refuse(believed & self._forbidden, "priors names edge {}, which is forbidden; drop one of them")
        self._refuse(believed & self._required, "priors names edge {}, which is required; drop one of them")
        for name, named in (("required", self._required), ("priors", believed)):
            loops = named & self._loops & (not self.self_loops)
            self._refuse(loops, f"{name} names edge {{}}, but self-loops are out; drop it, or set self_loops=True")
            others = named & ~self._candidates & ~self._loops
            self._refuse(others, f"{name} names edge {{}}, which is not among the candidates; add it to them")

    @cached_property
    def allowed(self) -> EdgeMask:
        """The entries that are learned: neither ruled out nor required."""
        between = self._candidates & ~self._loops
        possible = between | self._loops if self.self_loops else between
        return possible & ~self._forbidden & ~self._required

    def build(
        self,
        *,
        generator: Generator,
        low: float = INITIAL_PROBS[0],
        high: float = INITIAL_PROBS[1],
        link: Link | None = None,
    ) -> BernoulliGraph:
        """Return a graph that keeps the rules; what is learned starts uniformly in (``low``, ``high``)."""
        require_range(low, high)
        allowed, required = (mask.to(generator.device) for mask in (self.allowed, self._required))
        start = torch.where(allowed, high, required.to(torch.get_default_dtype()))
        graph = BernoulliGraph(start, ~allowed, initial_range=(low, high), link=link, symmetric=self.symmetric)
        graph.load_state_dict(graph.initial_parameters(generator), strict=False)
        return graph

    def prior(self, weight: float = 1.0, default: float | None = None) -> EdgePrior | None:
        """Return the beliefs as a penalty, or None when there are none.

        ``default`` is believed of all edges without a belief of their own; when None, they have no penalty.
        """
        believed = ~self._beliefs.isnan()
        if default is not None:
            require(
                isinstance(default, int | float) and 0 < default < 1,
                f"default needs a probability strictly between 0 and 1, got {default!r}; pass for example 0.1",
            )
            return EdgePrior(torch.where(believed, self._beliefs, default), weight)
        if not self.priors:
            return None
        return EdgePrior(torch.where(believed, self._beliefs, 0.5), weight, edges=believed)

    @cached_property
    def _named(self) -> NamedNodes:
        return NamedNodes(self.nodes, self.symmetric)

    @cached_property
    def _required(self) -> EdgeMask:
        return self._named.mask("required", self.required)

    @cached_property
    def _forbidden(self) -> EdgeMask:
        return self._named.mask("forbidden", self.forbidden)

    @cached_property
    def _candidates(self) -> EdgeMask:
        if self.candidates is None:
            return torch.ones_like(self._loops)
        return self._named.mask("candidates", self.candidates)

    @cached_property
    def _loops(self) -> EdgeMask:
        return torch.eye(len(self.nodes), dtype=torch.bool)

    @cached_property
    def _beliefs(self) -> EdgeProbs:
        """The priors as a matrix, NaN where there is none."""
        require(
            isinstance(self.priors, Mapping),
            f"priors needs a probability for each edge, got {self.priors!r}; pass for example {{(0, 1): 0.9}}",
        )
        found: dict[tuple[int, int], float] = {}
        for edge, probability in self.priors.items():
            target, source = self._named.place("priors", edge)
            name = self._named.edge(source, target)
            require(
                isinstance(probability, int | float) and 0 < probability < 1,
                f"priors needs probabilities strictly between 0 and 1, got {probability!r} for edge {name}; "
                "use forbidden or required for what is certain",
            )
            for place in {(target, source), (source, target)} if self.symmetric else {(target, source)}:
                before = found.setdefault(place, probability)
                require(
                    before == probability, f"priors gives edge {name} both {before:g} and {probability:g}; keep one"
                )
        beliefs = torch.full((len(self.nodes), len(self.nodes)), torch.nan)
        for place, probability in found.items():
            beliefs[place] = probability
        return beliefs

    def _refuse(self, wrong: EdgeMask, text: str) -> None:
        """Raise :class:`InputError` about the first edge of a mask, if it has any."""
        if wrong.any():
            target, source = (int(node) for node in wrong.nonzero()[0])
            raise InputError(text.format(self._named.edge(source, target)))

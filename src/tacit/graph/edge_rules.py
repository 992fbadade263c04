r"""Rules for edges: forbidden, required and candidate edges, and priors.

==============  ==========================================================  ===================================
rule            meaning                                                     $\theta_{ij}$
==============  ==========================================================  ===================================
``forbidden``   the edge is impossible                                      exactly 0, never learned
``required``    the edge is always present                                  exactly 1, never learned
``candidates``  the possible edges between two nodes (all, if None)         exactly 0 for the others
``self_loops``  whether a node may read itself                              exactly 0 on the diagonal if not
``symmetric``   edges have no direction; a rule for one direction applies   $\theta_{ij} = \theta_{ji}$, one variable
                to both
``priors``      a prior probability strictly between 0 and 1                learned, shrunk to it by a penalty
``lag_range``   lags at which edges may act; ``lags`` for single edges      unchanged; weights of other lags are 0
``simultaneous``
                edges may also act at lag 0, if their range includes it     unchanged
==============  ==========================================================  ===================================

Edges are stored as lists of positions, so a graph over a table of candidates never requires a full matrix.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from tacit.edges import EdgeIndex
from tacit.errors import InputError, require
from tacit.graph.bernoulli import INITIAL_PROBS, BernoulliGraph, require_range
from tacit.graph.candidate_edges import CandidateEdges
from tacit.graph.lag_ranges import ANY_LAG, LagRange, LagRanges
from tacit.graph.links import Link
from tacit.graph.nodes import Edge, NamedNodes, Places, isolated_nodes
from tacit.graph.priors import EdgePrior
from tacit.shapes import EdgeMask


@dataclass(frozen=True, eq=False)
class EdgeRules:
    """Rules for the edges between named nodes; an edge is (source, target), by name or by number.

    Contradictory rules raise an error that names the edge. ``candidates`` may also be a table or a mask, true at
    [target, source] like the rows and columns of a graph; only ``self_loops`` controls self-loops.

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
    candidates: Collection[Edge] | EdgeMask | CandidateEdges | None = None
    priors: Mapping[Edge, float] = field(default_factory=dict)
    lag_range: LagRange = ANY_LAG
    lags: Mapping[Edge, LagRange] = field(default_factory=dict)
    simultaneous: bool = False

    def __post_init__(self) -> None:
        believed = self._beliefs[0]
        self._refuse(
            _both(self._required, self._forbidden), "required and forbidden both name edge {}; drop one of them"
        )
        self._refuse(_both(believed, self._forbidden), "priors names edge {}, which is forbidden; drop one of them")
        self._refuse(_both(believed, self._required), "priors names edge {}, which is required; drop one of them")
        ranged = torch.tensor(sorted(self.lag_ranges.by_place if self.lag_ranges else ()), dtype=torch.long)
        self._refuse(_both(ranged, self._forbidden), "lags names edge {}, which is forbidden; drop one of them")
        for name, named in (("required", self._required), ("priors", believed), ("lags", ranged)):
            loops = self._are_loops(named)
            if not self.self_loops:
                text = f"{name} names edge {{}}, but self-loops are disabled; drop it, or set self_loops=True"
                self._refuse(named[loops], text)
            if self._candidates is not None:
                others = named[~loops & ~torch.isin(named, self._candidates)]
                self._refuse(others, f"{name} names edge {{}}, which is not among the candidates; add it to them")
        if not self.simultaneous:
            for one in self.lag_ranges.all if self.lag_ranges else ():
                one.require_lagged()
            return
        require(
            not self.symmetric,
            "symmetric must be false if edges may act within a step, got true; leave out symmetric or simultaneous",
        )
        self._refuse_cycles(self._required[self._only_within_step(self._required)])

    @cached_property
    def allowed(self) -> EdgeMask:
        """Mask of the entries that are learned: neither excluded nor required."""
        size = len(self.nodes)
        allowed = torch.full((size * size,), self._candidates is None)
        if self._candidates is not None:
            allowed[self._candidates] = True
        allowed[:: size + 1] = self.self_loops
        for held in (self._forbidden, self._required):
            allowed[held] = False
        return allowed.view(size, size)

    @cached_property
    def candidate_edges(self) -> CandidateEdges:
        """The table of the possible edges, learned or required; impossible edges have no slot."""
        if self._candidates is None:
            raise InputError(
                "a table of candidates requires candidates, got none; name some, or use a graph over all pairs"
            )
        require(
            not self.symmetric, "a table of candidates must have directed edges, got symmetric; leave symmetric out"
        )
        return self._possible(self._candidates)

    @cached_property
    def lag_ranges(self) -> LagRanges | None:
        """The lag ranges of all edges, or None if there are no limits."""
        size, found = len(self.nodes), dict[int, LagRange]()
        for edge, lags in self.lags.items():
            target, source = self._named.place("lags", edge)
            whole = lags.filled(self.lag_range)
            for row, column in {(target, source), (source, target)} if self.symmetric else {(target, source)}:
                found[row * size + column] = whole
        usual = ANY_LAG if self.simultaneous and self.lag_range[:2] == (0, None) else self.lag_range
        return None if usual.is_open and not found else LagRanges(size, usual, found)

    @property
    def may_act_within_step(self) -> EdgeMask:
        """Mask of the edges, learned or required, that may act at lag 0; self-loops are excluded.

        >>> rules = EdgeRules(("a", "b"), lags={("a", "b"): LagRange(1)}, simultaneous=True)  # a -> b after the step
        >>> rules.may_act_within_step.int().tolist()
        [[0, 1], [0, 0]]
        """
        found = torch.zeros(len(self.nodes), len(self.nodes), dtype=torch.bool)
        if self.simultaneous:
            source, target, _, _ = self.open_edges()
            found[target, source] = source != target
            if self.lag_ranges is not None:
                found[target, source] &= self.lag_ranges.within_step(source, target)
        return found

    @property
    def must_act_within_step(self) -> EdgeMask:
        """Mask of the required edges that act at lag 0 only."""
        found = torch.zeros(len(self.nodes) ** 2, dtype=torch.bool)
        found[self._required[self._only_within_step(self._required)]] = self.simultaneous
        return found.view(len(self.nodes), -1)

    @property
    def lagged(self) -> "EdgeRules":
        """The rules for lagged effects: lags of at least 1, without edges that act only at lag 0.

        >>> rules = EdgeRules(("a", "b"), lags={("a", "b"): LagRange(0, 0)}, simultaneous=True)
        >>> rules.lagged.allowed.int().tolist()
        [[0, 1], [0, 0]]
        """
        if not self.simultaneous:
            return self
        source, target, _, _ = self.open_edges()
        places, (believed, values) = target * len(self.nodes) + source, self._beliefs
        only = places[self._only_within_step(places)]
        later, ranges = ~torch.isin(believed, only), self.lag_ranges
        own = {} if ranges is None else {place: one.lagged for place, one in ranges.by_place.items() if one.high != 0}
        return replace(
            self,
            forbidden=self._edges(torch.cat([self._forbidden, only])),
            required=self._edges(self._required[~torch.isin(self._required, only)]),
            priors=dict(zip(self._edges(believed[later]), values[later].tolist(), strict=True)),
            lag_range=ANY_LAG if ranges is None or ranges.default.high == 0 else ranges.default.lagged,
            lags=dict(zip(self._edges(torch.tensor(list(own), dtype=torch.long)), own.values(), strict=True)),
            simultaneous=False,
        )

    @property
    def isolated(self) -> str:
        """Text that names the nodes without a possible edge to or from another node; empty if there are none."""
        return "" if self._candidates is None else isolated_nodes(self._possible(self._candidates), self.nodes)

    def _possible(self, candidates: Places) -> CandidateEdges:
        """Return the possible edges."""
        size = len(self.nodes)
        between = candidates[~self._are_loops(candidates)]
        loops = torch.arange(size if self.self_loops else 0) * (size + 1)
        possible = torch.cat([between, loops])
        possible = possible[~torch.isin(possible, self._forbidden)]
        return CandidateEdges.from_edges(possible % size, possible // size, size)

    def open_edges(
        self,
    ) -> tuple[Int[Tensor, " edge"], Int[Tensor, " edge"], Float[Tensor, " edge"], Bool[Tensor, " edge"]]:
        """Return source, target, prior probability (NaN if none) and a "required" flag of every possible edge."""
        size, (believed, values) = len(self.nodes), self._beliefs
        if self._candidates is None:
            places = (self.allowed.view(-1) | self._marked(self._required, None).view(-1)).nonzero()[:, 0]
        else:
            source, target = self._possible(self._candidates).edges()
            places = target * size + source
        given = torch.full((len(places),), torch.nan)
        given[torch.searchsorted(places, believed)] = values.to(given)
        return places % size, places // size, given, torch.isin(places, self._required)

    def index(self, *, as_table: bool) -> EdgeIndex:
        """Return the index of all pairs of nodes or, ``as_table``, of the possible edges."""
        if as_table:
            return self.candidate_edges.index(self.nodes)
        return EdgeIndex.all_pairs(self.nodes, symmetric=self.symmetric)

    def build(
        self,
        *,
        generator: Generator,
        low: float = INITIAL_PROBS[0],
        high: float = INITIAL_PROBS[1],
        link: Link | None = None,
        as_table: bool = False,
        kept: Bool[np.ndarray, " edge"] | None = None,
    ) -> BernoulliGraph:
        """Build a graph that satisfies the rules; learned entries start uniformly in (``low``, ``high``).

        With ``as_table`` it has one entry per slot of the table of candidates instead of one per pair of nodes. With
        ``kept``, over the :meth:`index`, only these edges are learned.
        """
        require_range(low, high)
        candidates = self.candidate_edges if as_table else None
        required = self._marked(self._required, candidates)
        allowed = self.allowed if candidates is None else candidates.used & ~required
        if kept is not None:
            chosen = torch.from_numpy(kept).view(allowed.shape) if candidates is None else candidates.placed(kept)
            allowed = allowed & chosen
        allowed, required = allowed.to(generator.device), required.to(generator.device)
        start = torch.where(allowed, high, required.to(torch.get_default_dtype()))
        graph = BernoulliGraph(
            start, ~allowed, initial_range=(low, high), link=link, symmetric=self.symmetric, candidates=candidates
        )
        graph.load_state_dict(graph.initial_parameters(generator), strict=False)
        return graph

    def prior(self, weight: float = 1.0, default: float | None = None, *, as_table: bool = False) -> EdgePrior | None:
        """Return the priors as a penalty, or None if there are none.

        ``default`` is the prior of all edges that have none; if it is None, those edges have no penalty.
        """
        require(
            default is None or (isinstance(default, int | float) and 0 < default < 1),
            f"default must be a probability strictly between 0 and 1, got {default!r}; pass for example 0.1",
        )
        if default is None and not self.priors:
            return None
        candidates, (places, values) = self.candidate_edges if as_table else None, self._beliefs
        believed = self._marked(places, candidates)
        probs = torch.full(believed.shape, 0.5 if default is None else default)
        probs.view(-1)[self._entries(places, candidates)] = values
        return EdgePrior(probs, weight, edges=believed if default is None else None)

    def _marked(self, places: Places, candidates: CandidateEdges | None) -> EdgeMask:
        """Return a mask of some edges, as a matrix or as a table."""
        size = (len(self.nodes), len(self.nodes)) if candidates is None else tuple(candidates.sources.shape)
        marked = torch.zeros(size, dtype=torch.bool)
        marked.view(-1)[self._entries(places, candidates)] = True
        return marked

    def _entries(self, places: Places, candidates: CandidateEdges | None) -> Places:
        """Return the flat positions of edges in a matrix or in a table."""
        size = len(self.nodes)
        return places if candidates is None else candidates.positions(places % size, places // size)

    def _are_loops(self, places: Places) -> Bool[Tensor, " edge"]:
        return places % (len(self.nodes) + 1) == 0  # i N + j = i (N + 1) + (j - i)

    @cached_property
    def _named(self) -> NamedNodes:
        return NamedNodes(self.nodes, self.symmetric)

    @cached_property
    def _required(self) -> Places:
        return self._named.places("required", self.required)

    @cached_property
    def _forbidden(self) -> Places:
        return self._named.places("forbidden", self.forbidden)

    @cached_property
    def _candidates(self) -> Places | None:
        return None if self.candidates is None else self._named.places("candidates", self.candidates)

    @cached_property
    def _beliefs(self) -> tuple[Places, Float[Tensor, " edge"]]:
        """The edges that have a prior, and the priors."""
        require(
            isinstance(self.priors, Mapping),
            f"priors must have a probability for each edge, got {self.priors!r}; pass for example {{(0, 1): 0.9}}",
        )
        found: dict[int, float] = {}
        size = len(self.nodes)
        for edge, probability in self.priors.items():
            target, source = self._named.place("priors", edge)
            name = self._named.edge(source, target)
            require(
                isinstance(probability, int | float) and 0 < probability < 1,
                f"priors must have probabilities strictly between 0 and 1, got {probability!r} for edge {name}; "
                "use forbidden or required for what is certain",
            )
            ways = ((target, source), (source, target))
            for row, column in set(ways) if self.symmetric else ways[:1]:
                before = found.setdefault(row * size + column, probability)
                require(
                    before == probability, f"priors gives edge {name} both {before:g} and {probability:g}; keep one"
                )
        places = torch.tensor(sorted(found), dtype=torch.long)
        return places, torch.tensor([float(found[place]) for place in places.tolist()])

    def _edges(self, places: Places) -> list[Edge]:
        """Return edges by number, (source, target)."""
        return [(place % len(self.nodes), place // len(self.nodes)) for place in places.tolist()]

    def _only_within_step(self, places: Places) -> Bool[Tensor, " edge"]:
        """Return the edges that act at lag 0 only."""
        if self.lag_ranges is None:
            return torch.zeros_like(places, dtype=torch.bool)
        _, high = self.lag_ranges.limits(places % len(self.nodes), places // len(self.nodes))
        return (high == 0) & ~self._are_loops(places)

    def _refuse_cycles(self, within_step: Places) -> None:
        """Raise an error if edges that must act within the step form a cycle: no node order would satisfy them."""
        parents: dict[int, set[int]] = {}
        for place in within_step.tolist():
            parents.setdefault(place // len(self.nodes), set()).add(place % len(self.nodes))
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            cycle = " -> ".join(self.nodes[node] for node in error.args[1])
            raise InputError(
                f"required edges that act only within the step (max_lag = 0) must not form a cycle, got {cycle}; "
                "raise max_lag of one of them, or leave it out"
            ) from None

    def _refuse(self, wrong: Places, text: str) -> None:
        """Raise :class:`InputError` about the first edge, if there are any."""
        if len(wrong):
            target, source = divmod(int(wrong[0]), len(self.nodes))
            raise InputError(text.format(self._named.edge(source, target)))


def _both(one: Places, other: Int[Tensor, " other"]) -> Int[Tensor, " both"]:
    """Return the edges that are in both."""
    return one[torch.isin(one, other)]

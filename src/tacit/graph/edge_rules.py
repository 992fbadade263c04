r"""Rules for edges: forbidden, required and candidate edges, priors, and lags.

Rules for edges: forbidden, required and candidate edges, and priors.

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

Lags at which edges may act: one range for all edges, which ranges of single edges override.

A lag is counted in steps before the target: with horizon $h$ the newest input has lag $h$, and the oldest of a window
of $w$ steps has lag $h + w - 1$. Lag 0 is an effect within the step. A node's own past is not restricted.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from tacit.edges import EdgeIndex
from tacit.errors import InputError, did_you_mean, require
from tacit.graph.bernoulli import INITIAL_PROBS, BernoulliGraph, require_range
from tacit.graph.layouts import AllPairs, CandidateEdges, Layout
from tacit.graph.links import Link
from tacit.graph.priors import EdgePrior
from tacit.shapes import EdgeMask

Node = int | str
Edge = tuple[Node, Node]  # (source, target)
Places = Int[Tensor, " edge"]  # flat positions of edges in a matrix: target * number of nodes + source
NAMED = 5  # number of isolated nodes that a message names
# A step of a filter on one core, 32 pairs with 8 graphs each, took over the table and over the matrix: at 200 nodes 24
# and 194 ms with 5% of all pairs as candidates, 135 and 392 ms with a quarter, 197 and 270 ms with half; at 400 nodes
# with half they are even. Up to 200 nodes a step is short either way, and the matrix keeps the random numbers of fits
# without candidates.
MANY_NODES = 200
FEW_CANDIDATES = 0.25  # of all ordered pairs
LayoutName = Literal["matrix", "table"]


@dataclass(frozen=True)
class NamedNodes:
    """The names of the nodes of a graph, in order.

    >>> nodes = NamedNodes(("a", "b", "c"))
    >>> nodes.place("required", ("c", "a")), nodes.edge(2, 0)
    ((0, 2), "'c -> a'")
    """

    names: tuple[str, ...]
    symmetric: bool = False

    def __post_init__(self) -> None:
        require_names(self.names)

    def edge(self, source: int, target: int) -> str:
        """Return an edge as text: ``'a -> b'``, or ``'a -- b'`` without a direction."""
        return f"'{self.names[source]} {'--' if self.symmetric else '->'} {self.names[target]}'"

    def number(self, argument: str, node: Node) -> int:
        """Return the number of a node; ``argument`` is the name used in error messages."""
        if isinstance(node, str):
            if node not in self._numbers:
                raise InputError(f"{argument} names unknown node '{node}'{did_you_mean(node, self.names)}")
            return self._numbers[node]
        require(
            isinstance(node, int) and not isinstance(node, bool) and 0 <= node < len(self.names),
            f"{argument} must be nodes by name or by number from 0 to {len(self.names) - 1}, got {node!r}; correct it",
        )
        return node

    def place(self, argument: str, edge: Edge) -> tuple[int, int]:
        """Return row and column of an edge in a graph: (target, source)."""
        require(
            isinstance(edge, tuple) and len(edge) == 2,
            f"{argument} must be edges as (source, target), got {edge!r}; pass for example (0, 1)",
        )
        source, target = (self.number(argument, node) for node in edge)
        return target, source

    def places(self, argument: str, edges: Collection[Edge] | EdgeMask | CandidateEdges) -> Places:
        """Return the flat position of each edge, sorted and without duplicates; undirected edges have two positions.

        >>> NamedNodes(("a", "b", "c")).places("required", {("c", "a"), ("a", "b")}).tolist()
        [2, 3]
        """
        count = len(self.names)
        if isinstance(edges, CandidateEdges):
            require(
                edges.num_nodes == count,
                f"{argument} must be a table of {count} nodes, got one of {edges.num_nodes}; make it for these nodes",
            )
            source, target = (ends.cpu() for ends in edges.edges())
        elif isinstance(edges, Tensor):
            require(
                edges.dtype == torch.bool and tuple(edges.shape) == (count, count),
                f"{argument} must be a mask of booleans of shape {(count, count)}, got {edges.dtype} of "
                f"{tuple(edges.shape)}; pass one true or false per ordered pair of nodes",
            )
            target, source = edges.cpu().nonzero().unbind(1)
        else:
            require(
                isinstance(edges, Collection) and not isinstance(edges, str),
                f"{argument} must be a set of edges (source, target), got {edges!r}; pass for example {{(0, 1)}}",
            )
            ends = [self.place(argument, edge) for edge in edges]
            target, source = torch.tensor(ends, dtype=torch.long).view(-1, 2).unbind(1)
        found = target * count + source
        places: Places = torch.unique(torch.cat([found, source * count + target]) if self.symmetric else found)
        return places

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}


def require_names(names: Sequence[str]) -> None:
    """Raise :class:`InputError` unless the names of the nodes are distinct strings."""
    require(
        isinstance(names, tuple | list) and len(names) > 0 and all(isinstance(name, str) and name for name in names),
        f"nodes must be a tuple of names, got {names!r}; pass for example ('a', 'b')",
    )
    seen: set[str] = set()
    for name in names:
        require(name not in seen, f"nodes must have names that differ, got '{name}' twice; rename one")
        seen.add(name)


def isolated_nodes(candidates: CandidateEdges, nodes: tuple[str, ...]) -> str:
    """Return text that names the nodes without a candidate edge to or from another node; "" if there are none."""
    source, target = candidates.edges()
    linked = torch.zeros(candidates.num_nodes, dtype=torch.bool, device=source.device)
    for ends in (source, target):
        linked[ends[source != target]] = True
    alone = (~linked).nonzero()[:, 0]
    names = [repr(nodes[node]) for node in alone[:NAMED].tolist()]
    more = ", ..." if len(alone) > NAMED else ""
    return f"{len(alone):,} of {candidates.num_nodes:,} nodes ({', '.join(names)}{more})" if names else ""


EdgeList = Int[Tensor, " edge"]
NO_LIMIT = 2**31


class LagRange(NamedTuple):
    """The smallest and the largest lag, None for no limit; ``where`` names where it was set, for messages."""

    low: int | None = None
    high: int | None = None
    where: str = "[graph]"

    @property
    def is_open(self) -> bool:
        """True if there is no limit."""
        return self.low is None and self.high is None

    @property
    def reach(self) -> int:
        """The largest lag that is named; 0 if none is."""
        return max(self.low or 0, self.high or 0)

    @property
    def lagged(self) -> "LagRange":
        """The range without lag 0."""
        return LagRange(1 if self.low == 0 else self.low, self.high, self.where)

    def named(self, name: str) -> str:
        """Return the name of a limit for an error message, with file and row or the section of the config."""
        return f"{name} in {self.where}" if self.where.startswith("[") else f"{self.where}: {name}"

    def filled(self, other: "LagRange") -> "LagRange":
        """Fill missing limits from another range; raise an error if the result is empty."""
        low = other.low if self.low is None else self.low
        high = other.high if self.high is None else self.high
        require(
            low is None or high is None or low <= high,
            f"{self.named('min_lag')} must be at most max_lag, got {low} and {high}; correct one of them",
        )
        return LagRange(low, high, self.where)

    def require_lagged(self) -> None:
        """Raise an error for lag 0 if edges may not act within a step."""
        for name, lag in (("min_lag", self.low), ("max_lag", self.high)):
            require(
                lag != 0,
                f"{self.named(name)} must be at least 1 unless edges may act within a step, got 0; raise it, or set "
                "simultaneous = true in [graph] (--simultaneous)",
            )

    def require_within(self, horizon: int, window: int | None) -> None:
        """Raise an error for lags without an input: newer than the newest, or older than the window."""
        for name, lag in (("min_lag", self.low), ("max_lag", self.high)):
            if not lag:  # lag 0 needs no input
                continue
            require(
                lag >= horizon,
                f"{self.named(name)} must be at least {horizon}, the lag of the newest input with horizon={horizon}, "
                f"got {lag}; raise it",
            )
            if window is not None and lag >= horizon + window:
                raise InputError(
                    f"{self.named(name)} must be at most {horizon + window - 1}, the oldest lag with "
                    f"window={window} and horizon={horizon}, got {lag}; lower it, or set window={lag - horizon + 1}"
                )


ANY_LAG = LagRange()


@dataclass(frozen=True, eq=False)
class LagRanges:
    """The ranges of all edges: ``default``, and those of single edges by place (target * number of nodes + source).

    >>> ranges = LagRanges(3, LagRange(1, 2), {1: LagRange(3, 3)})  # 1 -> 0 acts at lag 3
    >>> ranges.allowed(torch.tensor([1, 2]), torch.tensor([0, 0]), window=3, horizon=1).int().tolist()
    [[1, 0, 0], [0, 1, 1]]
    """

    num_nodes: int
    default: LagRange
    by_place: dict[int, LagRange]

    @property
    def all(self) -> list[LagRange]:
        """Every range that was set."""
        return [one for one in (self.default, *self.by_place.values()) if not one.is_open]

    @property
    def reach(self) -> int:
        """The largest lag that is named."""
        return max((one.reach for one in self.all), default=0)

    def within_step(self, source: EdgeList, target: EdgeList) -> Bool[Tensor, " edge"]:
        """Return which of some edges may act at lag 0: those without a positive minimum lag."""
        excluded = [place for place, one in self.by_place.items() if one.low]
        wanted, named = target * self.num_nodes + source, torch.tensor(sorted(self.by_place), dtype=torch.long)
        usual = torch.full_like(wanted, not self.default.low, dtype=torch.bool)
        own = ~torch.isin(wanted, torch.tensor(excluded, dtype=torch.long))
        return torch.where(torch.isin(wanted, named), own, usual)

    def limits(self, source: EdgeList, target: EdgeList) -> tuple[EdgeList, EdgeList]:
        """Return the smallest and the largest lag of some edges, without lag 0; (1, 0) if they act only at lag 0."""
        places = torch.tensor(sorted(self.by_place), dtype=torch.long)
        ranges = [self.default, *(self.by_place[place] for place in places.tolist())]
        lows = [max(one.low or 1, 1) for one in ranges]
        highs = [NO_LIMIT if one.high is None else one.high for one in ranges]
        wanted, found = target * self.num_nodes + source, []
        for usual, *values in (lows, highs):
            limit = torch.full_like(wanted, usual)
            if len(places):
                place = torch.searchsorted(places, wanted).clamp_max(len(places) - 1)
                own = torch.tensor(values, dtype=torch.long)
                limit = torch.where(places[place] == wanted, own[place], limit)
            found.append(limit)
        return found[0], found[1]

    def allowed(self, source: EdgeList, target: EdgeList, *, window: int, horizon: int) -> Bool[Tensor, "edge lag"]:
        """Return which inputs of a window each edge may read, the oldest first."""
        low, high = self.limits(source, target)
        lags = horizon + torch.arange(window).flip(0)
        return (low[:, None] <= lags) & (lags <= high[:, None])


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
        ranged = torch.tensor(sorted(self.lag_ranges.by_place if self.lag_ranges else ()), dtype=torch.long)
        for named, others, text in (
            (self._required, self._forbidden, "required and forbidden both name edge {}"),
            (believed, self._forbidden, "priors names edge {}, which is forbidden"),
            (believed, self._required, "priors names edge {}, which is required"),
            (ranged, self._forbidden, "lags names edge {}, which is forbidden"),
        ):
            self._refuse(named[torch.isin(named, others)], f"{text}; drop one of them")
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
        # Edges that must act within the step may not form a cycle: no node order would satisfy them.
        parents: dict[int, set[int]] = {}
        for place in self._required[self._only_within_step(self._required)].tolist():
            parents.setdefault(place // len(self.nodes), set()).add(place % len(self.nodes))
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            cycle = " -> ".join(self.nodes[node] for node in error.args[1])
            raise InputError(
                f"required edges that act only within the step (max_lag = 0) must not form a cycle, got {cycle}; "
                "raise max_lag of one of them, or leave it out"
            ) from None

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
            places = (self.allowed.view(-1) | self._marked(self._required, AllPairs(size)).view(-1)).nonzero()[:, 0]
        else:
            source, target = self._possible(self._candidates).edges()
            places = target * size + source
        given = torch.full((len(places),), torch.nan)
        given[torch.searchsorted(places, believed)] = values.to(given)
        return places % size, places // size, given, torch.isin(places, self._required)

    def usual_layout(self, wish: str) -> tuple[LayoutName, str | None, dict[str, float]]:
        """Return the layout of a graph if ``wish`` is "auto", the reason (None if there is no choice), its numbers.

        A table that is requested but not possible is refused.
        """
        asked = wish == "table"
        if self.symmetric:
            require(
                not asked,
                "layout 'table' requires directed edges, and symmetric is set; leave one of them out",
            )
            return "matrix", None if self.candidates is None else "no direction", {}
        if self.candidates is None:
            require(
                not asked,
                "layout 'table' requires candidates, got none; name some, or the nearest or most correlated",
            )
            return "matrix", None, {}
        nodes, count = len(self.nodes), self.candidate_edges.num_edges
        require(
            count > 0 or not asked,
            "layout 'table' requires a possible edge, and all candidates are forbidden; allow some of them",
        )
        share = count / nodes**2
        if asked or (wish == "auto" and count and nodes > MANY_NODES and share <= FEW_CANDIDATES):
            return "table", "few candidates", {"count": count, "share": share, "nodes": nodes}
        return "matrix", "few nodes" if nodes <= MANY_NODES else "most pairs", {}

    def layout(self, name: str) -> Layout:
        """Return a matrix of all pairs of nodes or, for "table", a table of the possible edges."""
        return self.candidate_edges if name == "table" else AllPairs(len(self.nodes))

    def index(self, layout: str) -> EdgeIndex:
        """Return the index of all pairs of nodes or, for "table", of the possible edges."""
        return self.layout(layout).index(self.nodes, symmetric=self.symmetric)

    def build(
        self,
        *,
        generator: Generator,
        low: float = INITIAL_PROBS[0],
        high: float = INITIAL_PROBS[1],
        link: Link | None = None,
        layout: str = "matrix",
        kept: Bool[np.ndarray, " edge"] | None = None,
    ) -> BernoulliGraph:
        """Build a graph that satisfies the rules; learned entries start uniformly in (``low``, ``high``).

        With ``layout`` "table" it has one entry per slot of the table of candidates instead of one per pair of nodes.
        With ``kept``, over the :meth:`index`, only these edges are learned.
        """
        require_range(low, high)
        candidates = self.candidate_edges if layout == "table" else None
        required = self._marked(self._required, self.layout(layout))
        allowed = self.allowed if candidates is None else candidates.used & ~required
        if kept is not None:
            allowed = allowed & self.layout(layout).placed(kept)
        allowed, required = allowed.to(generator.device), required.to(generator.device)
        start = torch.where(allowed, high, required.to(torch.get_default_dtype()))
        graph = BernoulliGraph(
            start, ~allowed, initial_range=(low, high), link=link, symmetric=self.symmetric, candidates=candidates
        )
        graph.load_state_dict(graph.initial_parameters(generator), strict=False)
        return graph

    def prior(self, weight: float = 1.0, default: float | None = None, *, layout: str = "matrix") -> EdgePrior | None:
        """Return the priors as a penalty, or None if there are none.

        ``default`` is the prior of all edges that have none; if it is None, those edges have no penalty.
        """
        require(
            default is None or (isinstance(default, int | float) and 0 < default < 1),
            f"default must be a probability strictly between 0 and 1, got {default!r}; pass for example 0.1",
        )
        if default is None and not self.priors:
            return None
        (places, values), entries = self._beliefs, self.layout(layout)
        believed = self._marked(places, entries)
        probs = torch.full(believed.shape, 0.5 if default is None else default)
        probs.view(-1)[entries.entries(places)] = values
        return EdgePrior(probs, weight, edges=believed if default is None else None)

    def _marked(self, places: Places, layout: Layout) -> EdgeMask:
        """Return a mask of some edges in a layout."""
        marked = torch.zeros(layout.shape, dtype=torch.bool)
        marked.view(-1)[layout.entries(places)] = True
        return marked

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

    def _refuse(self, wrong: Places, text: str) -> None:
        """Raise :class:`InputError` about the first edge, if there are any."""
        if len(wrong):
            target, source = divmod(int(wrong[0]), len(self.nodes))
            raise InputError(text.format(self._named.edge(source, target)))

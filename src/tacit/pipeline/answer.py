"""The answer of a fit in a few sentences: whether there is a graph, the listed edges, how often they act, comparisons.

The command and the report show these sentences first. All use the same numbers and the same criterion, so that they do
not contradict each other: a difference of forecasts is significant from two block standard errors on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tacit.assessment.evidence import joined_names
from tacit.assessment.uncertainty import ACTS, ALWAYS_ABOVE, FDR, false_discoveries
from tacit.graph import GraphDistribution
from tacit.local import is_clear
from tacit.pipeline.listing import Listing
from tacit.pipeline.within_step import acting_within, gaussian_of, within_sentences
from tacit.records import EdgeFindings

References = Mapping[str, Mapping[str, float]]
NO_GRAPH, FULL_GRAPH, RIDGE, CONSTANT_GRAPH = "no graph", "full graph", "ridge regression", "constant graph"
ERROR = "the forecast error (scaled CRPS)"
UNKNOWN = "Whether edges exist was not computed"
GROWS = "it may act at times, or always with noise that grows with the source"
HIDDEN = (
    "That an edge acts at times does not show that the graph is random: it may depend on a variable that is not in the "
    "table."
)
IMITATED = (
    "A probability between 0 and 1 means that a relation acts at some times and not at others, or that the model "
    "uses random edges to reproduce noise. On real data it is not evidence of a random graph."
)
NOT_COMPARED = "Whether it forecasts better than no graph was not tested"


@dataclass(frozen=True, eq=False)
class ListedGraph:
    """The edges of a fit; ``listed`` and ``required`` contain a pair without direction once.

    ``acting``      whether each edge acts always or at times, as places in ``ACTS``
    ``together``    a number that edges with a common gate share; NaN for other edges
    ``values``      the probability that each edge exists; without evidence, that it acts in a given observation
    ``undirected``  the pairs whose direction is open, in one entry, with the probability of either direction
    ``groups``      numbers of groups of copies in each row, 0 for other edges; the first edge of a group is listed
    ``within``      sentences on effects within a step, which ``num_within`` listed edges have
    """

    nodes: Sequence[str]
    values: Tensor
    probs: Tensor
    listed: Tensor
    required: Tensor
    sources: Tensor
    targets: Tensor
    symmetric: bool
    fdr: float
    evident: bool
    low: Tensor | None = None
    high: Tensor | None = None
    acting: Tensor | None = None
    gate_nats: Tensor | None = None
    together: Tensor | None = None
    lag: Tensor | None = None
    newest_lag: int = 1
    undirected: Tensor | None = None
    groups: Tensor | None = None
    within: tuple[str, ...] = ()
    num_within: int = 0

    @classmethod
    def of(
        cls, nodes: Sequence[str], graph: GraphDistribution, edges: EdgeFindings, evidence: Mapping[str, Any]
    ) -> "ListedGraph":
        """Return the edges of a graph, listed at the false discovery rate of the evidence."""
        probs = (graph.edge_probs.detach().cpu() if edges.probability is None else edges.probability).float()
        candidates, fdr = graph.candidates, float(evidence.get("fdr", FDR))
        once = graph.symmetric and candidates is None
        listing = Listing.of(graph, edges, fdr)
        listed, required, undirected = listing.listed, listing.required, listing.undirected
        if candidates is None:
            places = torch.arange(len(nodes))
            sources, targets = places.expand_as(probs), places[:, None].expand_as(probs)
            required = required & (sources != targets)
        else:
            sources, targets = candidates.sources.cpu(), candidates.row_node.cpu()[:, None].expand_as(probs)
        return cls(
            nodes,
            listing.values.nan_to_num(0.0),
            probs,
            listed.triu() if once else listed,
            required.triu() if once else required,
            sources,
            targets,
            graph.symmetric,
            fdr,
            edges.exists is not None,
            None if edges.low is None else edges.low.float(),
            None if edges.high is None else edges.high.float(),
            edges.acting,
            edges.gate_nats,
            edges.together,
            edges.lag,
            1 if edges.lags is None else max(1, edges.lags.first),
            undirected,
            edges.group,
            tuple(within_sentences(listed, undirected, edges.within_step, edges.direction, gaussian_of(evidence))),
            int(acting_within(listed, undirected, edges.within_step).sum()),
        )

    @property
    def count(self) -> int:
        """Number of listed edges."""
        return int(self.listed.sum())

    @property
    def listed_from(self) -> float | None:
        """The lowest value of a listed edge; None if none is listed."""
        return float(f"{float(self.values[self.listed].min()):.6g}") if self.count else None  # as in edges.csv

    def required_ends(self) -> list[list[int]]:
        """Return source and target of each required edge."""
        return torch.stack([self.sources[self.required], self.targets[self.required]], 1).tolist()

    def named(self, place: tuple[int, ...]) -> str:
        """Return an edge as text."""
        source, target = (self.nodes[int(ends[place])] for ends in (self.sources, self.targets))
        if self.groups is not None and self.groups[place]:
            members = self.sources[place[0]][self.groups[place[0]] == self.groups[place]]
            source = joined_names([self.nodes[node] for node in members.tolist()])
        no_arrow = self.symmetric or (self.undirected is not None and bool(self.undirected[place]))
        return f"{source} {'-' if no_arrow else '->'} {target}"

    def first(self, of: Tensor, among: Tensor) -> tuple[int, ...]:
        """Return the position of the largest number among some edges."""
        place = int(torch.where(among, of, -torch.inf).argmax())
        return place // of.shape[1], place % of.shape[1]


def answer_sentences(
    found: ListedGraph,
    references: References,
    notes: Sequence[str] = (),
    unknown: str = "",
    too_early: str = "",
    situations: Sequence[str] = (),
) -> list[str]:
    """Return the sentences: whether there is a graph, the list, how often edges act, lags, comparisons, notes.

    ``unknown``    why the existence of edges was not tested: edges are then listed by how often they act
    ``too_early``  the first sentence if training stopped too early
    ``situations``  sentences on how edges depend on the situation, or on their regimes
    """
    return [
        *filter(None, [too_early]),
        *_headline(found, references.get(NO_GRAPH, {}), unknown),
        *_list(found, references.get(NO_GRAPH, {})),
        *_acting(found),
        *situations,
        *_constant(references.get(CONSTANT_GRAPH, {})),
        *found.within,
        *_lags(found),
        *_all_edges(found, references.get(FULL_GRAPH, {})),
        *_ridge(references.get(RIDGE, {}), linear=bool(found.within)),
        *notes,
    ]


def _headline(found: ListedGraph, none: Mapping[str, float], unknown: str) -> list[str]:
    if found.evident or not unknown:
        return [_verdict(found, none)]
    said = f"{UNKNOWN}: {unknown}."
    return [_verdict(found, none), f"{said} Edges are listed by how often they act."] if found.count else [said]


def _verdict(found: ListedGraph, none: Mapping[str, float]) -> str:
    required = int(found.required.sum())
    if not found.count:
        beyond = f" beyond the {_edges(required, 'required')}" if required else ""
        return f"No graph found{beyond}: no {'other ' if required else ''}edge is listed."
    if "gain" not in none:
        return f"A graph was found: {_edges(found.count)} {_are(found.count)} listed. {NOT_COMPARED}."
    if "gain_std_error" not in none:
        return (
            f"A graph was found: {_edges(found.count)} {_are(found.count)} listed. {NOT_COMPARED}: too few forecasts."
        )
    if _is_better(none):
        return f"A graph was found: it lowers {ERROR} by {_size(none)} against no graph."
    clearly = "" if none["gain"] <= 0 else "clearly "
    if found.num_within:
        reason = ": effects within a step do not help to forecast the next one" * (found.num_within == found.count)
        return f"A graph was found, but it does not {clearly}lower {ERROR} against no graph ({_change(none)}){reason}."
    return f"No graph found: the learned graph does not {clearly}lower {ERROR} against no graph ({_change(none)})."


def _list(found: ListedGraph, none: Mapping[str, float]) -> list[str]:
    """Return how many edges are listed and their false discovery rate, or why none is listed."""
    limit = f"limit {found.fdr:.0%}"
    if not found.count:
        candidates = ~found.required & (found.sources != found.targets)
        if not bool((found.values * candidates > 0).any()):
            return []
        place = found.first(found.values, candidates)
        said = "exists" if found.evident else "acts"
        best = f"The most likely edge, {found.named(place)}, {said} with probability {float(found.values[place]):.2f}"
        if _is_better(none):
            return [
                f"{best}.",
                f"The candidates together lower {ERROR} by {_size(none)}: there may be many weak edges.",
            ]
        return [f"{best}; it is not listed, because the false discovery rate is limited to {found.fdr:.0%}."]
    false = false_discoveries(found.values, found.listed)
    wrong = "false" if found.evident else "inactive in a given observation"
    if found.count == 1:
        place = found.first(found.values, found.listed)
        said = f"1 edge is listed, {found.named(place)}; it is {wrong} with probability {false:.2f} ({limit})."
    else:
        said = (
            f"{_edges(found.count)} are listed; {_number(false)} of them are expected to be {wrong} "
            f"(false discovery rate {_share(false / found.count)}, {limit})."
        )
    weak = "gain_std_error" in none and not _is_better(none) and not found.num_within
    return [said + (" Together they are too weak to improve the forecasts of the test part." if weak else "")]


def caveats(found: ListedGraph) -> list[str]:
    """Return what a probability below 1 does not mean, if a listed edge has one."""
    if found.acting is not None:
        return [HIDDEN] if bool((found.listed & (found.acting == ACTS.index("at times"))).any()) else []
    probs = found.probs[found.listed]
    return [IMITATED] if bool(((probs > 0) & (probs < 1)).any()) else []


def _acting(found: ListedGraph) -> list[str]:
    """Return how many listed edges act always, at times, or cannot be decided."""
    if not found.count:
        return []
    if found.acting is None or found.high is None or found.low is None:
        probs = found.probs[found.listed]
        probs = probs[~probs.isnan()]
        if not len(probs):
            return []
        low, high = float(probs.min()), float(probs.max())
        often = (
            f"probability {low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"probabilities from {low:.2f} to {high:.2f}"
        )
        verb = "It acts" if found.count == 1 else "They act"
        return [f"{verb} with {often}" + "; standard errors were not computed" * (found.high is None) + "."]
    always, times, undecided = (found.listed & (found.acting == ACTS.index(word)) for word in ACTS[1:])
    said = []
    if always.any():
        count = int(always.sum())
        interval = "the interval lies" if count == 1 else "intervals lie"
        said.append(f"{count:,} always {'acts' if count == 1 else 'act'} ({interval} above {ALWAYS_ABOVE:g})")
    if times.any():
        count = int(times.sum())
        example = f"{', for example' if count > 1 else ':'} {_with_interval(found, times)}"
        said.append(f"{count:,} {'acts' if count == 1 else 'act'} at times{example}")
    if undecided.any():
        count = int(undecided.sum())
        example = f"{', for example' if count > 1 else ':'} {_with_interval(found, undecided)}"
        may = "is undecided (it" if count == 1 else "are undecided (they"
        said.append(f"{count:,} {may} may act always or at times){example}")
    sentences = ["; ".join(said) + "."] if said else []
    if found.gate_nats is not None:
        noisy = undecided & ~found.gate_nats.isnan()
        if noisy.any():
            count = int(noisy.sum())
            edges = "one of the undecided edges" if count == 1 else f"{count:,} of the undecided edges"
            edges = "this edge" if int(undecided.sum()) == 1 else edges
            sentences.append(f"The target of {edges} varies more where its source is large: {GROWS}.")
    return [*sentences, *_together(found)]


def _together(found: ListedGraph) -> list[str]:
    """Return which listed edges act together, and how often."""
    if found.together is None:
        return []
    sentences = []
    for number in sorted(set(found.together[found.listed & ~found.together.isnan()].tolist())):
        places = (found.listed & (found.together == number)).nonzero().tolist()
        sources = dict[int, list[int]]()  # of each target
        for row, column in places:
            sources.setdefault(row, []).append(int(found.sources[row, column]))
        targets = dict[tuple[int, ...], list[str]]()  # of each set of sources
        for row, several in sources.items():
            targets.setdefault(tuple(several), []).append(found.nodes[int(found.targets[row, 0])])
        said = [
            f"{', '.join(found.nodes[node] for node in several)} -> {', '.join(names)}"
            for several, names in targets.items()
        ]
        if len(places) > 1:
            share = float(found.probs[tuple(places[0])])
            sentences.append(f"{' and '.join(said)} act together, in {share:.0%} of the rows.")
    return sentences


def _with_interval(found: ListedGraph, among: Tensor) -> str:
    """Return the first of some edges, how often it acts, and the interval."""
    assert found.low is not None
    assert found.high is not None
    place = found.first(found.values + 1e-3 * found.probs, among)
    low, high = float(found.low[place]), float(found.high[place])
    return f"{found.named(place)} {float(found.probs[place]):.2f} [{low:.2f}, {high:.2f}]"


def _lags(found: ListedGraph) -> list[str]:
    """Return how many listed edges act at a lag beyond that of the newest input."""
    if found.lag is None:
        return []
    later = found.listed & (found.lag > found.newest_lag)
    if not later.any():
        return []
    count, place = int(later.sum()), found.first(found.values, later)
    example = f"{found.named(place)} at lag {int(found.lag[place])}"
    named = f": {example}" if count == 1 else f", for example {example}"
    steps = f"{found.newest_lag} step{'' if found.newest_lag == 1 else 's'}"
    return [f"{count:,} {'acts' if count == 1 else 'act'} after more than {steps}{named}."]


def _all_edges(found: ListedGraph, full: Mapping[str, float]) -> list[str]:
    if "gain_std_error" not in full:
        return []
    if _is_better(full):
        return [f"The model forecasts better than with all edges, by {_size(full)}."]
    if is_clear(-full["gain"], full["gain_std_error"]):
        return [f"With all edges the model forecasts better, by {_size(full)}: weak edges may be missing."]
    sparse = "A sparse graph" if found.count else "The model"
    return [f"{sparse} does not forecast better than {'' if found.count else 'with '}all edges ({_change(full)})."]


def _constant(constant: Mapping[str, float]) -> list[str]:
    if "gain_std_error" not in constant:
        return []
    if _is_better(constant):
        return [f"T{ERROR[1:]} is {_size(constant)} lower than with a constant graph."]
    clearly = "clearly " if constant["gain"] > 0 else ""
    return [f"T{ERROR[1:]} is not {clearly}lower than with a constant graph ({_change(constant)})."]


def _ridge(ridge: Mapping[str, float], *, linear: bool) -> list[str]:
    if "gain_std_error" not in ridge:
        return []
    if is_clear(-ridge["gain"], ridge["gain_std_error"]):
        other = "" if linear else ", or try another predictor"
        return [f"Ridge regression on all nodes forecasts better, by {_size(ridge)}: use its forecasts{other}."]
    if _is_better(ridge):
        return [f"The model forecasts better than ridge regression on all nodes, by {_size(ridge)}."]
    return [f"Ridge regression on all nodes forecasts as well as the model ({_change(ridge)})."]


def _is_better(compared: Mapping[str, float]) -> bool:
    """Return whether the learned graph is clearly better than the comparison."""
    return "gain_std_error" in compared and is_clear(compared["gain"], compared["gain_std_error"])


def _size(compared: Mapping[str, float]) -> str:
    return f"{abs(compared['gain']):.1%} +- {compared['gain_std_error']:.1%}"


def _change(compared: Mapping[str, float]) -> str:
    return f"{_size(compared)} {'lower' if compared['gain'] >= 0 else 'higher'}"


def _edges(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}{' ' if kind else ''}edge{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _number(value: float) -> str:
    return f"about {value:.1f}" if value >= 0.05 else "fewer than 0.1"


def _share(value: float) -> str:
    return f"{value:.1%}" if value >= 0.0005 else "below 0.1%"

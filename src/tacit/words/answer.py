"""The answer of a fit in a few sentences: whether there is a graph, which edges are listed, how often they act."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Shaped

from tacit.assessment.evidence import LAGGED_PARENTS, LEARNED, NOT_GAUSSIAN, RULE
from tacit.assessment.uncertainty import ALWAYS_ABOVE
from tacit.edges import ACTS, OPEN, EdgeTable, false_discoveries
from tacit.local import is_clear

Mask = Bool[np.ndarray, " edge"]

GAUSSIAN_P = "gaussian_noise_p"  # in the evidence of a record
LIKELY = 0.5  # an edge acts within the step if that is more likely than not
FROM = {
    LEARNED: "learned from non-Gaussian noise",
    LAGGED_PARENTS: "from lagged parents",
    RULE: "given by rules",
    OPEN: "open (shown without an arrow)",
}
DRIVER = "A common driver that is not in the data can look like an effect within the step."
FROM_TIME = "from an effect after the step"
NON_GAUSSIAN = "The noise is not Gaussian ({p}): it helps to find directions within the step."
GAUSSIAN = (
    "The noise is compatible with a Gaussian distribution ({p}): directions within the step are known only where "
    "lagged parents or rules give them."
)


def acting_within(edges: EdgeTable, listed: Mask) -> Mask:
    """Return the listed edges that act within the step."""
    if "within_step" not in edges:
        return np.zeros_like(listed)
    return np.asarray(listed & (edges.undirected | (edges["within_step"] >= LIKELY)))


def within_sentences(edges: EdgeTable, listed: Mask, gaussian: float | None) -> list[str]:
    """Return sentences on the listed edges that act within the step, their directions, and the noise."""
    if "within_step" not in edges or "direction" not in edges:
        return []
    acts = acting_within(edges, listed)
    count = int(acts.sum())
    if not listed.any():
        return _noise(gaussian)
    if not count:
        return ["No listed edge acts within the step.", *_noise(gaussian)]
    direction = np.where(edges["direction"] == OPEN, 0, edges["direction"])
    known = np.where(edges.undirected, OPEN, direction)[acts].tolist()
    parts = [(known.count(code), words) for code, words in FROM.items()]
    parts.insert(3, (sum(code not in FROM for code in known), FROM_TIME))
    if count == 1:
        said = f"1 edge acts within the step. Its direction: {next(words for many, words in parts if many)}."
    else:
        listed_parts = ", ".join(f"{many:,} {words}" for many, words in parts if many)
        said = f"{count:,} edges act within the step. Their directions: {listed_parts}."
    return [f"{said} {DRIVER}", *_noise(gaussian)]


def _noise(gaussian: float | None) -> list[str]:
    if gaussian is None or gaussian != gaussian:
        return []
    p = "p < .001" if gaussian < 0.001 else f"p = {gaussian:.{2 if gaussian >= 0.01 else 3}f}".replace("0.", ".", 1)
    return [(NON_GAUSSIAN if gaussian < NOT_GAUSSIAN else GAUSSIAN).format(p=p)]


Values = Shaped[np.ndarray, " edge"]
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


def answer_sentences(
    edges: EdgeTable,
    references: References,
    notes: Sequence[str] = (),
    unknown: str = "",
    too_early: str = "",
    situations: Sequence[str] = (),
    gaussian: float | None = None,
) -> list[str]:
    """Return the sentences: whether there is a graph, the list, how often edges act, lags, comparisons, notes.

    ``edges``      the edges of the fit, with those that are learned and required
    ``unknown``    why the existence of edges was not tested: edges are then listed by how often they act
    ``too_early``  the first sentence if training stopped too early
    ``situations``  sentences on how edges depend on the situation, or on their regimes
    ``gaussian``   the p-value of the test of Gaussian noise, with effects within a step
    """
    listed, none = edges.listed(), references.get(NO_GRAPH, {})
    within = acting_within(edges, listed)
    headline = [_verdict(edges, listed, none, int(within.sum()))]
    if unknown and "exists" not in edges:
        said = f"{UNKNOWN}: {unknown}."
        headline = [*headline, f"{said} Edges are listed by how often they act."] if listed.any() else [said]
    about_directions = within_sentences(edges, listed, gaussian)
    return [
        *filter(None, [too_early]),
        *headline,
        *_list(edges, listed, none, weak=not within.any()),
        *_acting(edges, listed),
        *situations,
        *_constant(references.get(CONSTANT_GRAPH, {})),
        *about_directions,
        *_lags(edges, listed),
        *_all_edges(references.get(FULL_GRAPH, {}), is_listed=bool(listed.any())),
        *_ridge(references.get(RIDGE, {}), linear=bool(about_directions)),
        *notes,
    ]


def required_edges(edges: EdgeTable) -> Mask:
    """Return the required edges between different nodes, each once."""
    return np.asarray(edges["required"] & edges.index.between & edges.index.once)


def _verdict(edges: EdgeTable, listed: Mask, none: Mapping[str, float], num_within: int) -> str:
    required, count = int(required_edges(edges).sum()), int(listed.sum())
    if not count:
        beyond = f" beyond the {_edges(required, 'required')}" if required else ""
        return f"No graph found{beyond}: no {'other ' if required else ''}edge is listed."
    if "gain" not in none:
        return f"A graph was found: {_edges(count)} {_are(count)} listed. {NOT_COMPARED}."
    if "gain_std_error" not in none:
        return f"A graph was found: {_edges(count)} {_are(count)} listed. {NOT_COMPARED}: too few forecasts."
    if _is_better(none):
        return f"A graph was found: it lowers {ERROR} by {_size(none)} against no graph."
    clearly = "" if none["gain"] <= 0 else "clearly "
    if num_within:
        reason = ": effects within a step do not help to forecast the next one" * (num_within == count)
        return f"A graph was found, but it does not {clearly}lower {ERROR} against no graph ({_change(none)}){reason}."
    return f"No graph found: the learned graph does not {clearly}lower {ERROR} against no graph ({_change(none)})."


def _list(edges: EdgeTable, listed: Mask, none: Mapping[str, float], *, weak: bool) -> list[str]:
    """Return how many edges are listed and their false discovery rate, or why none is listed."""
    limit, values, evident = f"limit {edges.fdr:.0%}", np.nan_to_num(edges.values), "exists" in edges
    count = int(listed.sum())
    if not count:
        candidates = ~edges["required"] & edges.index.between
        if not (values[candidates] > 0).any():
            return []
        place = _first(values, candidates)
        said = "exists" if evident else "acts"
        best = f"The most likely edge, {edges.named(place)}, {said} with probability {values[place]:.2f}"
        if _is_better(none):
            return [
                f"{best}.",
                f"The candidates together lower {ERROR} by {_size(none)}: there may be many weak edges.",
            ]
        return [f"{best}; it is not listed, because the false discovery rate is limited to {edges.fdr:.0%}."]
    false = false_discoveries(values.astype(np.float32), listed)
    wrong = "false" if evident else "inactive in a given observation"
    if count == 1:
        place = _first(values, listed)
        said = f"1 edge is listed, {edges.named(place)}; it is {wrong} with probability {false:.2f} ({limit})."
    else:
        number = f"about {false:.1f}" if false >= 0.05 else "fewer than 0.1"
        rate = f"{false / count:.1%}" if false / count >= 0.0005 else "below 0.1%"
        said = (
            f"{_edges(count)} are listed; {number} of them are expected to be {wrong} "
            f"(false discovery rate {rate}, {limit})."
        )
    weak = weak and "gain_std_error" in none and not _is_better(none)
    return [said + (" Together they are too weak to improve the forecasts of the test part." if weak else "")]


def caveats(edges: EdgeTable) -> list[str]:
    """Return what a probability below 1 does not mean, if a listed edge has one."""
    listed = edges.listed()
    if "acting" in edges:
        return [HIDDEN] if (edges["acting"][listed] == ACTS.index("at times")).any() else []
    probs = edges["probability"][listed]
    return [IMITATED] if ((probs > 0) & (probs < 1)).any() else []


def _acting(edges: EdgeTable, listed: Mask) -> list[str]:
    """Return how many listed edges act always, at times, or cannot be decided."""
    count = int(listed.sum())
    if not {"acting", "low", "high"} <= edges.columns.keys():
        probs = edges["probability"][listed]
        probs = probs[~np.isnan(probs)]
        if not len(probs):
            return []
        low, high = float(probs.min()), float(probs.max())
        often = (
            f"probability {low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"probabilities from {low:.2f} to {high:.2f}"
        )
        verb = "It acts" if count == 1 else "They act"
        return [f"{verb} with {often}" + "; standard errors were not computed" * ("high" not in edges) + "."]
    always, times, undecided = (listed & (edges["acting"] == ACTS.index(word)) for word in ACTS[1:])
    said = []
    if always.any():
        count = int(always.sum())
        interval = "the interval lies" if count == 1 else "intervals lie"
        said.append(f"{count:,} always {'acts' if count == 1 else 'act'} ({interval} above {ALWAYS_ABOVE:g})")
    if times.any():
        count = int(times.sum())
        example = f"{', for example' if count > 1 else ':'} {_with_interval(edges, times)}"
        said.append(f"{count:,} {'acts' if count == 1 else 'act'} at times{example}")
    if undecided.any():
        count = int(undecided.sum())
        example = f"{', for example' if count > 1 else ':'} {_with_interval(edges, undecided)}"
        may = "is undecided (it" if count == 1 else "are undecided (they"
        said.append(f"{count:,} {may} may act always or at times){example}")
    sentences = ["; ".join(said) + "."] if said else []
    if "gate_nats" in edges:
        count = int((undecided & ~np.isnan(edges["gate_nats"])).sum())
        if count:
            several = "one of the undecided edges" if count == 1 else f"{count:,} of the undecided edges"
            several = "this edge" if int(undecided.sum()) == 1 else several
            sentences.append(f"The target of {several} varies more where its source is large: {GROWS}.")
    return [*sentences, *_together(edges, listed)]


def _together(edges: EdgeTable, listed: Mask) -> list[str]:
    """Return which listed edges act together, and how often."""
    if "together" not in edges:
        return []
    sentences, index = [], edges.index
    together = np.where(listed, edges["together"], np.nan)
    for number in np.unique(together[~np.isnan(together)]).tolist():
        places = np.flatnonzero(together == number)
        sources = dict[int, list[int]]()  # of each target
        for place in places:
            sources.setdefault(int(index.target[place]), []).append(int(index.source[place]))
        targets = dict[tuple[int, ...], list[str]]()  # of each set of sources
        for target, several in sources.items():
            targets.setdefault(tuple(several), []).append(index.target_names[target])
        said = [
            f"{', '.join(index.source_names[node] for node in several)} -> {', '.join(names)}"
            for several, names in targets.items()
        ]
        if len(places) > 1:
            share = float(edges["probability"][places[0]])
            sentences.append(f"{' and '.join(said)} act together, in {share:.0%} of the rows.")
    return sentences


def _first(of: Values, among: Mask) -> int:
    """Return the place of the largest number among some edges."""
    return int(np.where(among, of, -np.inf).argmax())


def _with_interval(edges: EdgeTable, among: Mask) -> str:
    """Return the first of some edges, how often it acts, and the interval."""
    probs = edges["probability"]
    place = _first(np.nan_to_num(edges.values) + 1e-3 * np.nan_to_num(probs), among)
    return f"{edges.named(place)} {probs[place]:.2f} [{edges['low'][place]:.2f}, {edges['high'][place]:.2f}]"


def _lags(edges: EdgeTable, listed: Mask) -> list[str]:
    """Return how many listed edges act at a lag beyond that of the newest input."""
    newest = 1 if edges.lags is None else max(1, edges.lags.first)
    later = listed & (edges["lag"] > newest) if "lag" in edges else np.zeros_like(listed)
    if not later.any():
        return []
    count, place = int(later.sum()), _first(np.nan_to_num(edges.values), later)
    example = f"{edges.named(place)} at lag {int(edges['lag'][place])}"
    named = f": {example}" if count == 1 else f", for example {example}"
    steps = f"{newest} step{'' if newest == 1 else 's'}"
    return [f"{count:,} {'acts' if count == 1 else 'act'} after more than {steps}{named}."]


def _all_edges(full: Mapping[str, float], *, is_listed: bool) -> list[str]:
    if "gain_std_error" not in full:
        return []
    if _is_better(full):
        return [f"The model forecasts better than with all edges, by {_size(full)}."]
    if is_clear(-full["gain"], full["gain_std_error"]):
        return [f"With all edges the model forecasts better, by {_size(full)}: weak edges may be missing."]
    sparse = "A sparse graph" if is_listed else "The model"
    return [f"{sparse} does not forecast better than {'' if is_listed else 'with '}all edges ({_change(full)})."]


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

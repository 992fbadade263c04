"""The stages of a fit that test which edges depend on the situation and look for regimes, and their sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.regimes import (
    RegimeFit,
    has_regime_likelihood,
    regime_posterior,
    regimes_by_likelihood,
    regimes_by_training,
)
from tacit.assessment.situations import VaryingEdges
from tacit.assessment.uncertainty import ALWAYS_ABOVE
from tacit.config import FitConfig
from tacit.data import Pairs, Split
from tacit.edges import REGIME, VARIES, EdgesBy, EdgeTable
from tacit.graph import Blocks, ContextVariable, GraphDistribution
from tacit.local import has_likelihood
from tacit.pipeline.answer import CONSTANT_GRAPH
from tacit.pipeline.comparisons import compare_to
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.findings import Assessment, AssessmentInputs
from tacit.pipeline.preparation import block_length
from tacit.pipeline.situations import TIME, described
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask
from tacit.training import FitSettings, LatentGraphModel, Listener

if TYPE_CHECKING:
    from tacit.assessment.regimes import RegimeFit


def none_tested(names: Sequence[str], listed: int, *, intervals: bool) -> str:
    """Return why no edge was tested.

    >>> none_tested(["hour"], 3, intervals=True)
    'Whether edges depend on hour was not tested: no listed edge acts at times (each interval reaches 0 or 1).'
    """
    near = "each interval reaches 0 or 1" if intervals else "each probability is near 0 or 1"
    why = f"no listed edge acts at times ({near})" if listed else "no edge is listed"
    return f"Whether edges depend on {_either(names)} was not tested: {why}."


def varying_sentence(
    names: Sequence[str],
    tested: int,
    varying: int,
    fdr: float,
    rows: EdgesBy | None,
    nodes: Sequence[str],
    arrow: str = "->",
) -> str:
    """Return how many of the tested edges vary, or were trained to, with the one that varies most as an example.

    >>> rows = EdgesBy(source=[0, 0], target=[1, 1], by=["hour"] * 2, value=["2", "14"], probability=[0.11, 0.92])
    >>> varying_sentence(["hour"], 5, 1, 0.1, rows, ["river", "lake"])
    '1 of 5 tested edges depends on hour (false discovery rate 10%): river -> lake acts with probability 0.92 at hour \
14 and 0.11 at hour 2.'
    >>> varying_sentence(["hour"], 12, 0, 0.1, None, [])
    'No edge depends on hour: 12 edges were tested at a false discovery rate of 10%.'
    >>> varying_sentence(["hour"], 0, 1, 0.1, rows, ["river", "lake"]).partition(",")[0]
    '1 edge was trained to depend on hour'
    """
    if rows is not None and not tested:
        edges = f"{varying:,} edge{' was' if varying == 1 else 's were'}"
        return f"{edges} trained to depend on {_either(names)}, for example {_example(rows, nodes, arrow)}."
    edges = f"{tested:,} edge{'' if tested == 1 else 's'}"
    if not varying or rows is None:
        were = "was" if tested == 1 else "were"
        return f"No edge depends on {_either(names)}: {edges} {were} tested at a false discovery rate of {fdr:.0%}."
    verb = "depends" if varying == 1 else "depend"
    counted = f"{varying:,} of {tested:,} tested edges {verb}" if tested > 1 else "The one tested edge depends"
    example = f"{': ' if varying == 1 else ', for example '}{_example(rows, nodes, arrow)}"
    return f"{counted} on {_either(names)} (false discovery rate {fdr:.0%}){example}."


def _example(rows: EdgesBy, nodes: Sequence[str], arrow: str) -> str:
    """Return the edge and variable whose probability varies most, with its highest and lowest value."""
    groups: dict[tuple[int, int, str], list[tuple[float, str]]] = {}
    for source, target, by, value, probability in zip(
        rows.source, rows.target, rows.by, rows.value, rows.probability, strict=True
    ):
        groups.setdefault((source, target, by), []).append((probability or 0.0, value))
    (source, target, by), found = max(groups.items(), key=lambda one: max(one[1])[0] - min(one[1])[0])
    high, low = max(found), min(found)
    return (
        f"{nodes[source]} {arrow} {nodes[target]} acts with probability {high[0]:.2f} at {by} {high[1]} and "
        f"{low[0]:.2f} at {by} {low[1]}"
    )


def _either(names: Sequence[str]) -> str:
    """Return names as in "hour, wind or season"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


NO_BLOCK = {
    "rows": "Regimes were not looked for: no node has two listed edges, and a single edge has no regimes.",
    "all": "Regimes were not looked for: fewer than two edges are listed, and a single edge has no regimes.",
}


TRAINED_REGIMES = "The regimes were trained by gradients, so they have no standard errors and no intervals."
TRAINED_SITUATIONS = (
    "The dependence on the situation was trained by gradients, so it has no tests, no standard errors and no intervals."
)
NO_GATES = {
    "rows": "Regimes were not looked for: no node has two listed edges that act at times.",
    "all": "Regimes were not looked for: fewer than two listed edges act at times.",
}


def one_regime(found: "RegimeFit") -> str:
    """Return that one regime is enough, and by how much two are better."""
    step = found.steps[-1]
    change = "lower, which is less than two standard errors" if step.difference.mean < 0 else "higher"
    size = f"{abs(step.difference.mean):.2g} +- {step.difference.std_error:.2g}"
    return f"One regime is enough: with {step.num_regimes} the validation loss is {size} {change}."


def _listed(words: Sequence[str]) -> str:
    """Return words as in "a, b and c"."""
    return " and ".join(", ".join(words).rsplit(", ", 1))


def undetermined_regimes(unknown: int, count: int) -> str:
    """Return that the data do not determine the regimes of some edges.

    >>> undetermined_regimes(2, 4).split(":")[0]
    'The data hardly restrict the probabilities in each regime for 2 of 4 edges'
    """
    return (
        f"The data hardly restrict the probabilities in each regime for {unknown} of {count} edges: their intervals "
        "are wider than 0.9. If a block has few edges, many different regimes have the same distribution. How often "
        "these edges act over all regimes is known (edges.csv)."
    )


def regime_sentence(
    rows: EdgesBy, weights: Sequence[Sequence[float]], blocks: Sequence[str], nodes: Sequence[str], arrow: str = "->"
) -> str:
    """Return the number of regimes, their weights, and two edges that differ between them.

    >>> rows = EdgesBy(source=[0, 0, 1, 1], target=[2] * 4, by=["regime"] * 4, value=["1", "2"] * 2,
    ...     probability=[0.9, 0.1, 0.8, 0.2])
    >>> regime_sentence(rows, [[0.7, 0.3]], ["all"], ["a", "b", "c"])
    '2 regimes were found, with weights 0.70 and 0.30. For example a -> c acts with probability 0.90 in regime 1 and \
0.10 in regime 2, and b -> c with 0.80 and 0.20.'
    """
    count = len(weights[0])
    edges = [
        (rows.source[at], rows.target[at], [value or 0.0 for value in rows.probability[at : at + count]])
        for at in range(0, len(rows), count)
    ]
    whole = len(blocks) == 1 and blocks[0] == "all"

    def spread(edge: tuple[int, int, list[float]]) -> float:
        return max(edge[2]) - min(edge[2])

    groups: dict[int, list[tuple[int, int, list[float]]]] = {}
    for edge in sorted(edges, key=spread, reverse=True):
        groups.setdefault(0 if whole else edge[1], []).append(edge)
    block, best = max(groups.items(), key=lambda one: spread(one[1][1]))
    (source, target, first), (other, its, second) = best[:2]
    said = _listed([f"{weight:.2f}" for weight in weights[block]])
    each = _listed([f"{value:.2f} in regime {number}" for number, value in enumerate(first, 1)])
    others = _listed([f"{value:.2f}" for value in second])
    where = f", with weights {said}" if whole else " of the edges into each node"
    example = "For example" if whole else f"For example at {nodes[block]} (weights {said})"
    return (
        f"{count} regimes were found{where}. {example} {nodes[source]} {arrow} {nodes[target]} acts with probability "
        f"{each}, and {nodes[other]} {arrow} {nodes[its]} with {others}."
    )


NEVER = 1e-6  # an interval that reaches this value contains 0
RARELY, MOSTLY = 0.02, 0.98  # without intervals
CONDITIONAL, MIXTURE, CONSTANT = "conditional", "mixture", "constant"  # kinds of ``situations`` in a record


@dataclass(frozen=True, eq=False)
class SituationFit:
    """The result of the stage.

    ``model``      the model for forecasts; None if the constant graph is kept
    ``columns``    new columns of the edges, in the layout of the graph; None for one that is no longer known
    ``by``         how often edges act in each situation or regime
    ``record``     the field ``situations`` of the record
    ``sentences``  sentences for the answer
    ``findings``   limitations
    """

    model: LatentGraphModel | None
    columns: dict[str, Tensor | None] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    by: EdgesBy | None = None
    sentences: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class StageInputs:
    """Inputs of the stages of ``depends_on`` and of ``regimes``.

    ``model``  the fit with a constant graph, which is not changed
    ``edges``  results on its edges
    ``block``  number of neighbouring pairs that are resampled together
    """

    model: LatentGraphModel
    split: Split
    edges: EdgeTable
    nodes: Sequence[str]
    settings: FitSettings
    fdr: float
    seed: int
    compile: bool
    block: int
    listener: Listener


def find_varying(fit: StageInputs, variables: Sequence[ContextVariable]) -> SituationFit:
    """Test which edges depend on the variables, and return the fit in which those do."""
    tested = edges_to_test(fit.model, fit.edges, by_time=any(one.name == TIME for one in variables))
    names = [one.name for one in variables]
    record: dict[str, Any] = {
        "kind": CONSTANT,
        "variables": described(variables),
        "tested": _count(fit.model.graph, tested),
        "varying": 0,
        "fdr": fit.fdr,
    }
    if not tested.any():
        said = none_tested(names, int(listed_in(fit.model.graph, fit.edges).sum()), intervals="low" in fit.edges)
        return SituationFit(None, {}, record, sentences=(said,))
    found = _tested(fit, variables, tested)
    codes = torch.zeros(tested.shape, dtype=torch.uint8)
    codes[found.tested.cpu()] = VARIES.index("no")
    codes[(found.varies & found.tested).cpu()] = VARIES.index("yes")
    columns: dict[str, Tensor | None] = {"varies": codes}
    record |= {
        name: _count(fit.model.graph, mask) for name, mask in (("tested", found.tested), ("varying", found.varies))
    }
    notes = found.notes if found.tested.any() else (TRAINED_SITUATIONS,)
    record |= {"tests": _tests(found, fit.model.graph), "notes": list(notes)}
    rows = None
    if found.model is not None:
        rows = varying_rows(found)
        columns |= _averages(found, fit.edges)
        record |= {"kind": CONDITIONAL, "graph": found.graph.to_dict()}
    said = varying_sentence(
        names, record["tested"], record["varying"], fit.fdr, rows, fit.nodes, "-" if fit.model.graph.symmetric else "->"
    )
    return SituationFit(found.model, columns, record, rows, (said,), notes)


def listed_in(graph: GraphDistribution, edges: EdgeTable) -> EdgeMask:
    """Return the listed edges in the layout of a graph; of a symmetric one both entries of a pair."""
    return graph.symmetrize(graph.placed(graph.described(edges).listed()).float()) > 0


def edges_to_test(model: LatentGraphModel, edges: EdgeTable, *, by_time: bool = False) -> EdgeMask:
    """Return the listed edges that may act at times: their interval lies neither at 0 nor above ``ALWAYS_ABOVE``.

    Where an edge is undecided, a situation may decide. ``by_time`` adds those that change at some time.
    """
    graph = model.graph
    if "low" in edges:
        at_times = (edges["low"] > NEVER) & (edges["low"] <= ALWAYS_ABOVE)
    else:
        probs = graph.vector(graph.edge_probs)
        at_times = (probs > RARELY) & (probs < MOSTLY)
    if by_time and "changed" in edges:
        at_times = at_times | (edges["changed"] != "")
    return listed_in(graph, edges) & graph.placed(at_times)


def _tested(fit: StageInputs, variables: Sequence[ContextVariable], tested: EdgeMask) -> VaryingEdges:
    """Test by likelihood if the model has one for each node; otherwise train all these edges, without tests."""
    from tacit.assessment import situations

    model, train = fit.model, fit.split.train
    tested = tested.to(model.graph.raw.device)
    if has_likelihood(model):
        return situations.vary_by_likelihood(model, variables, train, tested, fit.fdr, fit.block)
    return situations.vary_by_training(
        model,
        variables,
        train,
        fit.split.validation,
        fit.settings,
        tested,
        seed=fit.seed,
        compile=fit.compile,
        on_progress=fit.listener.step,
    )


def edge_ends(graph: GraphDistribution, chosen: EdgeMask) -> tuple[list[int], list[int]]:
    """Return sources and targets of some edges, in the order of ``chosen.nonzero()``."""
    sources, targets = graph.layout.ends(chosen.cpu())
    return sources.tolist(), targets.tolist()


def _count(graph: GraphDistribution, chosen: EdgeMask) -> int:
    """Return the number of chosen edges; an edge without direction counts once."""
    return int(once(graph, chosen).sum())


def once(graph: GraphDistribution, chosen: EdgeMask) -> EdgeMask:
    """Return the chosen edges, with one entry for an edge without direction."""
    return chosen & (graph.upper_triangle(torch.ones_like(chosen, dtype=torch.float32)) > 0)


def _tests(found: VaryingEdges, graph: GraphDistribution) -> list[dict[str, Any]]:
    """Return the p-value of each tested edge, for the record."""
    tested = once(graph, found.tested)
    ends = zip(*edge_ends(graph, tested), strict=True)
    numbers = zip(found.p_values[tested].tolist(), found.varies[tested].tolist(), strict=True)
    return [
        {"source": source, "target": target, "p_value": p if p == p else None, "varies": varies}
        for (source, target), (p, varies) in zip(ends, numbers, strict=True)
    ]


def varying_rows(found: VaryingEdges) -> EdgesBy:
    """Return how often the edges that vary act at each value of each variable."""
    sources, targets = edge_ends(found.graph, found.varies)
    parts = []
    probs = [found.by_situation(variable) for variable in found.graph.variables]  # type: ignore[arg-type]
    shown = once(found.graph, found.varies)[found.varies].tolist()
    for edge, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if not shown[edge]:
            continue
        for variable, by in zip(found.graph.variables, probs, strict=True):
            labels: tuple[str, ...] = variable.labels  # type: ignore[assignment]
            numbers = {name: _known(values[edge]) for name, values in by._asdict().items()}
            count = len(labels)
            ends = {"source": [source] * count, "target": [target] * count}
            parts.append(EdgesBy(**ends, by=[str(variable.name)] * count, value=list(labels), **numbers))
    return EdgesBy.joined(parts)


def _known(values: Float[Tensor, " any"]) -> list[float | None]:
    """Return numbers for a record, None where they were not computed."""
    return [None if value != value else value for value in values.tolist()]


def _averages(found: VaryingEdges, edges: EdgeTable) -> dict[str, Tensor | None]:
    """Return standard errors and intervals of the average of each edge that varies; other edges keep theirs.

    After training there are none: those of the constant graph belong to other numbers.
    """
    if "std_error" not in edges or found.graph.rank is not None:
        return {}
    if not found.tested.any():
        return dict.fromkeys(("std_error", "low", "high"))
    graph, varies = found.graph, found.varies
    each = once(graph, varies)
    with torch.enable_grad():
        probs = graph.edge_probs[each]
        slopes = torch.autograd.grad(probs.sum(), [graph.raw, graph.context_weights])
    slope = torch.cat([slopes[0][each][:, None], slopes[1][each]], 1).double()  # (edge, number)
    covariances = found.covariances[each[varies]].double()
    error = torch.einsum("en,enm,em->e", slope, covariances, slope).clamp_min(0).sqrt().cpu()
    mean = probs.detach().double().cpu()
    away = found.quantile * error / (mean * (1 - mean)).clamp_min(1e-12)
    ends = {name: torch.sigmoid(torch.logit(mean) + side * away) for name, side in (("low", -1), ("high", 1))}
    columns: dict[str, Tensor | None] = {}
    for name, values in {"std_error": error, **ends}.items():
        old = graph.placed(edges[name])
        placed = torch.zeros_like(old)
        placed[each.cpu()] = values.to(placed)
        columns[name] = torch.where(varies.cpu(), graph.symmetrize(placed), old)
    return columns


MOST_SHOWN, MOST_NUMBERS = 2000, 400_000  # observations in a record, and numbers of them together
WHOLE = "all"
DIGITS = 3


def find_regimes(
    fit: StageInputs, dataset: Dataset, num_regimes: int | Literal["auto"], blocks: Blocks
) -> SituationFit:
    """Fit regimes, and return the fit with them; if one regime is enough, the constant graph is kept."""
    names = [WHOLE] if blocks == WHOLE else list(fit.nodes)
    shown = _in_blocks_of_two(fit.model, listed_in(fit.model.graph, fit.edges), blocks)
    record: dict[str, Any] = {"kind": CONSTANT, "blocks": names}
    if not shown.any():
        return SituationFit(None, {}, record, sentences=(NO_BLOCK[blocks],))
    found = _fitted(fit, num_regimes, blocks)
    if found.model is None:
        return SituationFit(None, {}, record, sentences=(one_regime(found) if found.steps else NO_GATES[blocks],))
    shown &= found.in_regimes
    if not shown.any():  # the regimes are those of edges that are not listed
        return SituationFit(None, {}, record, sentences=(NO_GATES[blocks],))
    rows = regime_rows(found, shown)
    record |= {
        "kind": MIXTURE,
        "graph": found.graph.to_dict(),
        "weights": [[round(value, 6) for value in block] for block in found.weights.value.tolist()],
        "posterior": posterior_over_time(found.model, fit.split, dataset, fit.seed),
    }
    arrow = "-" if fit.model.graph.symmetric else "->"
    said = regime_sentence(rows, record["weights"], names, fit.nodes, arrow)
    unknown = int((shown & found.regime_probs.unknown.any(0).cpu()).sum())
    notes = [undetermined_regimes(unknown, int(shown.sum()))] if unknown else []
    if not has_regime_likelihood(fit.model, fit.split.train, blocks):
        notes.append(TRAINED_REGIMES)
    return SituationFit(found.model, _marginals(found, fit), record, rows, (said,), tuple(notes))


def _fitted(fit: StageInputs, num_regimes: int | Literal["auto"], blocks: Blocks) -> RegimeFit:
    """Fit by likelihood if the model has one for each node, otherwise by training."""
    model, train, validation = fit.model, fit.split.train, fit.split.validation
    if has_regime_likelihood(model, train, blocks):
        return regimes_by_likelihood(
            model, train, validation, num_regimes=num_regimes, blocks=blocks, seed=fit.seed, block=fit.block
        )
    return regimes_by_training(
        model,
        train,
        validation,
        fit.settings,
        num_regimes=num_regimes,
        blocks=blocks,
        seed=fit.seed,
        compile=fit.compile,
        block=fit.block,
        on_progress=fit.listener.step,
    )


def _in_blocks_of_two(model: LatentGraphModel, listed: EdgeMask, blocks: Blocks) -> EdgeMask:
    """Return the listed edges in blocks with at least two of them."""
    graph = model.graph
    each = once(graph, listed)
    if blocks == WHOLE:
        return each if int(each.sum()) > 1 else torch.zeros_like(each)
    node = graph.layout.row_node.cpu()  # of each row
    counts = torch.zeros(graph.num_nodes).index_add(0, node, each.sum(1).float())
    return each & (counts[node] > 1)[:, None]


def regime_rows(found: RegimeFit, shown: EdgeMask) -> EdgesBy:
    """Return how often edges act in each regime."""
    sources, targets = edge_ends(found.graph, shown)
    count, chosen = found.num_regimes, shown.to(found.regime_probs.value.device)
    numbers = {
        name: [None if math.isnan(value) else value for value in values[:, chosen].mT.flatten().tolist()]
        for name, values in zip(("probability", "std_error", "low", "high"), found.regime_probs, strict=True)
    }
    return EdgesBy(
        source=np.repeat(sources, count).tolist(),
        target=np.repeat(targets, count).tolist(),
        by=[REGIME] * (count * len(sources)),
        value=[str(number + 1) for number in range(count)] * len(sources),
        **numbers,
    )


def _marginals(found: RegimeFit, fit: StageInputs) -> dict[str, Tensor | None]:
    """Return errors and intervals of the marginal probabilities, which replace those of the constant graph.

    After training they are not known: those of the constant graph belong to other probabilities. Edges that are not in
    a regime keep theirs, and so do edges that act together: their states are those of one gate.
    """
    if "std_error" not in fit.edges:
        return {}
    graph = fit.model.graph
    names = ("std_error", "low", "high")
    known = graph.learned.cpu() & ~found.marginals.std_error.isnan().cpu()
    if not known.any():
        return dict.fromkeys(names)
    if "together" in fit.edges:
        known &= graph.placed(fit.edges["together"], math.nan).isnan()
    new = {name: values.cpu().double() for name, values in zip(names, found.marginals[1:], strict=True)}
    old = {name: graph.placed(fit.edges[name]) for name in names}
    return {name: torch.where(known, values, old[name].double()) for name, values in new.items()}


def posterior_over_time(model: LatentGraphModel, split: Split, dataset: Dataset, seed: int) -> dict[str, Any]:
    """Return the probability of each regime for some observations of all parts, for the record."""
    parts = {"train": split.train, "validation": split.validation, "test": split.test}
    order = _in_time_order(list(parts.values()))
    numbers = model.graph.weight_logits.numel()  # type: ignore[operator]
    most = max(1, min(MOST_SHOWN, MOST_NUMBERS // int(numbers)))
    chosen = order[np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)]
    ends = np.cumsum([0, *(len(part) for part in parts.values())])
    found: dict[int, tuple[Any, ...]] = {}
    for number, (name, pairs) in enumerate(parts.items()):
        rows = np.sort(chosen[(chosen >= ends[number]) & (chosen < ends[number + 1])]) - ends[number]
        if not len(rows):
            continue
        some = pairs[torch.from_numpy(rows).to(pairs.inputs.device)]
        generator = generator_for(seed, "regimes over time", pairs.inputs.device)
        probs = regime_posterior(model, some, generator=generator).cpu().double()
        for row, one in zip(rows.tolist(), probs.numpy().round(DIGITS).tolist(), strict=True):
            found[int(ends[number]) + row] = name, row, one
    times = [_time(parts[found[key][0]], found[key][1], int(key), dated=dataset.dated) for key in chosen]
    series = [_series(parts[found[key][0]], found[key][1], dataset) for key in chosen]
    return {
        "times": times,
        **({"series": series} if len(dataset.series_names) > 1 else {}),
        "parts": [found[key][0] for key in chosen],
        "probs": [found[key][2] for key in chosen],
    }


def _in_time_order(parts: list[Pairs]) -> np.ndarray:
    """Return the order of all pairs by series and time; unchanged without time."""
    count = sum(len(part) for part in parts)
    if any(part.times is None for part in parts):
        return np.arange(count)
    times = torch.cat([part.times.cpu() for part in parts if part.times is not None]).numpy()
    series = [torch.zeros(len(part)) if part.series is None else part.series.cpu().float() for part in parts]
    order: np.ndarray = np.lexsort((times, torch.cat(series).numpy()))
    return order


def _time(pairs: Pairs, row: int, place: int, *, dated: bool) -> str | float | int:
    if pairs.times is None:
        return place
    number = float(pairs.times[row])
    return str(np.datetime64(round(number), "s")) if dated else number


def _series(pairs: Pairs, row: int, dataset: Dataset) -> str:
    return "" if pairs.series is None else dataset.series_names[int(pairs.series[row])]


NO_SITUATIONS = "Not computed, whether edges depend on the situation: training stopped too early."
REGIMES = ("regimes", "which edges switch together")


def asks_situations(config: FitConfig) -> bool:
    """Return whether the config has ``depends_on`` or ``regimes``."""
    return bool(config.graph.depends_on) or config.graph.regimes is not None


def situation_stage(config: FitConfig) -> tuple[str, str]:
    """Return the name of the stage, and its question."""
    names = config.graph.depends_on
    return ("situations", f"which edges depend on {', '.join(names)}") if names else REGIMES


def ask_situations(answer: Assessment, fit: AssessmentInputs) -> None:
    """Find which edges depend on the situation, or their regimes, and compare with the constant graph."""
    if fit.result.late_fall:
        answer.findings.append(NO_SITUATIONS)
        return
    split = fit.split
    inputs = StageInputs(
        fit.result.model,
        split,
        answer.edges,
        fit.preparation.nodes,
        fit.done,
        fit.config.assessment.fdr,
        fit.seed,
        compile=fit.compile,
        block=block_length(fit.config.assessment, fit.preparation, len(split.train)),
        listener=fit.listener,
    )
    found = _found_regimes(inputs, fit) if fit.config.graph.regimes is not None else find_varying(inputs, fit.variables)
    graph = fit.result.model.graph
    columns = {name: None if values is None else graph.vector(values) for name, values in found.columns.items()}
    answer.edges = replace(answer.edges.updated(**columns), by=found.by)
    answer.model, answer.situations, answer.situation_sentences = found.model, found.record, found.sentences
    answer.findings += found.findings
    if found.model is not None:
        compared = compare_to(found.model, fit.result.model, split, fit.preparation, fit.seed)
        answer.references = {**answer.references, CONSTANT_GRAPH: compared}


def _found_regimes(inputs: StageInputs, fit: AssessmentInputs) -> SituationFit:
    """Fit regimes; the module is imported only if they are requested."""

    graph = fit.config.graph
    assert graph.regimes is not None
    assert fit.dataset is not None
    return find_regimes(inputs, fit.dataset, graph.regimes, graph.blocks)

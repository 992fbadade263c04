"""The stages of a fit that test which edges depend on the situation and look for regimes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

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
from tacit.data import Pairs, Split
from tacit.edges import REGIME, VARIES, EdgesBy, EdgeTable
from tacit.graph import Blocks, ContextVariable, GraphDistribution
from tacit.local import has_likelihood
from tacit.pipeline.comparisons import compare_to
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.situations import TIME, context_variables, described
from tacit.pipeline.state import Fit
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask
from tacit.training import LatentGraphModel
from tacit.words import FindingKind, find
from tacit.words.answer import CONSTANT_GRAPH
from tacit.words.situations import NO_BLOCK, NO_GATES, none_tested, one_regime, regime_sentence, varying_sentence

NEVER = 1e-6  # an interval that reaches this value contains 0
RARELY, MOSTLY = 0.02, 0.98  # without intervals
NO_SITUATIONS = "whether edges depend on the situation"
CONDITIONAL, MIXTURE, CONSTANT = "conditional", "mixture", "constant"  # kinds of ``situations`` in a record


def which_depend(fit: Fit) -> str:
    """Return the question of the stage."""
    return f"which edges depend on {', '.join(fit.config.graph.depends_on)}"


def varying_edges(fit: Fit) -> Fit:
    """Test which edges depend on the situation, and fit the model in which those do."""
    if fit.result.late_fall:
        return fit.found(find(FindingKind.NOT_COMPUTED, stage=NO_SITUATIONS, reason="stopped too early"))
    variables, graph = context_variables(fit.dataset, fit.config), fit.result.model.graph
    tested = edges_to_test(fit.result.model, fit.edges, by_time=any(one.name == TIME for one in variables))
    names, fdr = [one.name for one in variables], fit.config.assessment.fdr
    record: dict[str, Any] = {
        "kind": CONSTANT,
        "variables": described(variables),
        "tested": _count(graph, tested),
        "varying": 0,
        "fdr": fdr,
    }
    if not tested.any():
        said = none_tested(names, int(listed_in(graph, fit.edges).sum()), intervals="low" in fit.edges)
        return replace(fit, situations=record, situation_sentences=(said,))
    found = _tested(fit, variables, tested)
    codes = torch.zeros(tested.shape, dtype=torch.uint8)
    codes[found.tested.cpu()] = VARIES.index("no")
    codes[(found.varies & found.tested).cpu()] = VARIES.index("yes")
    columns: dict[str, Tensor | None] = {"varies": codes}
    record |= {name: _count(graph, mask) for name, mask in (("tested", found.tested), ("varying", found.varies))}
    notes = [find(FindingKind.SITUATION_NOTE, line) for line in found.notes]
    notes = notes if found.tested.any() else [find(FindingKind.TRAINED_SITUATIONS)]
    record |= {"tests": _tests(found, graph), "notes": [note.sentence for note in notes]}
    rows = None
    if found.model is not None:
        rows = varying_rows(found)
        columns |= _averages(found, fit.edges)
        record |= {"kind": CONDITIONAL, "graph": found.graph.to_dict()}
    arrow = "-" if graph.symmetric else "->"
    said = varying_sentence(names, record["tested"], record["varying"], fdr, rows, fit.preparation.nodes, arrow)
    return _compared(fit.found(*notes, situations=record, situation_sentences=(said,)), found.model, columns, rows)


def _compared(fit: Fit, model: LatentGraphModel | None, columns: dict[str, Tensor | None], rows: EdgesBy | None) -> Fit:
    """Return the fit with a varying graph, if there is one, and its comparison with the constant graph.

    ``columns``  new columns of the edges, in the layout of the graph; None for one that is no longer known
    """
    graph = fit.result.model.graph
    vectors = {name: None if values is None else graph.vector(values) for name, values in columns.items()}
    fit = replace(fit, edges=replace(fit.edges.updated(**vectors), by=rows), varying=model)
    if model is None:
        return fit
    compared = compare_to(model, fit.result.model, fit.split, fit.preparation, fit.seed)
    return replace(fit, references={**fit.references, CONSTANT_GRAPH: compared})


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


def _tested(fit: Fit, variables: Sequence[ContextVariable], tested: EdgeMask) -> VaryingEdges:
    """Test by likelihood if the model has one for each node; otherwise train all these edges, without tests."""
    from tacit.assessment import situations

    model, split = fit.result.model, fit.split
    tested = tested.to(model.graph.raw.device)
    if has_likelihood(model):
        return situations.vary_by_likelihood(
            model, variables, split.train, tested, fit.config.assessment.fdr, fit.block
        )
    return situations.vary_by_training(
        model,
        variables,
        split.train,
        split.validation,
        fit.done,
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


def which_switch(fit: Fit) -> str:
    """Return the question of the stage."""
    del fit
    return "which edges switch together"


def regimes(fit: Fit) -> Fit:
    """Fit regimes; if one regime is enough, the constant graph is kept."""
    if fit.result.late_fall:
        return fit.found(find(FindingKind.NOT_COMPUTED, stage=NO_SITUATIONS, reason="stopped too early"))
    nodes, model, blocks, count = (
        fit.preparation.nodes,
        fit.result.model,
        fit.config.graph.blocks,
        fit.config.graph.regimes,
    )
    assert count is not None
    names = [WHOLE] if blocks == WHOLE else list(nodes)
    shown = _in_blocks_of_two(model, listed_in(model.graph, fit.edges), blocks)
    record: dict[str, Any] = {"kind": CONSTANT, "blocks": names}
    constant = replace(fit, situations=record)
    if not shown.any():
        return replace(constant, situation_sentences=(NO_BLOCK[blocks],))
    found = _fitted(fit, count, blocks)
    if found.model is None:
        return replace(constant, situation_sentences=(one_regime(found) if found.steps else NO_GATES[blocks],))
    shown &= found.in_regimes
    if not shown.any():  # the regimes are those of edges that are not listed
        return replace(constant, situation_sentences=(NO_GATES[blocks],))
    rows = regime_rows(found, shown)
    record |= {
        "kind": MIXTURE,
        "graph": found.graph.to_dict(),
        "weights": [[round(value, 6) for value in block] for block in found.weights.value.tolist()],
        "posterior": posterior_over_time(found.model, fit.split, fit.dataset, fit.seed),
    }
    arrow = "-" if model.graph.symmetric else "->"
    said = regime_sentence(rows, record["weights"], names, nodes, arrow)
    unknown = int((shown & found.regime_probs.unknown.any(0).cpu()).sum())
    about: dict[str, Any] = {"unknown": unknown, "count": int(shown.sum())}
    notes = [find(FindingKind.UNDETERMINED_REGIMES, **about)] if unknown else []
    if not has_regime_likelihood(model, fit.split.train, blocks):
        notes.append(find(FindingKind.TRAINED_REGIMES))
    fit = fit.found(*notes, situations=record, situation_sentences=(said,))
    return _compared(fit, found.model, _marginals(found, fit), rows)


def _fitted(fit: Fit, num_regimes: int | Literal["auto"], blocks: Blocks) -> RegimeFit:
    """Fit by likelihood if the model has one for each node, otherwise by training."""
    model, train, validation = fit.result.model, fit.split.train, fit.split.validation
    if has_regime_likelihood(model, train, blocks):
        return regimes_by_likelihood(
            model, train, validation, num_regimes=num_regimes, blocks=blocks, seed=fit.seed, block=fit.block
        )
    return regimes_by_training(
        model,
        train,
        validation,
        fit.done,
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


def _marginals(found: RegimeFit, fit: Fit) -> dict[str, Tensor | None]:
    """Return errors and intervals of the marginal probabilities, which replace those of the constant graph.

    After training they are not known: those of the constant graph belong to other probabilities. Edges that are not in
    a regime keep theirs, and so do edges that act together: their states are those of one gate.
    """
    if "std_error" not in fit.edges:
        return {}
    graph = fit.result.model.graph
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

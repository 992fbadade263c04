"""The stage of a fit that tests which edges depend on the situation, after the standard errors of the constant graph.

Only edges that are listed and may act at times are tested: an edge that always acts does not depend on the situation.
On the time also those are tested that act in a part of the table (:mod:`tacit.pipeline.edge_changes`). The probability
of an edge that varies is the average over situations,

$$\\bar\\theta = \\tfrac1n \\sum_c \\theta(c), \\qquad \\mathrm{se}(\\bar\\theta)^2 = g^\\top C g,$$

with $g$ the derivatives for the parameters $(a, b)$ of the edge and $C$ their covariance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.situations import VaryingEdges
from tacit.assessment.uncertainty import ALWAYS_ABOVE
from tacit.data import Split
from tacit.graph import ContextVariable, GraphDistribution
from tacit.local import has_likelihood
from tacit.pipeline.listing import Listing
from tacit.pipeline.situation_options import TIME
from tacit.pipeline.situation_words import TRAINED_SITUATIONS, none_tested, varying_sentence
from tacit.pipeline.situations import described
from tacit.records import VARIES, EdgeFindings, EdgesBy
from tacit.shapes import EdgeMask
from tacit.training import FitSettings, LatentGraphModel, Listener

NEVER = 1e-6  # an interval that reaches this value contains 0
RARELY, MOSTLY = 0.02, 0.98  # without intervals
CONDITIONAL, MIXTURE, CONSTANT = "conditional", "mixture", "constant"  # kinds of ``situations`` in a record


@dataclass(frozen=True, eq=False)
class SituationFit:
    """The result of the stage.

    ``model``      the model for forecasts; None if the constant graph is kept
    ``columns``    new columns of the edges
    ``record``     the field ``situations`` of the record
    ``sentences``  sentences for the answer
    ``findings``   limitations
    """

    model: LatentGraphModel | None
    columns: dict[str, Any] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
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
    edges: EdgeFindings
    nodes: Sequence[str]
    settings: FitSettings
    fdr: float
    seed: int
    compile: bool
    block: int
    listener: Listener


def find_varying(fit: StageInputs, variables: Sequence[ContextVariable]) -> SituationFit:
    """Test which edges depend on the variables, and return the fit in which those do."""
    tested = edges_to_test(fit.model, fit.edges, fit.fdr, by_time=any(one.name == TIME for one in variables))
    names = [one.name for one in variables]
    record: dict[str, Any] = {
        "kind": CONSTANT,
        "variables": described(variables),
        "tested": _count(fit.model.graph, tested),
        "varying": 0,
        "fdr": fit.fdr,
    }
    if not tested.any():
        listed = int(Listing.of(fit.model.graph, fit.edges, fit.fdr).listed.sum())
        return SituationFit(None, {}, record, (none_tested(names, listed, intervals=fit.edges.low is not None),))
    found = _tested(fit, variables, tested)
    codes = torch.zeros(tested.shape, dtype=torch.uint8)
    codes[found.tested.cpu()] = VARIES.index("no")
    codes[(found.varies & found.tested).cpu()] = VARIES.index("yes")
    columns: dict[str, Any] = {"varies": codes}
    record |= {
        name: _count(fit.model.graph, mask) for name, mask in (("tested", found.tested), ("varying", found.varies))
    }
    notes = found.notes if found.tested.any() else (TRAINED_SITUATIONS,)
    record |= {"tests": _tests(found, fit.model.graph), "notes": list(notes)}
    rows = None
    if found.model is not None:
        rows = varying_rows(found)
        columns |= {"by": rows, **_averages(found, fit.edges)}
        record |= {"kind": CONDITIONAL, "graph": found.graph.to_dict()}
    said = varying_sentence(
        names, record["tested"], record["varying"], fit.fdr, rows, fit.nodes, "-" if fit.model.graph.symmetric else "->"
    )
    return SituationFit(found.model, columns, record, (said,), notes)


def edges_to_test(model: LatentGraphModel, edges: EdgeFindings, fdr: float, *, by_time: bool = False) -> EdgeMask:
    """Return the listed edges that may act at times: their interval lies neither at 0 nor above ``ALWAYS_ABOVE``.

    Where an edge is undecided, a situation may decide. ``by_time`` adds those that change at some time.
    """
    graph = model.graph
    listed, probs = Listing.of(graph, edges, fdr).listed, graph.edge_probs.detach().cpu()
    if edges.low is None or edges.high is None:
        at_times = (probs > RARELY) & (probs < MOSTLY)
    else:
        at_times = (edges.low > NEVER) & (edges.low <= ALWAYS_ABOVE)
    if by_time and edges.changed is not None:
        at_times = at_times | (edges.changed > 0)
    return listed & at_times


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
    rows, columns = chosen.cpu().nonzero().unbind(1)
    if graph.candidates is None:
        return columns.tolist(), rows.tolist()
    candidates = graph.candidates.to("cpu")
    return candidates.sources[rows, columns].tolist(), candidates.row_node[rows].tolist()


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


def _averages(found: VaryingEdges, edges: EdgeFindings) -> dict[str, Tensor | None]:
    """Return standard errors and intervals of the average of each edge that varies; other edges keep theirs.

    After training there are none: those of the constant graph belong to other numbers.
    """
    if edges.std_error is None or edges.low is None or edges.high is None or found.graph.rank is not None:
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
    for name, old, values in (
        ("std_error", edges.std_error, error),
        ("low", edges.low, ends["low"]),
        ("high", edges.high, ends["high"]),
    ):
        placed = torch.zeros_like(old)
        placed[each.cpu()] = values.to(placed)
        columns[name] = torch.where(varies.cpu(), graph.symmetrize(placed), old)
    return columns

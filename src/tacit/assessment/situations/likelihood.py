r"""A likelihood-ratio test of which edges of a linear filter depend on the situation.

Every edge of ``tested`` may have slopes $b$ for the features of the situation. It varies if the exact likelihood of its
target is significantly larger with them than without, with the slopes of all other tested edges free:

$$\frac{n - p}{n}\, \frac{2\, (\ell_{\text{all}} - \ell_{b = 0})}{k \lambda} \sim F_{k, \min(n - p, d - k + 1)}$$

with $k$ features, $n$ rows and $p$ parameters of the fit: for many rows this is $\chi^2_k$, for few rows it is the test
of linear regression. $\lambda$ and $d$ allow for rows that depend on each other (:class:`~tacit.local.Inference`).
Where the situation is the series, series are not units, and neighbours within them are. Slopes are shrunk towards 0
(``PRIOR_DEVIATION`` of :mod:`tacit.graph.conditional`), so the test is conservative. Edges are selected at a false
discovery rate. In the result only these edges have slopes, and only nodes with such an edge are fitted again.

The likelihood is a sum over all states of the gates of a node, so at most ``MOST_GATES`` gates are random: tested edges
first, in the order of their gain from a gate.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tacit.assessment.situations.varying import FDR, VaryingEdges, called_varying
from tacit.assessment.uncertainty import MOST_GATES
from tacit.data import Pairs
from tacit.errors import require
from tacit.graph import (
    BernoulliGraph,
    Category,
    ConditionalBernoulliGraph,
    Context,
    ContextVariable,
    Features,
    SeriesNumber,
)
from tacit.local import (
    Dependence,
    GatedFit,
    GatedRegression,
    Inference,
    LocalModel,
    fit_gated,
    fit_gates,
    has_likelihood,
)
from tacit.shapes import EdgeMask
from tacit.training import LatentGraphModel

ROUNDS = 3  # of fits with all slopes, each from better initial values
SAME = 1e-3  # tolerance of a log likelihood
MANY_GATES = (
    "not tested because a node has more than {most} edges that act at times: {edges} (those with the smallest gain "
    "from a gate)"
)


def vary_by_likelihood(
    model: LatentGraphModel,
    variables: Sequence[ContextVariable],
    train: Pairs,
    tested: EdgeMask,
    fdr: float = FDR,
    block: int = 1,
) -> VaryingEdges:
    """Return which of the ``tested`` edges depend on the variables; the model, a constant fit, is not changed.

    ``block``  number of neighbouring pairs that may be correlated, above 1 for a series
    """
    require(
        has_likelihood(model) and isinstance(model.graph, BernoulliGraph),
        "vary_by_likelihood requires a linear filter with noise that has a likelihood, one target per node and no "
        f"prior, got {type(model.predictor).__name__} with {type(model.observation).__name__}; use vary_by_training",
    )
    assert isinstance(model.graph, BernoulliGraph)
    device, data = model.graph.raw.device, LocalModel.of(model, train.to("cpu"))
    training, tested = Context.of(train.to(device)), (tested.to(device) & model.graph.learned).cpu()
    graph = ConditionalBernoulliGraph(model.graph, variables, training, varying=tested)
    features = graph.features(training)
    between = any(isinstance(one, Category) and isinstance(one.reading, SeriesNumber) for one in variables)
    dependence = Dependence.of_rows(len(train), block, train.series, whole=not between)
    nodes = tested.any(1).nonzero()[:, 0].tolist()
    regressions, asked, starts = list[GatedRegression](), list[Bool[Tensor, " source"]](), list[GatedFit]()
    for node in nodes:
        sources = data.sources(node)
        regressions.append(data.node(node, features=_of_node(features, node, sources)))
        mask, start = tested[node, sources], data.start(node)
        for source in (mask & ~start.gated).nonzero()[:, 0].tolist():
            start = start.with_gate(source, 0.8)
        few, kept = _with_few_gates(regressions[-1], start, mask)
        starts.append(few)
        asked.append(kept)
    # slopes of all tested edges, and without those of one at a time, which is a better start if it fits better
    full, going = _fits(regressions, starts, asked), list(range(len(nodes)))
    without = [dict[int, GatedFit]() for _ in nodes]
    for repeated in range(ROUNDS + 1):
        edges = [(place, source) for place in going for source in asked[place].nonzero()[:, 0].tolist()]
        fewer = [asked[place] & (torch.arange(len(asked[place])) != source) for place, source in edges]
        alone = _fits([regressions[place] for place, _ in edges], [full[place] for place, _ in edges], fewer)
        for (place, source), fit in zip(edges, alone, strict=True):
            without[place][source] = fit
        best = {place: max(without[place].values(), key=_value, default=full[place]) for place in going}
        going = [place for place in going if _value(best[place]) > _value(full[place]) + SAME]
        if not going or repeated == ROUNDS:
            break
        again = _fits([regressions[p] for p in going], [best[p] for p in going], [asked[p] for p in going])
        for place, fit in zip(going, again, strict=True):
            full[place] = max(fit, full[place], key=_value)
    p_values, could = torch.full(tested.shape, torch.nan, dtype=torch.float64), torch.zeros_like(tested)
    rows = [dependence.among(data.weights[:, node] > 0) for node in nodes]
    for place, node in enumerate(nodes):
        sources = data.sources(node)
        could[node, sources] = asked[place]
        found = Inference.of(regressions[place], full[place], rows[place]) if without[place] else None
        for source, fit in without[place].items():
            assert found is not None
            ratio = 2 * (_value(full[place]) - _value(fit))
            p_values[node, sources[source]] = found.p_value(ratio, found.gates[source][1:])
    varies, missed = called_varying(p_values, fdr), int((tested & ~could).sum())
    notes = (MANY_GATES.format(edges=missed, most=MOST_GATES),) if missed else ()
    # the fit in which only the selected edges vary, and the covariances of their logits and slopes
    chosen = [place for place, node in enumerate(nodes) if varies[node].any()]
    masks = [varies[nodes[place], data.sources(nodes[place])] for place in chosen]
    final = _fits([regressions[place] for place in chosen], [full[place] for place in chosen], masks)
    covariances = [torch.zeros(0, 1 + graph.num_features, 1 + graph.num_features).double()]
    for place, mask, fit in zip(chosen, masks, final, strict=True):
        found = Inference.of(regressions[place], fit, rows[place])
        own = torch.stack([found.gates[source] for source in mask.nonzero()[:, 0].tolist()])
        covariances.append(found.covariance[own[:, :, None], own[:, None]])
    fitted = None
    if final:
        graph.varying.copy_(varies)
        fits = [data.start(node) for node in range(len(tested))]
        refitted = torch.zeros(len(tested), dtype=torch.bool)
        for place, fit in zip(chosen, final, strict=True):
            fits[nodes[place]], refitted[nodes[place]] = fit, True
        probs = data.matrix([one.edge_probs for one in fits], model.graph.edge_probs)
        parameters = data.parameters(fits, probs, refitted)
        logits, slopes = parameters["graph.edge_logits"].clone(), torch.zeros_like(graph.context_weights)
        for place, fit in zip(chosen, final, strict=True):
            node, sources = nodes[place], data.sources(nodes[place])
            assert fit.slopes is not None
            logits[node, sources[fit.gated]] = fit.logits[fit.gated].to(logits)
            slopes[node, sources] = fit.slopes.to(slopes)
        graph.edge_logits, graph.context_weights = nn.Parameter(logits), nn.Parameter(slopes)
        fitted = data.with_graph(graph, parameters)
    quantile, both = dependence.quantile(len(train)), torch.cat(covariances)
    return VaryingEdges(
        fitted, could.to(device), varies.to(device), p_values.to(device), both.to(device), notes, quantile
    )


def _value(fit: GatedFit) -> float:
    return fit.log_likelihood


def _fits(
    data: Sequence[GatedRegression], starts: Sequence[GatedFit], varying: Sequence[Bool[Tensor, " _"]]
) -> list[GatedFit]:
    """Return fits in which only the given edges vary."""
    moving = list[GatedFit]()
    for one, start, mask in zip(data, starts, varying, strict=True):
        assert one.features is not None
        moving.append(start.with_slopes(mask, one.features.shape[2]))
    return fit_gated(data, moving)


def _with_few_gates(
    data: GatedRegression, start: GatedFit, asked: Bool[Tensor, " source"]
) -> tuple[GatedFit, Bool[Tensor, " source"]]:
    """Return initial values with at most ``MOST_GATES`` gates, and the edges that can be tested."""
    if int(start.gated.sum()) <= MOST_GATES:
        return start, asked
    gates = start.gated.nonzero()[:, 0].tolist()
    none = torch.zeros_like(start.gated)
    (base,) = fit_gates([data], [none], [start])
    alone = fit_gated([data] * len(gates), [base.with_gate(gate, float(start.edge_probs[gate])) for gate in gates])
    values = {gate: fit.log_likelihood for gate, fit in zip(gates, alone, strict=True)}
    order = sorted(gates, key=lambda gate: (not asked[gate], -values[gate]))
    kept = none.clone()
    kept[order[:MOST_GATES]] = True
    for gate in order[MOST_GATES:]:
        start = start.without_gate(gate)
    return start, asked & kept


def _of_node(features: Features, node: int, sources: Tensor) -> Float[Tensor, "pair source feature"]:
    """Return the features of the edges into a node, in the order of the graph's weights."""
    parts = []
    if features.shared is not None:
        parts.append(features.shared[:, None].expand(-1, len(sources), -1))
    if features.source is not None:
        parts.append(features.source[:, sources.to(features.source.device)])
    if features.target is not None:
        parts.append(features.target[:, node, None].expand(-1, len(sources), -1))
    return torch.cat(parts, 2).detach().cpu()

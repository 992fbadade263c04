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

import copy
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class _Node:
    """The data of one node, its fit with the slopes of all tested edges, and their p-values."""

    number: int
    data: GatedRegression
    dependence: Dependence
    tested: Bool[Tensor, " source"]
    fit: GatedFit
    p_values: Float[Tensor, " source"]


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
    data, tested = (
        LocalModel.of(model, train.to("cpu")),
        (tested.to(model.graph.learned.device) & model.graph.learned).cpu(),
    )
    assert isinstance(model.graph, BernoulliGraph)
    device, training = model.graph.raw.device, Context.of(train.to(model.graph.raw.device))
    graph = ConditionalBernoulliGraph(model.graph, variables, training, varying=tested)
    features = graph.features(training)
    between = any(isinstance(one, Category) and isinstance(one.reading, SeriesNumber) for one in variables)
    dependence = Dependence.of_rows(len(train), block, train.series, whole=not between)
    nodes = [
        _test_node(data, node, features, tested[node], dependence.among(data.weights[:, node] > 0))
        for node in tested.any(1).nonzero()[:, 0].tolist()
    ]
    p_values, asked = torch.full(tested.shape, torch.nan, dtype=torch.float64), torch.zeros_like(tested)
    for one in nodes:
        sources = data.sources(one.number)
        p_values[one.number, sources], asked[one.number, sources] = one.p_values, one.tested
    varies, missed = called_varying(p_values, fdr), int((tested & ~asked).sum())
    notes = (MANY_GATES.format(edges=missed, most=MOST_GATES),) if missed else ()
    final = {
        one.number: _final(one, varies[one.number, data.sources(one.number)])
        for one in nodes
        if varies[one.number].any()
    }
    numbers = 1 + graph.num_features
    covariances = torch.cat([torch.zeros(0, numbers, numbers).double(), *(errors for _, errors in final.values())])
    fitted = None
    if final:
        graph.varying.copy_(varies)
        fitted = _with_fits(model, graph, data, {node: fit for node, (fit, _) in final.items()})
    quantile = dependence.quantile(len(train))
    return VaryingEdges(
        fitted, asked.to(device), varies.to(device), p_values.to(device), covariances.to(device), notes, quantile
    )


def _test_node(
    regressions: LocalModel,
    node: int,
    features: Features,
    tested: Bool[Tensor, " node"],
    dependence: Dependence,
) -> _Node:
    sources = regressions.sources(node)
    data = regressions.node(node, features=_of_node(features, node, sources))
    asked, start = tested[sources], regressions.start(node)
    for source in (asked & ~start.gated).nonzero()[:, 0].tolist():
        start = start.with_gate(source, 0.8)
    start, asked = _with_few_gates(data, start, asked)
    full = _fits(data, [(start, asked)])[0]
    p_values = torch.full((len(sources),), torch.nan, dtype=torch.float64)
    without = _without_each(data, full, asked)
    for _ in range(ROUNDS):
        best = max(without.values(), key=lambda one: one.log_likelihood, default=full)
        if best.log_likelihood <= full.log_likelihood + SAME:
            break
        full = max(*_fits(data, [(best, asked)]), full, key=lambda one: one.log_likelihood)
        without = _without_each(data, full, asked)
    if without:
        found = Inference.of(data, full, dependence)
        for source, fewer in without.items():
            ratio = 2 * (full.log_likelihood - fewer.log_likelihood)
            p_values[source] = found.p_value(ratio, found.gates[source][1:])
    return _Node(node, data, dependence, asked, full, p_values)


def _without_each(data: GatedRegression, full: GatedFit, asked: Bool[Tensor, " source"]) -> dict[int, GatedFit]:
    """Return the fits in which one of the varying edges is constant."""
    sources = asked.nonzero()[:, 0].tolist()
    return dict(zip(sources, _fits(data, [(full, _less(asked, source)) for source in sources]), strict=True))


def _fits(data: GatedRegression, starts: list[tuple[GatedFit, Bool[Tensor, " source"]]]) -> list[GatedFit]:
    """Return fits in which only the given edges vary."""
    moving = [start.with_slopes(varying, _num_features(data)) for start, varying in starts]
    return fit_gated([data] * len(starts), moving)


def _final(node: _Node, varies: Bool[Tensor, " source"]) -> tuple[GatedFit, Float[Tensor, "edge number number"]]:
    """Return the final fit, in which only the selected edges vary, and the covariances of their logits and slopes."""
    fit = _fits(node.data, [(node.fit, varies)])[0]
    found = Inference.of(node.data, fit, node.dependence)
    own = torch.stack([found.gates[source] for source in varies.nonzero()[:, 0].tolist()])
    return fit, found.covariance[own[:, :, None], own[:, None]]


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


def _with_fits(
    model: LatentGraphModel, graph: ConditionalBernoulliGraph, data: LocalModel, fits: dict[int, GatedFit]
) -> LatentGraphModel:
    """Return a copy of the model with another graph and the parameters of ``fits``."""
    count = len(data.present)
    every = [fits.get(node, data.start(node)) for node in range(count)]
    refitted = torch.tensor([node in fits for node in range(count)])
    probs = data.matrix([one.edge_probs for one in every], model.graph.edge_probs)
    parameters = data.parameters(every, probs, refitted)
    logits, slopes = parameters["graph.edge_logits"].clone(), torch.zeros_like(graph.context_weights)
    for node, fit in fits.items():
        sources = data.sources(node)
        assert fit.slopes is not None
        logits[node, sources[fit.gated]] = fit.logits[fit.gated].to(logits)
        slopes[node, sources] = fit.slopes.to(slopes)
    new = copy.deepcopy(model)
    new.load_state_dict(
        {name: value for name, value in parameters.items() if not name.startswith("graph.")}, strict=False
    )
    graph.edge_logits = nn.Parameter(logits)
    graph.context_weights = nn.Parameter(slopes)
    new.graph = graph
    return new


def _less(mask: Bool[Tensor, " source"], source: int) -> Bool[Tensor, " source"]:
    fewer = mask.clone()
    fewer[source] = False
    return fewer


def _num_features(data: GatedRegression) -> int:
    assert data.features is not None
    return data.features.shape[2]

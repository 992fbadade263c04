r"""A Wald test that the weights of an edge are 0, with the sandwich as covariance of a trained graph.

The parameters $\beta$ of an edge are its logit $a$ and its weights $b$. Training ends near the minimum of the loss, not
at it. One Newton step from there has the same asymptotic error as the minimum itself,

$$\tilde\beta = \hat\beta - H^{-1} \bar g, \qquad V = \frac1n\, H^{-1}\, \mathrm{Cov}(g)\, H^{-1}, \qquad
W = \tilde b^\top V_{bb}^{-1}\, \tilde b \sim \chi^2_K$$

$g$ is the gradient of one pair, $\bar g$ its mean over all $n$ training pairs and $H$ the curvature, with that of the
penalty (:mod:`tacit.assessment.uncertainty.curvature`), all for the tested edges and the predictor's parameters
together. $g$ is estimated from ``NUM_GRAPHS`` graphs; the additional variance is part of $\mathrm{Cov}(g)$ and so of
the standard errors. For a series, covariances of neighbouring gradients are included.

Under the null hypothesis the weights are shrunk towards their true value 0, so the test keeps its level. Edges in
directions with almost no curvature are not identifiable: their p-value is 1.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from tacit.assessment.uncertainty import (
    MOST_PARAMETERS,
    PairGradients,
    logit_curvature,
    long_run_covariance,
    predictor_names,
    some_pairs,
)
from tacit.data import Pairs
from tacit.graph import ConditionalBernoulliGraph, Context
from tacit.shapes import EdgeMask
from tacit.training import LatentGraphModel

NUM_GRAPHS = 32  # per pair, over which gradients are averaged
CURVED_PAIRS = 8192  # for the curvature
KEPT_PAIRS = 32768  # for the covariance of gradients
PART = 4096  # pairs at once
FLATTEST = 1e-3  # smallest curvature of a direction, relative to those of single parameters
UNKNOWN = 1e3  # variance of a logit that is not identifiable

Numbers = Float[Tensor, "edge number"]


class EdgeNumbers(NamedTuple):
    """Logit and weights of edges after the Newton step, in the order of ``edges.nonzero()``.

    ``free``         mask of the estimated parameters: the logits, and the weights of edges that vary
    ``covariances``  covariances of the parameters of each edge
    ``p_values``     p-values of the hypothesis that all weights of an edge are 0; NaN for edges without weights
    ``predictor``    the parameters of predictor and noise after the step, by name
    """

    estimates: Numbers
    free: Bool[Tensor, "edge number"]
    covariances: Float[Tensor, "edge number number"]
    p_values: Float[Tensor, " edge"]
    predictor: dict[str, Tensor]


def edge_numbers(
    model: LatentGraphModel, train: Pairs, edges: EdgeMask, *, generator: Generator, block: int = 1
) -> EdgeNumbers:
    """Return the parameters of the marked edges of a trained model after one Newton step, with their covariances.

    All other edges are treated as known. ``block`` is the number of neighbouring pairs that may be correlated. If there
    are more than ``MOST_PARAMETERS`` parameters, edges are processed in groups of neighbouring rows: other groups, and
    a predictor with more than half as many parameters, are treated as known. With one hop and a known predictor this is
    exact, since the loss of a node depends only on the edges of its row. Otherwise standard errors are slightly too
    small.
    """
    graph = model.graph
    assert isinstance(graph, ConditionalBernoulliGraph)
    names = predictor_names(model) if _num_predictor(model) <= MOST_PARAMETERS // 2 else []
    parts = [
        _group(model, train, chosen, names, generator, block)
        for chosen in _groups(edges, 1 + graph.num_features, MOST_PARAMETERS - (_num_predictor(model) if names else 0))
    ]
    if len(parts) == 1:
        return parts[0]
    estimates, free, covariances, p_values = (
        torch.cat(values) for values in zip(*(part[:4] for part in parts), strict=True)
    )
    return EdgeNumbers(estimates, free, covariances, p_values, {})


def is_split(model: LatentGraphModel, edges: EdgeMask) -> bool:
    """Return whether there are too many parameters, so that groups are estimated with the others treated as known."""
    graph = model.graph
    assert isinstance(graph, ConditionalBernoulliGraph)
    numbers, predictor = int(edges.sum()) * (1 + graph.num_features), _num_predictor(model)
    return numbers + predictor > MOST_PARAMETERS or predictor > MOST_PARAMETERS // 2


def _num_predictor(model: LatentGraphModel) -> int:
    return sum(model.get_parameter(name).numel() for name in predictor_names(model))


def _groups(edges: EdgeMask, num_numbers: int, most: int) -> list[EdgeMask]:
    """Return masks of groups of rows, each with a limited number of parameters unless a single row has more."""
    per_row = (edges.sum(1) * num_numbers).tolist()
    bounds, count = [0], 0
    for row, size in enumerate(per_row):
        if count + size > most and count:
            bounds.append(row)
            count = 0
        count += size
    rows = torch.arange(len(per_row), device=edges.device)[:, None]
    ends = [*bounds[1:], len(per_row)]
    return [edges & (rows >= low) & (rows < high) for low, high in zip(bounds, ends, strict=True)]


def _group(
    model: LatentGraphModel, train: Pairs, edges: EdgeMask, names: list[str], generator: Generator, block: int
) -> EdgeNumbers:
    graph = model.graph
    assert isinstance(graph, ConditionalBernoulliGraph)
    count, size = int(edges.sum()), 1 + graph.num_features
    free = torch.ones(count, size, dtype=torch.bool, device=edges.device)
    free[:, 1:] = graph.varying[edges][:, None]
    chosen = free.flatten()

    def of_edges(given: dict[str, Tensor]) -> Tensor:
        logits, weights = given["graph.edge_logits"][:, edges], given["graph.context_weights"][:, edges]
        return torch.cat([logits[..., None], weights], -1).flatten(1)[:, chosen]

    view = PairGradients(model, names, of_edges, generator, NUM_GRAPHS)
    mean, spread = _moments(view, train, block)
    some = some_pairs(train, CURVED_PAIRS, 1)  # a mean: pairs are spread over all situations
    top = logit_curvature(
        model, some, edges, generator=generator, design=lambda part: design_of(graph, part, edges), num_numbers=size
    )
    shrunk = torch.full((count, size), graph.shrinkage, dtype=top.dtype, device=top.device)
    shrunk[:, 0] = 0
    bend = view.with_predictor((top + torch.diag(shrunk.flatten()))[chosen][:, chosen], some)
    inverse, flat = _inverse(bend, int(chosen.sum()))
    variance = inverse @ spread @ inverse / len(train)
    step = -inverse @ mean
    return _assembled(model, edges, names, free, step, variance, flat)


def _assembled(
    model: LatentGraphModel,
    edges: EdgeMask,
    names: list[str],
    free: Bool[Tensor, "edge number"],
    step: Float[Tensor, " parameter"],
    variance: Float[Tensor, "parameter parameter"],
    flat: Bool[Tensor, " parameter"],
) -> EdgeNumbers:
    """Return the parameters of each edge from one vector of all parameters."""
    graph, count = model.graph, int(free.sum())
    assert isinstance(graph, ConditionalBernoulliGraph)
    present = torch.cat([graph.raw[edges][:, None], graph.weights()[edges]], 1).detach().double()
    estimates = present.clone()
    estimates[free] += step[:count]
    place = torch.full(free.shape, -1, device=free.device)
    place[free] = torch.arange(count, device=free.device)
    covariances = torch.zeros(*free.shape, free.shape[1], dtype=torch.float64, device=free.device)
    p_values = torch.full((len(free),), torch.nan, dtype=torch.float64, device=free.device)
    for edge in range(len(free)):
        own = place[edge][free[edge]]
        inside = free[edge].nonzero()[:, 0]
        covariances[edge][inside[:, None], inside] = variance[own][:, own]
        unknown = inside[flat[own]]
        covariances[edge][unknown, unknown] = UNKNOWN
        estimates[edge][unknown] = present[edge][unknown]
        if len(own) > 1:
            p_values[edge] = _p_value(estimates[edge][1:], covariances[edge][1:, 1:], known=not len(unknown))
    predictor, first = {}, count
    for name in names:
        value = model.get_parameter(name).detach()
        predictor[name] = value + step[first : first + value.numel()].view_as(value).to(value)
        first += value.numel()
    return EdgeNumbers(estimates, free, covariances, p_values, predictor)


def design_of(graph: ConditionalBernoulliGraph, pairs: Pairs, edges: EdgeMask) -> Float[Tensor, "batch edge number"]:
    r"""Return $(1, \phi)$ of the marked edges for each pair: the derivatives of their logits by $a$ and $b$."""
    features, table = graph.features(Context.of(pairs)), graph.candidates
    row, slot = edges.nonzero().unbind(1)
    target = row if table is None else table.row_node[row]
    source = slot if table is None else table.sources[row, slot]
    parts = [torch.ones(len(pairs), len(row), 1, dtype=pairs.inputs.dtype, device=pairs.inputs.device)]
    if features.shared is not None:
        parts.append(features.shared[:, None].expand(-1, len(row), -1))
    for ends, values in ((source, features.source), (target, features.target)):
        if values is not None:
            parts.append(values[:, ends])
    return torch.cat(parts, -1)


def _moments(
    view: PairGradients, train: Pairs, block: int
) -> tuple[Float[Tensor, " parameter"], Float[Tensor, "parameter parameter"]]:
    """Return the mean gradient over all pairs, and the covariance from evenly spaced chunks of neighbours."""
    total, observed, kept = torch.zeros(()), torch.zeros(()), []
    every = -(-len(train) // KEPT_PAIRS)
    for number, start in enumerate(range(0, len(train), PART)):
        gradients, weights = view.weighted(train[start : start + PART])
        total, observed = total.to(gradients) + gradients.sum(0), observed.to(weights) + weights.sum()
        if number % every == 0:
            kept.append(gradients)
    rows = torch.cat(kept) * (len(train) / observed)  # pairs are weighted by their observed targets
    return total / observed, long_run_covariance(rows, rows, block)


def _inverse(
    bend: Float[Tensor, "parameter parameter"], count: int
) -> tuple[Float[Tensor, "parameter parameter"], Bool[Tensor, " parameter"]]:
    """Return the inverse, and the parameters that are excluded from it because the curvature is too small.

    The curvature is estimated. For an edge that is almost never or almost always present it is close to 0, so its
    estimate may be negative and would make the inverse invalid for all parameters. The first ``count`` parameters,
    those of the graph, are compared with each other, and those of the predictor with each other, since their units
    differ. The curvature of a direction is relative to those of the single parameters. For each direction with too
    little curvature, the parameter with the largest component is excluded.
    """
    sizes, tiny = bend.diagonal(), torch.finfo(bend.dtype).tiny
    parts = [part for part in (sizes[:count], sizes[count:]) if len(part)]
    kept = torch.cat([part > FLATTEST * part.median().clamp_min(tiny) for part in parts])
    inverse = torch.zeros_like(bend)
    while kept.any():
        places = kept.nonzero()[:, 0]
        part = bend[places][:, places]
        scale = part.diagonal().rsqrt()
        values, vectors = torch.linalg.eigh(part * scale[:, None] * scale)
        if values[0] > FLATTEST:
            inverse[places[:, None], places] = (vectors / values @ vectors.mT) * scale[:, None] * scale
            break
        kept[places[vectors[:, 0].square().argmax()]] = False
    return inverse, ~kept


def _p_value(weights: Float[Tensor, " feature"], covariance: Float[Tensor, "feature feature"], *, known: bool) -> float:
    from scipy.stats import chi2

    if not known:
        return 1.0
    statistic = float(weights @ torch.linalg.solve(covariance, weights))
    return float(chi2.sf(statistic, len(weights)))

r"""Warm starts: initial values from a ridge regression.

Joint training of graph and predictor can end in a poor local minimum, such as the complement of the graph with flipped
signs of the filter. A ridge regression has a single minimum. Its largest coefficients determine the initial edges:

$$\theta_{ij} = \begin{cases} \text{high} & \text{if } |w_{ij}| \text{ is in the top share off the diagonal} \\
\text{low} & \text{else} \end{cases}$$

No edge starts at 0 or 1, because it could not change from there. Over all pairs of nodes use :func:`ridge_start` and
:func:`filter_start`; over a table of candidates, with regressions on the candidates only, :func:`table_ridge`,
:func:`table_edge_start` and :func:`table_filter_start`.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tacit.data import Pairs, RegressionFit, ridge_regression
from tacit.errors import require
from tacit.graph import CandidateEdges, GraphDistribution
from tacit.predictors import GraphFilter
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training.local_ridge import LocalRidge, choose_penalty, is_affordable, local_ridge
from tacit.training.model import LatentGraphModel
from tacit.training.node_regressions import has_likelihood, start_at_likelihood

# Measured on GPVAR, where 11% of the pairs are edges: training from here found the true graph.
TOP, HIGH, LOW = 0.15, 0.5, 0.03
TINY = 1e-30
LATER_SHARE = 0.2  # share of the pairs, the last ones, on which the penalty is chosen


def ridge_start(pairs: Pairs) -> EdgeProbs:
    """Return initial edge probabilities: high for the largest weights and low elsewhere, 0 on the diagonal.

    Pass the result to :meth:`~tacit.graph.BernoulliGraph.start_around`, with a spread so that replicas differ.

    >>> inputs = torch.randn(60, 3, 1, generator=torch.Generator().manual_seed(0))
    >>> ridge_start(Pairs(inputs, inputs[:, [2, 1, 2]])).gt(0.4).nonzero().tolist()  # 0 reads 2, the others themselves
    [[0, 2]]
    """
    scores = _ridge(pairs).edge_scores
    return _high_and_low(scores, ~torch.eye(pairs.num_nodes, dtype=torch.bool, device=scores.device))


def filter_start(pairs: Pairs, predictor: GraphFilter, possible: EdgeMask, *, jitter: float = 0.0) -> GraphFilter:
    r"""Return a linear filter that starts at a ridge regression on the values that nodes send to each other.

    An edge starts at the regression's weight $w_{ij}$, or at 0 if it is not ``possible``: with every edge present the
    prediction is that of the regression. Each replica adds noise ``jitter``, see :meth:`GraphFilter.with_weights`.
    """
    _require_linear(predictor)
    fit = _ridge(_sent(pairs, predictor))
    nodes = torch.arange(pairs.num_nodes, device=fit.coefficients.device)
    own = _own_weights(fit.coefficients[nodes, nodes], predictor)
    edge_weights = fit.coefficients * possible.to(fit.coefficients)[..., None, None]
    edge_weights[nodes, nodes] = 0
    return predictor.with_weights(own, edge_weights, fit.intercepts, jitter=jitter)


def table_ridge(
    pairs: Pairs, predictor: GraphFilter, candidates: CandidateEdges, lags: int | None = None
) -> LocalRidge:
    """Return the regressions on the values that nodes send, over all pairs; the penalty is chosen on the last pairs.

    In-sample residuals are too small, so ``sigmas`` are scaled up to the errors on the last pairs. With ``lags`` only
    that many newest steps are used, and the weights of older steps are 0.
    """
    pairs, lagged = _sent(pairs, predictor, lags), (lags or predictor.layout.window) * predictor.sent_features
    allowed = _allowed(predictor, candidates, pairs.inputs.shape[2])
    later = choose_penalty(*_cut(pairs), candidates, allowed=allowed, own=lagged)
    found = local_ridge(pairs, pairs, candidates, penalties=[later.penalty], allowed=allowed, own=lagged)
    left = found.sigmas[later.nodes].square().mean()
    more = (later.sigmas.square().mean() / left.clamp_min(TINY)).sqrt()
    older = predictor.layout.window * predictor.sent_features - lagged
    own, edges = (nn.functional.pad(weights, (0, 0, older, 0)) for weights in (found.own[:, :lagged], found.edges))
    return replace(found, own=own, edges=edges, sigmas=found.sigmas * more.clamp_min(1.0))


def table_edge_start(found: LocalRidge, candidates: CandidateEdges) -> EdgeProbs:
    """Return initial edge probabilities: high for the largest weights, low for the others, 0 in empty slots.

    The share of high values is the same as in ``ridge_start``, but among the candidates: a missed edge can rise from
    low, while an edge without an effect stays at its initial value.

    >>> inputs = torch.randn(60, 3, 1, generator=torch.Generator().manual_seed(0))
    >>> table = CandidateEdges.from_edges(torch.tensor([1, 2, 0, 0]), torch.tensor([0, 0, 1, 2]), num_nodes=3)
    >>> pairs = Pairs(inputs, inputs[:, [2, 1, 2]])  # 0 reads 2, the others themselves
    >>> found = local_ridge(pairs[:40], pairs[40:], table)
    >>> [round(prob, 2) for prob in table_edge_start(found, table)[0].tolist()]
    [0.03, 0.5]
    """
    others = candidates.used & (candidates.sources != candidates.row_node[:, None])
    return _high_and_low(found.edge_scores, others)


def table_filter_start(found: LocalRidge, predictor: GraphFilter, *, jitter: float = 0.0) -> GraphFilter:
    """Return a linear filter over the table that starts at the regressions of :func:`table_ridge`.

    Each replica adds noise ``jitter``, see :meth:`GraphFilter.with_weights`.
    """
    _require_linear(predictor)
    return predictor.with_weights(_own_weights(found.own, predictor), found.edges, found.intercepts, jitter=jitter)


def start_at_regression(model: LatentGraphModel, train: Pairs) -> bool:
    r"""Set a linear filter to regressions on the possible edges; return whether this was done.

    With $w_{ij}$ the weights of the regression of node $i$ on its own past and on its possible sources, an edge starts
    at $w_{ij} / \theta_{ij}$, so that the mean over graphs equals the regression. The noise starts at the residual
    standard deviation. Weights of steps older than :func:`regression_lags` start at 0.
    """
    predictor, probs = model.predictor, model.graph.edge_probs.detach()
    if has_likelihood(model) and not model.observation.by_moments:
        return start_at_likelihood(model, train)
    candidates = regression_table(predictor, model.graph, train)
    if candidates is None or not isinstance(predictor, GraphFilter):
        return False
    found = table_ridge(train, predictor, candidates, regression_lags(predictor, candidates, train))
    source, target = candidates.edges()
    weights = predictor.edge_weights.new_zeros(*predictor.edge_weights.shape[:2], *found.edges.shape[2:])
    weights[target, source] = (found.edges[candidates.used] / probs[target, source][:, None, None].to(found.edges)).to(
        weights
    )
    filled = predictor.with_weights(_own_weights(found.own, predictor), weights, found.intercepts)
    predictor.load_state_dict(filled.state_dict())
    noise = model.observation.with_deviations(found.sigmas.to(weights))
    model.observation.load_state_dict(noise, strict=False)
    return True


def regression_table(predictor: nn.Module, graph: GraphDistribution, train: Pairs) -> CandidateEdges | None:
    """Return the possible edges, on which :func:`start_at_regression` regresses; None if it does nothing."""
    if not isinstance(predictor, GraphFilter) or predictor.activation != "linear" or graph.candidates is not None:
        return None
    candidates = CandidateEdges.from_mask((graph.edge_probs.detach() > 0).fill_diagonal_(False))
    return candidates if regression_lags(predictor, candidates, train) else None


def regression_lags(predictor: GraphFilter, candidates: CandidateEdges, train: Pairs) -> int:
    """Return how many of the newest steps the regressions can use within the time limit."""
    steps = range(predictor.layout.window, 0, -1)
    return next((lags for lags in steps if is_affordable(candidates, lags * predictor.sent_features, train)), 0)


def steps_read(model: LatentGraphModel, train: Pairs) -> tuple[int, int]:
    """Return the number of steps that :func:`start_at_regression` uses (0 if none), and that of the window."""
    predictor, candidates = model.predictor, regression_table(model.predictor, model.graph, train)
    if candidates is None or not isinstance(predictor, GraphFilter):
        return 0, 0
    return regression_lags(predictor, candidates, train), predictor.layout.window


def _require_linear(predictor: GraphFilter) -> None:
    require(
        predictor.activation == "linear",
        f"predictor must have activation 'linear', got '{predictor.activation}'; use warm_start=False",
    )


def _sent(pairs: Pairs, predictor: GraphFilter, lags: int | None = None) -> Pairs:
    """Return pairs with only the inputs that the nodes of a filter send to each other, of the newest steps.

    If edges may act within a step, the targets are appended as inputs, which a node does not read of itself.
    """
    observed = torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed
    parts = predictor.linear_parts(pairs.inputs, pairs.targets * observed)
    assert parts is not None  # the filter is linear
    older = 0 if lags is None else (predictor.layout.window - lags) * predictor.sent_features
    known = None if pairs.observed is None else predictor.complete(observed)
    return Pairs(parts.sent[:, :, older:].contiguous(), pairs.targets, known)


def _allowed(predictor: GraphFilter, candidates: CandidateEdges, newest: int) -> Float[Tensor, "row slot sent"] | None:
    """Return which of the ``newest`` inputs each slot of a table may use; None if it may use all."""
    allowed = predictor.allowed_columns
    if allowed is None:
        return None
    if allowed.shape[:2] != candidates.sources.shape:  # a filter over all pairs of nodes
        source, target = candidates.edges()
        slots = allowed.new_ones(*candidates.sources.shape, allowed.shape[2])
        slots[candidates.used] = allowed[target, source]
        allowed = slots
    return allowed[:, :, allowed.shape[2] - newest :]


def _cut(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """Split pairs into the first ones, for a regression, and the last ones, on which its penalty is chosen."""
    cut = len(pairs) - max(1, round(LATER_SHARE * len(pairs)))
    require(cut >= 2, f"pairs must have at least 3 rows for a regression, got {len(pairs)}; pass more pairs")
    return pairs[:cut], pairs[cut:]


def _ridge(pairs: Pairs) -> RegressionFit:
    """Return the ridge regression on all pairs, with the penalty chosen on the last pairs."""
    return ridge_regression(pairs, pairs, penalties=[ridge_regression(*_cut(pairs)).penalty])


def _high_and_low(scores: Float[Tensor, "row slot"], others: Bool[Tensor, "row slot"]) -> EdgeProbs:
    """Return ``HIGH`` for the ``TOP`` share of scores among the ``others``, ``LOW`` for the rest, 0 elsewhere."""
    ranked = scores[others].sort(descending=True).values
    if not len(ranked):
        return torch.zeros_like(scores)
    chosen = scores >= ranked[max(0, round(TOP * len(ranked)) - 1)]
    return torch.where(chosen, HIGH, LOW).to(scores) * others


def _own_weights(sent: Float[Tensor, "node in_channel channel"], predictor: GraphFilter) -> Tensor:
    """Return the weights of each node's own inputs from those of the sent values; 0 for other features."""
    layout, features = predictor.layout, predictor.sent_features
    own = torch.zeros_like(predictor.own, device=sent.device, dtype=sent.dtype)
    by_lag = own.view(-1, layout.window, layout.num_features, layout.out_channels)
    by_lag[:, :, :features] = sent.view(-1, layout.window, features, layout.out_channels)
    if predictor.residual:  # the newest value is added to the filter's output, so subtract it from the own path
        channels = torch.arange(layout.out_channels, device=own.device)
        by_lag[:, -1, channels, channels] -= 1
    return own

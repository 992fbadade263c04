r"""Warm starts: begin where a ridge regression points.

Joint training of graph and predictor can end in a bad basin, such as the complement of the graph with the signs of a
filter flipped. A ridge regression has one minimum. Its largest coefficients name the edges to begin with:

$$\theta_{ij} = \begin{cases} \text{high} & \text{if } |w_{ij}| \text{ is in the top share off the diagonal} \\
\text{low} & \text{else} \end{cases}$$

No edge starts at 0 or 1, from which it could not return. Over all pairs of nodes: :func:`ridge_start` and
:func:`filter_start`. Over a table of candidates, by regressions on the candidates alone: :func:`table_ridge`,
:func:`table_edge_start` and :func:`table_filter_start`.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tacit.data.pairs import Pairs
from tacit.data.regression import RegressionFit, regress
from tacit.data.ridge import RIDGE_PENALTIES, ridge_path
from tacit.errors import require
from tacit.graph import GraphDistribution, Slots
from tacit.predictors.filter import GraphFilter
from tacit.shapes import EdgeProbs
from tacit.training.local_ridge import LocalRidge, choose_penalty, is_affordable, local_ridge
from tacit.training.model import LatentGraphModel

# Measured on GPVAR, where 11% of the pairs are edges: the true graph was found from here.
TOP, HIGH, LOW = 0.15, 0.5, 0.03
TINY = 1e-30
LATER_SHARE = 0.2  # of the pairs, the last ones, that choose the penalty


def ridge_start(
    pairs: Pairs,
    *,
    top: float = TOP,
    high: float = HIGH,
    low: float = LOW,
    penalties: Sequence[float] = RIDGE_PENALTIES,
) -> EdgeProbs:
    """Return edge probabilities to begin with: ``high`` on the ``top`` share of edges, ``low`` elsewhere.

    The diagonal is 0. Give the result to :meth:`~tacit.graph.BernoulliGraph.start_around`, with a spread that makes
    replicas differ.

    >>> inputs = torch.randn(60, 3, 1, generator=torch.Generator().manual_seed(0))
    >>> pairs = Pairs(inputs, inputs[:, [2, 1, 0]])                 # 0 reads 2, 2 reads 0, 1 reads itself
    >>> ridge_start(pairs, top=1 / 3, high=0.5, low=0.25).tolist()
    [[0.0, 0.25, 0.5], [0.25, 0.0, 0.25], [0.5, 0.25, 0.0]]
    """
    require(0 < top < 1, f"top needs to be a share between 0 and 1, got {top}; pass for example {TOP}")
    require(
        0 < low <= high < 1,
        f"low and high need 0 < low <= high < 1, got {low} and {high}; an edge that starts at 0 or 1 stays there",
    )
    scores = _ridge(pairs, penalties).edge_scores
    away = ~torch.eye(pairs.num_nodes, dtype=torch.bool, device=scores.device)
    return _high_and_low(scores, away, top, high, low)


def filter_start(
    pairs: Pairs,
    predictor: GraphFilter,
    edge_probs: EdgeProbs,
    *,
    in_expectation: bool = True,
    jitter: float = 0.0,
    penalties: Sequence[float] = RIDGE_PENALTIES,
) -> GraphFilter:
    r"""Return a linear filter that begins at the ridge regression of what its nodes send to each other.

    With $w_{ij}$ the regression's weights and $\theta$ = ``edge_probs`` where the graph begins, an edge starts at
    $w_{ij} / \theta_{ij}$: the mean prediction over graphs is then the regression's, as $E[A_{ij}]\, W_{ij} = w_{ij}$.
    Without ``in_expectation`` it starts at $w_{ij}$, and the prediction is the regression's once every edge is there.
    An edge that cannot be ($\theta_{ij} = 0$) starts at 0. Each replica is moved by ``jitter``, see
    :meth:`GraphFilter.with_weights`.
    """
    _require_linear(predictor)
    fit = _ridge(_sent(pairs, predictor), penalties)
    nodes = torch.arange(pairs.num_nodes, device=fit.coefficients.device)
    own = _own_weights(fit.coefficients[nodes, nodes], predictor)
    probs = edge_probs.to(fit.coefficients)[..., None, None]
    factor = torch.where(probs > 0, 1 / probs if in_expectation else 1.0, 0.0)
    edge_weights = fit.coefficients * factor
    edge_weights[nodes, nodes] = 0
    return predictor.with_weights(own, edge_weights, fit.intercepts, jitter=jitter)


def table_ridge(pairs: Pairs, predictor: GraphFilter, slots: Slots, lags: int | None = None) -> LocalRidge:
    """Return the regressions on what the nodes of a filter send, on all pairs, the penalty chosen on the last.

    What is left of the pairs themselves is too little: ``sigmas`` are as large as what was left of the last ones. With
    ``lags`` only so many newest steps are read, and the weights of older ones are 0.
    """
    pairs = _sent(pairs, predictor, lags)
    later = choose_penalty(*_cut(pairs), slots)
    found = local_ridge(pairs, pairs, slots, penalties=[later.penalty])
    left = found.sigmas[later.nodes].square().mean()
    more = (later.sigmas.square().mean() / left.clamp_min(TINY)).sqrt()
    older = predictor.layout.window * predictor.sent_features - pairs.inputs.shape[2]
    own, edges = (nn.functional.pad(weights, (0, 0, older, 0)) for weights in (found.own, found.edges))
    return replace(found, own=own, edges=edges, sigmas=found.sigmas * more.clamp_min(1.0))


def table_edge_start(found: LocalRidge, slots: Slots) -> EdgeProbs:
    """Return edge probabilities to begin with, high for the largest weights and low for the others; 0 in empty slots.

    High is the same share of the candidates as of all pairs in ``ridge_start``: an edge that is missed rises from low,
    while one that has no effect stays where it begins.

    >>> inputs = torch.randn(60, 3, 1, generator=torch.Generator().manual_seed(0))
    >>> table = Slots.from_edges(torch.tensor([1, 2, 0, 0]), torch.tensor([0, 0, 1, 2]), num_nodes=3)
    >>> pairs = Pairs(inputs, inputs[:, [2, 1, 2]])  # 0 reads 2, the others themselves
    >>> found = local_ridge(pairs[:40], pairs[40:], table)
    >>> [round(prob, 2) for prob in table_edge_start(found, table)[0].tolist()]
    [0.03, 0.5]
    """
    others = slots.used & (slots.senders != slots.row_node[:, None])
    return _high_and_low(found.edge_scores, others, TOP, HIGH, LOW)


def table_filter_start(found: LocalRidge, predictor: GraphFilter, *, jitter: float = 0.0) -> GraphFilter:
    """Return a linear filter over the table that begins at the regressions, which are those of :func:`table_ridge`.

    Each replica is moved by ``jitter``, see :meth:`GraphFilter.with_weights`.
    """
    _require_linear(predictor)
    return predictor.with_weights(_own_weights(found.own, predictor), found.edges, found.intercepts, jitter=jitter)


def start_at_regression(model: LatentGraphModel, train: Pairs) -> bool:
    r"""Put a linear filter where regressions on the edges that can be point, and say whether that was done.

    With $w_{ij}$ the weights of the regression of node $i$ on its own past and on the nodes that it can read, an edge
    starts at $w_{ij} / \theta_{ij}$, so that the mean over graphs is the regression, and the noise at what it leaves.
    Older steps than :func:`regression_lags` start at 0.
    """
    predictor, probs = model.predictor, model.graph.edge_probs.detach()
    slots = regression_table(predictor, model.graph, train)
    if slots is None or not isinstance(predictor, GraphFilter):
        return False
    found = table_ridge(train, predictor, slots, regression_lags(predictor, slots, train))
    source, target = slots.edges()
    weights = torch.zeros_like(predictor.edge_weights)
    weights[target, source] = (found.edges[slots.used] / probs[target, source][:, None, None].to(found.edges)).to(
        weights
    )
    filled = predictor.with_weights(_own_weights(found.own, predictor), weights, found.intercepts)
    predictor.load_state_dict(filled.state_dict())
    noise = model.observation.with_deviations(found.sigmas.to(weights))
    model.observation.load_state_dict(noise, strict=False)
    return True


def regression_table(predictor: nn.Module, graph: GraphDistribution, train: Pairs) -> Slots | None:
    """Return the edges that can be, on which :func:`start_at_regression` regresses; None where it does nothing."""
    if not isinstance(predictor, GraphFilter) or predictor.activation != "linear" or graph.slots is not None:
        return None
    slots = Slots.from_mask((graph.edge_probs.detach() > 0).fill_diagonal_(False))
    return slots if regression_lags(predictor, slots, train) else None


def regression_lags(predictor: GraphFilter, slots: Slots, train: Pairs) -> int:
    """Return how many of the newest steps the regressions can read without taking long."""
    steps = range(predictor.layout.window, 0, -1)
    return next((lags for lags in steps if is_affordable(slots, lags * predictor.sent_features, train)), 0)


def steps_read(model: LatentGraphModel, train: Pairs) -> tuple[int, int]:
    """Return how many steps :func:`start_at_regression` regresses on, and those of the window; 0 if on none."""
    predictor, slots = model.predictor, regression_table(model.predictor, model.graph, train)
    if slots is None or not isinstance(predictor, GraphFilter):
        return 0, 0
    return regression_lags(predictor, slots, train), predictor.layout.window


def _require_linear(predictor: GraphFilter) -> None:
    require(
        predictor.activation == "linear",
        f"predictor needs activation 'linear', got '{predictor.activation}'; a regression says nothing about others",
    )


def _sent(pairs: Pairs, predictor: GraphFilter, lags: int | None = None) -> Pairs:
    """Return pairs with only those inputs that the nodes of a filter send to each other, of the newest steps."""
    layout = predictor.layout
    first = 0 if lags is None else layout.window - lags
    sent = layout.lags(pairs.inputs)[:, :, first:, : predictor.sent_features]  # (pair, node, lag, sent feature)
    return Pairs(sent.flatten(2).contiguous(), pairs.targets, pairs.observed)


def _cut(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """Return the first pairs and the last ones, which choose the penalty of a regression on the first."""
    cut = len(pairs) - max(1, round(LATER_SHARE * len(pairs)))
    require(cut >= 2, f"pairs needs three or more for a regression, got {len(pairs)}; pass more pairs")
    return pairs[:cut], pairs[cut:]


def _ridge(pairs: Pairs, penalties: Sequence[float]) -> RegressionFit:
    """Return the ridge regression on all pairs, its penalty chosen on the last of them."""
    chosen = regress(*_cut(pairs), ridge_path, penalties).penalty
    return regress(pairs, pairs, ridge_path, [chosen])


def _high_and_low(
    scores: Float[Tensor, "row slot"], others: Bool[Tensor, "row slot"], top: float, high: float, low: float
) -> EdgeProbs:
    """Return ``high`` for the ``top`` share of scores among the ``others``, ``low`` for the rest, 0 elsewhere."""
    ranked = scores[others].sort(descending=True).values
    if not len(ranked):
        return torch.zeros_like(scores)
    chosen = scores >= ranked[max(0, round(top * len(ranked)) - 1)]
    return torch.where(chosen, high, low).to(scores) * others


def _own_weights(sent: Float[Tensor, "node in_channel channel"], predictor: GraphFilter) -> Tensor:
    """Return a filter's weights of each node's own inputs, from those of what it sends; 0 for other features."""
    layout, features = predictor.layout, predictor.sent_features
    own = torch.zeros_like(predictor.own, device=sent.device, dtype=sent.dtype)
    by_lag = own.view(-1, layout.window, layout.num_features, layout.out_channels)
    by_lag[:, :, :features] = sent.view(-1, layout.window, features, layout.out_channels)
    if predictor.residual:  # the newest value is added to the filter's output, so take it off the own path
        channels = torch.arange(layout.out_channels, device=own.device)
        by_lag[:, -1, channels, channels] -= 1
    return own

r"""Warm starts: begin where a ridge regression points.

Joint training of graph and predictor can end in a bad basin, such as the complement of the graph with the signs of a
filter flipped. A ridge regression has one minimum. Its largest coefficients name the edges to begin with:

$$\theta_{ij} = \begin{cases} \text{high} & \text{if } |w_{ij}| \text{ is in the top share off the diagonal} \\
\text{low} & \text{else} \end{cases}$$

No edge starts at 0 or 1, from which it could not return.
"""

from collections.abc import Sequence

import torch

from tacit.data.pairs import Pairs
from tacit.data.regression import RegressionFit, regress
from tacit.data.ridge import RIDGE_PENALTIES, ridge_path
from tacit.errors import require
from tacit.predictors.filter import GraphFilter
from tacit.shapes import EdgeProbs

# Measured on GPVAR, where 11% of the pairs are edges: the true graph was found from here.
TOP, HIGH, LOW = 0.15, 0.5, 0.03
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
    ranked = scores[away].sort(descending=True).values
    chosen = scores >= ranked[max(0, round(top * len(ranked)) - 1)]
    return torch.where(chosen, high, low).to(scores.dtype) * away


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
    require(
        predictor.activation == "linear",
        f"predictor needs activation 'linear', got '{predictor.activation}'; a regression says nothing about others",
    )
    layout, sent = predictor.layout, predictor.sent_features
    lags = layout.lags(pairs.inputs)[..., :sent]  # (pair, node, lag, sent feature)
    fit = _ridge(Pairs(lags.flatten(2).contiguous(), pairs.targets, pairs.observed), penalties)
    nodes = torch.arange(pairs.num_nodes, device=fit.coefficients.device)
    own = torch.zeros_like(predictor.own, device=nodes.device, dtype=fit.coefficients.dtype)
    by_lag = own.view(len(nodes), layout.window, layout.num_features, layout.out_channels)
    by_lag[:, :, :sent] = fit.coefficients[nodes, nodes].view(len(nodes), layout.window, sent, layout.out_channels)
    if predictor.residual:  # the newest value is added to the filter's output, so take it off the own path
        channels = torch.arange(layout.out_channels, device=nodes.device)
        by_lag[:, -1, channels, channels] -= 1
    probs = edge_probs.to(fit.coefficients)[..., None, None]
    factor = torch.where(probs > 0, 1 / probs if in_expectation else 1.0, 0.0)
    edge_weights = fit.coefficients * factor
    edge_weights[nodes, nodes] = 0
    return predictor.with_weights(own, edge_weights, fit.intercepts, jitter=jitter)


def _ridge(pairs: Pairs, penalties: Sequence[float]) -> RegressionFit:
    """Return the ridge regression on all pairs, its penalty chosen on the last of them."""
    later = max(1, round(LATER_SHARE * len(pairs)))
    require(len(pairs) - later >= 2, f"pairs needs three or more for a regression, got {len(pairs)}; pass more pairs")
    chosen = regress(pairs[: len(pairs) - later], pairs[len(pairs) - later :], ridge_path, penalties).penalty
    return regress(pairs, pairs, ridge_path, [chosen])

"""Warm starts over a table of candidates: begin where regressions on the candidates alone point.

It is what :mod:`tacit.training.warm_start` does over all pairs of nodes.
"""

import torch

from tacit.data.pairs import Pairs
from tacit.errors import require
from tacit.graph import Slots
from tacit.predictors.filter import GraphFilter
from tacit.shapes import EdgeProbs
from tacit.training.local_ridge import LocalRidge, local_ridge
from tacit.training.warm_start import HIGH, LATER_SHARE, LOW, TOP


def table_ridge(pairs: Pairs, predictor: GraphFilter, slots: Slots) -> LocalRidge:
    """Return the regressions on what the nodes of a filter send, on all pairs, the penalty chosen on the last."""
    lags = predictor.layout.lags(pairs.inputs)[..., : predictor.sent_features]  # (pair, node, lag, sent feature)
    pairs = Pairs(lags.flatten(2).contiguous(), pairs.targets, pairs.observed)
    cut = len(pairs) - max(1, round(LATER_SHARE * len(pairs)))
    require(cut >= 2, f"pairs needs three or more for a regression, got {len(pairs)}; pass more pairs")
    chosen = local_ridge(pairs[:cut], pairs[cut:], slots).penalty
    return local_ridge(pairs, pairs, slots, penalties=[chosen])


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
    ranked = found.edge_scores[others].sort(descending=True).values
    if not len(ranked):
        return torch.zeros_like(found.edge_scores)
    chosen = found.edge_scores >= ranked[max(0, round(TOP * len(ranked)) - 1)]
    return torch.where(chosen, HIGH, LOW).to(found.edge_scores) * others


def table_filter_start(found: LocalRidge, predictor: GraphFilter, *, jitter: float = 0.0) -> GraphFilter:
    """Return a linear filter over the table that begins at the regressions, which are those of :func:`table_ridge`.

    Each replica is moved by ``jitter``, see :meth:`GraphFilter.with_weights`.
    """
    require(
        predictor.activation == "linear",
        f"predictor needs activation 'linear', got '{predictor.activation}'; a regression says nothing about others",
    )
    layout, sent = predictor.layout, predictor.sent_features
    own = torch.zeros_like(predictor.own, device=found.own.device, dtype=found.own.dtype)
    by_lag = own.view(-1, layout.window, layout.num_features, layout.out_channels)
    by_lag[:, :, :sent] = found.own.view(-1, layout.window, sent, layout.out_channels)
    if predictor.residual:  # the newest value is added to the filter's output, so take it off the own path
        channels = torch.arange(layout.out_channels, device=own.device)
        by_lag[:, -1, channels, channels] -= 1
    return predictor.with_weights(own, found.edges, found.intercepts, jitter=jitter)

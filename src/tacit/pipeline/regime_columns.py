"""The columns ``regime`` and ``regime_probability`` of forecasts of a fit with regimes.

If the target of a node is known, the regime is inferred from inputs and targets; otherwise only the weights are known.
"""

import numpy as np
from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.data import Pairs
from tacit.graph import MixtureGraph
from tacit.pipeline.fitted import Fitted
from tacit.randomness import generator_for

Columns = dict[str, Shaped[np.ndarray, "key node channel"]]


def regime_columns(fitted: Fitted, pairs: Pairs, seed: int) -> Columns:
    """Return the most likely regime of each pair and node, counted from 1, and its probability; none without regimes.

    With regimes of the whole graph, all nodes have the same regime; with regimes of each node, it is inferred from the
    target of the node.
    """
    graph = fitted.model.graph
    if not isinstance(graph, MixtureGraph):
        return {}
    from tacit.assessment.regimes import regime_posterior

    device = graph.raw.device
    probs = regime_posterior(fitted.model, pairs.to(device), generator=generator_for(seed, "regimes", device))
    return _columns(probs.cpu(), pairs.num_nodes, pairs.targets.shape[2])


def weight_columns(fitted: Fitted, count: int, channels: int) -> Columns:
    """Return the columns of ``count`` forecasts without known targets, from the weights of the regimes."""
    graph = fitted.model.graph
    if not isinstance(graph, MixtureGraph):
        return {}
    weights = graph.regime_weights.detach().cpu()[None]
    return _columns(weights.expand(count, -1, -1), graph.num_nodes, channels)


def _columns(probs: Float[Tensor, "key block regime"], num_nodes: int, channels: int) -> Columns:
    best, regime = probs.expand(-1, num_nodes, -1).max(-1)  # (key, node)
    shape = (*best.shape, channels)
    return {
        "regime": (regime + 1)[..., None].expand(shape).contiguous().numpy(),
        "regime_probability": best.double()[..., None].expand(shape).contiguous().numpy(),
    }

r"""Matching of the regimes of two fits, because the numbering of regimes is arbitrary.

$$\min_\sigma \sum_k \sum_{ij \in B} |\theta_{kij} - \theta'_{\sigma(k)ij}|$$

for each block $B$ separately, by the assignment with the smallest total distance.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.graph import MixtureGraph

RegimeProbs = Float[Tensor, "regime row slot"]


def match_regimes(graph: MixtureGraph, reference: RegimeProbs, other: RegimeProbs) -> Int[Tensor, "block regime"]:
    """Return, for each block and regime of ``reference``, the number of the matching regime of ``other``.

    >>> from tacit.graph import BernoulliGraph
    >>> graph = MixtureGraph(BernoulliGraph(torch.full((1, 1), 0.5)), 2)
    >>> match_regimes(graph, torch.tensor([0.1, 0.9]).view(2, 1, 1), torch.tensor([0.8, 0.3]).view(2, 1, 1)).tolist()
    [[1, 0]]
    """
    from scipy.optimize import linear_sum_assignment

    apart = (reference[:, None] - other[None]).abs().sum(-1)  # (regime, regime, row)
    distance = apart.new_zeros(*apart.shape[:2], graph.num_blocks).index_add(2, graph.block_of_row, apart)
    orders = [linear_sum_assignment(distance[..., block].cpu().numpy())[1] for block in range(graph.num_blocks)]
    return torch.stack([torch.as_tensor(order, device=reference.device) for order in orders])

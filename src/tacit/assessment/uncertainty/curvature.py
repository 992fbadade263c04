r"""How sharply the expected loss bends around its minimum, for edge probabilities and the predictor's parameters.

A loss that compares graphs is $L(\eta) = E\,h(Y_\eta, Y'_\eta) - 2 E\,h(Y_\eta, y)$. Where the model is right, $y$ is
distributed as $Y_\eta$, and the second derivative is that of the cross term alone,

$$H = 2\, \partial_\eta\, \partial_{\eta'} \, E\,h(Y_\eta, Y'_{\eta'})$$

For edges both derivatives are scores, $s_a(A) = (A_a - \theta_a) / \theta_a (1 - \theta_a)$ with respect to
$\theta_a$, so that graphs drawn once give all of it:

$$H_{ab} = \frac{2}{S (S - 1)} \sum_{s \neq t} \tilde h_{st}\, s_a(A_s)\, s_b(A_t)$$

$\tilde h_{st}$ is $h(y_s, y_t)$ less the means of its row and column over all other graphs, which changes nothing in
expectation. With credit by receptive field a node counts only scores of edges that it can feel. For the predictor's
parameters the gradient is differenced, under the same graphs.
"""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.errors import require_int
from tacit.graph import reachability
from tacit.shapes import EdgeMask, Graphs, PairCosts
from tacit.training import LatentGraphModel

EdgeCurvature = Float[Tensor, "edge edge"]
EdgeScores = Float[Tensor, "batch graph unit edge"]
NUM_GRAPHS = 24
MOST_NUMBERS = 2**24  # of the scores of a chunk: 64 MiB


@torch.no_grad()
def edge_curvature(
    model: LatentGraphModel,
    pairs: Pairs,
    edges: EdgeMask,
    *,
    generator: Generator,
    num_graphs: int = NUM_GRAPHS,
) -> EdgeCurvature:
    r"""Return $H_{ab}$ for the marked edges, in the order of ``edges.nonzero()``; their probability is not 0 or 1."""
    loss = model.loss
    model.graph.require_edge_probs("edge_curvature")
    loss.require_compares("edge_curvature")
    require_int("num_graphs", num_graphs, 4)
    units = pairs.num_nodes if loss.scope == "node" else 1
    count = int(edges.sum())
    chunk = max(1, MOST_NUMBERS // (num_graphs * units * max(1, count)))
    total = torch.zeros(count, count, device=pairs.inputs.device, dtype=torch.float64)
    weight = 0.0
    for start in range(0, len(pairs), chunk):
        part = pairs[start : start + chunk]
        graphs = model.graph.sample(num_graphs, num_pairs=len(part), generator=generator)
        samples = model.for_loss(model.describe(part.inputs, graphs), generator=generator)
        costs = centred(loss.pair_costs(samples, part.observed))
        if part.observed is not None:
            counted = loss.weights_of(part.observed)
            costs = costs * counted[:, None, None]
            weight += float(counted.sum())
        else:
            weight += len(part) * units
        scores = _scores(model, graphs, edges, units)
        received = torch.einsum("bstu,bsue->btue", costs, scores)
        total += torch.einsum("btue,btuf->ef", received, scores).double()
    return 2 * (total + total.mT) / 2 / (num_graphs * (num_graphs - 1) * weight)


def centred(costs: PairCosts) -> PairCosts:
    r"""Return $\tilde h_{st} = h_{st} - r_s - r_t + m$, with means over graphs other than $s$ and $t$; 0 at $s = t$."""
    graphs = costs.shape[1]
    off = 1 - torch.eye(graphs, device=costs.device, dtype=costs.dtype)[None, :, :, None]
    costs = costs * off
    rows = costs.sum(2)  # (batch, graph, unit)
    own, other = rows[:, :, None], rows[:, None]
    means = (own + other - 2 * costs) / (graphs - 2)
    rest = (rows.sum(1)[:, None, None] - 2 * own - 2 * other + 2 * costs) / ((graphs - 2) * (graphs - 3))
    return (costs - means + rest) * off


def _scores(model: LatentGraphModel, graphs: Graphs, edges: EdgeMask, units: int) -> EdgeScores:
    """Return the score of each marked edge, for each unit those that it can feel."""
    probs = model.graph.edge_probs[edges]
    target, source = edges.nonzero().unbind(1)
    scores = (graphs[..., target, source] - probs) / (probs * (1 - probs))  # (batch, graph, edge)
    credit = model.estimator.credit
    if units == 1 or credit is None or credit.num_hops is None:
        return scores[:, :, None].expand(-1, -1, units, -1)
    reached = reachability(graphs, credit.num_hops - 1)  # (batch, graph, node, node): from unit to node
    felt = reached[..., target]
    if model.graph.symmetric:
        felt = torch.maximum(felt, reached[..., source])
    return scores[:, :, None] * felt

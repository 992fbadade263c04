r"""The curvature of the expected loss at its minimum, for edge probabilities and the predictor's parameters.

A loss that compares graphs is $L(\eta) = E\,h(Y_\eta, Y'_\eta) - 2 E\,h(Y_\eta, y)$. If the model is right, $y$ is
distributed as $Y_\eta$, and the second derivative is that of the cross term only,

$$H = 2\, \partial_\eta\, \partial_{\eta'} \, E\,h(Y_\eta, Y'_{\eta'})$$

For edges both derivatives are scores, $s_a(A) = (A_a - \theta_a) / \theta_a (1 - \theta_a)$ with respect to
$\theta_a$, so one set of sampled graphs is sufficient:

$$H_{ab} = \frac{2}{S (S - 1)} \sum_{s \neq t} \tilde h_{st}\, s_a(A_s)\, s_b(A_t)$$

$\tilde h_{st}$ is $h(y_s, y_t)$ minus the means of its row and column over all other graphs, which does not change the
expectation. With credit by receptive field, a node uses only the scores of edges that can affect it. For the
predictor's parameters finite differences of the gradient are used, with the same graphs.
"""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.errors import require_int
from tacit.graph import GraphDistribution, reachability
from tacit.shapes import EdgeMask, Graphs, PairCosts
from tacit.training import LatentGraphModel

EdgeCurvature = Float[Tensor, "edge edge"]
EdgeScores = Float[Tensor, "batch graph edge"]
NUM_GRAPHS = 24
MOST_NUMBERS = 2**24  # scores in a chunk: 64 MiB


@torch.no_grad()
def edge_curvature(
    model: LatentGraphModel,
    pairs: Pairs,
    edges: EdgeMask,
    *,
    generator: Generator,
    num_graphs: int = NUM_GRAPHS,
) -> EdgeCurvature:
    r"""Return $H_{ab}$ for the marked edges, in the order of ``edges.nonzero()``; probabilities must not be 0 or 1."""
    graph, loss = model.graph, model.loss
    graph.require_edge_probs("edge_curvature")
    loss.require_compares("edge_curvature")
    require_int("num_graphs", num_graphs, 4)
    units = pairs.num_nodes if loss.scope == "node" else 1
    count = int(edges.sum())
    local = _is_own_row(model, units)
    largest = max(num_graphs * (num_graphs if local else units), count) * max(1, count)
    chunk = max(1, MOST_NUMBERS // largest)
    total = torch.zeros(count, count, device=pairs.inputs.device, dtype=torch.float64)
    weight = 0.0
    for start in range(0, len(pairs), chunk):
        part = pairs[start : start + chunk]
        graphs = graph.sample(num_graphs, num_pairs=len(part), generator=generator)
        samples = model.for_loss(model.describe(part.inputs, graph.as_operator(graphs)), generator=generator)
        costs = centred(loss.pair_costs(samples, part.observed))
        if part.observed is not None:
            counted = loss.weights_of(part.observed)
            costs = costs * counted[:, None, None]
            weight += float(counted.sum())
        else:
            weight += len(part) * units
        total += (_own_rows if local else _all_rows)(model, graphs, edges, costs)
    probs = graph.edge_probs[edges].double()
    slope = probs * (1 - probs)  # derivative of a probability by its logit
    return (total + total.mT) / (num_graphs * (num_graphs - 1) * weight) / (slope[:, None] * slope)


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


def _is_own_row(model: LatentGraphModel, units: int) -> bool:
    """Return whether an edge affects only its own target node."""
    credit = model.estimator.credit
    return units > 1 and credit is not None and credit.num_hops == 1 and not model.graph.symmetric


def _own_rows(model: LatentGraphModel, graphs: Graphs, edges: EdgeMask, costs: PairCosts) -> EdgeCurvature:
    """Return the sum over pairs if an edge affects only its target: 0 for edges into different nodes."""
    scores, (target, _) = _scores(model.graph, graphs, edges), _ends(model.graph, edges)
    received = torch.einsum("bste,bse->bte", costs[..., target], scores)
    return torch.einsum("bte,btf->ef", received, scores) * (target[:, None] == target)


def _all_rows(model: LatentGraphModel, graphs: Graphs, edges: EdgeMask, costs: PairCosts) -> EdgeCurvature:
    """Return the sum over pairs."""
    scores = _unit_scores(model, graphs, edges, costs.shape[-1])
    received = torch.einsum("bstu,bsue->btue", costs, scores)
    return torch.einsum("btue,btuf->ef", received, scores)


def _unit_scores(
    model: LatentGraphModel, graphs: Graphs, edges: EdgeMask, units: int
) -> Float[Tensor, "batch graph unit edge"]:
    """Return the score of each marked edge for each unit, 0 if the edge cannot affect the unit."""
    scores, (target, source) = _scores(model.graph, graphs, edges)[:, :, None], _ends(model.graph, edges)
    credit = model.estimator.credit
    if units == 1 or credit is None or credit.num_hops is None:
        return scores.expand(-1, -1, units, -1)
    reached = reachability(_over_all_pairs(graphs, model.graph), credit.num_hops - 1)  # from unit to node
    affected = reached[..., target]
    if model.graph.symmetric:
        affected = torch.maximum(affected, reached[..., source])
    return scores * affected


def _scores(graph: GraphDistribution, graphs: Graphs, edges: EdgeMask) -> EdgeScores:
    """Return the derivative of the log-probability by the logit of each marked edge."""
    return (graphs - graph.edge_probs)[..., edges]


def _ends(graph: GraphDistribution, edges: EdgeMask) -> tuple[Tensor, Tensor]:
    """Return the target and source nodes of the marked edges."""
    row, slot = edges.nonzero().unbind(1)
    if graph.candidates is None:
        return row, slot
    return graph.candidates.row_node[row], graph.candidates.sources[row, slot]


def _over_all_pairs(graphs: Graphs, graph: GraphDistribution) -> Graphs:
    """Return graphs over all pairs of nodes."""
    table = graph.candidates
    if table is None:
        return graphs
    full = graphs.new_zeros(*graphs.shape[:2], table.num_nodes**2)
    places = (table.row_node[:, None] * table.num_nodes + table.sources)[table.used]
    full[..., places] = graphs[..., table.used]
    return full.view(*graphs.shape[:2], table.num_nodes, table.num_nodes)

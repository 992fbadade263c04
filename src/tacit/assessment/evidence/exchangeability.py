r"""A test of exchangeability: do nodes differ in ways that shared weights cannot express?

A predictor with shared weights can fit nodes that differ by giving each its own pattern of edges; the edges then say
little about relations. Such differences remain in the residuals: the residual of a node, $y_i - E_A f_i(x, A)$, is
regressed on the node's own inputs and their squares, node by node. If nodes are exchangeable, that is, equal up to the
graph, these regressions explain nothing. A node differs if its explained share $R^2_i$ is above 1% and $n R^2_i$ is
above the upper $0.01 / N$ quantile of $\chi^2_k$ with $k$ columns, a family-wise level of 1%.
"""

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.graph import Context
from tacit.predictors import edge_parameters_of
from tacit.shapes import Targets
from tacit.training import LatentGraphModel

MOST_PAIRS, NUM_GRAPHS, AT_ONCE = 4096, 8, 256
ROUNDING = 1e-8  # relative to the variance of the targets
SHARE, CHANCE = 0.01, 0.01


def shares_weights(model: LatentGraphModel) -> bool:
    """Return whether the predictor has trained weights, none of which belongs to a single edge."""
    trained = any(value.requires_grad for value in model.predictor.parameters())
    return trained and not edge_parameters_of(model.predictor)


@torch.no_grad()
def differing_nodes(model: LatentGraphModel, pairs: Pairs, *, generator: Generator) -> Bool[Tensor, " node"]:
    """Return which nodes differ from the others by more than their edges.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, rng = BernoulliGraph(torch.eye(2)), Generator().manual_seed(0)
    >>> inputs = torch.randn(500, 2, 1, generator=rng)
    >>> pairs = Pairs(inputs, torch.tanh(inputs * torch.tensor([[1.0], [-1.0]])))
    >>> model = LatentGraphModel(graph, HopPredictor(torch.ones(1, 1, 1)), EnergyScore())
    >>> differing_nodes(model, pairs, generator=rng).tolist()
    [False, True]
    """
    from scipy import stats  # a second to import, for few models

    some = pairs[:: -(-len(pairs) // MOST_PAIRS)]
    means = torch.cat([_means(model, some[k : k + AT_ONCE], generator) for k in range(0, len(some), AT_ONCE)])
    residuals = (some.targets - means).double()  # (batch, node, channel)
    if some.observed is not None:
        residuals = torch.where(some.observed > 0, residuals, 0.0)
    inputs = some.inputs.double()
    own = torch.cat([inputs, inputs.square()], -1)  # (batch, node, column)
    least = ROUNDING * some.targets.double().var(0).nan_to_num()
    shares = explained_shares(residuals.cpu(), own.cpu(), least.cpu())  # rank-deficient least squares: not on a GPU
    limit = stats.chi2.isf(CHANCE / len(shares), own.shape[-1]) / len(some)
    return shares > max(SHARE, float(limit))


def explained_shares(
    residuals: Float[Tensor, "batch node channel"],
    own: Float[Tensor, "batch node column"],
    least: Float[Tensor, "node channel"],
) -> Float[Tensor, " node"]:
    """Return the largest share of a node's residual variance that its columns explain; 0 if it is at most ``least``."""
    centred, columns = residuals - residuals.mean(0), (own - own.mean(0)).transpose(0, 1)  # (node, batch, column)
    targets = centred.transpose(0, 1)  # (node, batch, channel)
    fitted = columns @ torch.linalg.lstsq(columns, targets, driver="gelsd").solution
    total = targets.square().mean(1)
    return torch.where(total > least, fitted.square().mean(1) / total, 0.0).amax(-1)


def _means(model: LatentGraphModel, pairs: Pairs, generator: Generator) -> Targets:
    """Return the mean prediction from independent graphs for each pair, so that errors are independent."""
    graph = model.graph_for(pairs.inputs, Context.of(pairs))
    graphs = graph.sample(NUM_GRAPHS, num_pairs=len(pairs), generator=generator)
    return model.observation.mean(model.describe(pairs.inputs, graph.as_operator(graphs))).mean(1)

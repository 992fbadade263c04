r"""Size and sign of an edge's effect in a model: the change of the prediction when the edge is present.

$$d_b = E_A\big[ f_i(x_b, A^{ij=1}) - f_i(x_b, A^{ij=0}) \big] \approx a + \sum_c w_c\, x_{b, jc}, \qquad
  \mathrm{effect}_{ij} = w_c\, \frac{\mathrm{sd}(x_{jc})}{\mathrm{sd}(y_i)}$$

The change of the prediction of target $i$ is regressed on the inputs $c$ of source $j$. The effect is the weight with
the largest absolute value, because weights of different channels may cancel in a sum. It is linear, so a change that is
symmetric in the source counts as 0.
"""

import torch
from torch import Generator

from tacit.assessment.evidence.flips import Edges, without_and_with
from tacit.data import Pairs
from tacit.shapes import EdgeProbs
from tacit.training import LatentGraphModel

NUM_PAIRS, NUM_GRAPHS, ENTRIES_AT_ONCE = 512, 8, 2**20


@torch.no_grad()
def signed_effects(model: LatentGraphModel, pairs: Pairs, edges: Edges, *, generator: Generator) -> EdgeProbs:
    """Return the standardised effects of some edges; 0 elsewhere.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, predictor = BernoulliGraph(torch.zeros(2, 2)), HopPredictor(torch.full((1, 1, 1), -0.01))
    >>> rng = Generator().manual_seed(0)
    >>> inputs = torch.randn(100, 2, 1, generator=rng)
    >>> pairs = Pairs(inputs, -0.02 * inputs.flip(1))  # node 0 reads node 1; the model has half of the effect
    >>> model = LatentGraphModel(graph, predictor, EnergyScore())
    >>> signed_effects(model, pairs, torch.tensor([[0, 1]]), generator=rng).round(decimals=3).tolist()
    [[0.0, -0.5], [0.0, 0.0]]
    """
    graph = model.graph
    if not len(edges):
        return torch.zeros(graph.edge_shape)
    some = pairs[:: max(1, len(pairs) // NUM_PAIRS)]
    graphs = graph.sample(NUM_GRAPHS, generator=generator)
    effects = torch.zeros(graph.edge_shape, dtype=torch.float64)
    sources = some.inputs.double() - some.inputs.double().mean(0)  # (batch, node, in_channel)
    sources = sources.cpu()  # rank-deficient least squares is not available on a GPU
    deviations, spread = sources.std(0), _target_deviations(pairs).cpu()
    for group in torch.split(edges, max(1, ENTRIES_AT_ONCE // (graphs.shape[1] * graph.num_nodes * len(some)))):
        forms = without_and_with(graphs, group, symmetric=graph.symmetric)
        means = model.observation.mean(model.describe(some.inputs, forms.flatten(1, 3)))
        means = (
            means.double().view(len(some), len(group), -1, 2, *means.shape[2:]).mean(2).cpu()
        )  # (batch, edge, form, node, channel)
        for number, (row, column) in enumerate(group.tolist()):
            change = means[:, number, 1, row] - means[:, number, 0, row]  # (batch, channel)
            weights = torch.linalg.lstsq(sources[:, column], change - change.mean(0), driver="gelsd").solution
            scaled = (weights * deviations[column][:, None] / spread[row]).flatten()
            effects[row, column] = scaled[scaled.abs().argmax()]
    if graph.symmetric:
        mirrored = effects.mT.clone()
        effects = torch.where(effects == 0, mirrored, effects)
    return effects.float()


def _target_deviations(pairs: Pairs) -> torch.Tensor:
    """Return the standard deviation of each target over its observed values, (node, channel)."""
    values = pairs.targets.double()
    if pairs.observed is not None:
        seen = pairs.observed.double()
        count = seen.sum(0).clamp_min(1)
        values = torch.where(seen > 0, values, 0.0)
        mean = values.sum(0) / count
        return ((values - mean).square() * seen).sum(0).div(count).sqrt().clamp_min(1e-12)
    return values.std(0).clamp_min(1e-12)

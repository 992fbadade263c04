"""Problems small enough to sum over every graph, and the exact answers for them."""

import torch
from torch.func import functional_call, grad

import oracles
from tacit.graph import BernoulliGraph, EdgePrior
from tacit.losses import (
    ELBO,
    MMD,
    EnergyScore,
    Gaussian,
    Laplacian,
    Literature1,
    PointMSE,
    RationalQuadratic,
)
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel

TOLERANCE = 1e-10
LOSSES = {
    "rational_quadratic": lambda **k: MMD(RationalQuadratic(0.3), **k),
    "rational_quadratic_alpha": lambda **k: MMD(RationalQuadratic(0.3, alpha=1.3), **k),
    "gaussian": lambda **k: MMD(Gaussian(0.4), **k),
    "laplacian": lambda **k: MMD(Laplacian(0.6), **k),
    "energy": lambda **k: EnergyScore(**k),
    "point_mse": lambda **k: PointMSE(**k),
    "literature_mae": lambda **k: Literature1("mae", **k),
    "literature_mse": lambda **k: Literature1("mse", **k),
    "elbo": lambda **k: ELBO(0.7, EdgePrior(0.2), **k),
}
ONE_EDGE = torch.tensor([[False, True], [False, False]])
TWO_EDGES = torch.tensor([[False, True], [True, False]])
THREE_EDGES = torch.tensor([[True, True], [True, False]])


def toy(free, loss, num_pairs, num_graphs, *, share=False, seed=0, link=None, hops=2, **choices):
    """A model of a few free edges, everything else impossible, and a batch for it; all in float64."""
    generator = torch.Generator().manual_seed(seed)
    nodes = len(free)
    probs = 0.15 + 0.7 * torch.rand(nodes, nodes, generator=generator, dtype=torch.float64)
    graph = BernoulliGraph(torch.where(free, probs, 0.0), fixed=~free, link=link)
    predictor = HopPredictor(torch.randn(hops, 2, 1, generator=generator, dtype=torch.float64))
    model = LatentGraphModel(graph, predictor, loss, num_graphs=num_graphs, share_graphs=share, **choices).double()
    inputs = torch.randn(num_pairs, nodes, 2, generator=generator, dtype=torch.float64)
    targets = 0.5 * torch.randn(num_pairs, nodes, 1, generator=generator, dtype=torch.float64)
    if model.average_cost is not None:  # any constant will do for a baseline that comes from earlier batches
        model.average_cost.copy_(torch.rand(model.average_cost.shape, generator=generator))
    return model, inputs, targets


def exact_gradients(model, name, inputs, targets, free, observed=None, expectation=None):
    """Gradients for what the graph stores and for psi, of the loss summed over every graph; plus the prior's."""
    graphs = oracles.all_graphs(free)
    if expectation is None:

        def expectation(probs, samples):
            return oracles.expected_loss(name, model.loss.scope, probs, samples, targets, observed)

    def loss(raw, weights):
        edge_probs = model.graph.link.probs(raw)
        probs = oracles.graph_probs(graphs, torch.where(free, edge_probs, 0.0))
        samples = functional_call(model.predictor, {"hop_weights": weights}, (inputs, graphs[None]))
        total = expectation(probs, samples)
        if model.prior is not None:
            prior = torch.distributions.Bernoulli(model.prior.probs.expand_as(free)[free])
            edges = torch.distributions.Bernoulli(edge_probs[free])
            total = total + model.prior.weight * torch.distributions.kl_divergence(edges, prior).sum()
        return total

    raw, weights = model.graph.raw.detach(), model.predictor.hop_weights.detach()
    for_raw, for_weights = grad(loss, argnums=(0, 1))(torch.where(free, raw, 0.5), weights)
    return torch.where(free, for_raw, 0.0), for_weights


def gap(expected, exact):
    return float((expected - exact).abs().max())


def raw_name(model):
    return f"graph.{model.graph.link.parameter}"

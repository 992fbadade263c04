"""Problems small enough to sum over every graph, and the exact answers for them."""

import itertools

import torch
from torch.func import functional_call, grad, vmap

import oracles
from tacit.assessment.identification.effects import flip_edges, place_effects, prepare_trials
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, EdgePrior
from tacit.losses import ELBO, MMD, EnergyScore, ExpectedError, Gaussian, Laplacian, PointMSE, RationalQuadratic
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
    "literature_mae": lambda **k: ExpectedError("mae", **k),
    "literature_mse": lambda **k: ExpectedError("mse", **k),
    "elbo": lambda **k: ELBO(0.7, EdgePrior(0.2), **k),
}
ONE_EDGE = torch.tensor([[False, True], [False, False]])
TWO_EDGES = torch.tensor([[False, True], [True, False]])
THREE_EDGES = torch.tensor([[True, True], [True, False]])


def toy(free, loss, num_pairs, num_graphs, *, share=False, seed=0, link=None, hops=2, symmetric=False, **choices):
    """A model of a few free edges, everything else impossible, and a batch for it; all in float64.

    In a symmetric one ``free`` has the entries i <= j of the pairs that are free.
    """
    generator = torch.Generator().manual_seed(seed)
    nodes = len(free)
    probs = 0.15 + 0.7 * torch.rand(nodes, nodes, generator=generator, dtype=torch.float64)
    probs = torch.where(free, probs, 0.0)
    if symmetric:
        probs = torch.maximum(probs, probs.mT)
    graph = BernoulliGraph(probs, fixed=probs == 0, link=link, symmetric=symmetric)
    predictor = HopPredictor(torch.randn(hops, 2, 1, generator=generator, dtype=torch.float64))
    model = LatentGraphModel(graph, predictor, loss, num_graphs=num_graphs, share_graphs=share, **choices).double()
    inputs = torch.randn(num_pairs, nodes, 2, generator=generator, dtype=torch.float64)
    targets = 0.5 * torch.randn(num_pairs, nodes, 1, generator=generator, dtype=torch.float64)
    if model.average_cost is not None:  # any constant will do for a baseline that comes from earlier batches
        model.average_cost.copy_(torch.rand(model.average_cost.shape, generator=generator))
    return model, inputs, targets


def exact_gradients(model, name, inputs, targets, free, observed=None, expectation=None):
    """Gradients for what the graph stores and for psi, of the loss summed over every graph; plus the prior's."""
    coins = graphs = oracles.all_graphs(free)
    if model.graph.symmetric:  # each coin makes two edges
        graphs = torch.maximum(graphs, graphs.mT)
    if expectation is None:

        def expectation(probs, samples):
            return oracles.expected_loss(name, model.loss.scope, probs, samples, targets, observed)

    def loss(raw, weights):
        edge_probs = model.graph.link.probs(raw)
        probs = oracles.graph_probs(coins, torch.where(free, edge_probs, 0.0))
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


def check_exact(model, name, inputs, targets, free, draws, num_graphs, observed=None):
    expected = oracles.expected_gradient(model, inputs, targets, free, draws, num_graphs, observed)
    for_raw, for_weights = exact_gradients(model, name, inputs, targets, free, observed)
    assert float(for_raw.abs().max()) > 1e-3, "the check would be empty"
    assert float(for_weights.abs().max()) > 1e-3, "the check would be empty"
    assert gap(expected[raw_name(model)], for_raw) < TOLERANCE
    assert gap(expected["predictor.hop_weights"], for_weights) < TOLERANCE


def relative_bias(expected, exact):
    return float((expected - exact).norm() / exact.norm())


def integrated_gradient(model, inputs, targets, num_graphs, points):
    """The mean gradient for the one free edge over a grid of midpoints of its uniforms."""
    middles = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    uniforms = torch.cartesian_prod(*[middles] * num_graphs).view(-1, 1, num_graphs, 1, 1).expand(-1, 1, -1, 2, 2)
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def objective(logits, some):
        return functional_call(model, {**parameters, **buffers, "graph.edge_logits": logits}, (inputs, targets, some))[
            0
        ]

    gradient = vmap(grad(objective), in_dims=(None, 0))
    parts = [gradient(parameters["graph.edge_logits"], part).sum(0) for part in uniforms.split(20_000)]
    return sum(parts) / len(uniforms)


class LinearHop(HopPredictor):
    """One hop and no tanh: linear in every edge."""

    def forward(self, inputs, graphs):
        return graphs @ torch.einsum("bjc,co->bjo", inputs, self.hop_weights[0])[:, None]

    relaxed = forward


def visible(probs, num_pairs, loss, *, sizes=(1.0,), symmetric=False, num_graphs=4, seed=0, held=False):
    r"""A model whose graph can be read off the targets, $y_i = A_{ij} x_j$, and pairs for it.

    $\theta$ is how often each edge is there in the pairs, to the pair, also among those of each size of $x$. With one
    size, and one edge in a row that is not impossible, that is where a proper loss is least, and its standard error is
    that of counting, $\sqrt{\theta (1 - \theta) / n}$. The predictor is known.
    """
    generator = torch.Generator().manual_seed(seed)
    fixed = (probs == 0) | torch.as_tensor(held)
    size = torch.tensor(sizes).repeat_interleave(num_pairs // len(sizes))
    graphs = torch.zeros(num_pairs, *probs.shape)
    for (i, j), one in itertools.product((probs.triu() if symmetric else probs).nonzero().tolist(), sizes):
        rows = (size == one).nonzero()[:, 0]
        there = rows[torch.randperm(len(rows), generator=generator)[: round(float(probs[i, j]) * len(rows))]]
        graphs[there, i, j] = 1.0
    if symmetric:
        graphs = torch.maximum(graphs, graphs.mT)
    order = torch.randperm(num_pairs, generator=generator)
    inputs = size[order, None, None].repeat(1, len(probs), 1)
    predictor = LinearHop(torch.ones(1, 1, 1)).requires_grad_(False)
    graph = BernoulliGraph(graphs.double().mean(0).float(), fixed, symmetric=symmetric)
    return LatentGraphModel(graph, predictor, loss, num_graphs=num_graphs), Pairs(inputs, graphs[order] @ inputs)


class RowMean(HopPredictor):
    """Another local predictor of two hops: each hop averages over neighbours, with a non-linearity between."""

    def forward(self, inputs, graphs):
        hidden = torch.einsum("bjc,co->bjo", inputs, self.hop_weights[0])[:, None]
        mean = graphs / graphs.sum(-1, keepdim=True).clamp_min(1)
        first = torch.tanh(mean @ hidden + hidden)
        return torch.tanh(mean @ first * self.hop_weights[1, 0] + first)


def even_graph(num_nodes):
    """A graph over all pairs of nodes, every edge as likely as not."""
    return BernoulliGraph(torch.full((num_nodes, num_nodes), 0.5))


@torch.no_grad()
def edge_effects(model, inputs, targets=None, *, generator, observed=None, contexts=None, weights=None):
    """The effect of every learned edge, with all inputs under given graphs, or as the first trial of ``identify``."""
    trials = prepare_trials(model, inputs, targets, generator=generator, observed=observed, contexts=contexts)
    effects = torch.zeros_like(model.graph.fixed_probs)
    for flips in flip_edges(model, trials):
        place_effects(effects, flips, trials.spread, symmetric=model.graph.symmetric, weights=weights)
    return effects

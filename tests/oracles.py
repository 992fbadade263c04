"""Slow, obvious versions of what the library computes fast; each is a loop or a sum one can check by reading."""

import itertools
import math

import torch
from torch.func import functional_call, grad, vmap


def hop_predictor(x, adjacency, weights):
    """tanh(sum_l 1[A^l != 0] x psi_l) for one pair and one graph."""
    total = torch.zeros(x.shape[0], weights.shape[2], dtype=x.dtype)
    for hop in range(weights.shape[0]):
        indicator = (torch.linalg.matrix_power(adjacency, hop + 1) != 0).to(x.dtype)
        total += indicator @ x @ weights[hop]
    return torch.tanh(total)


def kernel_score(samples, target, kernel, weight):
    """c (mean_{s != t} k(y_s, y_t) - 2 mean_s k(y, y_s)) for one pair; kernel takes two outputs."""
    count = len(samples)
    spread = [kernel(samples[s], samples[t]) for s in range(count) for t in range(count) if s != t]
    data = [kernel(target, samples[s]) for s in range(count)]
    return weight * (sum(spread) / len(spread) - 2 * sum(data) / len(data))


def rms_distance(a, b):
    return math.sqrt(float(((a - b) ** 2).mean()))


def all_graphs(free):
    """Every graph whose edges lie in the mask ``free``: (graph, node, node)."""
    places = free.nonzero().tolist()
    graphs = torch.zeros(2 ** len(places), *free.shape, dtype=torch.float64)
    for number, edges in enumerate(itertools.product((0.0, 1.0), repeat=len(places))):
        for (i, j), edge in zip(places, edges, strict=True):
            graphs[number, i, j] = edge
    return graphs


def graph_probs(graphs, edge_probs):
    """P(A) of each graph, as the plain product."""
    return torch.where(graphs > 0, edge_probs, 1 - edge_probs).prod(-1).prod(-1)


def kernel_of(name):
    """Each kernel written out for two outputs, with derivatives; equal outputs are at distance 0."""

    def distance(a, b):
        square = ((a - b) ** 2).mean()
        return torch.where(square > 0, torch.where(square > 0, square, 1.0).sqrt(), 0.0)

    return {
        "rational_quadratic": lambda a, b: (1 + distance(a, b) ** 2 / 0.3**2) ** -0.5,
        "rational_quadratic_alpha": lambda a, b: (1 + distance(a, b) ** 2 / (2 * 1.3 * 0.3**2)) ** -1.3,
        "gaussian": lambda a, b: torch.exp(-(distance(a, b) ** 2) / (2 * 0.4**2)),
        "laplacian": lambda a, b: torch.exp(-distance(a, b) / 0.6),
        "energy": lambda a, b: -distance(a, b),
    }[name]


def kernel_expectation(name, probs, samples, target):
    """c (E k(Y, Y') - 2 E k(y, Y)), as two sums over every graph: spread and data."""
    kernel, weight = kernel_of(name), 0.5 if name == "energy" else 1.0
    spread = sum(
        p * q * kernel(a, b) for p, a in zip(probs, samples, strict=True) for q, b in zip(probs, samples, strict=True)
    )
    data = sum(p * kernel(target, a) for p, a in zip(probs, samples, strict=True))
    return weight * spread, -2 * weight * data


def expected_loss(name, scope, probs, samples, targets, observed=None):
    """The loss of a batch with the expectation over graphs written as a sum; samples (pair, graph, node, channel).

    Kernel losses: mean over the units that observe anything. Errors: mean over all observed numbers. ELBO: sum.
    """
    pairs, nodes = targets.shape[:2]
    seen = torch.ones_like(targets, dtype=torch.bool) if observed is None else observed > 0
    if name in ("point_mse", "literature_mae", "literature_mse", "elbo"):
        mean = torch.einsum("g,bgnc->bnc", probs, samples)
        error = samples - targets[:, None]
        by_number = {
            "point_mse": lambda: (mean - targets) ** 2,
            "literature_mae": lambda: torch.einsum("g,bgnc->bnc", probs, error.abs()),
            "literature_mse": lambda: torch.einsum("g,bgnc->bnc", probs, error**2),
            "elbo": lambda: (
                -torch.einsum("g,bgnc->bnc", probs, torch.distributions.Normal(samples, 0.7).log_prob(targets[:, None]))
            ),
        }[name]()
        return by_number[seen].sum() / pairs if name == "elbo" else by_number[seen].mean()
    units = [[i] for i in range(nodes)] if scope == "node" else [list(range(nodes))]
    values = []
    for b, unit in itertools.product(range(pairs), units):
        there = seen[b, unit]
        if there.any():
            parts = kernel_expectation(name, probs, samples[b][:, unit][:, there], targets[b, unit][there])
            values.append(sum(parts))
    return sum(values) / len(values)


def uniform_cells(free, edge_probs, antithetic):
    """Uniforms that stand for all others, and the probability of each: an edge depends only on which of the intervals
    between 0, theta, 1 (and 1 - theta for antithetic pairs) its uniform falls into. (cell, node, node), (cell,)."""
    places, choices = free.nonzero().tolist(), []
    for i, j in places:
        theta = float(edge_probs[i, j])
        ends = sorted({0.0, theta, 1.0} | ({1 - theta} if antithetic else set()))
        choices.append([((low + high) / 2, high - low) for low, high in itertools.pairwise(ends)])
    cells = torch.full((math.prod(map(len, choices)), *free.shape), 0.5, dtype=torch.float64)
    probs = torch.ones(len(cells), dtype=torch.float64)
    for number, chosen in enumerate(itertools.product(*choices)):
        for (i, j), (uniform, length) in zip(places, chosen, strict=True):
            cells[number, i, j] = uniform
            probs[number] *= length
    return cells, probs


def expected_gradient(model, inputs, targets, free, draws, num_graphs, observed=None):
    """Mean of the estimator over every tuple of graphs, weighted by its probability: gradients by name."""
    return gradient_moments(model, inputs, targets, free, draws, num_graphs, observed)[0]


def gradient_moments(model, inputs, targets, free, draws, num_graphs, observed=None, chunk=20_000):
    """Mean and mean square of the estimator over every tuple of uniforms."""
    group = model.estimator.group_size
    cells, probs = uniform_cells(free, model.graph.edge_probs.detach(), antithetic=group == 2)
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def objective(parameters, uniforms):
        return functional_call(model, {**parameters, **buffers}, (inputs, targets, uniforms, observed))[0]

    mean = {name: torch.zeros_like(value) for name, value in parameters.items()}
    square = {name: torch.zeros_like(value) for name, value in parameters.items()}
    tuples = torch.cartesian_prod(*[torch.arange(len(cells))] * (draws * num_graphs // group))
    for part in tuples.view(len(tuples), -1).split(chunk):
        uniforms = cells[part].unflatten(1, (draws, num_graphs // group))
        gradients = vmap(grad(objective), in_dims=(None, 0))(parameters, uniforms)
        weight = probs[part].prod(1)
        for name, value in gradients.items():
            mean[name] += torch.tensordot(weight, value, dims=1)
            square[name] += torch.tensordot(weight, value**2, dims=1)
    return mean, square

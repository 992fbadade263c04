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


def exact_loss(model, logits, weights, inputs, targets, free):
    """Spread and data parts of the expected loss, summed over every graph and every pair of graphs."""
    graphs = all_graphs(free)
    probs = graph_probs(graphs, torch.sigmoid(logits))
    samples = functional_call(model.predictor, {"hop_weights": weights}, (inputs, graphs[None]))
    loss, kernel = model.loss, model.loss.kernel
    pairwise = kernel(loss._squared_distance(samples[:, :, None] - samples[:, None])).mean((0, -1))
    data = kernel(loss._squared_distance(samples - targets[:, None])).mean((0, -1))
    return loss.weight * (probs @ pairwise @ probs), -2 * loss.weight * (probs @ data)


def expected_gradient(model, inputs, targets, free, draws, num_graphs):
    """Mean of the estimator over every tuple of graphs, weighted by its probability: gradients by name."""
    return gradient_moments(model, inputs, targets, free, draws, num_graphs)[0]


def gradient_moments(model, inputs, targets, free, draws, num_graphs, chunk=20_000):
    """Mean and mean square of the estimator over every tuple of graphs."""
    graphs = all_graphs(free)
    probs = graph_probs(graphs, torch.sigmoid(model.graph.edge_logits.detach()))
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def objective(parameters, uniforms):
        return functional_call(model, {**parameters, **buffers}, (inputs, targets, uniforms))[0]

    mean = {name: torch.zeros_like(value) for name, value in parameters.items()}
    square = {name: torch.zeros_like(value) for name, value in parameters.items()}
    tuples = torch.cartesian_prod(*[torch.arange(len(graphs))] * (draws * num_graphs))
    for part in tuples.split(chunk):
        uniforms = (1 - graphs[part]).unflatten(1, (draws, num_graphs))  # u = 0 makes an edge, u = 1 none
        gradients = vmap(grad(objective), in_dims=(None, 0))(parameters, uniforms)
        weight = probs[part].prod(1)
        for name, value in gradients.items():
            mean[name] += torch.tensordot(weight, value, dims=1)
            square[name] += torch.tensordot(weight, value**2, dims=1)
    return mean, square

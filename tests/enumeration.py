"""The mean of the score function's gradient over every set of uniforms that makes a difference."""

import itertools

import torch
from torch.func import functional_call, grad, vmap

CHUNK = 5000


def cells_of(thresholds):
    """Uniforms that stand for all others between the thresholds of each entry, and the probability of each.

    ``thresholds``  (threshold, row, column): 0 or 1 for none. Returns (cell, row, column) and (cell,).
    """
    shape, choices = thresholds.shape[1:], []
    for entry in thresholds.flatten(1).mT.tolist():
        ends = sorted({0.0, 1.0, *entry})
        choices.append([((low + high) / 2, high - low) for low, high in itertools.pairwise(ends)])
    chosen = list(itertools.product(*choices))
    uniforms = torch.tensor([[u for u, _ in cell] for cell in chosen], dtype=torch.float64).view(-1, *shape)
    return uniforms, torch.tensor([[p for _, p in cell] for cell in chosen], dtype=torch.float64).prod(1)


def sets_of(cells, probs, num_graphs):
    """Every choice of ``num_graphs`` cells: (set, graph, row, column), and the probability of each."""
    places = torch.cartesian_prod(*[torch.arange(len(cells))] * num_graphs).view(-1, num_graphs)
    return cells[places], probs[places].prod(1)


def together(*parts):
    """Every choice of one set for each pair: (set, pair, graph, row, column), and the probability of each."""
    places = torch.cartesian_prod(*[torch.arange(len(sets)) for sets, _ in parts]).view(-1, len(parts))
    uniforms = torch.stack([sets[places[:, pair]] for pair, (sets, _) in enumerate(parts)], 1)
    return uniforms, torch.stack([probs[places[:, pair]] for pair, (_, probs) in enumerate(parts)]).prod(0)


def mean_gradient(model, inputs, targets, uniforms, weights, context=None, observed=None):
    """The estimator's gradient at each set of uniforms (set, draw, graph, row, column), times its weight."""
    parameters = {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}

    def objective(parameters, some):
        return functional_call(model, parameters, (inputs, targets, some, observed, context))[0]

    of_sets, total = vmap(grad(objective), in_dims=(None, 0)), dict.fromkeys(parameters, 0.0)
    for part, weight in zip(uniforms.split(CHUNK), weights.split(CHUNK), strict=True):
        for name, value in of_sets(parameters, part).items():
            total[name] = total[name] + torch.tensordot(weight, value, dims=1)
    return total


def exact_gradient(model, expected):
    """The gradient of ``expected``, a function of the trained parameters by name."""
    leaves = {
        name: value.detach().clone().requires_grad_() for name, value in model.named_parameters() if value.requires_grad
    }
    found = torch.autograd.grad(expected(leaves), tuple(leaves.values()), materialize_grads=True)
    return dict(zip(leaves, found, strict=True))

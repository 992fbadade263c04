"""Which nodes can read which, in how many steps."""

import functools
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.shapes import Graphs


def boolean_powers(graphs: Graphs, num_hops: int) -> Iterator[Graphs]:
    r"""Yield $1[A^l \neq 0]$ for $l = 1, \dots,$ ``num_hops``: is there a walk of exactly $l$ edges?

    >>> path = torch.tensor([[0., 1., 0.], [0., 0., 1.], [0., 0., 0.]])[None, None]
    >>> [power[0, 0, 0].tolist() for power in boolean_powers(path, 2)]
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    power = graphs
    yield power
    for _ in range(num_hops - 1):
        power = ((power @ graphs) > 0).to(graphs.dtype)
        yield power


def soft_powers(graphs: Graphs, num_hops: int) -> Iterator[Graphs]:
    r"""Yield what :func:`boolean_powers` does, in a form that has derivatives and takes edges between 0 and 1.

    $P_l = 1 - \prod_k (1 - P_{l-1, ik} A_{kj})$: the probability of a walk if edges were independent chances. For edges
    of 0 and 1 the values are the same, and the derivative for an edge is the change that flipping it would make (except
    where a self-loop lets one edge serve in two walks). It takes N times the memory.

    >>> path = torch.tensor([[0., 1., 0.], [0., 0., 0.5], [0., 0., 0.]])[None, None]
    >>> [power[0, 0, 0].tolist() for power in soft_powers(path, 2)]
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.5]]
    """
    power = graphs
    yield power
    for _ in range(num_hops - 1):
        power = 1 - _product(1 - power[..., :, :, None] * graphs[..., None, :, :])
        yield power


def _product(factors: Float[Tensor, "draw graph node via node"]) -> Graphs:
    """Multiply over the last axis but one, in halves: exact derivatives at 0 without a division."""
    while factors.shape[-2] > 1:
        half = factors.shape[-2] // 2
        halves = factors[..., :half, :] * factors[..., half : 2 * half, :]
        factors = torch.cat([halves, factors[..., 2 * half :, :]], -2)
    return factors[..., 0, :]


def walks_within(graphs: Graphs, num_steps: int) -> Graphs:
    """Return 1 at [i, j] where a walk of one to ``num_steps`` edges leads from i to j."""
    return functools.reduce(torch.maximum, boolean_powers(graphs, num_steps))


def reachability(graphs: Graphs, num_steps: int) -> Graphs:
    """Return 1 at [i, j] where j can be reached from i over at most ``num_steps`` edges; i reaches itself.

    >>> path = torch.tensor([[0., 1., 0.], [0., 0., 1.], [0., 0., 0.]])[None, None]
    >>> reachability(path, 1)[0, 0, 0].tolist()
    [1.0, 1.0, 0.0]
    """
    itself = torch.eye(graphs.shape[-1], dtype=graphs.dtype, device=graphs.device).expand_as(graphs)
    return torch.maximum(itself, walks_within(graphs, num_steps)) if num_steps else itself

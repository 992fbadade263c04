"""Reachability: which nodes can read which nodes, in how many steps."""

import functools
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.shapes import Graphs

WORD_BITS = 31  # usable bits of a signed 32-bit integer


def boolean_powers(graphs: Graphs, num_hops: int) -> Iterator[Graphs]:
    r"""Yield $1[A^l \neq 0]$ for $l = 1, \dots,$ ``num_hops``: is there a walk of exactly $l$ edges?

    >>> path = torch.tensor([[0., 1., 0.], [0., 0., 1.], [0., 0., 0.]])[None, None]
    >>> [power[0, 0, 0].tolist() for power in boolean_powers(path, 2)]
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if graphs.is_cuda and graphs.shape[-1] <= WORD_BITS:
        yield from powers_by_words(graphs, num_hops)
        return
    power = graphs
    yield power
    for _ in range(num_hops - 1):
        power = ((power @ graphs) > 0).to(graphs.dtype)
        yield power


def powers_by_words(graphs: Graphs, num_hops: int) -> Iterator[Graphs]:
    """Yield the powers of small graphs with each row as one integer of bits; rows are combined by bitwise "or".

    On a GPU thousands of small matrix products are slow: 42 us of a step on an H200, and this takes 7. On a CPU the
    products are faster.
    """
    yield graphs
    if num_hops == 1:
        return
    places = torch.arange(graphs.shape[-1], dtype=torch.int32, device=graphs.device)
    rows = ((graphs > 0).to(torch.int32) << places).sum(-1, dtype=torch.int32)  # (draw, graph, row)
    power = rows
    for _ in range(num_hops - 1):
        leads = [torch.where((power >> node) & 1 > 0, rows[..., node, None], 0) for node in range(graphs.shape[-1])]
        power = functools.reduce(torch.bitwise_or, leads)
        yield ((power[..., None] >> places) & 1).to(graphs.dtype)


def soft_powers(graphs: Graphs, num_hops: int) -> Iterator[Graphs]:
    r"""Yield a differentiable version of :func:`boolean_powers` that also accepts edges between 0 and 1.

    $P_l = 1 - \prod_k (1 - P_{l-1, ik} A_{kj})$ is the probability of a walk if the edges were independent. For edges
    of 0 and 1 the values equal those of :func:`boolean_powers`, and the derivative for an edge is the change from
    flipping it (unless a self-loop puts one edge into two walks). It uses N times the memory.

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
    """Multiply over the second to last axis by halving, which gives exact derivatives at 0 without a division."""
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

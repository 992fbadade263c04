"""Fresh random weights, from a generator that is passed in."""

import torch
from torch import Generator, Tensor


def uniform_within(like: Tensor, bound: float, generator: Generator) -> Tensor:
    """Return numbers uniform in (-bound, bound), with the shape and type of a parameter.

    >>> fresh = uniform_within(torch.zeros(2, 3), 0.1, Generator().manual_seed(0))
    >>> fresh.shape, bool((fresh.abs() <= 0.1).all())
    (torch.Size([2, 3]), True)
    """
    uniforms = torch.rand(like.shape, generator=generator, device=generator.device, dtype=like.dtype)
    return (2 * uniforms - 1) * bound

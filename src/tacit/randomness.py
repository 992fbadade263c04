"""Randomness is an argument: named generators from one seed, and uniforms from few random bits."""

import hashlib

import torch
from jaxtyping import Float
from torch import Generator, Tensor


def generator_for(seed: int, purpose: str, device: torch.device | str = "cpu") -> Generator:
    """Return a generator for one purpose of one seed, independent of those for other purposes.

    >>> a, b = generator_for(0, "batches"), generator_for(0, "graphs")
    >>> bool(torch.rand(1, generator=a) == torch.rand(1, generator=b))
    False
    """
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=7).digest()
    return Generator(device=device).manual_seed(int.from_bytes(digest))


def draw_uniforms(*shape: int, generator: Generator, dtype: torch.dtype = torch.float32) -> Float[Tensor, "..."]:
    r"""Draw $u = (k + r) / 2^8$: eight bits $k$ for every number, a fraction $r$ shared along the first axis.

    The fraction, $(k' + 1/2) / 2^{15}$, decides only one comparison in 256, so one set serves all pairs of a batch.
    Each $u$ is uniform to 23 bits and lies strictly between 0 and 1. Numbers that differ in any but the first axis are
    independent: the graphs of one pair always are, which is what exact gradients need. It takes a fifth of the time
    of floats with all their bits.

    >>> draw_uniforms(2, 3, generator=generator_for(0, "doc")).shape
    torch.Size([2, 3])
    """
    bytes_ = _random_words(torch.Size(shape).numel(), torch.uint8, generator).view(shape)
    words = _random_words(torch.Size(shape[1:]).numel(), torch.int16, generator).view(shape[1:])
    fraction = ((words >> 1).to(dtype) + (2**14 + 0.5)) / 2**15
    return bytes_.to(dtype).add_(fraction).mul_(1 / 2**8)


def _random_words(count: int, dtype: torch.dtype, generator: Generator) -> Tensor:
    """Return ``count`` random integers that fill their type, cut out of 64-bit words."""
    per_word = 8 // dtype.itemsize
    words = torch.empty(-(-count // per_word), dtype=torch.int64, device=generator.device)
    return words.random_(-(2**63), None, generator=generator).view(dtype)[:count]

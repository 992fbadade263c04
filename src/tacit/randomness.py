"""Randomness is an argument: named generators from one seed, and uniforms from few random bits."""

import hashlib

import torch
from jaxtyping import Float, Int16
from torch import Generator, Tensor

RESOLUTION = 2**16


def generator_for(seed: int, purpose: str, device: torch.device | str = "cpu") -> Generator:
    """Return a generator for one purpose of one seed, independent of those for other purposes.

    >>> a, b = generator_for(0, "batches"), generator_for(0, "graphs")
    >>> bool(torch.rand(1, generator=a) == torch.rand(1, generator=b))
    False
    """
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=7).digest()
    return Generator(device=device).manual_seed(int.from_bytes(digest))


def draw_uniforms(*shape: int, generator: Generator, dtype: torch.dtype = torch.float32) -> Float[Tensor, "..."]:
    r"""Draw $u = (k + 1/2) / 2^{16}$ with 16 random bits $k$, four numbers to each random word.

    This takes a third of the time of floats with all their bits. $P(u < p)$ is $p$ rounded to a multiple of
    $2^{-16}$: exact for 0 and 1, and in between off by at most $2^{-17} \approx 8 \cdot 10^{-6}$, a hundredth of the
    sampling error of an edge that is *seen* in 28,000 graphs.
    """
    count = torch.Size(shape).numel()
    words = torch.empty((count + 3) // 4, dtype=torch.int64, device=generator.device)
    words.random_(-(2**63), None, generator=generator)
    return uniforms_from_bits(words.view(torch.int16)[:count].view(shape), dtype)


def uniforms_from_bits(bits: Int16[Tensor, "..."], dtype: torch.dtype = torch.float32) -> Float[Tensor, "..."]:
    """Map 16 bits to the middle of their cell of (0, 1).

    >>> uniforms_from_bits(torch.tensor([-32768, 32767], dtype=torch.int16)) * RESOLUTION
    tensor([5.0000e-01, 6.5536e+04])
    """
    return bits.to(dtype).add_(RESOLUTION / 2 + 0.5).mul_(1 / RESOLUTION)

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


def draw_bits(*shape: int, generator: Generator) -> Int16[Tensor, "..."]:
    """Draw 16 random bits per entry, four entries to each 64-bit number (a quarter of the cost of floats)."""
    count = torch.Size(shape).numel()
    words = torch.empty((count + 3) // 4, dtype=torch.int64, device=generator.device)
    words.random_(-(2**63), None, generator=generator)
    return words.view(torch.int16)[:count].view(shape)


def uniforms_from_bits(bits: Int16[Tensor, "..."], dtype: torch.dtype = torch.float32) -> Float[Tensor, "..."]:
    r"""Map 16 bits to $u = (k + 1/2) / 2^{16}$, so that $P(u < p)$ is $p$ rounded to a multiple of $2^{-16}$.

    Probabilities 0 and 1 are met exactly; in between the rounding is at most $2^{-17} \approx 8 \cdot 10^{-6}$,
    a hundredth of the sampling error of an edge that is *seen* in 28,000 graphs.

    >>> uniforms_from_bits(torch.tensor([-32768, 32767], dtype=torch.int16), torch.float64) * RESOLUTION
    tensor([5.0000e-01, 6.5536e+04], dtype=torch.float64)
    """
    return (bits.to(dtype) + (RESOLUTION / 2 + 0.5)) / RESOLUTION

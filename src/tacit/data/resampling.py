r"""Resamples of the pairs: what other data of the same kind might have been.

Pairs that are independent are drawn one by one, with replacement. Pairs of a series are not independent: there whole
blocks of neighbours are drawn (Politis and Romano's circular block bootstrap), so that what hangs together within a
block stays together:

$$\mathrm{rows} = (s_1, \dots, s_1 + b - 1, \; s_2, \dots, s_2 + b - 1, \; \dots) \bmod n, \qquad
s_k \sim \mathrm{Uniform}\{0, \dots, n - 1\}$$
"""

import math

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from tacit.errors import require, require_whole

FEWEST_PAIRS = 20  # below, a resample holds so few different pairs that its spread says little
FEWEST_BLOCKS = 5


def bootstrap_rows(num_pairs: int, *, generator: Generator, block: int = 1) -> Int[Tensor, " pair"]:
    """Return the places of a resample, as many as there are pairs, in blocks of ``block`` neighbours.

    >>> rows = bootstrap_rows(20, generator=Generator().manual_seed(0), block=4)
    >>> len(rows), ((rows[1:] - rows[:-1]) % 20 == 1).view(-1).sum().item() >= 15
    (20, True)
    """
    require_resamplable(num_pairs, block)
    blocks = -(-num_pairs // block)
    starts = torch.randint(num_pairs, (blocks, 1), generator=generator, device=generator.device)
    rows = (starts + torch.arange(block, device=starts.device)) % num_pairs  # (block, place)
    return rows.flatten()[:num_pairs]


def usual_block(num_pairs: int, reach: int) -> int:
    r"""Return the length of a block for a series: $n^{1/3}$, as theory has it, and no less than a pair reaches.

    ``reach`` is the number of steps that one pair covers, window and horizon together: pairs nearer than that share
    some of their numbers.

    >>> usual_block(1000, reach=3), usual_block(1000, reach=24)
    (10, 24)
    """
    require_whole("reach", reach)
    return max(reach, math.ceil(round(math.cbrt(num_pairs), 6)))


def resamplable(num_pairs: int, block: int = 1) -> bool:
    """Is there enough to draw resamples from?"""
    return num_pairs >= max(FEWEST_PAIRS, FEWEST_BLOCKS * block)


def require_resamplable(num_pairs: int, block: int = 1) -> None:
    """Raise :class:`InputError` if there is too little to draw resamples from."""
    require_whole("block", block)
    require(
        num_pairs >= FEWEST_PAIRS,
        f"a bootstrap needs {FEWEST_PAIRS} training pairs or more, got {num_pairs}; pass more rows, or ask for no "
        "standard errors",
    )
    require(
        num_pairs >= FEWEST_BLOCKS * block,
        f"a block bootstrap needs {FEWEST_BLOCKS} blocks or more, got {num_pairs} training pairs for blocks of {block};"
        " pass a longer series, shorten the block (or the window), or ask for no standard errors",
    )

r"""Bootstrap resamples of the pairs.

Independent pairs are drawn one by one, with replacement. Pairs of a series are not independent, so blocks of
neighbours are drawn (the circular block bootstrap of Politis and Romano). This preserves the correlation within a
block:

$$\mathrm{rows} = (s_1, \dots, s_1 + b - 1, \; s_2, \dots, s_2 + b - 1, \; \dots) \bmod n, \qquad
s_k \sim \mathrm{Uniform}\{0, \dots, n - 1\}$$

Pairs of one series share the differences between series. With at least ``FEWEST_SERIES`` = 5 series in the training
part, complete series are drawn with replacement until there are as many pairs as before; the last series drawn is cut
to that number. With fewer series, blocks are drawn as above, each within its own series (circularly), and standard
errors do not include the differences between series.

With resamples of $G$ complete series of equal length, nominal 95% intervals of a mean that differs between series
contain the true value with $P(|t_{G - 1}| < 1.96 \sqrt{(G - 1) / G})$: 75% for $G = 3$, 85% for 5, 90% for 10. With
four series, a third of the resamples would contain only one or two of them.
"""

import math

import torch
from jaxtyping import Int
from torch import Generator, Tensor

from tacit.errors import require, require_int

SeriesOfPair = Int[Tensor, " pair"]

FEWEST_PAIRS = 20  # with fewer, a resample has too few different pairs for a useful estimate
FEWEST_BLOCKS = 5
FEWEST_SERIES = 5  # of the training part, to draw whole series; see above


def bootstrap_rows(
    num_pairs: int, *, generator: Generator, block: int = 1, series: SeriesOfPair | None = None
) -> Int[Tensor, " pair"]:
    """Return the rows of a resample, as many as there are pairs.

    Blocks of ``block`` neighbours are drawn. If ``series``, the number of the series of each pair, has at least
    ``FEWEST_SERIES`` series, complete series are drawn and ``block`` has no effect.

    >>> rows = bootstrap_rows(20, generator=Generator().manual_seed(0), block=4)
    >>> len(rows), ((rows[1:] - rows[:-1]) % 20 == 1).view(-1).sum().item() >= 15
    (20, True)
    >>> rows = bootstrap_rows(20, generator=Generator().manual_seed(0), series=torch.arange(20) // 4)
    >>> (rows // 4).tolist()
    [4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 0, 0, 0, 0, 3, 3, 3, 3]
    """
    require_resamplable(num_pairs, block, series)

    def drawn_from(choices: int, least: int) -> Int[Tensor, " draw"]:
        """Return draws with replacement, enough if each draw gives at least ``least`` pairs."""
        return torch.randint(choices, (-(-num_pairs // least),), generator=generator, device=generator.device)

    if series is None:
        starts = drawn_from(num_pairs, block)[:, None]
        rows = (starts + torch.arange(block, device=starts.device)) % num_pairs  # (block, place)
        return rows.flatten()[:num_pairs]

    # Complete series, or blocks within series if there are few.
    number_of_pair, lengths = torch.unique(series.cpu(), return_inverse=True, return_counts=True)[1:]
    order = number_of_pair.argsort(stable=True)  # the pairs, one series after another
    first = lengths.cumsum(0) - lengths  # where each series starts in that order
    if len(lengths) >= FEWEST_SERIES:
        drawn = drawn_from(len(lengths), int(lengths.min())).cpu()
        offset, size = torch.zeros_like(drawn), lengths[drawn]
    else:
        start = drawn_from(num_pairs, min(block, int(lengths.min()))).cpu()
        drawn = number_of_pair[order[start]]
        offset, size = start - first[drawn], lengths[drawn].clamp(max=block)
    size = size[: 1 + int((size.cumsum(0) < num_pairs).sum())]  # enough of them
    which = torch.repeat_interleave(torch.arange(len(size)), size)[:num_pairs]
    step = torch.arange(len(which)) - (size.cumsum(0) - size)[which]
    place = (offset[which] + step) % lengths[drawn[which]]
    resample: Tensor = order[first[drawn[which]] + place]
    return resample.to(generator.device)


def resampling_words(num_pairs: int, block: int = 1, series: SeriesOfPair | None = None) -> str:
    """Describe what :func:`bootstrap_rows` draws with the same arguments.

    >>> resampling_words(100), resampling_words(100, block=12)
    ('single pairs', 'blocks of 12 neighbouring pairs')
    >>> resampling_words(100, block=12, series=torch.arange(100) // 25)
    'blocks of 12 neighbouring pairs within 4 series'
    >>> resampling_words(100, block=12, series=torch.arange(100) // 20)
    '5 whole series'
    """
    require_resamplable(num_pairs, block, series)
    lengths = [num_pairs] if series is None else torch.unique(series, return_counts=True)[1].tolist()
    if len(lengths) >= FEWEST_SERIES:
        return f"{len(lengths)} whole series"
    longest = min(block, max(lengths))
    size = f"up to {longest}" if min(lengths) < longest else f"{longest}"  # a short series is one block
    what = f"blocks of {size} neighbouring pairs" if longest > 1 else "single pairs"
    return f"{what} within {len(lengths)} series" if len(lengths) > 1 else what


def usual_block(num_pairs: int, reach: int) -> int:
    r"""Return the block length for a series: the rate $n^{1/3}$ from theory, and at least ``reach``.

    ``reach`` is the number of steps that one pair covers, window and horizon together: pairs closer than that share
    values.

    >>> usual_block(1000, reach=3), usual_block(1000, reach=24)
    (10, 24)
    """
    require_int("reach", reach)
    return max(reach, math.ceil(round(math.cbrt(num_pairs), 6)))


def resamplable(num_pairs: int, block: int = 1, series: SeriesOfPair | None = None) -> bool:
    """Return whether there are enough pairs or series for a bootstrap."""
    whole = series is not None and len(torch.unique(series)) >= FEWEST_SERIES
    return num_pairs >= max(FEWEST_PAIRS, 0 if whole else FEWEST_BLOCKS * block)


def require_resamplable(num_pairs: int, block: int = 1, series: SeriesOfPair | None = None) -> None:
    """Raise :class:`InputError` if there are too few pairs or series for a bootstrap."""
    require_int("block", block)
    if series is not None:
        require(
            len(series) == num_pairs,
            f"series must be one number for each of {num_pairs} pairs, got {len(series)}; pass that of the pairs",
        )
    require(
        num_pairs >= FEWEST_PAIRS,
        f"a bootstrap requires {FEWEST_PAIRS} training pairs or more, got {num_pairs}; pass more rows, or set "
        "bootstrap_replicas to 0",
    )
    require(
        resamplable(num_pairs, block, series),
        f"a block bootstrap requires {FEWEST_BLOCKS} blocks or more, got {num_pairs} training pairs for blocks of "
        f"{block}; pass a longer series, shorten the block (or the window), or set bootstrap_replicas to 0",
    )

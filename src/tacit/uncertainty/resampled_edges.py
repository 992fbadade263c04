"""Resamples of the training pairs, and the edges that each of them keeps."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tacit.data import Pairs
from tacit.data.resampling import bootstrap_rows, require_resamplable
from tacit.errors import require
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask

Kept = Callable[[Int[Tensor, " pair"]], EdgeMask]  # from the rows of a resample to the edges that may be there
EdgeMasks = Bool[Tensor, "replica row slot"]


def resample_rows(train: Pairs, seeds: Sequence[int], block: int) -> Int[Tensor, "replica pair"]:
    """Return the places of the pairs of each resample, one for each seed."""
    require_resamplable(len(train), block, train.series)
    return torch.stack(
        [
            bootstrap_rows(len(train), generator=generator_for(seed, "resample"), block=block, series=train.series)
            for seed in seeds
        ]
    )


def kept_edges(rows: Int[Tensor, "replica pair"], present: EdgeMask, kept: Kept | None) -> EdgeMasks:
    """Return the edges that are ``present`` and kept by each resample; all of them without ``kept``."""
    if kept is None:
        return present.expand(len(rows), *present.shape)
    masks = [kept(row) for row in rows]
    for mask in masks:
        require(
            mask.dtype == torch.bool and mask.shape == present.shape,
            f"kept must return booleans of shape {tuple(present.shape)}, got {mask.dtype} of {tuple(mask.shape)}; "
            "return one true or false per edge",
        )
    return torch.stack(masks).to(present.device) & present

"""Resamples of the training pairs, and the edges that each of them keeps."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from tacit.data import Pairs, bootstrap_rows, require_resamplable
from tacit.errors import require
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask

EdgeMasks = Bool[Tensor, "replica row slot"]
Kept = Callable[[Int[Tensor, "replica pair"]], EdgeMasks]  # from the rows of resamples to the edges that may exist


def resample_rows(train: Pairs, seeds: Sequence[int], block: int) -> Int[Tensor, "replica pair"]:
    """Return the row numbers of each resample, one resample for each seed."""
    require_resamplable(len(train), block, train.series)
    return torch.stack(
        [
            bootstrap_rows(len(train), generator=generator_for(seed, "resample"), block=block, series=train.series)
            for seed in seeds
        ]
    )


def kept_edges(rows: Int[Tensor, "replica pair"], present: EdgeMask, kept: Kept | None) -> EdgeMasks:
    """Return the edges that are ``present`` and kept by each resample; all present edges without ``kept``."""
    if kept is None:
        return present.expand(len(rows), *present.shape)
    masks, shape = kept(rows), (len(rows), *present.shape)
    require(
        masks.dtype == torch.bool and tuple(masks.shape) == shape,
        f"kept must return booleans of shape {shape}, got {masks.dtype} of {tuple(masks.shape)}; return one true or "
        "false per resample and edge",
    )
    return masks.to(present.device) & present

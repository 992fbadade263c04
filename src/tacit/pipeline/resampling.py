"""Resampling of pairs for standard errors: single pairs, blocks of neighbours, or whole series."""

from tacit.config import AssessmentOptions
from tacit.data import Pairs, require_resamplable, usual_block
from tacit.errors import InputError
from tacit.pipeline.preparation import Preparation


def block_length(options: AssessmentOptions, preparation: Preparation, num_pairs: int) -> int:
    """Return the number of neighbouring pairs that are resampled together; in a series, at least its reach."""
    if options.block is not None:
        return options.block
    return usual_block(num_pairs, preparation.reach) if preparation.reach else 1


def score_block(preparation: Preparation, num_pairs: int) -> int:
    """Return the block length for comparing forecasts on test pairs.

    Overlapping forecasts have correlated errors, so it is at least the horizon; it is 1 for pairs without order.
    """
    return usual_block(num_pairs, preparation.horizon) if preparation.reach else 1


def require_resampling(options: AssessmentOptions, preparation: Preparation, train: Pairs) -> None:
    """Raise :class:`InputError` before any work if standard errors are requested but not possible."""
    if options.replicas:
        require_resamplable(len(train), block_length(options, preparation, len(train)), train.series)
    elif options.block is not None and options.enabled:
        raise InputError("block in [assessment] requires bootstrap_replicas, got 0; set bootstrap_replicas = 16")

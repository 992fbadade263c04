"""How pairs are resampled for standard errors: alone, in blocks of neighbours, or as whole series."""

from tacit.config import AssessmentOptions
from tacit.data import Pairs, require_resamplable, usual_block
from tacit.errors import InputError
from tacit.pipeline.preparation import Preparation


def block_length(options: AssessmentOptions, preparation: Preparation, num_pairs: int) -> int:
    """Return how many neighbouring pairs are resampled together: what one pair reaches over, in a series."""
    if options.block is not None:
        return options.block
    return usual_block(num_pairs, preparation.reach) if preparation.reach else 1


def score_block(preparation: Preparation, num_pairs: int) -> int:
    """Return how many neighbouring test pairs count as one where forecasts are compared.

    Forecasts that overlap share their errors, so no less than the horizon; pairs without order stand alone.
    """
    return usual_block(num_pairs, preparation.horizon) if preparation.reach else 1


def require_resampling(options: AssessmentOptions, preparation: Preparation, train: Pairs) -> None:
    """Raise :class:`InputError` before any work if standard errors are wanted and cannot be."""
    if options.replicas:
        require_resamplable(len(train), block_length(options, preparation, len(train)), train.series)
    elif options.block is not None and options.enabled:
        raise InputError("block in [assessment] requires bootstrap_replicas, got 0; set bootstrap_replicas = 16")

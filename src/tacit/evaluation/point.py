r"""Point predictions $T[P_{y|x}]$: one number from a distribution, the best one for a given error."""

from typing import Literal

from tacit.errors import InputError
from tacit.shapes import PointPrediction, Samples

PointName = Literal["mean", "median"]


def point_prediction(samples: Samples, kind: PointName) -> PointPrediction:
    """Return the mean (best for squared error) or the median (best for absolute error) over graphs.

    The median of an even number of samples is the midpoint of the two in the middle.

    >>> import torch
    >>> point_prediction(torch.tensor([0., 1., 5., 6.]).view(1, 4, 1, 1), "median").item()
    3.0
    """
    if kind == "mean":
        return samples.mean(1)
    if kind == "median":
        middle, count = samples.movedim(1, -1), samples.shape[1]
        lower, upper = (middle.kthvalue(k + 1).values for k in ((count - 1) // 2, count // 2))
        return (lower + upper) / 2
    raise InputError(
        f"kind needs 'mean' or 'median', got '{kind}'; use 'mean' for squared, 'median' for absolute error"
    )

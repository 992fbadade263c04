r"""Point predictions $T[P_{y|x}]$: the optimal single number of a distribution for a given error."""

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.errors import InputError, require
from tacit.observation import ObservationModel
from tacit.shapes import Inputs, PointPrediction, Samples, TargetParams
from tacit.training import LatentGraphModel

PointName = Literal["mean", "median"]
Discrete = Bool[Tensor, " node"]
ROUNDING = 1e-9


def discrete_nodes(observation: ObservationModel, num_nodes: int) -> Discrete:
    """Return which nodes have discrete targets, such as counts.

    >>> from tacit.observation import NoNoise, PoissonCounts
    >>> discrete_nodes(PoissonCounts(2), 2).tolist(), discrete_nodes(NoNoise(), 2).tolist()
    ([True, True], [False, False])
    """
    supports = observation.supports or (observation.support,) * num_nodes
    return torch.tensor([support not in ("real", "positive") for support in supports])


def point_prediction(samples: Samples, kind: PointName | float, discrete: Discrete | None = None) -> PointPrediction:
    """Return the mean over graphs (best for squared error), the median (best for absolute error), or a quantile.

    A quantile is specified by its level, a number between 0 and 1 (best for the pinball error at that level). It is
    interpolated between samples: level 0 is the lowest and 1 the highest sample; the median is level 0.5. For
    ``discrete`` nodes a quantile is a sample, the first one whose cumulative share reaches the level.

    >>> samples = torch.tensor([0., 1., 5., 6.]).view(1, 4, 1, 1)
    >>> [point_prediction(samples, kind).item() for kind in ("mean", "median", 0.5, 1.0)]
    [3.0, 3.0, 3.0, 6.0]
    >>> point_prediction(samples, "median", torch.tensor([True])).item()
    1.0
    """
    if kind == "mean":
        return samples.mean(1)
    level: object = 0.5 if kind == "median" else kind
    if not isinstance(level, int | float) or isinstance(level, bool) or not 0 <= level <= 1:
        raise InputError(
            f"kind must be 'mean', 'median' or the level of a quantile in [0, 1], got {kind!r}; use 'mean' for "
            "squared, 'median' for absolute error"
        )
    if discrete is not None and discrete.any():
        rank = max(1, math.ceil(level * samples.shape[1] - ROUNDING))
        sampled = samples.movedim(1, -1).kthvalue(rank).values
        if discrete.all():
            return torch.where(samples.isnan().any(1), torch.nan, sampled)
        return torch.where(discrete[:, None].to(samples.device), sampled, point_prediction(samples, level))
    place = level * (samples.shape[1] - 1)
    lower, share = math.floor(place), place - math.floor(place)
    last_axis = samples.movedim(1, -1)
    below = last_axis.kthvalue(lower + 1).values
    quantile = below
    if share:
        above = _next(last_axis, below, lower + 1)
        quantile = torch.where(above == below, below, below + share * (above - below))  # avoids inf - inf
    return torch.where(samples.isnan().any(1), torch.nan, quantile)  # an invalid prediction stays NaN


def _next(values: Float[Tensor, "*any sample"], value: Float[Tensor, "*any"], rank: int) -> Float[Tensor, "*any"]:
    """Return the value after the ``rank`` smallest, which end with ``value``; a second selection is 10x slower."""
    up_to = values <= value[..., None]
    return torch.where(up_to.sum(-1) > rank, value, values.masked_fill(up_to, math.inf).amin(-1))


def mean_prediction(model: LatentGraphModel, described: TargetParams) -> PointPrediction:
    """Return the mean over graphs of the conditional means, so that noise is not sampled."""
    return point_prediction(model.observation.mean(described), "mean")


def persistence(inputs: Inputs, *, num_features: int = 1, out_channels: int = 1, known: int = 0) -> PointPrediction:
    """Return the newest value of each target variable, the persistence forecast; ``known`` columns follow the window.

    >>> persistence(torch.tensor([[[1.0, 0.0, 2.0, 1.0]]]), num_features=2).item()  # lags (1, flag 0), (2, flag 1)
    2.0
    """
    columns = inputs.shape[-1] - known
    require(
        num_features >= 1 and columns % num_features == 0 and 1 <= out_channels <= num_features,
        f"num_features must divide the {columns} columns of inputs and be at least out_channels={out_channels}, "
        f"got {num_features}; pass the number of features at each lag",
    )
    return inputs[..., columns - num_features :][..., :out_channels]

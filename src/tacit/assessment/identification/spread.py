r"""The spread of targets, the unit of relative effects.

$s_{ic}$ is the standard deviation of the targets of node $i$, channel $c$, over the pairs; without targets, that of the
predictions, $\sqrt{\mathrm{Var}\,\mu + E\,\sigma^2}$ over inputs and graphs. ``scales`` of the observation model
converts it to a unit for each distribution parameter: means and sigmas use the spread of the target.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.errors import require
from tacit.observation import NoNoise, ObservationModel
from tacit.shapes import Observed, TargetParams, Targets

# A standard deviation below this share of the magnitude is rounding.
CONSTANT = 1e-6


class Spread(NamedTuple):
    """A positive unit for each distribution parameter of a target, and the nodes with constant targets."""

    values: Float[Tensor, "node output"]
    constant: Bool[Tensor, " node"]


def target_spread(
    targets: Targets, observed: Observed | None = None, *, observation: ObservationModel | None = None
) -> Spread:
    """Return the spread of targets, without missing values.

    The spread of a constant target is replaced by the root mean square of the others, or by 1 if all are constant, and
    its node is marked in ``constant``. A target that was never observed has an infinite spread, so effects on it are 0.

    >>> spread = target_spread(torch.tensor([[[1.0], [3.0]], [[1.0], [5.0]]]))
    >>> spread.values.tolist(), spread.constant.tolist()
    ([[1.0], [1.0]], [True, False])
    """
    seen = ~targets.isnan() if observed is None else observed > 0
    unseen = ~seen.any(0)
    count = seen.sum(0).clamp_min(1)
    known = torch.where(seen, targets, 0.0)
    mean = known.sum(0) / count
    variance = (torch.where(seen, targets - mean, 0.0).square().sum(0) / count).to(targets.dtype)
    require(
        bool(torch.isfinite(variance).all()),
        "targets must have finite numbers, got infinity; remove them, or mark them as missing",
    )
    values, constant = _filled(variance.sqrt(), mean.abs())
    values = torch.where(unseen, torch.inf, values)
    return Spread((observation or NoNoise()).scales(values), constant & ~unseen.all(-1))


def predictive_spread(described: TargetParams, observation: ObservationModel) -> Spread:
    """Return the spread of predictions over pairs and graphs, including the noise."""
    means = observation.mean(described)
    variance = means.var((0, 1), correction=0) + observation.variance(described).mean((0, 1))  # (node, channel)
    values, constant = _filled(variance.sqrt(), means.mean((0, 1)).abs())
    return Spread(observation.scales(values), constant)


def _filled(
    deviation: Float[Tensor, "node channel"], size: Float[Tensor, "node channel"]
) -> tuple[Float[Tensor, "node channel"], Bool[Tensor, " node"]]:
    constant = deviation <= CONSTANT * torch.maximum(size, deviation.max())
    varying = deviation[~constant]
    borrowed = varying.square().mean().sqrt() if len(varying) else deviation.new_ones(())
    return torch.where(constant, borrowed, deviation), constant.all(-1)

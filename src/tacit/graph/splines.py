r"""Cubic B-splines with equidistant knots, on an interval or periodic.

$$B(d) = \begin{cases} \tfrac16 (4 - 6 d^2 + 3 d^3) & d < 1 \\ \tfrac16 (2 - d)^3 & 1 \le d < 2 \\ 0 & \text{else}
\end{cases}$$

where $d$ is the distance of a position from the middle of a spline, in knots. At every position the splines sum to 1.
"""

import torch
from jaxtyping import Float
from torch import Tensor

FEWEST_SPLINES = 4  # each spline covers four intervals between knots

Positions = Float[Tensor, "*any"]
SplineValues = Float[Tensor, "*any spline"]


def periodic_splines(phases: Positions, count: int) -> SplineValues:
    """Return ``count`` periodic splines; phases run from 0 to 1.

    >>> (6 * periodic_splines(torch.tensor([0.0, 1.0]), 4)).round().tolist()
    [[4.0, 1.0, 0.0, 1.0], [4.0, 1.0, 0.0, 1.0]]
    """
    middles = torch.arange(count, device=phases.device, dtype=phases.dtype)
    away = (phases[..., None] * count - middles + count / 2) % count - count / 2
    return _bump(away.abs())


def interval_splines(positions: Positions, count: int) -> SplineValues:
    """Return ``count`` splines over the interval from 0 to 1; positions outside are clamped to it.

    >>> (6 * interval_splines(torch.tensor([0.0, 1.0, 2.0]), 4)).round().tolist()
    [[1.0, 4.0, 1.0, 0.0], [0.0, 1.0, 4.0, 1.0], [0.0, 1.0, 4.0, 1.0]]
    """
    middles = torch.arange(-1, count - 1, device=positions.device, dtype=positions.dtype)
    return _bump((positions.clamp(0, 1)[..., None] * (count - 3) - middles).abs())


def _bump(away: SplineValues) -> SplineValues:
    near, far = (4 - 6 * away**2 + 3 * away**3) / 6, (2 - away).clamp_min(0) ** 3 / 6
    return torch.where(away < 1, near, far)

r"""Damped Newton steps for many maxima at once.

Each row of a batch is a problem of its own. With gradient $g$, curvature $H = -\nabla^2 f$ and its diagonal $D$ a step is

$$\Delta = (H + \lambda D)^{-1} g$$

$\lambda$ is 0 near a maximum, where convergence is quadratic. It is raised until the matrix is positive definite and
the value rises (Levenberg 1944, Marquardt 1963). Bounded parameters stay at a bound while the gradient points outwards.
A row leaves the batch when the gain that its next step predicts is below ``TOLERANCE``.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

MOST_STEPS = 200
TOLERANCE = 1e-8  # nats
LEAST_DAMPING, RAISED, LOWERED, MOST_DAMPING = 1e-4, 8.0, 8.0, 1e12
GOOD, POOR = 0.75, 0.25  # share of the predicted gain from which damping is lowered, and below which it is raised
LEAST_CURVATURE = 1e-6  # below it a parameter is not determined by the data

Values = tuple[Float[Tensor, " row"], Float[Tensor, "row number"], Float[Tensor, "row number number"]]
Evaluate = Callable[[Float[Tensor, "row number"], Int[Tensor, " row"]], Values]


def maximise(
    evaluate: Evaluate,
    start: Float[Tensor, "row number"],
    free: Bool[Tensor, "row number"],
    bound: Float[Tensor, "row number"],
    reach: Float[Tensor, "row number"],
) -> Float[Tensor, "row number"]:
    """Return the local maximum of each row.

    ``evaluate``  returns values, gradients and curvatures of some rows, from their parameters and numbers
    ``free``      parameters that are not fixed
    ``bound``     largest absolute value of each parameter
    ``reach``     largest change of each parameter in one step
    """
    found = torch.clamp(start, -bound, bound)
    active = torch.arange(len(start))
    numbers = found.clone()
    value, gradient, curvature = evaluate(numbers, active)
    damping = torch.zeros_like(value)
    for _ in range(MOST_STEPS):
        step, predicted, damping = _steps(numbers, gradient, curvature, damping, free[active], bound[active])
        going = predicted > TOLERANCE
        going &= damping < MOST_DAMPING
        if not going.all():
            found[active[~going]] = numbers[~going]
            if not going.any():
                return found
            active, numbers, step, predicted = active[going], numbers[going], step[going], predicted[going]
            value, gradient, curvature, damping = value[going], gradient[going], curvature[going], damping[going]
        share = (reach[active] / step.abs().clamp_min(LEAST_CURVATURE)).amin(1).clamp_max(1)
        moved = torch.clamp(numbers + share[:, None] * step, -bound[active], bound[active])
        new = evaluate(moved, active)
        gain = (new[0] - value).nan_to_num(-torch.inf)
        # of a shortened step most of the predicted gain is that of the gradient
        quality = gain / (predicted * share * (2 - share))
        better = (gain > 0) & new[1].isfinite().all(1)
        numbers = torch.where(better[:, None], moved, numbers)
        value = torch.where(better, new[0], value)
        gradient = torch.where(better[:, None], new[1], gradient)
        curvature = torch.where(better[:, None, None], new[2], curvature)
        damping = torch.where(quality > GOOD, damping / LOWERED, damping)
        damping = torch.where(damping < LEAST_DAMPING, 0.0, damping)
        damping = torch.where(~better | (quality < POOR), (damping * RAISED).clamp_min(LEAST_DAMPING * RAISED), damping)
    found[active] = numbers
    return found


def _steps(
    numbers: Float[Tensor, "row number"],
    gradient: Float[Tensor, "row number"],
    curvature: Float[Tensor, "row number number"],
    damping: Float[Tensor, " row"],
    free: Bool[Tensor, "row number"],
    bound: Float[Tensor, "row number"],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the step of each row, the gain that it predicts, and the damping with which it is a step upwards."""
    outwards = (numbers.abs() >= bound) & (numbers * gradient > 0)
    free = free & ~outwards
    scale = curvature.diagonal(dim1=1, dim2=2).abs().clamp_min(LEAST_CURVATURE).rsqrt()
    slope = torch.where(free, gradient * scale, 0.0)
    both = free[:, :, None] & free[:, None]
    scaled = torch.where(both, curvature * scale[:, :, None] * scale[:, None], 0.0)
    diagonal = scaled.diagonal(dim1=1, dim2=2)
    diagonal.masked_fill_(~free, 1.0)
    eye = torch.eye(numbers.shape[1], dtype=numbers.dtype)
    root, failed = torch.linalg.cholesky_ex(scaled + damping[:, None, None] * eye)
    while failed.any():
        wrong = failed > 0
        damping = torch.where(wrong, (damping * RAISED).clamp_min(LEAST_DAMPING * RAISED), damping)
        if (damping[wrong] > MOST_DAMPING).any():  # curvature that is not finite
            root[wrong], failed = eye, torch.zeros_like(failed)
            break
        root[wrong], failed[wrong] = torch.linalg.cholesky_ex(scaled[wrong] + damping[wrong, None, None] * eye)
    step = torch.cholesky_solve(slope[..., None], root)[..., 0]
    bent = torch.einsum("ri,rij,rj->r", step, scaled, step)
    predicted = (slope * step).sum(1) - bent / 2
    return step * scale, predicted, damping

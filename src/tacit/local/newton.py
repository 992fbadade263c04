r"""Newton steps within a trust region, for many maxima at once.

Each row of a batch is a problem of its own. With gradient $g$ and curvature $H = -\nabla^2 f$, in units in which the
diagonal of $H$ is $\pm 1$, a step is

$$\Delta = (H + \lambda I)^{-1} g, \qquad \lVert \Delta \rVert \le r$$

with the smallest $\lambda \ge 0$ for which the matrix is positive definite and the step is within the radius $r$ (More
and Sorensen 1983). $r$ follows from how well the last step was predicted. Near a maximum $\lambda = 0$ and convergence
is quadratic. Bounded parameters stay at a bound while the gradient points outwards. A row leaves the batch when the
gain that its next step predicts is below ``TOLERANCE``. A full step that predicts less than ``CLOSE`` is the last one,
because a further step would predict about the square of that gain.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

MOST_STEPS = 200
TOLERANCE, CLOSE = 1e-7, 1e-4  # nats
LEAST_CURVATURE = 1e-6  # below it a parameter is not determined by the data
MOST_RADIUS = 3.0  # of the first step if the curvature is not positive definite
GOOD, POOR = 0.75, 0.25  # share of the predicted gain above which the radius is raised, and below which it is lowered
RAISED, LOWERED, FULL = 3.0, 0.25, 0.9
MOST_SEARCHED, EXACT = 50, 1e-9  # steps of the search for the damping, and its relative tolerance

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
    active, numbers = torch.arange(len(start)), found.clone()
    value, gradient, curvature = evaluate(numbers, active)
    radius = torch.full_like(value, torch.inf)
    for _ in range(MOST_STEPS):
        step, predicted, size, radius = _steps(
            numbers, gradient, curvature, radius, free[active], bound[active], reach[active]
        )
        going = predicted > TOLERANCE
        last = going & (predicted < CLOSE) & (size < FULL * radius) & (step.abs() <= reach[active]).all(1)
        going &= ~last
        if not going.all():
            ended = torch.where(last[:, None], torch.clamp(numbers + step, -bound[active], bound[active]), numbers)
            found[active[~going]] = ended[~going]
            if not going.any():
                return found
            active, numbers, step, predicted, size = (one[going] for one in (active, numbers, step, predicted, size))
            value, gradient, curvature, radius = (one[going] for one in (value, gradient, curvature, radius))
        share = (reach[active] / step.abs().clamp_min(LEAST_CURVATURE)).amin(1).clamp_max(1)
        moved = torch.clamp(numbers + share[:, None] * step, -bound[active], bound[active])
        new = evaluate(moved, active)
        gain = (new[0] - value).nan_to_num(-torch.inf)
        quality = gain / (predicted * share * (2 - share))  # the gradient gives most of the gain of a shortened step
        better = (gain > 0) & new[1].isfinite().all(1) & new[2].isfinite().flatten(1).all(1)
        numbers = torch.where(better[:, None], moved, numbers)
        value = torch.where(better, new[0], value)
        gradient = torch.where(better[:, None], new[1], gradient)
        curvature = torch.where(better[:, None, None], new[2], curvature)
        wide = (quality > GOOD) & (size > FULL * radius) & (share == 1)
        radius = torch.where(wide, RAISED * radius, radius)
        radius = torch.where(~better | (quality < POOR), LOWERED * share * size, radius)
    found[active] = numbers
    return found


def _steps(
    numbers: Float[Tensor, "row number"],
    gradient: Float[Tensor, "row number"],
    curvature: Float[Tensor, "row number number"],
    radius: Float[Tensor, " row"],
    free: Bool[Tensor, "row number"],
    bound: Float[Tensor, "row number"],
    reach: Float[Tensor, "row number"],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the step of each row, the gain that it predicts, its size, and the radius."""
    free = free & ~((numbers.abs() >= bound) & (numbers * gradient > 0))
    least = reach.pow(-2).clamp_min(LEAST_CURVATURE)
    scale = torch.maximum(curvature.diagonal(dim1=1, dim2=2).abs(), least).rsqrt()
    slope = torch.where(free, gradient * scale, 0.0)
    scaled = torch.where(free[:, :, None] & free[:, None], curvature * scale[:, :, None] * scale[:, None], 0.0)
    scaled.diagonal(dim1=1, dim2=2).masked_fill_(~free, 1.0)
    root, failed = torch.linalg.cholesky_ex(scaled)
    step = torch.cholesky_solve(slope[..., None], root)[..., 0]
    size = step.norm(dim=1)
    limited = ((failed > 0) | ~(size <= radius)).nonzero()[:, 0]
    if len(limited):
        values, vectors = _eigen(scaled[limited])
        along = torch.einsum("rij,ri->rj", vectors, slope[limited])
        # without a radius so far, that of a step with absolute values of the curvature
        first = (along / values.abs().clamp_min(1 / MOST_RADIUS)).norm(dim=1).clamp_max(MOST_RADIUS)
        radius = radius.index_copy(0, limited, torch.where(radius[limited].isinf(), first, radius[limited]))
        damping = _damping(values, along, radius[limited])
        inner = along / (values + damping[:, None])
        step[limited] = torch.einsum("rij,rj->ri", vectors, inner)
        size[limited] = inner.norm(dim=1)
    predicted = (slope * step).sum(1) - torch.einsum("ri,rij,rj->r", step, scaled, step) / 2
    return torch.where(free, step * scale, 0.0), predicted, size, radius


def _eigen(matrices: Float[Tensor, "row number number"]) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors; matrices for which the routine fails get slightly different diagonals."""
    try:
        values, vectors = torch.linalg.eigh(matrices)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        apart = torch.linspace(0, LEAST_CURVATURE, matrices.shape[1], dtype=matrices.dtype).diag()
        values, vectors = torch.linalg.eigh(matrices.nan_to_num(0.0, posinf=0.0, neginf=0.0) + apart)
    return values, vectors


def _damping(
    values: Float[Tensor, "row number"], along: Float[Tensor, "row number"], radius: Float[Tensor, " row"]
) -> Float[Tensor, " row"]:
    r"""Return the smallest number that makes all eigenvalues positive and the step not longer than the radius.

    Newton's method for $1 / r - 1 / \lVert \Delta \rVert = 0$, which is nearly linear in $\lambda$, within an interval.
    """
    low: Tensor = (-values[:, 0]).clamp_min(0) * (1 + 1e-6) + 1e-9
    high: Tensor = low + along.norm(dim=1) / radius  # with the upper one the step is short enough
    found = low
    for _ in range(MOST_SEARCHED):
        shifted = values + found[:, None]
        squares = (along / shifted).square()
        total = squares.sum(1)
        size = total.sqrt()
        if bool(((size <= radius) & (found == low) | ((size / radius - 1).abs() < EXACT)).all()):
            break
        short = size <= radius
        low, high = torch.where(short, low, found), torch.where(short, found, high)
        moved = found + (size / radius - 1) * total / (squares / shifted).sum(1)
        inside = (moved >= low) & (moved <= high)
        found = torch.where(inside, moved, (low + high) / 2)
    return found

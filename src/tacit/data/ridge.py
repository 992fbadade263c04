r"""Ridge regression in closed form, in its primal or dual form, whichever is smaller.

$$w = \arg\min_w \tfrac1n \lVert y - X w \rVert^2 + \lambda \lVert w \rVert^2
   = (\tfrac1n X^\top X + \lambda)^{-1} \tfrac1n X^\top y = \tfrac1n X^\top (\tfrac1n X X^\top + \lambda)^{-1} y$$

The matrix has as many rows as the smaller side of $X$, which bounds time and memory for a long window. A small matrix
is decomposed once for all penalties, $V (\Lambda + \lambda)^{-1} V^\top$. A large one is factorised for each penalty:
this is as fast, and no single call takes long, so that signals such as Ctrl-C are handled soon.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data.pairs import Pairs
from tacit.data.regression import Path, RegressionFit, regress

# Half decades. Inputs have deviation 1, so at 100 every weight is below 0.01 and the fit is close to 0.
RIDGE_PENALTIES = tuple(10.0 ** (half / 2) for half in range(-12, 5))
MOST_DECOMPOSED = 256  # rows of a matrix that is decomposed; larger ones are factorised for each penalty
MOST_PRODUCTS = 2**33  # multiplications of one call: less than a second


def ridge_path(
    design: Float[Tensor, "row feature"], targets: Float[Tensor, "row target"], penalties: Sequence[float]
) -> Path:
    """Return the weights of every target for every penalty.

    >>> design, targets = torch.tensor([[1.0], [-1.0]]), torch.tensor([[2.0], [-2.0]])
    >>> ridge_path(design, targets, [1.0, 3.0]).flatten().tolist()
    [1.0, 0.5]
    """
    return solve_ridge(design, targets, design.new_tensor(len(design)), penalties)


def solve_ridge(
    design: Float[Tensor, "*block row feature"],
    targets: Float[Tensor, "*block row target"],
    count: Float[Tensor, "*block"],
    penalties: Sequence[float],
) -> Float[Tensor, "penalty *block feature target"]:
    """Return the weights of several regressions for every penalty; ``count`` is $n$, rows of 0 are not in it."""
    count = count[..., None, None]
    if design.shape[-2] < design.shape[-1]:
        return apply_to_all(design.mT, _solve(_second_moments(design.mT) / count, targets / count, penalties))
    return _solve(_second_moments(design) / count, design.mT @ targets / count, penalties)


def _solve(
    matrix: Float[Tensor, "*block side side"], right: Float[Tensor, "*block side target"], penalties: Sequence[float]
) -> Float[Tensor, "penalty *block side target"]:
    """Return (matrix + penalty)^-1 right for every penalty."""
    if matrix.shape[-1] > MOST_DECOMPOSED:
        found = [_factorised(matrix, right, penalty) for penalty in penalties]
        if all(one is not None for one in found):
            return torch.stack([one for one in found if one is not None])
    values, vectors = torch.linalg.eigh(matrix)
    lambdas = values.new_tensor(list(penalties))[(..., *[None] * values.ndim)]
    shrunk = values.clamp_min(0) + lambdas  # (penalty, *block, side)
    return apply_to_all(vectors, (vectors.mT @ right) / shrunk[..., None])


def apply_to_all(
    matrix: Float[Tensor, "*block row side"], values: Float[Tensor, "penalty *block side target"]
) -> Float[Tensor, "penalty *block row target"]:
    """Return the product with the values of every penalty, without the copies that broadcasting would make."""
    together = values.movedim(0, -1).flatten(-2)  # (*block, side, target * penalty)
    found = matrix @ together
    return found.view(*found.shape[:-1], values.shape[-1], len(values)).movedim(-1, 0)


def _factorised(matrix: Tensor, right: Tensor, penalty: float) -> Tensor | None:
    """Return the solution for one penalty; None if the matrix is indefinite because of rounding."""
    shifted = matrix.clone()
    shifted.diagonal(dim1=-2, dim2=-1).add_(penalty)
    factor, failed = torch.linalg.cholesky_ex(shifted)
    return None if failed.any() else torch.cholesky_solve(right, factor)


def _second_moments(design: Float[Tensor, "*block row column"]) -> Float[Tensor, "*block column column"]:
    """Return the sums of products of columns, some rows at a time."""
    columns = design.shape[-1]
    size = max(1, MOST_PRODUCTS // max(1, columns * columns * design.shape[:-2].numel()))
    total = design.new_zeros(*design.shape[:-2], columns, columns)
    for part in torch.split(design, size, -2):
        total += part.mT @ part
    return total


def ridge_regression(train: Pairs, validation: Pairs, *, penalties: Sequence[float] = RIDGE_PENALTIES) -> RegressionFit:
    """Return the ridge regression of each target on the inputs of all nodes; for a series, a ridge VAR.

    >>> inputs = torch.randn(60, 2, 1, generator=torch.Generator().manual_seed(0))
    >>> targets = torch.stack([3 * inputs[:, 1] + 1, inputs[:, 1]], dim=1)      # both nodes read node 1
    >>> pairs = Pairs(inputs, targets)
    >>> fit = ridge_regression(pairs[:40], pairs[40:])
    >>> fit.coefficients[..., 0, 0].round(decimals=3).tolist()
    [[0.0, 3.0], [0.0, 1.0]]
    """
    return regress(train, validation, ridge_path, penalties)

r"""Ridge regression in closed form, for all penalties from one decomposition.

$$w = \arg\min_w \tfrac1n \lVert y - X w \rVert^2 + \lambda \lVert w \rVert^2
   = V (\Lambda + \lambda)^{-1} V^\top \tfrac1n X^\top y, \qquad \tfrac1n X^\top X = V \Lambda V^\top$$
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data.pairs import Pairs
from tacit.data.regression import Path, RegressionFit, regress

# Half decades. Inputs have deviation 1, so at 100 every weight is below a hundredth and the fit is next to nothing.
RIDGE_PENALTIES = tuple(10.0 ** (half / 2) for half in range(-12, 5))


def ridge_path(
    design: Float[Tensor, "row feature"], targets: Float[Tensor, "row target"], penalties: Sequence[float]
) -> Path:
    """Return the weights of every target for every penalty.

    >>> design, targets = torch.tensor([[1.0], [-1.0]]), torch.tensor([[2.0], [-2.0]])
    >>> ridge_path(design, targets, [1.0, 3.0]).flatten().tolist()
    [1.0, 0.5]
    """
    values, vectors = torch.linalg.eigh(design.T @ design / len(design))
    moments = vectors.T @ (design.T @ targets / len(design))  # (feature, target)
    shrunk = values.clamp_min(0) + torch.tensor(list(penalties)).to(values)[:, None]  # (penalty, feature)
    weights: Tensor = vectors @ (moments / shrunk[..., None])
    return weights


def ridge_regression(train: Pairs, validation: Pairs, *, penalties: Sequence[float] = RIDGE_PENALTIES) -> RegressionFit:
    """Return the ridge regression of each target on the inputs of all nodes: on a series, the ridge VAR.

    >>> inputs = torch.randn(60, 2, 1, generator=torch.Generator().manual_seed(0))
    >>> targets = torch.stack([3 * inputs[:, 1] + 1, inputs[:, 1]], dim=1)      # both nodes read node 1
    >>> pairs = Pairs(inputs, targets)
    >>> fit = ridge_regression(pairs[:40], pairs[40:])
    >>> fit.coefficients[..., 0, 0].round(decimals=3).tolist()
    [[0.0, 3.0], [0.0, 1.0]]
    """
    return regress(train, validation, ridge_path, penalties)

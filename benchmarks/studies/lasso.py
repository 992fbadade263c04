r"""Lasso regression of each node on all others: on a series, the lasso VAR.

$$w = \arg\min_w \tfrac{1}{2n} \lVert y - X w \rVert^2 + \lambda \lVert w \rVert_1$$

The ridge VAR is :func:`tacit.data.regression.ridge_regression`.
"""

import warnings
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data import Pairs
from tacit.data.regression import Path, RegressionFit, regress

# Quarter decades. Inputs and targets have deviation 1, so at 1 every weight is 0.
LASSO_PENALTIES = tuple(10.0 ** (quarter / 4) for quarter in range(-16, 1))
LASSO_STEPS = 2_000  # rounds of coordinate descent for each penalty, at most


def lasso_path(
    design: Float[Tensor, "row feature"], targets: Float[Tensor, "row target"], penalties: Sequence[float]
) -> Path:
    """Return the weights of every target for every penalty, by coordinate descent from the highest one down.

    >>> design, targets = torch.tensor([[1.0], [-1.0]]), torch.tensor([[2.0], [-2.0]])
    >>> lasso_path(design, targets, [0.5, 3.0]).flatten().tolist()
    [1.5, 0.0]
    """
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lasso_path as solve

    down = np.argsort(penalties)[::-1]
    columns = np.asfortranarray(design.numpy(), dtype=np.float64)
    gram = columns.T @ columns
    paths = np.empty((len(penalties), columns.shape[1], targets.shape[1]))
    with warnings.catch_warnings():
        # At the lowest penalties, where features hardly differ, it may stop early; the validation error judges those.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for number, target in enumerate(targets.double().numpy().T):
            alphas = np.asarray(penalties, dtype=np.float64)[down]
            _, found, _ = solve(columns, target, alphas=alphas, precompute=gram, max_iter=LASSO_STEPS)
            paths[down, :, number] = found.T
    return torch.from_numpy(paths).to(design)


def lasso_regression(train: Pairs, validation: Pairs, *, penalties: Sequence[float] = LASSO_PENALTIES) -> RegressionFit:
    """Return the lasso regression of each target on the inputs of all nodes: on a series, the lasso VAR."""
    return regress(train, validation, lasso_path, penalties)

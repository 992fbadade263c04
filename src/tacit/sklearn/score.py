r"""The score of a regressor, with missing targets left out.

$$R^2 = \mathrm{mean}_c \Big( 1 - \frac{\sum_p (y_{pc} - \hat y_{pc})^2}{\sum_p (y_{pc} - \bar y_c)^2} \Big)$$

over the columns $c$ (node and channel), with sums over the pairs $p$ with a known target: scikit-learn's default for
several outputs.
"""

import warnings

import numpy as np
from jaxtyping import Float64
from sklearn.exceptions import UndefinedMetricWarning

Values = Float64[np.ndarray, "pair node channel"]


def r_squared(targets: Values, predictions: Values) -> float:
    """Return the mean $R^2$ of all columns with at least two targets; a constant column has 1 if exact, else 0.

    >>> y = np.array([0.0, 1.0, 2.0, np.nan]).reshape(4, 1, 1)
    >>> r_squared(y, np.array([0.0, 1.0, 1.0, 9.0]).reshape(4, 1, 1))
    0.5
    """
    there = ~np.isnan(targets)
    counts = there.sum(0)  # (node, channel)
    if not (counts > 1).any():
        warnings.warn(
            "R^2 requires a column with at least two targets; it is nan", UndefinedMetricWarning, stacklevel=2
        )
        return float("nan")
    known = np.where(there, targets, 0.0)
    centred = np.where(there, known - known.sum(0) / np.maximum(counts, 1), 0.0)
    errors = (np.where(there, known - predictions, 0.0) ** 2).sum(0)
    spread = (centred**2).sum(0)
    constant = np.where(errors == 0, 1.0, 0.0)
    scores = np.where(spread > 0, 1 - errors / np.where(spread > 0, spread, 1.0), constant)
    return float(scores[counts > 1].mean())

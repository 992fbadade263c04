r"""Conversion of arrays, tensors and tables, and the score of a regressor.

The score of a regressor, with missing targets left out.

$$R^2 = \mathrm{mean}_c \Big( 1 - \frac{\sum_p (y_{pc} - \hat y_{pc})^2}{\sum_p (y_{pc} - \bar y_c)^2} \Big)$$

over the columns $c$ (node and channel), with sums over the pairs $p$ with a known target: scikit-learn's default for
several outputs.
"""

import itertools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.validation import check_array, check_consistent_length, validate_data
from torch import Tensor

from tacit.data import frame_of_arrow, frame_of_labelled, is_arrow, is_labelled
from tacit.errors import InputError, require

Values = Float64[np.ndarray, "pair node channel"]


@dataclass(frozen=True)
class Table:
    """Numbers by pair, node and channel; ``nodes`` and ``channels`` are None without names.

    ``flat``  true if there was no axis of channels: one number per pair and node
    """

    values: Values
    nodes: list[str] | None = None
    channels: list[str] | None = None
    flat: bool = False


def read_inputs(estimator: BaseEstimator, X: Any, *, reset: bool) -> Table:  # noqa: N803 - scikit-learn's name
    """Read inputs; in ``fit`` (``reset``) the estimator stores their names and number, later they are compared."""
    values, names, nodes, channels = _opened("X", X)
    fewest = 2 if reset else 1  # one pair to train on, one to validate on
    options: dict[str, Any] = {"dtype": np.float64, "allow_nd": True, "ensure_min_samples": fewest}
    options["ensure_all_finite"] = "allow-nan"
    array = check_array(values, estimator=estimator, input_name="X", **options)
    require(
        not reset or array.ndim < 2 or array.shape[1] > 1,
        "X must have a column for each of two nodes or more, got n_features = 1; add columns of other nodes",
    )
    validate_data(estimator, array if names is None else names, reset=reset, skip_check_array=True)
    return _table("X", array, nodes, channels)


def read_targets(estimator: BaseEstimator, y: Any, inputs: Table) -> Table:
    """Read targets that belong to ``inputs``; NaN means missing."""
    if y is None:
        name = type(estimator).__name__
        raise InputError(f"This {name} estimator requires y to be passed, but the target y is None.")
    values, _, nodes, channels = _opened("y", y)
    options: dict[str, Any] = {"ensure_all_finite": "allow-nan", "ensure_2d": False, "allow_nd": True}
    array = check_array(values, estimator=estimator, input_name="y", dtype=np.float64, **options)
    targets = _table("y", array, nodes, channels)
    check_consistent_length(inputs.values, targets.values)
    expected, got = inputs.values.shape[1], targets.values.shape[1]
    require(
        expected == got,
        f"y must have a value for each of the {expected} nodes of X, got {got}; pass a column for every node, NaN "
        "where a target is missing",
    )
    if inputs.nodes is not None and targets.nodes is not None:
        for ours, theirs in zip(inputs.nodes, targets.nodes, strict=True):
            require(ours == theirs, f"y must have the nodes of X in their order, got {theirs!r} where X has {ours!r}")
    require(not np.isnan(targets.values).all(), "y must have at least one value, got NaN everywhere; check the table")
    return targets


def _opened(name: str, data: Any) -> tuple[Any, Any, list[str] | None, list[str] | None]:
    """Return values, the object from which scikit-learn reads the names, the nodes and the channels."""
    if isinstance(data, Tensor):
        return data.detach().cpu().numpy(), None, None, None
    if is_labelled(data):
        data = frame_of_labelled(data, ())
    elif is_arrow(data):
        data = frame_of_arrow(data, name)
    columns = getattr(data, "columns", None)
    if columns is None:
        return data, None, None, None
    if getattr(columns, "nlevels", 1) == 1:
        return data, data, [str(column) for column in columns], None
    import pandas as pd

    values, nodes, channels = _by_node_and_channel(name, data)
    return values, pd.DataFrame(columns=nodes), nodes, channels


def _by_node_and_channel(name: str, frame: Any) -> tuple[Any, list[str], list[str]]:
    """Return a table with two levels of columns, node and channel, as one array with an axis for each."""
    columns = frame.columns
    require(
        columns.nlevels == 2 and columns.is_unique,
        f"{name} must have columns (node, channel), each of them once, got {columns.nlevels} levels; "
        "use two levels and drop repeated columns",
    )
    nodes, channels = (list(columns.get_level_values(level).unique()) for level in (0, 1))
    absent = sorted(set(itertools.product(nodes, channels)) - set(columns), key=str)
    if absent:
        node, channel = absent[0]
        raise InputError(
            f"{name} must have the same channels for all nodes, but {node!r} has no column {channel!r}; "
            "add it, or drop that channel"
        )
    ordered = frame[list(itertools.product(nodes, channels))].to_numpy()
    values = ordered.reshape(len(frame), len(nodes), len(channels))
    return values, [str(node) for node in nodes], [str(channel) for channel in channels]


def _table(name: str, array: Any, nodes: list[str] | None, channels: list[str] | None) -> Table:
    require(
        array.ndim in (2, 3) and array.size > 0,
        f"{name} must have shape (pairs, nodes) or (pairs, nodes, channels), got {array.shape}; "
        "pass one column for every node",
    )
    flat = array.ndim == 2
    return Table(array[..., None] if flat else array, nodes, channels, flat)


PairValues = Float64[np.ndarray, "pair node channel"]


def r_squared(targets: PairValues, predictions: PairValues) -> float:
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

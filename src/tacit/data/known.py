r"""Known columns: what a node has at the time of a target beside its window, covariates and background.

For the target in row $r$ and the newest input in row $r - h$ these are, in this order:

- the covariates in row $r$,
- the covariates in row $r - 1$, without parts of the date and others that follow from the first,
- the columns of the :class:`~tacit.data.background.Background`: waves and categories of the time of row $r$, and levels
  of the node's own values up to row $r - h$; 0 for terms that the node does not use.

After the last row of a table, dates continue (:mod:`tacit.data.coming_times`), so waves, categories and parts of the
date are known. Other covariates are not.
"""

import numpy as np
from jaxtyping import Float

from tacit.data.background import Background, Level, Numbers
from tacit.data.calendar_features import calendar_columns
from tacit.data.coming_times import extended_times
from tacit.data.scaling import Scaling, forward_filled
from tacit.data.series import Series, Times, Values
from tacit.errors import require

Known = Float[np.ndarray, "row node known"]


def num_known(scaling: Scaling, background: Background) -> int:
    """Return the number of known columns of a node."""
    return len(scaling.covariate_names) + len(scaling.lagged_covariates) + background.size


def require_nodes(background: Background, nodes: tuple[str, ...]) -> None:
    """Refuse a background of other nodes."""
    shape = (len(nodes), len(background.terms))
    require(
        not background.terms or background.used.shape == shape,
        f"used of the background must have shape {shape}, a row per node and a column per term, got "
        f"{background.used.shape}; pass one for these nodes",
    )


def unknown_ahead(scaling: Scaling, part: Series) -> tuple[str, ...]:
    """Return the covariates that are not known after the last row, by the names of their columns in the table."""
    computed = calendar_columns(part.row_times[-1:], scaling.covariate_names)
    names = [name for name in scaling.covariate_names if name not in computed]
    plain = [name.split("=")[0] for name in names]  # of an indicator
    return tuple(dict.fromkeys(one if one in part.levels else name for one, name in zip(plain, names, strict=True)))


def covariates_ahead(scaling: Scaling, part: Series, ahead: int) -> Float[np.ndarray, "row covariate"]:
    """Return the scaled covariates of all rows and of ``ahead`` rows after them; NaN where one is not known."""
    known, names = scaling.covariates(part), scaling.covariate_names
    if not names or not ahead:
        return np.concatenate([known, np.full((ahead, known.shape[1]), np.nan)])
    coming = calendar_columns(extended_times(part.row_times, ahead)[len(part) :], names)
    later = np.stack([coming.get(name, np.full(ahead, np.nan)) for name in names], axis=1)
    return np.concatenate([known, (later - scaling.covariate_mean) / scaling.covariate_deviation])


def columns_at_targets(
    scaling: Scaling,
    background: Background,
    covariates: Float[np.ndarray, "row covariate"],
    times: Numbers,
) -> Known:
    """Return the known columns of targets in these rows, with 0 in place of the levels.

    ``times`` are the times of the rows as numbers. The first row has no row before it: its lagged covariates are NaN.
    """
    nodes = len(scaling.nodes)
    lagged = [scaling.covariate_names.index(name) for name in scaling.lagged_covariates]
    before = np.concatenate([np.full((1, len(lagged)), np.nan), covariates[:-1, lagged]])
    shared = np.concatenate([covariates, before], axis=1)[:, None]
    parts: list[Known] = [np.broadcast_to(shared, (len(times), nodes, shared.shape[2]))]
    for number, term in enumerate(background.terms):
        if isinstance(term, Level):
            parts.append(np.zeros((len(times), nodes, term.size)))
        else:
            parts.append(term.columns(times)[:, None] * background.used[:, number, None])
    return np.concatenate(parts, axis=2)


def level_places(scaling: Scaling, background: Background) -> list[int]:
    """Return the positions of the levels among the known columns."""
    first = len(scaling.covariate_names) + len(scaling.lagged_covariates)
    sizes = np.cumsum([first, *(term.size for term in background.terms)])
    return [int(sizes[number]) for number in level_terms(background)]


def level_terms(background: Background) -> list[int]:
    """Return the positions of the levels among the terms."""
    return [number for number, term in enumerate(background.terms) if isinstance(term, Level)]


def level_values(background: Background, values: Values) -> Float[np.ndarray, "row node level"]:
    """Return each level up to every row from scaled values, of the first variable; 0 before the first value.

    A level starts at the first value and is the plain mean of the first rows. A missing value is the previous value.

    >>> background = Background((Level(1.0),), np.array([[True], [False]]))
    >>> series = np.array([[np.nan, 1.0], [2.0, 1.0], [4.0, 1.0]])[..., None]
    >>> level_values(background, series)[..., 0].tolist()
    [[0.0, 0.0], [2.0, 0.0], [3.0, 0.0]]
    """
    from scipy.signal import lfilter

    terms = level_terms(background)
    found = np.zeros((*values.shape[:2], len(terms)))
    filled = forward_filled(values[:, :, :1])[..., 0] if terms else values[..., 0]
    for place, number in enumerate(terms):
        term = background.terms[number]
        assert isinstance(term, Level)
        for node in background.used[:, number].nonzero()[0]:
            first = int(np.isnan(filled[:, node]).sum())  # filled values are missing at the start only
            known = filled[first:, node]
            plain = min(len(known), max(1, int(1 / term.rate)))  # rows of which the level is the plain mean
            level = known[:plain].cumsum() / np.arange(1, plain + 1)
            if len(known) > plain:
                later, _ = lfilter([term.rate], [1, term.rate - 1], known[plain:], zi=(1 - term.rate) * level[-1:])
                level = np.concatenate([level, later])
            found[first:, node, place] = level
    return found


def known_columns(
    scaling: Scaling, background: Background, part: Series, number: int, horizon: int, times: Times
) -> Float[np.ndarray, "row node known"]:
    """Return the known columns of the target ``horizon`` steps after each row of one series, in single precision.

    ``times`` are the times of the rows and of the ``horizon`` rows after them, as numbers.
    """
    covariates = covariates_ahead(scaling, part, horizon)
    found = columns_at_targets(scaling, background, covariates, times)[horizon:].astype(np.float32)
    if places := level_places(scaling, background):
        found[:, :, places] = level_values(background, scaling.scaled(part, number))
    return found

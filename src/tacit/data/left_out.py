"""Columns and nodes that a reader leaves out because nothing can be learned from them, listed in one note."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from tacit.data.selection import literal
from tacit.data.series import Series
from tacit.errors import require

INDEX = "index of rows"


def leave_out(
    series: Series, columns: Mapping[str, str], asked: Collection[str] = (), *, piece: bool = False
) -> Series:
    """Return a series without nodes and variables that are empty or constant, with a note.

    ``columns``  columns that were left out of the table before, by name, with the reason
    ``asked``    names given by the user; they are kept, and :class:`Series` refuses them
    ``piece``    a few new rows, in which nodes may be constant: they are kept

    A variable is left out if it is constant at every node, and a node if all its variables are constant. The same names
    are left out of new data; they are ``drop`` in ``Series.settled``.

    >>> values = np.stack([np.arange(3.0), np.ones(3), np.arange(3.0) ** 2], axis=1)[:, :, None]
    >>> series = leave_out(Series(values, ("a", "id", "b"), piece=True), {"city": "text"})
    >>> series.nodes, series.notes, series.settled["drop"]
    (('a', 'b'), ("left out: 'city' (text), 'id' (constant)",), ('city', 'id'))
    """
    if piece:
        return _noted(series, columns)
    still = series.still
    variables = still.all(axis=0) & ~_named(series.channels, asked)
    variables &= not variables.all()
    nodes = still[:, ~variables].all(axis=1) & ~_named(series.nodes, asked)
    reasons = dict(columns)
    for names, out, axis in ((series.channels, variables, 0), (series.nodes, nodes, 1)):
        for place in np.flatnonzero(out):
            reasons[names[place]] = _reason(series, np.take(series.values, place, axis=2 - axis))
    left = series.num_nodes - int(nodes.sum())
    require(
        left > 1 or not reasons or set(reasons.values()) == {INDEX},
        f"two nodes or more must remain, got {left or 'none'}; {words(reasons)}",
    )
    if not (nodes.any() or variables.any()):
        return replace(_noted(series, reasons), piece=False)
    kept = replace(
        series,
        values=series.values[:, ~nodes][:, :, ~variables],
        nodes=tuple(np.array(series.nodes, dtype=object)[~nodes]),
        channels=tuple(np.array(series.channels, dtype=object)[~variables]),
        coordinates=None if series.coordinates is None else series.coordinates[~nodes],
        piece=True,
    )
    return replace(_noted(kept, reasons), piece=False)


def _noted(series: Series, reasons: Mapping[str, str]) -> Series:
    if not reasons:
        return series
    again = tuple(literal(name) for name, reason in reasons.items() if reason != INDEX)
    drop = tuple(dict.fromkeys((*series.settled.get("drop", ()), *again)))
    settled = {**series.settled, "drop": drop} if drop else series.settled
    return replace(series, notes=(*series.notes, words(reasons)), settled=settled)


def words(reasons: Mapping[str, str]) -> str:
    """Return the note that names what was left out, and why."""
    named = {f"'{name}'" if name else "the column without a name": reason for name, reason in reasons.items()}
    return "left out: " + ", ".join(f"{name} ({reason})" for name, reason in named.items())


def _named(words: tuple[str, ...], asked: Collection[str]) -> Bool[np.ndarray, " word"]:
    return np.array([word in asked for word in words])


def _reason(series: Series, values: np.ndarray) -> str:
    there = values[~np.isnan(values)]
    if not len(there):
        return "empty"
    return "constant" if there.min() == there.max() or not series.lengths else "constant within every series"

"""Rows of a table with the same time: one of them is used, or their mean."""

from typing import Literal

import numpy as np
from jaxtyping import Float, Int

Duplicates = Literal["first", "last", "mean"]


def merged(
    values: Float[np.ndarray, "row *cell"], key: Int[np.ndarray, " row"], how: Duplicates
) -> tuple[Float[np.ndarray, "kept *cell"], Int[np.ndarray, " kept"]]:
    """Return one row for each key, in the order of the keys, and the row of the table from which its other cells come.

    A mean is over the values that are not missing; the other cells then come from the first row.

    >>> values = np.array([1.0, 5.0, np.nan, 7.0])
    >>> merged(values, np.array([0, 1, 1, 2]), "mean"), merged(values, np.array([0, 1, 1, 2]), "last")[0]
    ((array([1., 5., 7.]), array([0, 1, 3])), array([ 1., nan,  7.]))
    """
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=key.min(initial=0) - 1))
    if how != "mean":
        kept = order[starts if how == "first" else np.append(starts[1:], len(key)) - 1]
        return values[kept], kept
    there = ~np.isnan(values[order])
    counts = np.add.reduceat(there, starts, axis=0, dtype=np.int64)
    sums = np.add.reduceat(np.where(there, values[order], 0.0), starts, axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), order[starts]


def merged_note(rows: int, kept: int, how: Duplicates, what: str) -> tuple[str, ...]:
    """Return a note on rows that were merged, if there are some."""
    used = {"first": "the first row is used", "last": "the last row is used", "mean": "their mean is used"}[how]
    repeat = "row repeats" if rows - kept == 1 else "rows repeat"
    return (f"{rows - kept:,} {repeat} {what}: {used} (duplicates = {how})",) if kept < rows else ()

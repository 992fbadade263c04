r"""Categorical covariates, such as a regime: an indicator column for each level but the first.

$$1[c_t = \ell_2], \dots, 1[c_t = \ell_L]$$

for a covariate $c$ with levels $\ell_1, \dots, \ell_L$. The first level is the reference: with a column for it as well,
the columns would sum to the intercept. Indicators are the last columns of the covariates of a series.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from tacit.errors import InputError, require

if TYPE_CHECKING:
    from tacit.data.series import Series

Levels = Mapping[str, tuple[str, ...]]
Indicators = Float[np.ndarray, "row level"]
MOST_LEVELS = 30  # each adds a column to the inputs of every node


def level_names(name: str, levels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the indicator columns.

    >>> level_names("regime", ("dry", "wet"))
    ('regime=wet',)
    """
    return tuple(f"{name}={level}" for level in levels[1:])


def indicators(codes: Int[np.ndarray, " row"], num_levels: int) -> Indicators:
    """Return the indicator columns of rows with these levels, counted from 0."""
    columns: Indicators = (codes[:, None] == np.arange(1, num_levels)).astype(np.float64)
    return columns


def coded(
    name: str, codes: Int[np.ndarray, " row"], words: Sequence[str], levels: Sequence[str] | None
) -> tuple[Int[np.ndarray, " row"], tuple[str, ...]]:
    """Return the level of each row, counted from 0, and the levels: those given, or the sorted words.

    >>> coded("regime", np.array([0, 1, 0]), ["wet", "dry"], None)
    (array([1, 0, 1]), ('dry', 'wet'))
    """
    known = tuple(sorted(set(words))) if levels is None else tuple(levels)
    require(
        len(known) <= MOST_LEVELS,
        f"covariate '{name}' must have at most {MOST_LEVELS} levels, got {len(known)} different words; leave it out",
    )
    place = {level: number for number, level in enumerate(known)}
    for number, word in enumerate(words):
        if word not in place:
            row = int(np.argmax(codes == number)) + 1
            raise InputError(
                f"covariate '{name}' must have the levels of the training data, {', '.join(known)}, got '{word}' in "
                f"row {row}; correct it, or leave the row out"
            )
    return np.array([place[word] for word in words], dtype=np.int64)[codes], known


def with_common_levels(parts: "Sequence[Series]") -> "list[Series]":
    """Return the series with the union of their levels."""
    if all(part.levels == parts[0].levels for part in parts):
        return list(parts)
    everywhere: dict[str, set[str]] = {}
    for part in parts:
        for name, levels in part.levels.items():
            everywhere.setdefault(name, set()).update(levels)
    common = {name: tuple(sorted(levels)) for name, levels in everywhere.items()}
    return [_releveled(part, common) for part in parts]


def _releveled(part: "Series", levels: Levels) -> "Series":
    """Return a series with indicator columns for other levels."""
    covariates = np.zeros((len(part), 0)) if part.covariates is None else part.covariates
    codes = _codes(covariates, part.levels)
    others = covariates.shape[1] - sum(len(own) - 1 for own in part.levels.values())
    columns, names = [covariates[:, :others]], list(part.covariate_names[:others])
    for name, own in part.levels.items():
        place = np.array([levels[name].index(level) for level in own])
        columns.append(indicators(place[codes[name]], len(levels[name])))
        names += level_names(name, levels[name])
    joined = np.concatenate(columns, axis=1)
    return replace(part, covariates=joined if names else None, covariate_names=tuple(names), levels=levels)


def unseen_levels(series: "Series", rows: Bool[np.ndarray, " time"]) -> list[str]:
    """Return the levels that do not occur in some rows of a series, as name=level."""
    covariates = np.zeros((len(series), 0)) if series.covariates is None else series.covariates
    codes = _codes(covariates[rows], series.levels)
    return [
        f"{name}={level}"
        for name, levels in series.levels.items()
        for number, level in enumerate(levels)
        if not (codes[name] == number).any()
    ]


def _codes(covariates: Indicators, levels: Levels) -> dict[str, Int[np.ndarray, " row"]]:
    """Return the level of each row, counted from 0; indicators are the last columns of the covariates."""
    first, codes = covariates.shape[1] - sum(len(own) - 1 for own in levels.values()), {}
    for name, own in levels.items():
        columns = covariates[:, first : first + len(own) - 1]
        codes[name] = (columns @ np.arange(1.0, len(own))).astype(np.int64)
        first += len(own) - 1
    return codes

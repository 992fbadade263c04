"""Columns of a table that all nodes share: covariates (numbers or words) and the labels of a condition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from tacit.data.cells import Table
from tacit.data.conditions import missing
from tacit.data.levels import Levels, coded, indicators, level_names
from tacit.data.series import Times
from tacit.errors import InputError

RowNumbers = Int[np.ndarray, " row"]
Column = Shaped[np.ndarray, " row"]


@dataclass(frozen=True)
class SharedColumns:
    """One value per row: ``covariates`` are numbers, or the levels of words; ``labels`` may be missing."""

    covariates: Mapping[str, Column] = field(default_factory=dict)
    levels: Levels = field(default_factory=dict)
    labels: Mapping[str, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, covariates: Sequence[str], labels: Sequence[str], given: Levels) -> "SharedColumns":
        """Read the columns; ``given`` are the levels of earlier data."""
        columns, levels = dict[str, Column](), dict[str, tuple[str, ...]]()
        for name in given:
            if name not in covariates:
                raise table.refuse(f"levels must be of covariates, got '{name}'; add it to covariates, or leave it out")
        for name in covariates:
            if name in given or table.is_text(name):
                which, words = table.distinct_names(name)
                try:
                    columns[name], levels[name] = coded(name, which, words, given.get(name))
                except InputError as error:
                    raise table.refuse(str(error)) from None
            else:
                columns[name] = _numbers(table, name)
        return cls(columns, levels, {name: label_column(table, name) for name in labels})

    def rows(self, places: RowNumbers) -> "SharedColumns":
        """Return some of the rows."""
        covariates, labels = ({name: column[places] for name, column in one.items()} for one in self._both)
        return replace(self, covariates=covariates, labels=labels)

    def per_step(self, table: Table, steps: Times, step_of_row: RowNumbers) -> "SharedColumns":
        """Return the columns of a long table by step; each must have one value per time, the same for all nodes."""
        first = np.zeros(len(steps), dtype=np.int64)
        first[step_of_row] = np.arange(len(step_of_row))  # a row of each step
        for kind, columns in zip(("covariate", "where: column"), self._both, strict=True):
            for name, column in columns.items():
                same = (column[first[step_of_row]] == column) | (missing(column) & missing(column[first[step_of_row]]))
                for row in np.flatnonzero(~same)[:1]:
                    word = "value" if name in self.levels or kind != "covariate" else "number"
                    remedy = "list it in value, as a variable of each node" if kind == "covariate" else "name another"
                    raise table.refuse(
                        f"{kind} '{name}' must have one {word} per time, got several at {steps[step_of_row[row]]} "
                        f"(one in row {row + 1}); {remedy}"
                    )
        return self.rows(first)

    def on_grid(self, places: RowNumbers, length: int) -> "SharedColumns":
        """Return the columns on a grid: covariates of added steps are copied from the previous row, labels missing."""
        before = np.searchsorted(places, np.arange(length), side="right") - 1
        labels = {}
        for name, column in self.labels.items():
            labels[name] = np.full(length, None if column.dtype == object else np.nan, dtype=column.dtype)
            labels[name][places] = column
        return replace(self, covariates={name: one[before] for name, one in self.covariates.items()}, labels=labels)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numeric columns of the covariates; indicators of levels come last."""
        indicated = [column for name, levels in self.levels.items() for column in level_names(name, levels)]
        return (*(name for name in self.covariates if name not in self.levels), *indicated)

    @property
    def numbers(self) -> Float[np.ndarray, "row covariate"] | None:
        """The covariates as numbers, words as indicators; None if there are none."""
        plain = [column[:, None] for name, column in self.covariates.items() if name not in self.levels]
        indicated = [indicators(self.covariates[name], len(levels)) for name, levels in self.levels.items()]
        return np.concatenate(plain + indicated, axis=1) if self.names else None

    @property
    def _both(self) -> tuple[Mapping[str, Column], Mapping[str, Column]]:
        return self.covariates, self.labels


def label_column(table: Table, name: str) -> Column:
    """Return a column of a condition: numbers with NaN, or words with None, for empty cells."""
    if table.is_numeric(name):
        return table.numbers(name)
    cells: Any = table.cells(name)
    words: Column = cells.astype("str").str.strip().to_numpy(dtype=object)
    words[cells.isna().to_numpy(dtype=bool)] = None
    return words


def _numbered(rows: RowNumbers, most: int = 3) -> str:
    """Return rows counted from 1, in words: the first ones and how many there are.

    >>> _numbered(np.array([4])), _numbered(np.arange(5))
    (' 5', 's 1, 2, 3 and 2 others')
    """
    named = ", ".join(str(row + 1) for row in rows[:most])
    more = f" and {len(rows) - most} others" if len(rows) > most else ""
    return f"{'s' if len(rows) > 1 else ''} {named}{more}"


def _numbers(table: Table, name: str) -> Column:
    """Return a covariate, which must have a number in every row."""
    values = table.numbers(name)
    empty = np.flatnonzero(np.isnan(values))
    if len(empty):
        raise table.refuse(
            f"covariate '{name}' must have a number in every row, got none in row{_numbered(empty)}; fill it in"
        )
    return values

"""``edges_by.csv``: how often edges act in each situation or regime, a row per edge and situation."""

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from tacit.edges.schema import BY_COLUMNS, csv_text, names

if TYPE_CHECKING:
    import pandas

EDGES_BY = "edges_by.csv"
BY_NUMBERS = tuple(one.name for one in BY_COLUMNS if one.kind == "number")
REGIME = "regime"  # ``by`` of regimes; their ``value`` is a number, 1 for the regime with the largest weight


class EdgesBy(BaseModel):
    """Rows of ``edges_by.csv``; ``source`` and ``target`` are numbers of nodes.

    ``by``     the name of the variable that the edge depends on, or ``regime``
    ``value``  the value of the variable, as text (a level, an hour, a number in the units of the data), or the regime
    Numbers are None if they were not computed.

    >>> rows = EdgesBy(source=[0], target=[1], by=["hour"], value=["14"], probability=[0.9], std_error=[0.02])
    >>> rows.text(["a", "b"])
    'source,target,by,value,probability,std_error,low,high\\na,b,hour,14,0.9,0.02,,\\n'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: list[int] = []
    target: list[int] = []
    by: list[str] = []
    value: list[str] = []
    probability: list[float | None] = []
    std_error: list[float | None] = []
    low: list[float | None] = []
    high: list[float | None] = []

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, given: Any) -> Any:
        """Fill columns that were left out with None."""
        if isinstance(given, dict):
            empty = [None] * len(given.get("source", ()))
            return {**dict.fromkeys(BY_NUMBERS, empty), **given}
        return given

    @model_validator(mode="after")
    def _even(self) -> "EdgesBy":
        lengths = {name: len(getattr(self, name)) for name in names(BY_COLUMNS)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must have one length, got {lengths}")
        return self

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def joined(cls, parts: "Sequence[EdgesBy]") -> "EdgesBy":
        """Return the rows of several tables, one after another."""
        return cls(**{name: [cell for part in parts for cell in getattr(part, name)] for name in names(BY_COLUMNS)})

    def columns(self, node_names: Sequence[str]) -> dict[str, list[Any]]:
        """Return the columns with the names of the nodes."""
        ends = {end: [node_names[node] for node in getattr(self, end)] for end in ("source", "target")}
        return {name: ends.get(name, getattr(self, name)) for name in names(BY_COLUMNS)}

    def frame(self, node_names: Sequence[str]) -> "pandas.DataFrame":
        """Return the table, with NaN for unknown numbers."""
        import pandas as pd

        cells = self.columns(node_names)
        return pd.DataFrame(cells | {name: np.array(cells[name], dtype=float) for name in BY_NUMBERS})

    def text(self, node_names: Sequence[str]) -> str:
        """Return ``edges_by.csv``."""
        return csv_text(BY_COLUMNS, self.columns(node_names))


def read_edges_by(text: str, node_names: Sequence[str]) -> EdgesBy:
    """Return the rows of ``edges_by.csv``; raise ValueError or KeyError if it is invalid."""
    place = {name: number for number, name in enumerate(node_names)}
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    for row in rows:
        for end in ("source", "target"):
            if row[end] not in place:
                raise ValueError(f"{EDGES_BY} names a node that is not in record.json")
    ends = {end: [place[row[end]] for row in rows] for end in ("source", "target")}
    words = {name: [row[name] for row in rows] for name in ("by", "value")}
    numbers = {name: [float(row[name]) if row[name] else None for row in rows] for name in BY_NUMBERS}
    for value in numbers["probability"]:
        if value is None or not 0 <= value <= 1:
            raise ValueError(f"probability in {EDGES_BY} must be from 0 to 1, got {value}")
    return EdgesBy(**ends, **words, **numbers)

"""``lags.csv``: the effect of each kept edge at each lag, a row per edge and lag."""

import io
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from tacit.edges.schema import LAG_COLUMNS, csv_text, names

LAGS = "lags.csv"


def numbers(values: Any) -> torch.Tensor:
    """Return nested lists as a tensor, with NaN for None."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu()
    return torch.from_numpy(np.array(values, dtype=float))


def nested_lists(values: torch.Tensor) -> list[list[float | None]]:
    """Return a matrix as nested lists, with None for NaN."""
    return [[None if value != value else value for value in row] for row in values.tolist()]


EdgeNumbers = Annotated[torch.Tensor, BeforeValidator(numbers), PlainSerializer(nested_lists, when_used="json")]


class LagTable(BaseModel):
    """The lag profiles of some edges, a row per edge and a column per lag; lags are steps before the target.

    ``first``    the lag of the first column: the horizon, or 0 with effects within a step
    ``effects``  deviations of the target per deviation of the source at each lag; NaN at lags that are not allowed
    ``shares``   fraction of the resamples of the data in which a lag has the largest effect; NaN without resamples

    >>> table = LagTable(source=[0], target=[1], first=1, effects=[[0.1, -0.4]], shares=[[0.0, 1.0]])
    >>> table.dominant.tolist(), table.text(["a", "b"])
    ([2], 'source,target,lag,effect,share\\na,b,1,0.1,0\\na,b,2,-0.4,1\\n')
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    source: list[int]
    target: list[int]
    first: int
    effects: EdgeNumbers
    shares: EdgeNumbers

    @property
    def dominant(self) -> torch.Tensor:
        """The lag of each edge with the largest effect in absolute value."""
        return self.first + self.effects.abs().nan_to_num(-1.0).argmax(1)

    def columns(self, node_names: Sequence[str]) -> dict[str, list[Any]]:
        """Return the columns of ``lags.csv``, a row per edge and lag that it may have."""
        row, column = (~self.effects.isnan()).nonzero().unbind(1)
        source, target = ([node_names[ends[edge]] for edge in row.tolist()] for ends in (self.source, self.target))
        lag = (self.first + column).tolist()
        values = (source, target, lag, self.effects[row, column].tolist(), self.shares[row, column].tolist())
        return dict(zip(names(LAG_COLUMNS), values, strict=True))

    def text(self, node_names: Sequence[str]) -> str:
        """Return ``lags.csv``."""
        return csv_text(LAG_COLUMNS, self.columns(node_names))


def read_lags(text: str, node_names: Sequence[str]) -> LagTable:
    """Return the profiles of ``lags.csv``; raise ValueError or KeyError if it is invalid."""
    import pandas as pd

    nodes = pd.CategoricalDtype(list(node_names))
    table = pd.read_csv(
        io.StringIO(text),
        dtype={"source": nodes, "target": nodes, "lag": np.int64, "effect": float, "share": float},
        na_values={"effect": "", "share": ""},
        keep_default_na=False,
        lineterminator="\n",
    )
    ends = [table[name].cat.codes.to_numpy().astype(np.int64) for name in ("source", "target")]
    if any((codes < 0).any() for codes in ends):
        raise ValueError(f"{LAGS} names a node that is not in record.json")
    edges, rows = np.unique(np.stack([ends[1], ends[0]], 1), axis=0, return_inverse=True)
    lag = table["lag"].to_numpy()
    first, count = (int(lag.min()), int(np.ptp(lag)) + 1) if len(lag) else (1, 1)
    effects, shares = (np.full((len(edges), count), np.nan) for _ in range(2))
    effects[rows.ravel(), lag - first] = table["effect"]
    shares[rows.ravel(), lag - first] = table["share"]
    return LagTable(
        source=edges[:, 1].tolist(), target=edges[:, 0].tolist(), first=first, effects=effects, shares=shares
    )

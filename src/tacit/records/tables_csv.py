"""The other tables of a run: lags.csv, edges_by.csv, forecasts.csv and background.csv.

``forecasts.csv``: forecasts of the test part and what was observed, for some nodes and the last rows.

``background.csv``: the background of some nodes over time, and what was observed.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

FORECASTS = "forecasts.csv"
QUANTILES = {"q2.5": 0.025, "q10": 0.1, "q25": 0.25, "median": 0.5, "q75": 0.75, "q90": 0.9, "q97.5": 0.975}
FORECAST_NUMBERS = (*QUANTILES, "actual")


@dataclass(frozen=True, eq=False)
class ForecastTable:
    """Quantiles of forecasts and the observed values, in the units of the data; NaN where nothing was observed.

    ``row_name``  ``time``, or ``pair`` where rows have no order
    ``rows``      the time of each row as text, or its number
    ``series``    the name of the series of each row; empty where there is one
    ``nodes``     numbers of the nodes
    ``numbers``   in the order of ``FORECAST_NUMBERS``

    >>> one = ForecastTable("time", ["0"], [], [1], ["level"], np.array([[[[1, 2, 3, 4, 5, 6, 7, np.nan]]]]))
    >>> one.text(["a", "b"])
    'time,node,variable,q2.5,q10,q25,median,q75,q90,q97.5,actual\\n0,b,level,1,2,3,4,5,6,7,\\n'
    """

    row_name: str
    rows: list[str]
    series: list[str]
    nodes: list[int]
    variables: list[str]
    numbers: Float[np.ndarray, "row node variable column"]

    def text(self, node_names: Sequence[str]) -> str:
        """Return ``forecasts.csv``, a row per row, node and variable."""
        cells = {
            "node": [node_names[node] for node in self.nodes for _ in self.variables],
            "variable": self.variables * len(self.nodes),
        }
        return _text(self.series, {self.row_name: self.rows}, cells, self.numbers, FORECAST_NUMBERS, "%.7g")


def read_forecasts(text: str, node_names: Sequence[str]) -> ForecastTable:
    """Return the table of ``forecasts.csv``; ValueError or KeyError if it is bad."""
    table, nodes = _table(text, node_names, FORECASTS, FORECAST_NUMBERS)
    variables, row_name = list(dict.fromkeys(table["variable"])), "time" if "time" in table else "pair"
    each = max(1, len(nodes) * len(variables))
    numbers = table[list(FORECAST_NUMBERS)].to_numpy()
    return ForecastTable(
        row_name,
        table[row_name][::each].tolist(),
        table["series"][::each].tolist() if "series" in table else [],
        nodes,
        variables,
        numbers.reshape(len(table) // each, len(nodes), len(variables), len(FORECAST_NUMBERS)),
    )


BACKGROUND = "background.csv"
NUMBERS = ("actual", "background")


@dataclass(frozen=True, eq=False)
class BackgroundTable:
    """The background and the observed values, in the units of the data; NaN where nothing was observed.

    ``times``    the time of each point as text
    ``rows``     the number of neighbouring rows of which a point is the mean, 1 for a single row
    ``series``   the name of the series of each point; empty where there is one
    ``nodes``    numbers of the nodes
    ``numbers``  in the order of ``NUMBERS``

    >>> one = BackgroundTable(["0"], [1], [], [1], np.array([[[np.nan, 2.5]]]))
    >>> one.text(["a", "b"])
    'time,rows,node,actual,background\\n0,1,b,,2.5\\n'
    """

    times: list[str]
    rows: list[int]
    series: list[str]
    nodes: list[int]
    numbers: Float[np.ndarray, "point node column"]

    def text(self, node_names: Sequence[str]) -> str:
        """Return ``background.csv``, a row per point and node."""
        keys: dict[str, Sequence[Any]] = {"time": self.times, "rows": self.rows}
        cells = {"node": [node_names[node] for node in self.nodes]}
        return _text(self.series, keys, cells, self.numbers, NUMBERS, "%.6g")


def read_background(text: str, node_names: Sequence[str]) -> BackgroundTable:
    """Return the table of ``background.csv``; ValueError or KeyError if it is bad."""
    table, nodes = _table(text, node_names, BACKGROUND, NUMBERS)
    each = max(1, len(nodes))
    return BackgroundTable(
        table["time"][::each].tolist(),
        table["rows"][::each].astype(int).tolist(),
        table["series"][::each].tolist() if "series" in table else [],
        nodes,
        table[list(NUMBERS)].to_numpy().reshape(len(table) // each, len(nodes), len(NUMBERS)),
    )


def _text(
    series: Sequence[str],
    keys: Mapping[str, Sequence[Any]],
    cells: Mapping[str, Sequence[str]],
    numbers: Float[np.ndarray, "row *cell column"],
    columns: Sequence[str],
    digits: str,
) -> str:
    """Return a table as CSV: the series of each row, if there are several, other ``keys`` of each row, its cells."""
    import pandas as pd

    flat = numbers.reshape(-1, len(columns))
    count = len(next(iter(cells.values())))
    keys = {"series": series, **keys} if series else keys
    found = {name: np.repeat(np.array(values, dtype=object), count) for name, values in keys.items()}
    found |= {name: np.tile(np.array(values, dtype=object), len(numbers)) for name, values in cells.items()}
    found |= {name: flat[:, column] for column, name in enumerate(columns)}
    return str(pd.DataFrame(found).to_csv(index=False, float_format=digits, lineterminator="\n"))


def _table(text: str, node_names: Sequence[str], file: str, columns: Sequence[str]) -> tuple[Any, list[int]]:
    """Return the cells of a CSV file, a pandas.DataFrame, and the numbers of its nodes."""
    import pandas as pd

    words = dict.fromkeys(("series", "time", "pair", "node", "variable"), str)
    table = pd.read_csv(
        io.StringIO(text),
        dtype=words | dict.fromkeys(columns, float),
        na_values=dict.fromkeys(columns, ""),
        keep_default_na=False,
        lineterminator="\n",
    )
    number = {name: place for place, name in enumerate(node_names)}
    names = list(dict.fromkeys(table["node"]))
    if not set(names) <= set(number):
        raise ValueError(f"{file} names a node that is not in record.json")
    return table, [number[name] for name in names]

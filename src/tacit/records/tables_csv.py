"""The other tables of a run: lags.csv, edges_by.csv, forecasts.csv and background.csv.

``forecasts.csv``: forecasts of the test part and what was observed, for some nodes and the last rows.

``background.csv``: the background of some nodes over time, and what was observed.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass

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
        import pandas as pd

        rows, nodes, variables = self.numbers.shape[:3]
        names = [node_names[node] for node in self.nodes]
        keys = {"series": np.repeat(np.array(self.series, dtype=object), nodes * variables)} if self.series else {}
        keys[self.row_name] = np.repeat(np.array(self.rows, dtype=object), nodes * variables)
        keys["node"] = np.tile(np.repeat(np.array(names, dtype=object), variables), rows)
        keys["variable"] = np.tile(np.array(self.variables, dtype=object), rows * nodes)
        flat = self.numbers.reshape(-1, len(FORECAST_NUMBERS))
        numbers = {name: flat[:, column] for column, name in enumerate(FORECAST_NUMBERS)}
        return str(pd.DataFrame(keys | numbers).to_csv(index=False, float_format="%.7g", lineterminator="\n"))


def read_forecasts(text: str, node_names: Sequence[str]) -> ForecastTable:
    """Return the table of ``forecasts.csv``; ValueError or KeyError if it is bad."""
    import pandas as pd

    words = dict.fromkeys(("series", "time", "pair", "node", "variable"), str)
    table = pd.read_csv(
        io.StringIO(text),
        dtype=words | dict.fromkeys(FORECAST_NUMBERS, float),
        na_values=dict.fromkeys(FORECAST_NUMBERS, ""),
        keep_default_na=False,
        lineterminator="\n",
    )
    number = {name: place for place, name in enumerate(node_names)}
    names, variables = list(dict.fromkeys(table["node"])), list(dict.fromkeys(table["variable"]))
    if not set(names) <= set(number):
        raise ValueError(f"{FORECASTS} names a node that is not in record.json")
    row_name = "time" if "time" in table else "pair"
    each = max(1, len(names) * len(variables))
    shape = len(table) // each, len(names), len(variables), len(FORECAST_NUMBERS)
    numbers = table[list(FORECAST_NUMBERS)].to_numpy().reshape(shape)
    series = table["series"][::each].tolist() if "series" in table else []
    nodes = [number[name] for name in names]
    return ForecastTable(row_name, table[row_name][::each].tolist(), series, nodes, variables, numbers)


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
        import pandas as pd

        points, nodes = self.numbers.shape[:2]
        keys = {"series": np.repeat(np.array(self.series, dtype=object), nodes)} if self.series else {}
        keys["time"] = np.repeat(np.array(self.times, dtype=object), nodes)
        keys["rows"] = np.repeat(self.rows, nodes)
        keys["node"] = np.tile(np.array([node_names[node] for node in self.nodes], dtype=object), points)
        flat = self.numbers.reshape(-1, len(NUMBERS))
        numbers = {name: flat[:, column] for column, name in enumerate(NUMBERS)}
        return str(pd.DataFrame(keys | numbers).to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def read_background(text: str, node_names: Sequence[str]) -> BackgroundTable:
    """Return the table of ``background.csv``; ValueError or KeyError if it is bad."""
    import pandas as pd

    table = pd.read_csv(
        io.StringIO(text),
        dtype=dict.fromkeys(("series", "time", "node"), str) | dict.fromkeys(NUMBERS, float),
        na_values=dict.fromkeys(NUMBERS, ""),
        keep_default_na=False,
        lineterminator="\n",
    )
    number = {name: place for place, name in enumerate(node_names)}
    names = list(dict.fromkeys(table["node"]))
    if not set(names) <= set(number):
        raise ValueError(f"{BACKGROUND} names a node that is not in record.json")
    each = max(1, len(names))
    numbers = table[list(NUMBERS)].to_numpy().reshape(len(table) // each, len(names), len(NUMBERS))
    series = table["series"][::each].tolist() if "series" in table else []
    rows = table["rows"][::each].astype(int).tolist()
    return BackgroundTable(table["time"][::each].tolist(), rows, series, [number[name] for name in names], numbers)

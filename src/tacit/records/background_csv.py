"""``background.csv``: the background of some nodes over time, and what was observed."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

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

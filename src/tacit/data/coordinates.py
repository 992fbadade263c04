"""Coordinates of nodes: a table of a node's name and two numbers."""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from tacit.data.cells import open_table


def read_coordinates(path: str | Path, nodes: tuple[str, ...]) -> Float[np.ndarray, "node 2"]:
    """Return two numbers per node, in the order of ``nodes``, from a table.

    The first column contains the names, the last two the numbers, such as latitude and longitude. Names that are not
    in ``nodes`` are ignored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "places.csv"
    ...     _ = file.write_text("node,latitude,longitude\\na,46.0,8.9\\nb,46.2,9.0\\n")
    ...     read_coordinates(file, ("b", "a")).tolist()
    [[46.2, 9.0], [46.0, 8.9]]
    """
    table = open_table(path)
    if len(table.columns) < 3:
        raise table.refuse(f"must have a column of node names and two of numbers, got {', '.join(table.columns)}")
    names = table.names(table.columns[0])
    places = np.stack([table.numbers(column) for column in table.columns[-2:]], axis=-1)
    for row, name in enumerate(names):
        if name in names[:row]:
            raise table.refuse(f"node '{name}' occurs twice, again in row {row + 1}; keep one of them")
        if name in nodes and np.isnan(places[row]).any():
            raise table.refuse(f"node '{name}' in row {row + 1} must have two numbers, got an empty cell; fill it in")
    missing = [node for node in nodes if node not in names]
    if missing:
        raise table.refuse(f"node '{missing[0]}' has no row ({len(missing)} such nodes); add it")
    return places[[names.index(node) for node in nodes]]

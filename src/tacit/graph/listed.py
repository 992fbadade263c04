"""Candidate edges from a list of names, as a file (.csv, .csv.gz, .parquet) or a pandas frame.

    source,target
    a,b
    c,a

``target`` may read ``source``. Other columns, such as a distance, are passed over. Rows are counted from 1 below the
header.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Union

import numpy as np
import torch
from jaxtyping import Int

from tacit.data.cells import Table, open_table
from tacit.errors import require
from tacit.graph.candidates import require_linked
from tacit.graph.nodes import NamedNodes
from tacit.graph.slots import Slots

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("source", "target")
Numbers = Int[np.ndarray, " edge"]


def listed_slots(edges: Union[str, Path, "DataFrame"], nodes: Sequence[str], *, allow_isolated: bool = False) -> Slots:
    """Return the candidates that a list names; what is wrong with it is said with its row.

    A node without an edge is refused unless ``allow_isolated``. For edges without directions pass the result on to
    :func:`with_reversed`.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"source": ["a", "c"], "target": ["b", "a"]})
    >>> listed_slots(frame, ("a", "b", "c")).edges()
    (tensor([2, 0]), tensor([0, 1]))
    """
    named = NamedNodes(tuple(nodes))
    table = open_table(edges) if isinstance(edges, str | Path) else _as_table(edges)
    for column in COLUMNS:
        if column not in table.columns:
            raise table.refuse(f"needs the columns source and target, got {', '.join(table.columns)}; add {column}")
    if "kind" in table.columns:
        raise table.refuse(
            "has a column kind, as rules for edges have; read it by read_edge_rules, or remove the column"
        )
    source, target = (_numbers(table, column, named) for column in COLUMNS)
    _require_simple(table, source, target, named)
    slots = Slots.from_edges(torch.from_numpy(source), torch.from_numpy(target), len(named.names))
    if not allow_isolated:
        require_linked(slots, named.names, str(table.path))
    return slots


def _as_table(frame: "DataFrame") -> Table:
    import pandas as pd

    require(
        isinstance(frame, pd.DataFrame),
        f"edges needs a file's name or a pandas frame, got {type(frame).__name__}; pass for example 'edges.csv'",
    )
    columns = tuple(str(column) for column in frame.columns)
    table = Table(Path("edges"), columns, frame.reset_index(drop=True).set_axis(range(len(columns)), axis="columns"))
    for column in COLUMNS:
        if columns.count(column) > 1:
            raise table.refuse(f"the header names column '{column}' twice; rename one")
    if not len(frame):
        raise table.refuse("there is a header but no rows; pass a table with rows")
    return table


def _numbers(table: Table, column: str, named: NamedNodes) -> Numbers:
    """Return the numbers of the nodes that a column names."""
    which, names = table.distinct_names(column)
    rows = np.unique(which, return_index=True)[1]  # where each name first occurs
    numbers = [
        named.number(f"{table.path}, row {row + 1}: {column}", name) for row, name in zip(rows, names, strict=True)
    ]
    of_row: Numbers = np.array(numbers, dtype=np.int64)[which]
    return of_row


def _require_simple(table: Table, source: Numbers, target: Numbers, named: NamedNodes) -> None:
    """Raise :class:`InputError` at the first self-loop, or the first edge that comes again."""
    loops = np.flatnonzero(source == target)
    if len(loops):
        row = int(loops[0])
        raise table.refuse(
            f"edge {named.edge(int(source[row]), int(target[row]))} in row {row + 1} is a self-loop; remove "
            "the row, and use with_self_loops to let every node read itself"
        )
    keys = target * len(named.names) + source
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(again):
        at = again[order[again + 1].argmin()]
        before, row = int(order[at]), int(order[at + 1])
        raise table.refuse(
            f"edge {named.edge(int(source[row]), int(target[row]))} comes twice, in rows {before + 1} and {row + 1}; "
            "keep one of them"
        )

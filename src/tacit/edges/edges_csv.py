"""``edges.csv``: a row per edge, with the columns of the schema; those that were not computed are empty."""

import io
from collections.abc import Sequence

import numpy as np

from tacit.edges import schema
from tacit.edges.index import EdgeIndex
from tacit.edges.table import EdgeTable

EDGES = "edges.csv"


def edges_text(table: EdgeTable) -> str:
    """Return ``edges.csv``, in the order of the index: by target and then source.

    Of edges that are not kept the columns on how often they act are empty.
    """
    source, target = table.index.ends()
    return schema.csv_text(schema.file_columns(), {"source": source, "target": target, **table.filed()})


def read_edges(
    text: str, node_names: Sequence[str], count: int | None = None, keep: float = 0.0, *, symmetric: bool = False
) -> EdgeTable:
    """Return the table of ``edges.csv`` without empty columns; raise ValueError or KeyError if it is invalid.

    ``count`` is the number of candidates; None: there is a row per ordered pair. A probability may be empty (NaN) if
    ``exists`` is below ``keep``, the direction is open, or the edge is one of a group of copies.
    """
    import pandas as pd

    nodes, columns = pd.CategoricalDtype(list(node_names)), {one.name: one for one in schema.file_columns()}
    numbers = [name for name, one in columns.items() if one.kind == "number"]
    types = {"node": nodes, "number": float, "text": str}
    read = pd.read_csv(
        io.StringIO(text),
        dtype={
            name: pd.CategoricalDtype(list(one.words)) if one.kind == "word" else types[one.kind]
            for name, one in columns.items()
        },
        na_values=dict.fromkeys(numbers, ""),
        keep_default_na=False,
        lineterminator="\n",
    )
    source, target = (read[end].cat.codes.to_numpy().astype(np.int64) for end in ("source", "target"))
    _require_all(source, target, node_names, count)
    found = {}
    for name in read.columns[2:]:
        one = columns[name]
        values = read[name].cat.codes.to_numpy().clip(0).astype(np.uint8) if one.kind == "word" else read[name]
        values = np.asarray(values, dtype=object if one.kind == "text" else None)
        if name == "probability" or not one.is_empty(values).all():
            found[name] = values
    index = EdgeIndex(source, target, tuple(node_names), tuple(node_names), symmetric)
    table = EdgeTable(index, keep=keep).updated(**found)
    _require_probabilities(table)
    return table


def _require_all(source: np.ndarray, target: np.ndarray, node_names: Sequence[str], count: int | None) -> None:
    """Raise :class:`ValueError` unless the rows are all pairs in order, or ``count`` candidates."""
    if (source < 0).any() or (target < 0).any():
        raise ValueError("edges.csv names a node that is not in record.json")
    if count is not None:
        if len(source) != count:
            raise ValueError(f"edges.csv has {len(source)} edges, {count} are in record.json")
        return
    nodes = len(node_names)
    pairs, wanted = target * nodes + source, np.arange(nodes * nodes)
    if np.array_equal(pairs, wanted):
        return
    missing = np.setdiff1d(wanted, pairs)
    if not len(missing):
        raise ValueError("edges.csv must have each ordered pair once, by target and then source")
    end, start = divmod(int(missing[0]), nodes)
    first = f"{node_names[start]} -> {node_names[end]}"
    raise ValueError(f"edges.csv lacks {len(missing)} edges, the first {first}")


def _require_probabilities(table: EdgeTable) -> None:
    """Raise :class:`ValueError` if a probability is missing or not between 0 and 1."""
    for name in ("exists", "probability"):
        values = table[name]
        if values is None:
            continue
        wrong = (values < 0) | (values > 1)
        if name == "probability":  # it may be missing if the edge is not kept or its direction is open
            known = ~np.isnan(values)
            known |= table["exists"] < table.keep if "exists" in table else False
            known |= table["direction"] == schema.OPEN if "direction" in table else False
            known |= table["group"] != "" if "group" in table else False
            wrong |= ~known
        if wrong.any():
            raise ValueError(f"{name} in edges.csv must be from 0 to 1, got {values[wrong][0]:g}")

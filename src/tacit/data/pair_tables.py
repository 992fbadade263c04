"""Pairs (x, y) in tables: columns ``x:NODE`` and ``y:NODE`` of one file, or one file for x and one for y."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.data.arrays import NamedPairs, pairs_from_arrays
from tacit.data.cells import Table
from tacit.data.left_out import INDEX, words
from tacit.data.selection import matching, not_there
from tacit.data.time_column import TIME_NAMES, is_unnamed
from tacit.data.yes_no import with_yes_no
from tacit.errors import require

SIDES = ("x:", "y:")
REMEDY = "correct it, or leave the column out with --drop"


def holds_pairs(table: Table) -> bool:
    """Return whether a table has columns ``x:NODE`` and ``y:NODE`` for the same nodes, or only such columns.

    >>> import pandas as pd
    >>> holds_pairs(Table("pairs.csv", ("x:a", "x:b", "y:a", "y:b"), pd.DataFrame()))
    True
    """
    x, y = ({_node(column) for column in table.columns if column.startswith(side)} for side in SIDES)
    others = [column for column in table.columns if not column.startswith(SIDES) and not is_unnamed(column)]
    return bool(x and y) and (x == y or not others)


def read_pairs_table(
    table: Table,
    y_table: Table | None = None,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    sep: str | None = None,
    plain: bool = False,
    out_channels: int | None = None,
) -> NamedPairs:
    """Return the pairs of a table with columns ``x:NODE`` or ``x:NODE:CHANNEL``, and the same with ``y:``.

    With ``y_table``, both tables have a column per node (or ``node:channel``, separated by ``sep``) and the same number
    of rows in the same order. ``plain`` means that a single table has such columns, of x. Empty cells are missing
    values. ``columns`` and ``drop`` name columns or nodes. With ``out_channels`` the columns of y may be absent.
    """
    if y_table is not None and any(column.startswith(SIDES) for column in (*table.columns, *y_table.columns)):
        raise table.refuse(
            "columns x:NODE and y:NODE must be in one file, got a file of y too; leave y_file out, or name the columns "
            "by their nodes alone"
        )
    table = with_yes_no(table, table.columns)
    y_table = None if y_table is None else with_yes_no(y_table, y_table.columns)
    given = tuple(one for one in (table, y_table) if one is not None)
    wanted = _used(given, columns, drop, out_channels is not None)
    plain = (plain or y_table is not None) and not any(column.startswith("x:") for column in table.columns)
    left: dict[str, str] = {}
    if plain:
        left = _require_same_rows(given)
        sides = [[(column, column) for column in one.columns if column in wanted - set(left)] for one in given]
        sides += [[]] * (y_table is None)
    else:
        if not any(column.startswith("x:") for column in table.columns):
            raise table.refuse(
                f"pairs must have columns x:NODE, got {', '.join(table.columns[:5])}; rename them, or pass an .npz "
                "file with x"
            )
        left = {name: INDEX for name in table.columns if is_unnamed(name) and table.is_whole(name)}
        for column in table.columns:
            if column in wanted - set(left) and not column.startswith(SIDES):
                raise table.refuse(
                    f"a table of pairs must have columns x:NODE and y:NODE only, got '{column}'; leave it out with "
                    "--drop, or use --set data.layout=wide if these are the nodes of a series"
                )
        sides = [[(c, c[2:]) for c in table.columns if c.startswith(side) and c in wanted] for side in SIDES]
        sep = ":"
    x, nodes = _values(table, sides[0], "x", sep)
    if not sides[1]:
        require(out_channels is not None, f"{table.path}: must have a column y:NODE for each node, got none; add them")
        made = pairs_from_arrays(x, None, nodes=nodes, out_channels=out_channels)
    else:
        of_y = given[-1] if plain else table
        y, y_nodes = _values(of_y, sides[1], "y", sep)
        for node in (*nodes, *y_nodes):
            have, lack = ("x", "y") if node in nodes else ("y", "x")
            if node not in nodes or node not in y_nodes:
                raise of_y.refuse(f"x and y must have the same nodes, got '{node}' in {have} but not in {lack}; add it")
        made = pairs_from_arrays(x, y[:, [y_nodes.index(node) for node in nodes]], nodes=nodes)
    notes = tuple(note for one in given for note in one.notes)
    return replace(made, notes=(*notes, words(left)) if left else notes)


def _used(tables: Sequence[Table], columns: Sequence[str] | None, drop: Sequence[str], piece: bool) -> set[str]:
    """Return the named columns, or all columns, without the dropped ones."""
    known = [column for one in tables for column in one.columns]

    def fitting(argument: str, names: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for name in names:
            some = set(matching(name, known)) or {
                column for column in known if matching(name, [column.removeprefix("x:").removeprefix("y:")], ":")
            }
            if not some and not (piece and argument == "drop"):
                raise tables[0].refuse(not_there(argument, name, known))
            found |= some
        return found

    for name in set(columns or ()) & set(drop):
        raise tables[0].refuse(f"drop names '{name}', which columns names too; keep one of them")
    return (set(known) if columns is None else fitting("columns", columns)) - fitting("drop", drop)


def _require_same_rows(tables: Sequence[Table]) -> dict[str, str]:
    """Return the columns of times and indices, which are not used; they must be the same in both files."""
    rows = [len(one.frame) for one in tables]
    require(
        len(set(rows)) == 1,
        f"{tables[-1].path}: x and y must have the same number of rows, got {rows[0]} and {rows[-1]}; pass rows that "
        "belong together",
    )
    keys = [[name for name in one.columns if is_unnamed(name) or name.lower() in TIME_NAMES] for one in tables]
    for name in set(keys[0]) & set(keys[-1]):
        cells = [one.cells(name).astype("str").to_numpy() for one in tables]
        differing = np.flatnonzero(cells[0] != cells[-1])
        if len(differing):
            row = int(differing[0])
            raise tables[-1].refuse(
                f"rows of x and y must belong together, but '{name}' in row {row + 1} is '{cells[0][row]}' in x and "
                f"'{cells[-1][row]}' in y; put the rows in the same order"
            )
    return {name: INDEX for names in keys for name in names}


def _values(
    table: Table, columns: list[tuple[str, str]], side: str, sep: str | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return numbers by pair, node and channel, and the nodes; ``columns`` maps columns to names without x: or y:."""
    require(bool(columns), f"{table.path}: must have a column {side}:NODE for each node, got none; add them")
    parts = {name: tuple(name.split(sep, 1)) if sep and sep in name else (name, "") for _, name in columns}
    nodes, channels = (tuple(dict.fromkeys(part)) for part in zip(*parts.values(), strict=True))
    place = {parts[name]: number for number, (_, name) in enumerate(columns)}
    for node in nodes:
        require(bool(node), f"{table.path}: every node must have a name, got an empty one; name every column")
        for channel in channels:
            if (node, channel) not in place:
                raise table.refuse(
                    f"node '{node}' has no column of {side} for channel '{channel}'; every node must have every "
                    "channel: add it (empty cells are missing values)"
                )
    numbers = table.many_numbers([column for column, _ in columns], REMEDY)
    order = [place[node, channel] for node in nodes for channel in channels]
    return numbers[:, order].reshape(len(numbers), len(nodes), len(channels)), nodes


def _node(column: str) -> str:
    return column[2:].split(":", 1)[0]

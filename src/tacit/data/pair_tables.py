"""Pairs (x, y) from arrays, from .npz files, and from tables with columns ``x:NODE`` and ``y:NODE``.

One file has both, or there is a file for x and one for y. Covariates of pairs are numbers or words shared by all nodes
of a pair, for graphs that depend on them. Unlike the covariates of a series, they are not inputs of the nodes: inputs
of nodes belong in x.
"""

import math
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Generator

from tacit.data.columns import INDEX, TIME_NAMES, is_unnamed, matching, not_there, with_yes_no, words
from tacit.data.files import Table, checked, require_file
from tacit.data.pairs import Pairs
from tacit.data.series import LARGEST, RESCALE, Levels, require_unique
from tacit.data.tables import SharedColumns, nodes_and_channels
from tacit.errors import InputError, require

SIDES = ("x:", "y:")
DENSEST = 1100  # upper limit of the compression ratio: slightly more than is possible


@dataclass(frozen=True)
class NamedPairs:
    """Pairs and the names of their nodes.

    ``missing``  true where an input is missing (it is 0 in ``pairs``); None if no input is missing
    ``notes``    messages of the reader on what it left out
    ``covariate_names``  names of the columns of ``pairs.covariates``; indicators of ``levels`` come last
    """

    pairs: Pairs
    nodes: tuple[str, ...]
    missing: Bool[np.ndarray, "pair node in_channel"] | None = None
    notes: tuple[str, ...] = ()
    covariate_names: tuple[str, ...] = ()
    levels: Levels = field(default_factory=dict)

    def split(self, fractions: tuple[float, float], *, generator: Generator | None) -> "tuple[NamedPairs, ...]":
        """Return the parts for training, validation and test; see :meth:`Pairs.split`."""
        gaps = np.zeros((*self.pairs.inputs.shape[:2], 0)) if self.missing is None else self.missing
        inputs, width = self.pairs.inputs, self.pairs.inputs.shape[2]
        both = replace(self.pairs, inputs=torch.cat([inputs, torch.from_numpy(gaps).to(inputs)], -1))
        split = both.split(fractions, generator=generator)
        return tuple(
            replace(
                self,
                pairs=replace(part, inputs=part.inputs[..., :width].contiguous()),
                missing=None if self.missing is None else part.inputs[..., width:].numpy() > 0,
            )
            for part in (split.train, split.validation, split.test)
        )


def read_named_pairs(path: str | Path, *, out_channels: int | None = None) -> NamedPairs:
    """Read pairs from an .npz file with arrays ``x`` and ``y`` of shape (pair, node, channel), or (pair, node).

    NaN in ``x`` is a missing input, and in ``y`` a missing target. Pickled objects are never loaded. An array ``nodes``
    gives the names; without it the nodes are called "0", "1", ... With ``out_channels`` the file may lack ``y``, as for
    predictions: that number of targets per node is then missing.
    """
    path = Path(path)
    arrays = load_arrays(path)
    required = ("x", "y") if out_channels is None else ("x",)
    for name in required:
        require(
            name in arrays,
            f"{path}: must have an array '{name}', got {', '.join(arrays) or 'none'}; save it as {name}=",
        )
    try:
        return pairs_from_arrays(arrays["x"], arrays.get("y"), nodes=arrays.get("nodes"), out_channels=out_channels)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def pairs_from_arrays(
    x: np.ndarray,
    y: np.ndarray | None,
    *,
    nodes: Sequence[str] | np.ndarray | None = None,
    out_channels: int | None = None,
) -> NamedPairs:
    """Return pairs from arrays of shape (pair, node, channel), or (pair, node), as if read from an .npz file.

    They are in double precision. NaN in ``x`` is a missing input, and in ``y`` a missing target. Without ``y``, as
    for predictions, ``out_channels`` targets of every node are missing. The nodes are called "0", "1", ... unless
    ``nodes`` names them.

    >>> made = pairs_from_arrays(np.ones((4, 3, 2)), np.ones((4, 3)), nodes=("a", "b", "c"))
    >>> tuple(made.pairs.inputs.shape), tuple(made.pairs.targets.shape), made.nodes
    ((4, 3, 2), (4, 3, 1), ('a', 'b', 'c'))
    """
    inputs = _numbers("x", x)
    missing = np.isnan(inputs)
    if y is None:
        require(out_channels is not None, "y must be an array of targets, got None; pass it, or out_channels")
        targets = np.full((*inputs.shape[:2], out_channels or 1), np.nan)
    else:
        targets = _numbers("y", y)
    try:
        pairs = Pairs.with_missing(torch.from_numpy(np.where(missing, 0.0, inputs)), torch.from_numpy(targets))
    except InputError as error:
        raise InputError(str(error).replace("inputs", "x").replace("targets", "y")) from None
    if np.isfinite(targets).all():
        pairs = replace(pairs, observed=None)
    given = np.arange(pairs.num_nodes) if nodes is None else np.asarray(nodes)
    require(
        given.shape == (pairs.num_nodes,),
        f"array 'nodes' must have one name for each of the {pairs.num_nodes} nodes, got shape {given.shape}",
    )
    names = tuple(str(name) for name in (given if nodes is None else nodes))
    require_unique("array 'nodes'", names)
    return NamedPairs(pairs, names, missing if missing.any() else None)


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name; pickled objects are never loaded, and headers are checked."""
    require_file(path)
    require(zipfile.is_zipfile(path), f"{path}: must be an .npz file; write it with np.savez(x=, y=)")
    try:
        with zipfile.ZipFile(path) as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers of old versions
            members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
            return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}
    except MemoryError:
        raise InputError(f"{path}: does not fit in memory; pass fewer pairs") from None
    except Exception as error:  # a broken archive or header can make the readers raise anything
        reason = "it contains Python objects" if "allow_pickle" in str(error) else str(error) or type(error).__name__
        raise InputError(f"{path}: cannot be read as arrays of numbers: {reason}; write it with np.savez") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Read one array, after checking that the size in its header is possible for this file."""
    with archive.open(member) as stream:
        old = np.lib.format.read_magic(stream) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    declared, largest = math.prod(shape) * dtype.itemsize, min(member.file_size, DENSEST * member.compress_size + 10**6)
    if min(shape, default=0) < 0 or declared > largest:
        raise ValueError(
            f"array '{member.filename}' has shape {shape} in its header, which does not match the size of the file"
        )
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    """Return an array with a channel axis, in double precision, so that a large offset can be subtracted exactly."""
    require(
        isinstance(values, np.ndarray),
        f"array '{name}' must be a NumPy array, got {type(values).__name__}; use np.asarray({name}, dtype=float)",
    )
    require(
        values.dtype.kind in "fiu",
        f"array '{name}' must have numbers, got type {values.dtype}; use np.asarray({name}, dtype=float)",
    )
    require(
        values.ndim in (2, 3),
        f"array '{name}' must have shape (pair, node, channel) or (pair, node), got {values.shape}; reshape it",
    )
    finite = values[np.isfinite(values)]
    large = max(abs(float(end)) for end in (finite.max(initial=0), finite.min(initial=0)))
    require(
        large <= LARGEST,
        f"array '{name}' must have numbers of at most {LARGEST:g}, got one of size {large:.3g}; {RESCALE}",
    )
    return (values if values.ndim == 3 else values[:, :, None]).astype(np.float64)


def with_covariates(named: NamedPairs, table: Table | None, chosen: Sequence[str], levels: Levels) -> NamedPairs:
    """Return pairs with the chosen covariates of a table that has a row per pair; None: there is no table.

    >>> import pandas as pd
    >>> from tacit.data.pair_tables import pairs_from_arrays
    >>> pairs = pairs_from_arrays(np.zeros((2, 1)), np.zeros((2, 1)))
    >>> table = Table("covariates", ("gate", "wind"), pd.DataFrame({0: ["shut", "open"], 1: [1.5, 2.0]}))
    >>> made = with_covariates(pairs, table, ["wind", "gate"], {})
    >>> made.covariate_names, made.pairs.covariates.tolist(), made.levels
    (('wind', 'gate=shut'), [[1.5, 1.0], [2.0, 0.0]], {'gate': ('open', 'shut')})
    """
    if not chosen:
        return named
    if table is None:
        raise InputError(
            f"covariates names '{chosen[0]}', but there are no covariates; pass covariates, in an .npz file with "
            "covariate_names"
        )
    for name in chosen:
        table.require_column("covariates", name)
    require(
        len(table.frame) == len(named.pairs),
        f"{table.path}: covariates must have a row for each of the {len(named.pairs)} pairs, got {len(table.frame)}; "
        "pass rows that belong together",
    )
    found = SharedColumns.of(table, chosen, (), {name: words for name, words in levels.items() if name in chosen})
    numbers = found.numbers
    assert numbers is not None
    pairs = replace(named.pairs, covariates=torch.from_numpy(np.ascontiguousarray(numbers)))
    return replace(named, pairs=pairs, covariate_names=found.names, levels=dict(found.levels))


def covariate_table(values: Any, names: Any, what: str) -> Table | None:
    """Return covariates of an array, a DataFrame or a dict as a table; None for none."""
    if values is None:
        return None
    import pandas as pd

    if isinstance(values, dict | pd.DataFrame):
        frame = pd.DataFrame(values)
    else:
        array = np.asarray(values)
        require(
            array.ndim in (1, 2),
            f"{what}: covariates must have shape (pair, covariate), got {array.shape}; reshape it",
        )
        frame = pd.DataFrame(array if array.ndim == 2 else array[:, None])
    words = frame.columns if names is None else np.atleast_1d(names)
    require(
        len(words) == frame.shape[1],
        f"{what}: covariate_names must have a name for each of the {frame.shape[1]} covariates, got {len(words)}; name "
        "them all",
    )
    header = tuple(str(word) for word in words)
    return checked(Table(what, header, frame.reset_index(drop=True).set_axis(range(len(header)), axis="columns")))


def holds_pairs(table: Table) -> bool:
    """Return whether a table has columns ``x:NODE`` and ``y:NODE`` for the same nodes, or only such columns.

    >>> import pandas as pd
    >>> holds_pairs(Table("pairs.csv", ("x:a", "x:b", "y:a", "y:b"), pd.DataFrame()))
    True
    """
    x, y = ({column.split(":")[1] for column in table.columns if column.startswith(side)} for side in SIDES)
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
    parts = [tuple(name.split(sep, 1)) if sep and sep in name else (name, "") for _, name in columns]
    require(
        all(node for node, _ in parts),
        f"{table.path}: every node must have a name, got an empty one; name every column",
    )
    nodes, channels, order = nodes_and_channels(
        table, parts, lambda _, channel: f"of {side} for channel '{channel}'; every node must have every channel"
    )
    numbers = table.many_numbers([column for column, _ in columns])
    return numbers[:, order].reshape(len(numbers), len(nodes), len(channels)), nodes

"""Series from tables in memory: pandas and polars DataFrames, Arrow tables, and xarray arrays.

The index of a DataFrame becomes a column of times (and of series); everything else is as for a file. Arrays with named
dimensions become DataFrames; xarray itself is not imported.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.data.columns import NODE_NAMES, TIME_NAMES, Columns, unit_time
from tacit.data.conditions import Condition
from tacit.data.files import Table, checked, is_arrow, table_of_arrow
from tacit.data.recognition import recognise
from tacit.data.series import Series
from tacit.data.tables import series_of
from tacit.errors import InputError, require

if TYPE_CHECKING:
    import pandas as pd


WHAT = "the DataFrame"
SEPARATORS = (":", "/", "|", "__", " - ")
VARIABLES = "variables of a node"  # the dimension of the arrays of a data set


def is_labelled(data: Any) -> bool:
    """Return whether this is an array, or a set of arrays, with named dimensions."""
    return all(hasattr(data, name) for name in ("dims", "coords", "sizes"))


def frame_of_labelled(data: Any, named: Collection[str]) -> "pd.DataFrame":
    """Return a DataFrame with an index of times, and a column per node or per (node, variable).

    An array has dimensions (time, node) or (time, node, variable), in any order. In a set of arrays, those over time
    and node are variables. An array over time only is a column if it is ``named`` as a covariate or by a condition.
    """
    import pandas as pd

    arrays = dict(data.data_vars) if hasattr(data, "data_vars") else None
    dims = _dims(data, arrays)
    shared = {str(name): one for name, one in data.coords.items() if tuple(one.dims) == dims[:1] and name in named}
    if arrays is not None:
        alone = {str(name): one for name, one in arrays.items() if tuple(one.dims) == dims[:1]}
        shared |= {name: one for name, one in alone.items() if name in named}
        chosen = [name for name, one in arrays.items() if set(one.dims) == set(dims)]
        for name, one in arrays.items():
            require(
                str(name) in shared or name in chosen,
                f"variable '{name}' must have the dimensions {', '.join(dims)}, got {', '.join(map(str, one.dims))}; "
                f"{'list it in covariates' if str(name) in alone else 'drop it'}",
            )
        require(bool(chosen), f"the data set must have a variable over {' and '.join(dims)}, got none; add one")
        data, dims = data[chosen].to_dataarray(VARIABLES), (*dims, VARIABLES)
    data = data.drop_vars([name for name in data.coords if name not in dims]).transpose(*dims)
    stacked = data.stack({"columns of the table": dims[1:]}) if len(dims) > 2 else data
    frame: pd.DataFrame = stacked.to_pandas().rename_axis(index=None)
    names = [tuple(map(str, name)) if len(dims) > 2 else str(name) for name in frame.columns]
    frame.columns = pd.MultiIndex.from_tuples(names) if len(dims) > 2 else pd.Index(names)
    for name, one in shared.items():
        frame[name if len(dims) == 2 else (name, "")] = one.values
    return frame


def _dims(data: Any, arrays: dict[Any, Any] | None) -> tuple[str, ...]:
    """Return the names of the dimensions, time first, then node, then variable."""
    if arrays is None:
        dims = [str(name) for name in data.dims]
    else:
        dims = [str(name) for name in max((one.dims for one in arrays.values()), key=len, default=())]
    most = 3 if arrays is None else 2
    if not 2 <= len(dims) <= most:
        need = "(time, node) or (time, node, variable)" if arrays is None else "(time, node) for each variable"
        raise InputError(f"the array must have dimensions {need}, got ({', '.join(dims)}); select or stack the others")
    dated = [name for name in dims if name in data.coords and data.coords[name].dtype.kind == "M"]
    called = [name for name in dims if name.lower() in TIME_NAMES]
    time = (called or dated or dims)[0]
    others = [name for name in dims if name != time]
    node = ([name for name in others if name.lower() in NODE_NAMES] or others)[0]
    return (time, node, *(name for name in others if name != node))


def read_frame(frame: Any, *, decimal: str = ".", piece: bool = False, **options: Any) -> Series:
    """Return the series of a DataFrame, the same as :func:`read_series` for a file with the same cells.

    The index contains the times (dates or numbers), unless ``time`` names a column or a column is called time. Columns
    with two levels are (node, variable). An index with two levels is (instance, time): several series over the same
    nodes. The order is (time, instance) if the first level contains dates or is called time. NaN is a missing value.
    The ``options`` are the other arguments of :func:`read_series`.

    A polars DataFrame or an Arrow table has no index; its columns are read like those of a file. An xarray array has
    dimensions (time, node) or (time, node, variable); of an xarray data set, the variables over (time, node) are used.
    See :mod:`tacit.data.frames`.

    >>> import pandas as pd
    >>> days = pd.date_range("2020-01-01", periods=3)
    >>> levels = read_frame(pd.DataFrame({"upstream": [1.5, 2.5, 0.5], "downstream": [3, None, 4]}, index=days))
    >>> levels.nodes, levels.values[:, 1, 0].tolist()
    (('upstream', 'downstream'), [3.0, nan, 4.0])
    """
    roles = Columns.of(options)
    if is_labelled(frame):
        where = Condition.read(roles.where).names if roles.where else ()
        frame = frame_of_labelled(frame, named=(*roles.covariates, *where))
    if is_arrow(frame):
        table = checked(replace(table_of_arrow(frame, "the table"), decimal=decimal))
        return series_of(table, roles, piece=piece)
    return series_of(*_with_index(frame, roles, decimal), piece=piece)


def table_of_frame(frame: Any, decimal: str) -> Table:
    """Return a table in memory as it is; an index that is named or has dates is a column too."""
    import pandas as pd

    if is_arrow(frame):
        return checked(replace(table_of_arrow(frame, "the table"), decimal=decimal))
    require(
        isinstance(frame, pd.DataFrame), f"events must be a DataFrame or an Arrow table, got {type(frame).__name__}"
    )
    if frame.index.names != [None] or isinstance(frame.index, pd.DatetimeIndex):
        frame = frame.reset_index(names=None if None not in frame.index.names else "time")
    names = tuple(str(name) for name in frame.columns)
    return checked(
        Table(WHAT, names, frame.set_axis(range(len(names)), axis="columns").reset_index(drop=True), decimal)
    )


def _with_index(frame: Any, roles: Columns, decimal: str) -> tuple[Table, Columns]:
    """Return a DataFrame as a table with its index in front, and the roles of its columns."""
    import pandas as pd

    require(
        isinstance(frame, pd.DataFrame),
        f"the table must be a DataFrame of pandas or polars, an Arrow table or an xarray, got {type(frame).__name__}; "
        + ("use .collect()" if hasattr(frame, "collect") else "pass pd.DataFrame(values, columns=names)"),
    )
    time, series = roles.time, roles.series
    names, two_levels = _column_names(frame, roles.sep)
    index: dict[str, Any] = {}
    plain = frame.set_axis(range(len(names)), axis="columns").reset_index(drop=True)
    if frame.index.nlevels == 2:
        labels = [str(name or usual) for name, usual in zip(frame.index.names, ("series", "time"), strict=True)]
        index = {label: frame.index.get_level_values(level) for level, label in enumerate(labels)}
        called = any(label.lower() in NODE_NAMES[:-1] for label in labels)
        long = roles.layout == "long" or roles.node is not None or called
        if not long:
            dated = [label.lower() in TIME_NAMES or level.dtype.kind == "M" for label, level in index.items()]
            instance, moment = reversed(labels) if dated == [True, False] else labels
            series, time = series or instance, time or moment
    else:
        require(
            frame.index.nlevels == 1,
            f"{WHAT}: the index must have one level (time) or two (instance, time), got {frame.index.nlevels}; "
            "use frame.reset_index() and name the columns",
        )
        dates = isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex)
        called = time is not None or any(name.lower() in TIME_NAMES for name in names)
        counted = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None
        if counted and not called:  # the index may only count the rows
            rows = Table(WHAT, names, plain, decimal)
            named = roles.layout == "long" or roles.node is not None
            called = any(rows.is_dates(name) for name in names) or (named and unit_time(rows, names) is not None)
            free = [name for name in names if not roles.uses(name) and name not in roles.drop]
            called = called or (roles.layout == "auto" and not named and recognise(rows, roles, free)[0] is not roles)
        if time is not False and (frame.index.name is not None or dates or not called):
            label = "time" if frame.index.name is None else str(frame.index.name)
            index = {label: frame.index}
            time = label if time is None and (dates or not called) else time
    header = (*index, *names)
    cells = [pd.Series(level.to_numpy() if level.dtype == object else level) for level in index.values()]
    whole = pd.concat([*cells, plain], axis="columns").set_axis(range(len(header)), axis="columns")
    table = checked(Table(WHAT, header, whole, decimal))
    return table, replace(roles, time=time, series=series, sep=two_levels or roles.sep)


def _column_names(frame: "pd.DataFrame", sep: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return one name per column, and the separator of node and variable for columns with two levels."""
    if frame.columns.nlevels == 1:
        return tuple(str(name) for name in frame.columns), None
    require(
        frame.columns.nlevels == 2,
        f"{WHAT}: the columns must have one level (node) or two (node, variable), got {frame.columns.nlevels}; "
        "use frame.droplevel(..., axis=1)",
    )
    require(sep is None, f"{WHAT}: sep must be left out for columns of two levels, got {sep!r}; leave it out")
    pairs = [(str(node), str(variable)) for node, variable in frame.columns]
    for sep in SEPARATORS:
        if not any(sep in word for pair in pairs for word in pair):
            return tuple(node + sep + variable if variable else node for node, variable in pairs), sep
    raise InputError(f"{WHAT}: the column names contain all of {' '.join(SEPARATORS)}; rename some")

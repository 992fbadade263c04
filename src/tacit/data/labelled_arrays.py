"""Arrays with named dimensions (xarray) as DataFrames; xarray itself is not imported."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.columns import NODE_NAMES
from tacit.data.time_column import TIME_NAMES
from tacit.errors import InputError, require

if TYPE_CHECKING:
    import pandas as pd


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
    if arrays is None:
        values = data.transpose(*dims).values
        variables = _labels(data, dims[2]) if len(dims) > 2 else None
    else:
        alone = {str(name): one for name, one in arrays.items() if tuple(one.dims) == dims[:1]}
        shared |= {name: one for name, one in alone.items() if name in named}
        chosen = {str(name): one for name, one in arrays.items() if set(one.dims) == set(dims)}
        for name, one in arrays.items():
            require(
                str(name) in shared or str(name) in chosen,
                f"variable '{name}' must have the dimensions {', '.join(dims)}, got {', '.join(map(str, one.dims))}; "
                f"{'list it in covariates' if str(name) in alone else 'drop it'}",
            )
        require(bool(chosen), f"the data set must have a variable over {' and '.join(dims)}, got none; add one")
        variables = list(chosen)
        values = np.stack([one.transpose(*dims).values for one in chosen.values()], axis=-1)
    nodes = _labels(data, dims[1])
    columns = pd.Index(nodes) if variables is None else pd.MultiIndex.from_product([nodes, variables])
    times = pd.Index(data.coords[dims[0]].values) if dims[0] in data.coords else pd.RangeIndex(len(values))
    frame = pd.DataFrame(values.reshape(len(values), -1), index=times, columns=columns, copy=False)
    for name, one in shared.items():
        frame[name if variables is None else (name, "")] = one.values
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


def _labels(data: Any, dim: str) -> list[str]:
    """Return the names along a dimension; numbers from 0 if it has none."""
    return [str(label) for label in (data.coords[dim].values if dim in data.coords else range(data.sizes[dim]))]

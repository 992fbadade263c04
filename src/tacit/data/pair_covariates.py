"""Covariates of pairs: numbers or words shared by all nodes of a pair, for graphs that depend on them.

Unlike the covariates of a series, they are not inputs of the nodes: inputs of nodes belong in x.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tacit.data.arrays import NamedPairs
from tacit.data.cells import Table, checked
from tacit.data.levels import Levels
from tacit.data.shared_columns import SharedColumns
from tacit.errors import InputError, require


def with_covariates(named: NamedPairs, table: Table | None, chosen: Sequence[str], levels: Levels) -> NamedPairs:
    """Return pairs with the chosen covariates of a table that has a row per pair; None: there is no table.

    >>> import pandas as pd
    >>> from tacit.data.arrays import pairs_from_arrays
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

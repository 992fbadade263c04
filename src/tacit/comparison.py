"""Two fits side by side: the edges that both list, how far their numbers differ, and the scores of their forecasts."""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import InputError, require
from tacit.local import CLEAR
from tacit.records import Run, read_one_run
from tacit.sklearn import LatentGraphForecaster, LatentGraphRegressor

if TYPE_CHECKING:
    import pandas

SCORES = ("point_mae", "point_mse", "crps", "coverage_0.8", "coverage_0.95")


@dataclass(frozen=True, eq=False)
class Comparison:
    """What two fits have in common.

    ``edges``      a row per edge that at least one of them lists: ``listed`` is "both", "first" or "second"; ``exists``
                   and ``acts`` of each; ``exists_difference`` and ``acts_difference``, the second less the first;
                   ``std_errors``, the difference of ``acts`` in standard errors
    ``scores``     a row per score of the test parts: ``first``, ``second``, and ``difference``
    ``nodes``      names of the nodes that both have, only the first, only the second
    ``symmetric``  edges have no direction
    """

    edges: "pandas.DataFrame"
    scores: "pandas.DataFrame"
    nodes: tuple[list[str], list[str], list[str]]
    symmetric: bool = False

    def sentences(self) -> list[str]:
        """Return the comparison in words."""
        count = self.edges["listed"].value_counts()
        both, first, second = (int(count.get(name, 0)) for name in ("both", "first", "second"))
        said = [f"{_edges(both)} listed by both, {first:,} only by the first, {second:,} only by the second."]
        known = self.edges["std_errors"].abs().dropna()
        if len(known):
            far = int((known > CLEAR).sum())
            of = f"of the {len(known):,} with standard errors"
            said.append(f"How often they act differs by more than {CLEAR:g} standard errors for {far:,} {of}.")
        for names, which in zip(self.nodes[1:], ("first", "second"), strict=True):
            if names:
                said.append(f"Only the {which} has {_few(names)}.")
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is not known is None."""
        tables = {"edges": self.edges, "scores": self.scores.reset_index(names="score")}
        rows = {name: [_plain(row) for row in table.to_dict("records")] for name, table in tables.items()}
        names = dict(zip(("both", "first", "second"), self.nodes, strict=True))
        return {"sentences": self.sentences(), **rows, "nodes": names}


def compare(first: Any, second: Any) -> Comparison:
    """Compare two fits, each a fitted estimator or a run directory: which edges they list, and their forecasts.

    Edges are matched by the names of their nodes. Standard errors of a difference are those of independent fits,
    $\\sqrt{s_1^2 + s_2^2}$; fits to the same rows differ by less. Scores can be compared where both were tested on the
    same rows.
    """
    import pandas as pd

    one, two = _run_of("first", first), _run_of("second", second)
    require(
        one.record.is_symmetric == two.record.is_symmetric,
        "both fits must have directions, or none, got one of each; fit one of them again with the same --symmetric",
    )
    tables = [_edge_table(run) for run in (one, two)]
    names = [run.record.node_names for run in (one, two)]
    ours, theirs = set(names[0]), set(names[1])
    require(bool(ours & theirs), "both fits must have nodes in common, got none; compare fits of the same nodes")
    edges = _joined(*tables)
    scores = pd.DataFrame({"first": one.record.metrics, "second": two.record.metrics}).reindex(SCORES).dropna(how="all")
    scores["difference"] = scores["second"] - scores["first"]
    nodes = (
        [name for name in names[0] if name in theirs],
        [name for name in names[0] if name not in theirs],
        [name for name in names[1] if name not in ours],
    )
    return Comparison(edges, scores, nodes, one.record.is_symmetric)


def _run_of(which: str, fit: Any) -> Run:
    if isinstance(fit, LatentGraphForecaster | LatentGraphRegressor):
        return fit.run_
    if not isinstance(fit, str | os.PathLike):
        raise InputError(f"{which} must be a fitted estimator or a run directory, got {type(fit).__name__}")
    return read_one_run(Path(fit), which)


def _edge_table(run: Run) -> "pandas.DataFrame":
    """Return the edges between different nodes: their names, the two numbers, and whether they are listed.

    A fit without evidence lists by probability, from 0.5 on.
    """
    import pandas as pd

    columns, names = run.edges.each_once(), np.array(run.record.node_names, dtype=object)
    columns = columns.at(columns.index.between)
    count = len(columns)
    listed = columns.listed() if "exists" in columns else columns.drawable & (columns.acts >= 0.5)
    empty = np.full(count, np.nan)
    source, target = names[columns.index.source], names[columns.index.target]
    if "group" in columns:
        source = np.where(columns["group"] == "", source, columns["group"])
    undirected = np.full(count, run.record.is_symmetric) if "undirected" not in columns else columns["undirected"]
    swapped = undirected & (source > target)  # the order of such a pair must not depend on that of the nodes
    table = {
        "source": np.where(swapped, target, source),
        "target": np.where(swapped, source, target),
        "exists": columns.get("exists", empty),
        "acts": columns["probability"],
        "std_error": columns.get("std_error", empty),
        "listed": listed,
    }
    return pd.DataFrame(table)


def _joined(one: "pandas.DataFrame", two: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return the edges that either lists, the most likely first."""
    both = one.merge(two, on=["source", "target"], how="outer", suffixes=("_first", "_second"))
    first, second = (both[f"listed_{which}"].fillna(False).astype(bool) for which in ("first", "second"))
    both["listed"] = np.select([first & second, first], ["both", "first"], "second")
    for name in ("exists", "acts"):
        both[f"{name}_difference"] = both[f"{name}_second"] - both[f"{name}_first"]
    error = np.hypot(both["std_error_first"], both["std_error_second"])
    both["std_errors"] = both["acts_difference"] / error.where(error > 0)
    both["place"] = both["listed"].map({"both": 0, "first": 1, "second": 2})
    likely = both[["exists_first", "exists_second", "acts_first", "acts_second"]].max(axis=1)
    both = both.assign(likely=likely)[first | second]
    ordered = both.sort_values(["place", "likely", "source", "target"], ascending=[True, False, True, True])
    shown = [
        "source",
        "target",
        "listed",
        *(f"{name}_{which}" for name in ("exists", "acts") for which in ("first", "second")),
    ]
    shown += ["exists_difference", "acts_difference", "std_errors"]
    return ordered[shown].reset_index(drop=True)


def _edges(count: int) -> str:
    return f"{count:,} edge{' is' if count == 1 else 's are'}"


def _few(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
    return f"the node{'s' if len(names) > 1 else ''} {shown}"


def _plain(row: dict[Any, Any]) -> dict[str, Any]:
    return {
        str(name): None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }

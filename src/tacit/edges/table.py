"""The table of edges: an index, and the columns that were computed. Everything that shows edges is a view of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Shaped

from tacit.edges import schema
from tacit.edges.by import EdgesBy
from tacit.edges.index import EdgeIndex, Mask, Places, Values
from tacit.edges.lags import LagTable
from tacit.edges.listing import FDR, listed_edges
from tacit.errors import require, require_package

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

SAME = 1e-5  # difference below which two directions are equally likely: files have six digits
TYPES = {"word": np.uint8, "flag": np.bool_, "text": object, "number": np.float64}
Numbers = Float[np.ndarray, " edge"]


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Columns of :data:`tacit.edges.schema.COLUMNS` over an index; a column that was not computed is absent.

    Numbers that are not known are NaN. Words are places in the ``words`` of their column.

    ``keep``  edges with a lower ``exists`` were not kept: how often they act is not known
    ``fdr``   the false discovery rate of the listed edges
    ``listed_from``  the least ``exists`` of a listed edge, of a table from a file; infinite if none is listed
    ``lags``  the effect of edges at each lag
    ``by``    how often edges act in each situation or regime

    >>> table = EdgeTable.of_matrices("ab", exists=[[0.0, 0.95], [0.2, 0.0]], probability=[[0.0, 1.0], [1.0, 0.0]])
    >>> table.frame(table.listed())
      source target  exists  probability
    0      b      a    0.95          1.0
    """

    index: EdgeIndex
    columns: Mapping[str, Values] = field(default_factory=dict)
    keep: float = 0.0
    fdr: float = FDR
    listed_from: float | None = None
    lags: LagTable | None = None
    by: EdgesBy | None = None

    @classmethod
    def of_matrices(cls, names: Sequence[str], *, symmetric: bool = False, **columns: Any) -> "EdgeTable":
        """Return the table of all pairs from matrices whose rows are targets; words may be text."""
        index = EdgeIndex.all_pairs(tuple(names), symmetric=symmetric)
        found = {}
        for name, values in columns.items():
            matrix = np.array(values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else values)
            require(
                matrix.shape == (len(names), len(names)),
                f"{name} must have shape {(len(names), len(names))}, one row and column per node, got {matrix.shape}",
            )
            if matrix.dtype.kind == "U" and schema.column(name).words:
                words = schema.column(name).words
                matrix = np.array([[words.index(word) for word in row] for row in matrix], dtype=np.uint8)
            found[name] = index.vector(matrix.astype(float) if matrix.dtype == object else matrix)
        return cls(index).updated(**found)

    def __len__(self) -> int:
        return len(self.index)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Any:
        """Return a column, or None if it was not computed."""
        return self.columns.get(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a column, or the default if it was not computed."""
        return self.columns.get(name, default)

    def known(self, name: str) -> Values:
        """Return a column; raise AttributeError with the remedy if it was not computed."""
        if name not in self.columns:
            raise AttributeError(f"{name} of the edges was not computed; {schema.column(name).remedy}")
        return self.columns[name]

    def matrix(self, name: str) -> Shaped[np.ndarray, "target source"]:
        """Return a column as a matrix: rows are targets, columns are sources; words are text."""
        values = _plain(name, self.known(name))
        return self.index.dense(values, "" if values.dtype == object else schema.column(name).empty)

    def updated(self, **columns: Values | None) -> "EdgeTable":
        """Return the table with some columns replaced; None removes one."""
        found = {**self.columns, **columns}
        order = {name: place for place, name in enumerate(schema.names(schema.COLUMNS))}
        kept = {name: values for name, values in found.items() if values is not None}
        return replace(self, columns=dict(sorted(kept.items(), key=lambda item: order.get(item[0], len(order)))))

    def at(self, places: Any) -> "EdgeTable":
        """Return the edges at some places."""
        return replace(
            self, index=self.index.at(places), columns={name: values[places] for name, values in self.columns.items()}
        )

    def moved(self, to: EdgeIndex) -> "EdgeTable":
        """Return the table over another index of the same nodes; edges that are not in this one do not exist."""
        if to is self.index:
            return self
        fill = {name: 0 if schema.column(name).kind == "number" else schema.column(name).empty for name in self.columns}
        fill |= dict.fromkeys({"lag", "exists_either"} & fill.keys(), np.nan)
        columns = {name: self.index.moved(values, to, fill[name]) for name, values in self.columns.items()}
        return replace(self, index=to, columns=columns)

    # Which edges are listed.

    @cached_property
    def _open(self) -> Mask:
        """The entry that stands for a pair whose direction is open: the one with the smaller lag, else the likelier."""
        if not {"exists", "exists_either", "direction"} <= self.columns.keys():
            return np.zeros(len(self), dtype=bool)
        index, exists = self.index, self["exists"]
        pairs = (self["direction"] == schema.OPEN) & (index.source > index.target)
        below = index.mirrored(exists) > exists + np.array(SAME, dtype=exists.dtype)
        if "lag" in self:  # the model has the effect within the step in one of the directions
            lag = np.nan_to_num(self["lag"], nan=np.inf)
            back = index.mirrored(lag, np.inf)
            below = (back < lag) | ((back == lag) & below)
        below &= pairs
        return np.asarray((pairs & ~below) | index.mirrored(below, fill=False))

    @cached_property
    def _in_groups(self) -> tuple[Places, Places]:
        """The edges in groups of copied sources, and for each the place of the first edge of its group."""
        places = np.flatnonzero(self["group"] != "") if "group" in self else np.zeros(0, dtype=int)
        first: dict[tuple[int, str], int] = {}
        names = self["group"][places].tolist() if len(places) else []
        leaders = [
            first.setdefault(key, place)
            for key, place in zip(
                zip(self.index.target[places].tolist(), names, strict=True), places.tolist(), strict=True
            )
        ]
        return places, np.array(leaders, dtype=int)

    @property
    def undirected(self) -> Mask:
        """The pairs whose direction is open, in one entry each."""
        return np.asarray(self.get("undirected", self._open))

    @cached_property
    def others(self) -> Mask:
        """The other entries of these pairs and of groups of copies, which are not edges of their own."""
        others = self.index.mirrored(self._open, fill=False).copy()
        places, leaders = self._in_groups
        others[places[places != leaders]] = True
        return others

    @cached_property
    def values(self) -> Numbers:
        """What decides the list: ``exists``, of a pair without direction or a group of copies that of any of its edges.

        Entries that are not edges of their own have 0. Without evidence it is ``probability``.
        """
        if "exists" not in self:
            return np.asarray(self["probability"])
        exists, either = self["exists"], self["exists_either"]
        if either is None:
            return np.asarray(exists)
        values = exists.copy()
        stands = self._open.copy()
        stands[self._in_groups[1]] = True
        values[stands] = either[stands]
        values[self.others] = 0.0
        return np.asarray(values)

    @property
    def acts(self) -> Numbers:
        """How often each edge acts; 0 if it is not kept or not known."""
        return np.asarray(np.nan_to_num(self["probability"]))

    @property
    def decides(self) -> Numbers:
        """The probability that an edge exists, or else how often it acts; 0 if it is not known."""
        return np.asarray(np.nan_to_num(self["exists"])) if "exists" in self else self.acts

    @property
    def kept(self) -> Mask:
        """The edges that may exist; all without evidence. Of a group of copies only the first."""
        return np.asarray(~(self.of_groups < self.keep)) if "exists" in self else np.ones(len(self), dtype=bool)

    @property
    def of_groups(self) -> Numbers:
        """The probability that each edge exists; of a group of copies it is that of any, in the first edge."""
        return self.values if "group" in self else np.asarray(self["exists"])

    @property
    def drawable(self) -> Mask:
        """Which link different nodes and, without evidence, are not known to be unidentifiable."""
        if "identifiable" not in self or "exists" in self:
            return self.index.between
        return np.asarray(self.index.between & (self["identifiable"] != schema.FLAGS.index("no")))

    def listed(self, fdr: float | None = None) -> Mask:
        """Return the edges found in the data at a false discovery rate, by default that of the table, each once.

        Required edges are known, and therefore not listed. Without evidence ``probability`` decides, and edges that
        are not identifiable are not listed. Of a table from a file the list is that of the run.
        """
        if self.listed_from is not None:
            return np.asarray(self.shown & ~self["required"] & self.index.once)
        learned = self.get("learned", np.ones(len(self), dtype=bool))
        if "exists" not in self and "identifiable" in self:
            learned = learned & (self["identifiable"] == schema.FLAGS.index("yes"))
        if self._open.any():
            learned = learned | (self._open & self.index.mirrored(learned, fill=False))
        return listed_edges(self.values.astype(np.float32), self.fdr if fdr is None else fdr, learned & self.index.once)

    @property
    def shown(self) -> Mask:
        """Which are listed or required, of a table from a file; none without evidence."""
        if "exists" not in self:
            return np.zeros(len(self), dtype=bool)
        least = 1.0 if self.listed_from is None else self.listed_from
        return np.asarray(self.index.between & (self.decides >= min(1.0, least)))  # required edges surely exist

    def both_ways(self, listed: Mask) -> Mask:
        """Return the listed edges with both entries of the pairs that have no direction."""
        pairs = listed if self.index.symmetric else listed & self._open
        return np.asarray(listed | self.index.mirrored(pairs, fill=False))

    def strongest(self, count: int, among: Mask | None = None) -> Places:
        """Return the places of the most likely edges, the most likely first; of equals the more probable, the earlier.

        >>> EdgeTable.of_matrices("ab", probability=[[0.3, 0.8], [1.0, 0.0]]).strongest(2)
        array([2, 1])
        """
        places = np.arange(len(self)) if among is None else np.flatnonzero(among)
        return places[np.lexsort((-self.acts[places], -self.decides[places]))[:count]]

    def named(self, place: int) -> str:
        """Return an edge as text, with the names of its group of copies."""
        index, group = self.index, self["group"]
        source = index.source_names[index.source[place]] if group is None or not group[place] else group[place]
        arrow = "-" if index.symmetric or self.undirected[place] else "->"
        return f"{source} {arrow} {index.target_names[index.target[place]]}"

    def each_once(self) -> "EdgeTable":
        """Return the edges as the page and the terminal show them: pairs without direction and groups of copies once.

        ``exists`` is then that of any edge of a pair or a group, and ``undirected`` says which have no arrow.
        """
        if self.index.symmetric:
            return self.at(self.index.once)
        if "exists" not in self or "exists_either" not in self:
            return self
        columns: dict[str, Values] = {"exists": self.values}
        if "group" not in self and "within_step" in self:
            within = self["within_step"]
            both = np.minimum(within + self.index.mirrored(within), 1)
            columns |= {"within_step": np.where(self._open, both, within), "undirected": self._open}
        return self.updated(**columns).at(~self.others)

    # Views for other packages.

    def frame(self, chosen: Mask | None = None, **columns: Values) -> "pandas.DataFrame":
        """Return the edges, or the chosen ones, as a data frame with names and words, the likeliest first.

        Rows are sorted by ``exists``, if it is known, then by probability; NaN comes last, ties keep their order.
        ``columns`` replace those of the table. Of edges that are not kept the columns on how often they act are empty.
        """
        import pandas

        found = {**self.filed(), **columns}
        order = np.lexsort((self.index.target, self.index.source))
        for name in ("probability", "exists"):  # a stable sort by the last key first
            if name in found:
                order = order[np.argsort(-np.nan_to_num(found[name][order], nan=-1.0), kind="stable")]
        if chosen is not None:
            order = order[chosen[order]]
        source, target = self.index.at(order).ends()
        cells = {name: _plain(name, values[order]) for name, values in found.items()}
        return pandas.DataFrame({"source": source, "target": target, **cells})

    def filed(self) -> dict[str, Values]:
        """Return the columns of files, in their order; of edges that are not kept those on how often they act empty."""
        kept, found = self.kept, dict[str, Values]()
        for one in schema.file_columns():
            if one.name in self:
                values = self.columns[one.name]
                found[one.name] = np.where(kept, values, one.empty).astype(values.dtype) if one.acting else values
        return found

    def chosen(self, threshold: float | None) -> Mask:
        """Return the edges of an exported graph: the listed and the required ones, or those above a threshold.

        Without evidence the edges above 0 are exported. Pairs without direction have both entries.
        """
        require(
            threshold is None or (isinstance(threshold, int | float) and 0 <= threshold <= 1),
            f"threshold must be a probability from 0 to 1, got {threshold!r}; pass for example 0.5",
        )
        if threshold is not None or "exists" not in self:
            values = self._either_way() if "exists" in self else np.nan_to_num(self.filed()["probability"])
            return np.asarray(values > (threshold or 0.0))
        return np.asarray(self.both_ways(self.listed()) | self["required"])

    def _either_way(self) -> Numbers:
        """Return ``exists``; both entries of a pair without direction, and the first copy, have that of either."""
        open_, values, exists = self._open, self.values, self["exists"]
        if "group" in self:
            return np.asarray(np.where(self.listed(), values, exists))
        both = open_ | self.index.mirrored(open_, fill=False)
        return np.asarray(np.where(both, np.maximum(values, self.index.mirrored(values)), exists))

    def _exported(self, threshold: float | None) -> tuple[Places, dict[str, Values]]:
        """Return the places of the exported edges, by source and then target, and the columns of files there."""
        places = np.flatnonzero(self.chosen(threshold))
        places = places[np.lexsort((self.index.target[places], self.index.source[places]))]
        columns, back = self.filed(), self.index.mirrored(self._open, fill=False)
        if "exists" in self:
            columns["exists"] = self._either_way()
        for name in {"effect", "lag"} & columns.keys():
            columns[name] = np.where(back, self.index.mirrored(columns[name]), columns[name])
        probability, columns["undirected"] = columns["probability"], self._open | back
        if "direction" not in self:
            columns.pop("undirected")
        unknown = np.isnan(probability) & ~columns.get("undirected", np.zeros(len(self), dtype=bool))
        columns["probability"] = np.where(unknown, 0, probability).astype(probability.dtype)
        return places, {name: values[places] for name, values in columns.items()}

    def to_networkx(self, threshold: float | None = None) -> "networkx.DiGraph | networkx.Graph":
        """Return all nodes and the listed and required edges, or those above a threshold, with the columns of files.

        A symmetric table gives a ``Graph``. A pair without direction is included both ways, with ``undirected`` true.

        >>> table = EdgeTable.of_matrices("ab", probability=[[0.0, 0.75], [0.25, 0.0]])
        >>> table.to_networkx(0.5).edges(data="probability")
        OutEdgeDataView([('b', 'a', 0.75)])
        """
        require_package("networkx", "to_networkx", "command")
        import networkx

        places, columns = self._exported(threshold)
        once = self.index.once[places]
        for name in columns if self.index.symmetric else ():
            values = self.columns.get(name)
            if values is not None and values.dtype.kind == "f":
                back = self.index.mirrored(values)
                require(
                    bool((np.isclose(values, back, rtol=0, atol=1e-6) | (np.isnan(values) & np.isnan(back))).all()),
                    f"{name} must equal its transpose in a symmetric graph; leave symmetric out",
                )
        graph = networkx.Graph() if self.index.symmetric else networkx.DiGraph()
        graph.add_nodes_from(self.index.target_names)
        source, target = self.index.at(places[once]).ends()
        cells = [_plain(name, values[once]).tolist() for name, values in columns.items()]
        rows = zip(*cells, strict=True) if cells else ()
        graph.add_edges_from(
            (start, end, dict(zip(columns, row, strict=True)))
            for start, end, row in zip(source.tolist(), target.tolist(), rows, strict=True)
        )
        return graph

    def to_pyg(self, threshold: float | None = None) -> "Data":
        """Return ``edge_index`` (row 0: sources, row 1: targets), ``edge_prob`` and what else is known of the edges.

        Edges are those of :meth:`to_networkx`; one without direction is there in both directions, as PyG expects.
        """
        require_package("torch_geometric", "to_pyg", "pyg")
        from torch_geometric.data import Data

        places, columns = self._exported(threshold)
        ends = torch.from_numpy(np.stack([self.index.source[places], self.index.target[places]]))
        attributes = {"edge_prob": columns["probability"]}
        names = [one.name for one in schema.COLUMNS if one.in_pyg]
        attributes |= {f"edge_{name}": columns[name] for name in (*names, "undirected") if name in columns}
        found = {
            name: torch.from_numpy(values.astype(np.float32) if values.dtype.kind == "f" else values)
            for name, values in attributes.items()
        }
        nodes = list(self.index.target_names)
        graph: Data = Data(edge_index=ends, **found, num_nodes=len(nodes), names=nodes)
        return graph

    # Storing.

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; numbers that are not known are None."""
        columns = {
            name: [None if value != value else value for value in values.tolist()]
            for name, values in self.columns.items()
        }
        types = {name: values.dtype.str for name, values in self.columns.items() if values.dtype.kind == "f"}
        further: dict[str, LagTable | EdgesBy | None] = {"lags": self.lags, "by": self.by}
        parts = {name: None if one is None else one.model_dump(mode="json") for name, one in further.items()}
        return {"columns": columns, "types": types, **parts}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], index: EdgeIndex) -> "EdgeTable":
        """Return the table of :meth:`to_dict`."""
        columns = {}
        for name, values in stored["columns"].items():
            given = stored["types"].get(name, TYPES.get(schema.column(name).kind))
            columns[name] = np.array(values, dtype=given)
            if len(columns[name]) != len(index):
                raise ValueError(f"{name} of the edges must have {len(index)} values, got {len(columns[name])}")
        lags, by = stored["lags"], stored["by"]
        return cls(
            index,
            columns,
            lags=None if lags is None else LagTable.model_validate(lags),
            by=None if by is None else EdgesBy.model_validate(by),
        )


def _plain(name: str, values: Values) -> Values:
    """Return values as a data frame shows them: words as text, numbers in double precision."""
    words = schema.column(name).words
    if words and values.dtype.kind in "ui":
        return np.asarray(np.array(words, dtype=object)[values])
    return values.astype(np.float64) if values.dtype.kind == "f" else values

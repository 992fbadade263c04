"""The edges of a run as columns of numbers, whether its file lists all ordered pairs or candidates.

``exists`` decides which edges are drawn and listed; of a run without evidence ``probability`` does.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped

from tacit.assessment.evidence import edge_units
from tacit.assessment.identification import FLAGS
from tacit.records import CHANGED, GROUP, WORDS, Run, group_numbers

FIXED, IDENTIFIABLE, UNIDENTIFIABLE = (FLAGS.index(flag) for flag in ("", "yes", "no"))
COLUMNS = (
    "source", "target", "probability", "std_error", "low", "high", "exists", "effect", "lag", "within_step", CHANGED,
    GROUP,
)  # fmt: skip
Numbers = Float[np.ndarray, " edge"]


@dataclass(frozen=True)
class EdgeColumns:
    """Source, target and probability of each edge, and what else is known of all of them; None where nothing is.

    The probability of an edge that is not kept is NaN. ``listed_from`` is the least ``exists`` of a listed edge.
    ``undirected`` edges have no arrow: their ``exists`` is that of either direction. ``direction`` is a place in
    ``DIRECTIONS``, ``varies`` one in ``VARIES``, ``acting`` one in ``ACTS``. ``group`` is the name of a group of copied
    sources, "" without one: its first edge stands for the group, and ``exists`` is that of any of its edges.
    ``changed`` is the time at which an edge changes, "" for none.
    """

    source: Int[np.ndarray, " edge"]
    target: Int[np.ndarray, " edge"]
    probability: Numbers
    std_error: Numbers | None = None
    low: Numbers | None = None
    high: Numbers | None = None
    identifiable: Int[np.ndarray, " edge"] | None = None
    truth: Numbers | None = None
    exists: Numbers | None = None
    effect: Numbers | None = None
    lag: Numbers | None = None
    within_step: Numbers | None = None
    direction: Int[np.ndarray, " edge"] | None = None
    varies: Int[np.ndarray, " edge"] | None = None
    acting: Int[np.ndarray, " edge"] | None = None
    undirected: Bool[np.ndarray, " edge"] | None = None
    changed: Shaped[np.ndarray, " edge"] | None = None
    group: Shaped[np.ndarray, " edge"] | None = None
    listed_from: float | None = None
    required: Bool[np.ndarray, " edge"] | None = None

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def between(self) -> Bool[np.ndarray, " edge"]:
        """Which link different nodes."""
        return np.asarray(self.source != self.target)

    @property
    def acts(self) -> Numbers:
        """How often each edge acts; 0 for one that is not kept."""
        return np.asarray(np.nan_to_num(self.probability))

    @property
    def decides(self) -> Numbers:
        """What decides whether an edge is shown: the probability that it exists, or else how often it acts."""
        return self.acts if self.exists is None else np.asarray(np.nan_to_num(self.exists))

    @property
    def drawable(self) -> Bool[np.ndarray, " edge"]:
        """Which link different nodes and, without evidence, are not known to be unidentifiable."""
        if self.identifiable is None or self.exists is not None:
            return self.between
        return np.asarray(self.between & (self.identifiable != UNIDENTIFIABLE))

    @property
    def found(self) -> Bool[np.ndarray, " edge"]:
        """Which are listed and not required: found in the data."""
        return self.listed if self.required is None else np.asarray(self.listed & ~self.required)

    @property
    def listed(self) -> Bool[np.ndarray, " edge"]:
        """Which are listed, or required; none without evidence."""
        if self.exists is None:
            return np.zeros(len(self), dtype=bool)
        least = 1.0 if self.listed_from is None else self.listed_from  # required edges surely exist
        return np.asarray(self.between & (self.decides >= least))

    def __getitem__(self, places: Any) -> "EdgeColumns":
        """Return the edges at these places."""
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "listed_from"}
        return replace(self, **{name: values[places] for name, values in found.items() if values is not None})

    def find(
        self, source: Int[np.ndarray, " row"], target: Int[np.ndarray, " row"]
    ) -> tuple[Int[np.ndarray, " row"], Bool[np.ndarray, " row"]]:
        """Return the places of edges by their ends, and which of them are there.

        >>> edges = EdgeColumns(np.array([1, 2, 0]), np.array([0, 0, 0]), np.array([0.3, 0.8, 1.0]))
        >>> place, there = edges.find(np.array([2, 1]), np.array([0, 1]))
        >>> place[there].tolist(), there.tolist()
        ([1], [True, False])
        """
        nodes = 1 + max(int(ends.max(initial=0)) for ends in (self.source, self.target, source, target))
        keys, wanted = self.target.astype(np.int64) * nodes + self.source, target.astype(np.int64) * nodes + source
        order = np.argsort(keys)
        place = order[np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)]
        return place, keys[place] == wanted

    def strongest(self, count: int, among: Bool[np.ndarray, " edge"] | None = None) -> Int[np.ndarray, " place"]:
        """Return the places of the most likely edges, the most likely first; of equals the more probable, the earlier.

        >>> EdgeColumns(np.array([1, 2, 0]), np.array([0, 0, 0]), np.array([0.3, 0.8, 1.0])).strongest(2)
        array([2, 1])
        """
        places = np.arange(len(self)) if among is None else np.flatnonzero(among)
        return places[np.lexsort((-self.acts[places], -self.decides[places]))[:count]]


def is_symmetric(run: Run) -> bool:
    """Have the edges of a run no direction?"""
    graph = run.record.config.get("graph")
    return isinstance(graph, dict) and graph.get("symmetric") is True and not run.has_candidates


def edge_columns(run: Run) -> EdgeColumns:
    """Return the edges of a run in the order of ``edges.csv``; those without direction once each."""
    table, truth = run.edges, run.record.true_edge_probs
    columns: dict[str, Any] = {name: table[name].to_numpy() for name in COLUMNS if name in table}
    for name in WORDS.keys() & set(table):
        columns[name] = table[name].cat.codes.to_numpy()
    if truth is not None:
        columns["truth"] = np.array(truth, dtype=float)[columns["target"], columns["source"]]
    all_edges = _decided(EdgeColumns(**columns), run)
    if is_symmetric(run):
        return all_edges[all_edges.source <= all_edges.target]
    return all_edges if all_edges.direction is None and all_edges.group is None else _each_once(all_edges, run)


def _each_once(columns: EdgeColumns, run: Run) -> EdgeColumns:
    """Return pairs whose direction is open, and groups of copies, once each."""
    if columns.group is not None and columns.exists is not None:
        groups = group_numbers(run.edges)
        groups = np.where(groups > 0, columns.target * (1 + groups.max()) + groups, 0)  # different in each row
        parts = (columns.exists, run.edges["exists_either"].to_numpy(), groups)
        of_each, of_any, numbers = (torch.tensor(part)[None] for part in parts)  # (1, edge)
        units = edge_units(of_each, of_any, None, groups=numbers)
        return replace(columns, exists=units.values.numpy().ravel())[~units.other.numpy().ravel()]
    names = ("exists", "exists_either", "lag", "within_step")
    exists, either, lag, within = (torch.tensor(run.matrix(name)) if name in run.edges else None for name in names)
    if exists is None or either is None or within is None:
        return columns
    units = edge_units(exists, either, torch.tensor(run.edges["direction"].cat.codes.to_numpy()).view_as(exists), lag)
    within = torch.where(units.undirected, (within + within.mT).clamp(max=1), within)
    values, acts, undirected = (one.numpy().ravel() for one in (units.values, within, units.undirected))
    changed = replace(columns, exists=values, within_step=acts, undirected=undirected)
    return changed[~units.other.numpy().ravel()]


def _decided(columns: EdgeColumns, run: Run) -> EdgeColumns:
    """Add from where on edges are listed, and which are required."""
    evidence, nodes = run.record.evidence, len(run.record.node_names)
    ends = np.array(evidence.get("required", []), dtype=int).reshape(-1, 2)
    ends = np.concatenate([ends, ends[:, ::-1]]) if is_symmetric(run) else ends
    required = np.isin(columns.target * nodes + columns.source, ends[:, 1] * nodes + ends[:, 0])
    return replace(columns, listed_from=evidence.get("listed_from"), required=required)

"""``edges.csv``: a row per edge with the probability that it exists, how often it acts, and further results."""

import csv
import io
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from tacit.assessment.evidence import DIRECTIONS, OPEN, EdgeUnits, edge_units, group_names
from tacit.assessment.identification import FLAGS
from tacit.assessment.uncertainty import ACTS
from tacit.graph import CandidateEdges
from tacit.records.edges_by_csv import EdgesBy
from tacit.records.lags_csv import EdgeNumbers, LagTable

EdgeTable = Any  # a pandas.DataFrame; pandas takes long to import, and only read_edges needs it
EDGES = "edges.csv"
EDGE_COLUMNS = (
    "source",
    "target",
    "exists",
    "probability",
    "std_error",
    "low",
    "high",
    "effect",
    "lag",
    "identifiable",
    "bagged",
    "within_step",
    "direction",
    "exists_either",
    "varies",
    "changed",
    "group",
    "acting",
    "gate_nats",
    "together",
)
VARIES = ("", "no", "yes")  # "" for an edge that was not tested
WORDS = {
    "identifiable": FLAGS,
    "direction": DIRECTIONS,
    "varies": VARIES,
    "acting": ACTS,
}  # columns of words: numbers are places in these
GROUP = "group"  # this and the next are texts that differ between runs
CHANGED = "changed"
EDGE_NUMBERS = tuple(name for name in EDGE_COLUMNS[2:] if name not in (*WORDS, GROUP, CHANGED))
OVER_TABLE = (
    "exists", "probability", "std_error", "low", "high", "effect", "lag", "exists_either", "varies", CHANGED,
    GROUP, "acting", "gate_nats", "together",
)  # fmt: skip
ACTING = (
    "probability",
    "std_error",
    "low",
    "high",
    "bagged",
    "gate_nats",
    "together",
)  # empty for an edge that is not kept


def _codes(words: tuple[str, ...], values: Any) -> torch.Tensor:
    """Return nested lists of words as places in ``words``."""
    if isinstance(values, torch.Tensor):
        return values
    return torch.tensor([[words.index(word) for word in row] for row in values], dtype=torch.uint8)


def _texts(words: tuple[str, ...], codes: torch.Tensor) -> list[list[str]]:
    return [[words[code] for code in row] for row in codes.tolist()]


EdgeFlags = Annotated[
    torch.Tensor,
    BeforeValidator(partial(_codes, FLAGS)),
    PlainSerializer(partial(_texts, FLAGS), when_used="json"),
]
EdgeDirections = Annotated[
    torch.Tensor,
    BeforeValidator(partial(_codes, DIRECTIONS)),
    PlainSerializer(partial(_texts, DIRECTIONS), when_used="json"),
]
EdgeVaries = Annotated[
    torch.Tensor,
    BeforeValidator(partial(_codes, VARIES)),
    PlainSerializer(partial(_texts, VARIES), when_used="json"),
]
EdgeActing = Annotated[
    torch.Tensor,
    BeforeValidator(partial(_codes, ACTS)),
    PlainSerializer(partial(_texts, ACTS), when_used="json"),
]


EdgePlaces = Annotated[
    torch.Tensor,
    BeforeValidator(lambda values: torch.as_tensor(values, dtype=torch.long)),
    PlainSerializer(torch.Tensor.tolist, when_used="json"),
]


class EdgeFindings(BaseModel):
    """Results for each edge besides its probability, in the shape of the graph; None if not computed.

    Rows are targets and columns are sources; with a table of candidates ``exists``, ``effect`` and ``lag`` have the
    shape of the table. ``probability`` is set if it differs from that of the graph: it is NaN for an edge whose
    frequency is not identifiable, for which the graph has 1. Unknown numbers are NaN. ``identifiable`` is an index in
    ``FLAGS``, ``direction`` in ``DIRECTIONS``, ``varies`` in ``VARIES``, ``acting`` in ``ACTS``. ``gate_nats`` is the
    log likelihood of an edge that acts at times less that of noise that grows with the source. ``together`` is a
    number from 1 on that edges with a common gate share. ``group`` numbers the groups of copied sources of each target
    from 1 on; for these edges ``exists_either`` is that of any edge of the group. ``changed`` is an index in
    ``moments``, the times at which edges change, "" for none. ``lags`` has the effect at each lag and ``by`` how often
    edges act in each situation. JSON has nested lists.

    >>> EdgeFindings(exists=[[0.5, None]]).exists
    tensor([[0.5000,    nan]], dtype=torch.float64)
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    exists: EdgeNumbers | None = None
    probability: EdgeNumbers | None = None
    std_error: EdgeNumbers | None = None
    low: EdgeNumbers | None = None
    high: EdgeNumbers | None = None
    effect: EdgeNumbers | None = None
    lag: EdgeNumbers | None = None
    identifiable: EdgeFlags | None = None
    bagged: EdgeNumbers | None = None
    within_step: EdgeNumbers | None = None
    direction: EdgeDirections | None = None
    exists_either: EdgeNumbers | None = None
    varies: EdgeVaries | None = None
    changed: EdgePlaces | None = None
    moments: tuple[str, ...] = ()
    group: EdgePlaces | None = None
    acting: EdgeActing | None = None
    gate_nats: EdgeNumbers | None = None
    together: EdgeNumbers | None = None
    by: EdgesBy | None = None
    lags: LagTable | None = None

    @property
    def known(self) -> dict[str, torch.Tensor]:
        """The columns that were computed, by name."""
        return {name: values for name, values in self if isinstance(values, torch.Tensor)}

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words of a column of words, whose entries are places in them."""
        return self.moments if name == CHANGED else WORDS[name]

    @property
    def units(self) -> EdgeUnits | None:
        """The edges that can be listed, each once; None without evidence."""
        if self.exists is None:
            return None
        return edge_units(self.exists, self.exists_either, self.direction, self.lag, self.group)

    def dropped(self, keep: float) -> torch.Tensor | None:
        """Return the edges that are unlikely to exist, and all but the first of a group of copies; None if unknown."""
        units = self.units
        if units is None or self.exists is None:
            return None
        return (self.exists if self.group is None else units.values) < keep

    def updated(self, **columns: Any) -> "EdgeFindings":
        """Return the same with some columns replaced."""
        return EdgeFindings(**dict(self) | columns)


def edges_text(
    edge_probs: Float[torch.Tensor, "node node"],
    node_names: Sequence[str],
    edges: EdgeFindings | None = None,
    keep: float = 0.0,
) -> str:
    """Return ``edges.csv``: a row per ordered pair; columns that were not computed are empty.

    If ``exists`` is below ``keep``, the edge is not kept, and the columns on how often it acts are empty.
    """
    target, source = np.indices(edge_probs.shape).reshape(2, -1)
    edges = edges or EdgeFindings()
    found = {"probability": edge_probs, **edges.known}
    columns = {name: values.numpy().ravel() for name, values in found.items()}
    dropped = edges.dropped(keep)
    return _text(source, target, columns, node_names, None if dropped is None else dropped.numpy().ravel(), edges)


def candidates_text(
    edge_probs: Float[torch.Tensor, "row slot"],
    candidates: CandidateEdges,
    node_names: Sequence[str],
    edges: EdgeFindings | None = None,
    keep: float = 0.0,
) -> str:
    """Return ``edges.csv`` for a table of candidates: a row per candidate, by target and then source."""
    source, target = candidates.edges()
    edges = edges or EdgeFindings()
    found = {"probability": edge_probs} | {name: edges.known[name] for name in OVER_TABLE if name in edges.known}
    columns = {name: values[candidates.used].numpy() for name, values in found.items()}
    dropped = edges.dropped(keep)
    of_edges = None if dropped is None else dropped[candidates.used].numpy()
    return _text(source.numpy(), target.numpy(), columns, node_names, of_edges, edges)


def read_edges(text: str, node_names: Sequence[str], count: int | None = None, keep: float = 0.0) -> EdgeTable:
    """Return ``edges.csv`` as a table without empty columns; raise ValueError or KeyError if it is invalid.

    ``source`` and ``target`` are numbers of nodes. ``count`` is the number of candidates; None: there is a row per
    ordered pair. A probability may be empty (NaN) if ``exists`` is below ``keep``, the direction is open, or the edge
    is one of a group of copies.
    """
    import pandas as pd

    nodes = pd.CategoricalDtype(list(node_names))
    table = pd.read_csv(
        io.StringIO(text),
        dtype={"source": nodes, "target": nodes}
        | {name: pd.CategoricalDtype(list(words)) for name, words in WORDS.items()}
        | dict.fromkeys(EDGE_NUMBERS, float)
        | {GROUP: str, CHANGED: str},
        na_values=dict.fromkeys(EDGE_NUMBERS, ""),
        keep_default_na=False,
        lineterminator="\n",
    )
    for name in ("source", "target"):
        table[name] = table[name].cat.codes.astype(np.int64)
    _require_all(table, node_names, count)
    empty = [
        name
        for name in table.columns.difference(["source", "target", "probability"])
        if (
            table[name].cat.codes <= 0
            if name in WORDS
            else table[name] == ""
            if name in (GROUP, CHANGED)
            else table[name].isna()
        ).all()
    ]
    table = table.drop(columns=empty)
    _require_probabilities(table, keep)
    return table


def group_numbers(table: EdgeTable) -> Int[np.ndarray, " edge"]:
    """Return the number of the group of each edge of a target, from 1 on; 0 without a group."""
    numbers = dict[tuple[int, str], int]()
    many = dict[int, int]()
    found = np.zeros(len(table), dtype=np.int64)
    for place in np.flatnonzero(table[GROUP].to_numpy() != "") if GROUP in table else ():
        key = int(table["target"].iloc[place]), table[GROUP].iloc[place]
        if key not in numbers:
            numbers[key] = many[key[0]] = many.get(key[0], 0) + 1
        found[place] = numbers[key]
    return found


def _require_all(table: EdgeTable, node_names: Sequence[str], count: int | None) -> None:
    """Raise :class:`ValueError` unless the rows are all pairs in order, or ``count`` candidates."""
    if (table[["source", "target"]] < 0).any(axis=None):
        raise ValueError("edges.csv names a node that is not in record.json")
    if count is not None:
        if len(table) != count:
            raise ValueError(f"edges.csv has {len(table)} edges, {count} are in record.json")
        return
    nodes = len(node_names)
    pairs, wanted = table["target"].to_numpy() * nodes + table["source"].to_numpy(), np.arange(nodes * nodes)
    if np.array_equal(pairs, wanted):
        return
    missing = np.setdiff1d(wanted, pairs)
    if not len(missing):
        raise ValueError("edges.csv must have each ordered pair once, by target and then source")
    target, source = divmod(int(missing[0]), nodes)
    first = f"{node_names[source]} -> {node_names[target]}"
    raise ValueError(f"edges.csv lacks {len(missing)} edges, the first {first}")


def _require_probabilities(table: EdgeTable, keep: float) -> None:
    """Raise :class:`ValueError` if a probability is missing or not between 0 and 1."""
    exists = table.get("exists")
    for name, values in (("exists", exists), ("probability", table["probability"])):
        if values is None:
            continue
        wrong = (values < 0) | (values > 1)
        if name == "probability":  # it may be missing if the edge is not kept or its direction is open
            known = values.notna() if exists is None else values.notna() | (exists < keep)
            known |= table["direction"] == DIRECTIONS[OPEN] if "direction" in table else False
            known |= table[GROUP] != "" if GROUP in table else False
            wrong |= ~known
        if wrong.any():
            raise ValueError(f"{name} in edges.csv must be from 0 to 1, got {values[wrong].iloc[0]:g}")


def _text(
    source: Shaped[np.ndarray, " edge"],
    target: Shaped[np.ndarray, " edge"],
    columns: dict[str, Shaped[np.ndarray, " edge"]],
    node_names: Sequence[str],
    dropped: Shaped[np.ndarray, " edge"] | None,
    edges: EdgeFindings,
) -> str:
    """Return the lines of ``edges.csv``; for edges that are not kept, the columns on how often they act are empty."""
    dropped = np.zeros(len(source), dtype=bool) if dropped is None else dropped
    cells = {"source": [node_names[node] for node in source], "target": [node_names[node] for node in target]}
    for name, values in columns.items():
        if name in WORDS or name == CHANGED:
            words = edges.words(name)
            empty = dropped if name == "acting" else np.zeros_like(dropped)
            cells[name] = ["" if no else words[code] for code, no in zip(values, empty, strict=True)]
        elif name == GROUP:
            cells[name] = group_names(source.tolist(), target.tolist(), values.tolist(), node_names)
        else:
            empty = np.isnan(values) | dropped if name in ACTING else np.isnan(values)
            cells[name] = ["" if no else f"{value:.6g}" for value, no in zip(values.tolist(), empty, strict=True)]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(EDGE_COLUMNS)
    lines.writerows(zip(*(cells.get(name, [""] * len(source)) for name in EDGE_COLUMNS), strict=True))
    return text.getvalue()

"""``edges.csv``: a row per edge: the probability that it exists, how often it acts, and what else is known of it."""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict

from tacit.graph import Slots

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
    "identifiable",
    "bagged",
)
ACTING = ("probability", "std_error", "low", "high", "bagged")  # empty for an edge that is not kept
Matrix = list[list[float | None]]  # None where nothing is known of an edge
Flags = list[list[str]]  # "yes", "no", or nothing for an edge that is not learned


class EdgeFindings(BaseModel):
    """What is known of each edge besides its probability; None where it was not computed.

    Rows receive and columns send; of a table of candidates ``exists`` and ``effect`` have the shape of the table.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    exists: Matrix | None = None
    std_error: Matrix | None = None
    low: Matrix | None = None
    high: Matrix | None = None
    effect: Matrix | None = None
    identifiable: Flags | None = None
    bagged: Matrix | None = None


class ListedEdges(BaseModel):
    """The candidates in the order of ``edges.csv``, nodes by their numbers; ``exists`` and ``effect`` where known."""

    source: list[int]
    target: list[int]
    probability: list[float | None]
    exists: list[float | None] | None = None
    effect: list[float | None] | None = None


def as_tensor(matrix: Matrix) -> Float[torch.Tensor, "row column"]:
    """Return nested lists as a tensor, with NaN where they have None."""
    return torch.from_numpy(np.array(matrix, dtype=np.float32))


def edges_text(
    edge_probs: Float[torch.Tensor, "node node"],
    node_names: Sequence[str],
    edges: EdgeFindings | None = None,
    keep: float = 0.0,
) -> str:
    """Return ``edges.csv``: a row per ordered pair; columns that were not computed are there and empty.

    Where ``exists`` is below ``keep`` the edge is not kept: how often it acts is not said.
    """
    found: dict[str, Any] = {"probability": edge_probs.tolist()}
    found |= {name: matrix for name, matrix in (edges or EdgeFindings()).model_dump().items() if matrix is not None}
    rows = (
        (source, target, {name: matrix[i][j] for name, matrix in found.items()})
        for i, target in enumerate(node_names)
        for j, source in enumerate(node_names)
    )
    return _text(rows, keep)


def candidates_text(
    edge_probs: Float[torch.Tensor, "row slot"],
    slots: Slots,
    node_names: Sequence[str],
    edges: EdgeFindings | None = None,
    keep: float = 0.0,
) -> str:
    """Return ``edges.csv`` of a table: a row per candidate, by target and then source; other columns are empty."""
    source, target = slots.edges()
    found = {"probability": edge_probs[slots.used].tolist()}
    for name in ("exists", "effect"):
        matrix = getattr(edges, name, None)
        if matrix is not None:
            found[name] = as_tensor(matrix)[slots.used].tolist()
    rows = (
        (node_names[j], node_names[i], {name: values[edge] for name, values in found.items()})
        for edge, (j, i) in enumerate(zip(source.tolist(), target.tolist(), strict=True))
    )
    return _text(rows, keep)


def read_edges(text: str, node_names: Sequence[str], keep: float = 0.0) -> tuple[Matrix, EdgeFindings]:
    """Return the probabilities and what else is known, both [target][source]; ValueError or KeyError if it is bad.

    The probability of an edge whose ``exists`` is below ``keep`` may be empty.
    """
    rows = {(row["target"], row["source"]): row for row in csv.DictReader(io.StringIO(text, newline=""))}
    missing = [
        f"{source} -> {target}" for target in node_names for source in node_names if (target, source) not in rows
    ]
    if missing:
        raise ValueError(f"edges.csv lacks {len(missing)} edges, the first {missing[0]}")

    def column(name: str) -> list[list[str]]:
        return [[rows[target, source].get(name) or "" for source in node_names] for target in node_names]

    def numbers(name: str) -> Matrix | None:
        texts = column(name)
        return [[_number(text) for text in row] for row in texts] if any(any(row) for row in texts) else None

    exists = [[_probability(text, may_lack=True) for text in row] for row in column("exists")]
    probability = [
        [_probability(text, may_lack=_is_dropped(chance, keep)) for text, chance in zip(*both, strict=True)]
        for both in zip(column("probability"), exists, strict=True)
    ]
    flags = column("identifiable")
    return probability, EdgeFindings(
        exists=exists if any(value is not None for row in exists for value in row) else None,
        **{name: numbers(name) for name in ("std_error", "low", "high", "effect", "bagged")},
        identifiable=flags if any(any(row) for row in flags) else None,
    )


def read_candidates(text: str, node_names: Sequence[str], count: int, keep: float = 0.0) -> ListedEdges:
    """Return the candidates of a table; ValueError or KeyError if it is bad."""
    number = {name: place for place, name in enumerate(node_names)}
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    if len(rows) != count:
        raise ValueError(f"edges.csv has {len(rows)} edges, {count} are in record.json")
    exists = [_probability(row.get("exists") or "", may_lack=True) for row in rows]
    effect = [_number(row.get("effect") or "") for row in rows]
    return ListedEdges(
        source=[number[row["source"]] for row in rows],
        target=[number[row["target"]] for row in rows],
        probability=[
            _probability(row["probability"], may_lack=_is_dropped(chance, keep))
            for row, chance in zip(rows, exists, strict=True)
        ],
        exists=exists if any(value is not None for value in exists) else None,
        effect=effect if any(value is not None for value in effect) else None,
    )


def _text(rows: Any, keep: float) -> str:
    """Return lines of (source, target, values by the names of columns)."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(EDGE_COLUMNS)
    for source, target, values in rows:
        if _is_dropped(values.get("exists"), keep):
            values = {name: value for name, value in values.items() if name not in ACTING}
        lines.writerow([source, target, *(_cell(values.get(name)) for name in EDGE_COLUMNS[2:])])
    return text.getvalue()


def _is_dropped(exists: float | None, keep: float) -> bool:
    """Is an edge not kept? One of which nothing is known is kept."""
    return exists is not None and exists < keep


def _number(text: str) -> float | None:
    return float(text) if text else None


def _probability(text: str, *, may_lack: bool) -> float | None:
    if not text and may_lack:
        return None
    value = float(text)
    if not 0 <= value <= 1:  # what is not a number neither
        raise ValueError(f"edges.csv needs probabilities from 0 to 1, got {text}")
    return value


def _cell(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return "" if math.isnan(value) else f"{value:.6g}"

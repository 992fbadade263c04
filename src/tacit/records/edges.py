"""``edges.csv``: a row per edge, with its probability and what else is known of it."""

import csv
import io
from collections.abc import Sequence

import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict

from tacit.graph import Slots

EDGES = "edges.csv"
EDGE_NUMBERS = ("std_error", "low", "high", "bagged")
EDGE_COLUMNS = ("source", "target", "probability", "std_error", "low", "high", "identifiable", "bagged")
Matrix = list[list[float]]
Flags = list[list[str]]  # "yes", "no", or nothing for an edge that is not learned


class EdgeFindings(BaseModel):
    """What is known of each edge besides its probability; None where it was not computed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    std_error: Matrix | None = None
    low: Matrix | None = None
    high: Matrix | None = None
    bagged: Matrix | None = None
    identifiable: Flags | None = None


class ListedEdges(BaseModel):
    """Source, target and probability of each candidate, by the numbers of the nodes, in the order of ``edges.csv``."""

    source: list[int]
    target: list[int]
    probability: list[float]


def edges_text(
    edge_probs: Float[torch.Tensor, "node node"],
    node_names: Sequence[str],
    edges: EdgeFindings | None = None,
) -> str:
    """Return ``edges.csv``: a row per ordered pair; columns that were not computed are there and empty."""
    found = (edges or EdgeFindings()).model_dump()
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(EDGE_COLUMNS)
    for i, target in enumerate(node_names):
        for j, source in enumerate(node_names):
            values = {name: "" if matrix is None else _cell(matrix[i][j]) for name, matrix in found.items()}
            values |= {"source": source, "target": target, "probability": _cell(edge_probs[i, j].item())}
            rows.writerow([values[name] for name in EDGE_COLUMNS])
    return text.getvalue()


def candidates_text(edge_probs: Float[torch.Tensor, "row slot"], slots: Slots, node_names: Sequence[str]) -> str:
    """Return ``edges.csv`` of a table: a row per candidate, by target and then source; other columns are empty."""
    source, target = slots.edges()
    empty = [""] * (len(EDGE_COLUMNS) - 3)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(EDGE_COLUMNS)
    for j, i, probability in zip(source.tolist(), target.tolist(), edge_probs[slots.used].tolist(), strict=True):
        rows.writerow([node_names[j], node_names[i], _cell(probability), *empty])
    return text.getvalue()


def read_edges(text: str, node_names: Sequence[str]) -> tuple[Matrix, EdgeFindings]:
    """Return the probabilities and what else is known, both [target][source]; ValueError or KeyError if it is bad."""
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
        return None if not any(any(row) for row in texts) else [[float(text) for text in row] for row in texts]

    probability = [[_probability(text) for text in row] for row in column("probability")]
    flags = column("identifiable")
    found = {name: numbers(name) for name in EDGE_NUMBERS}
    return probability, EdgeFindings(**found, identifiable=flags if any(any(row) for row in flags) else None)


def read_candidates(text: str, node_names: Sequence[str], count: int) -> ListedEdges:
    """Return the candidates of a table; ValueError or KeyError if it is bad."""
    number = {name: place for place, name in enumerate(node_names)}
    rows = [
        (number[row["source"]], number[row["target"]], _probability(row["probability"]))
        for row in csv.DictReader(io.StringIO(text, newline=""))
    ]
    if len(rows) != count:
        raise ValueError(f"edges.csv has {len(rows)} edges, {count} are in record.json")
    names = ("source", "target", "probability")
    return ListedEdges(**{name: [row[place] for row in rows] for place, name in enumerate(names)})


def _probability(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:  # what is not a number neither
        raise ValueError(f"edges.csv needs probabilities from 0 to 1, got {text}")
    return value


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"

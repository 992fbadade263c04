"""Readers of data sets with a known graph: DREAM4, and Lorenz-96 and VAR of SRU; each is read from a path."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from tacit.data.files import require_file
from tacit.data.pair_tables import load_arrays
from tacit.data.series import Series
from tacit.data.tables import read_series
from tacit.errors import InputError, require

Adjacency = Bool[np.ndarray, "node node"]


@dataclass(frozen=True, eq=False)
class KnownGraph:
    """Experiments on one system whose graph is known: row receives, column sends.

    The graph is one fixed graph, not a distribution. Whether ``adjacency`` has self-loops is up to its source:
    DREAM4 has none, Lorenz-96 and VAR have all of them.
    """

    experiments: tuple[Series, ...]
    adjacency: Adjacency

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, in the order of the rows."""
        return self.experiments[0].nodes


def read_dream4(folder: str | Path, size: int, number: int) -> KnownGraph:
    """Read the time series of one gene network of DREAM4 (size 10 or 100, number 1 to 5) and its true graph.

    Every experiment, one per perturbation, is a series of its own, told apart by the times that start over.
    A line "A B 1" of the gold standard says that A regulates B: ``adjacency[B, A]``.
    """
    require(size in (10, 100), f"size must be 10 or 100, got {size!r}; DREAM4 has no other networks")
    require(number in range(1, 6), f"number must be 1 to 5, got {number!r}; DREAM4 has five networks of each size")
    stem = Path(folder) / f"insilico_size{size}_{number}"
    series = replace(read_series(f"{stem}_timeseries.tsv", layout="wide", piece=True), channels=("expression",))
    return KnownGraph(series.parts, read_gold_standard(Path(f"{stem}_goldstandard.tsv"), series.nodes))


def read_lorenz96_var(path: str | Path) -> KnownGraph:
    """Read a simulated series and its graph from an .npz file with ``X_np`` (node, time) and ``Gref`` (target, source).

    These are the Lorenz-96 and VAR sets that come with SRU for Granger causality (Khanna and Tan 2020).
    """
    arrays = load_arrays(Path(path))
    for name in ("X_np", "Gref"):
        require(
            name in arrays, f"{path}: must have an array '{name}', got {', '.join(arrays) or 'none'}; pass another file"
        )
    values, graph = arrays["X_np"].astype(np.float64), arrays["Gref"]
    require(
        values.ndim == 2 and graph.shape == (len(values), len(values)),
        f"{path}: must have X_np (node, time) and Gref (node, node), got shapes {values.shape} and {graph.shape}",
    )
    nodes = tuple(str(node) for node in range(len(values)))
    return KnownGraph((Series(np.ascontiguousarray(values.T)[:, :, None], nodes),), graph != 0)


def read_gold_standard(path: Path, nodes: tuple[str, ...]) -> Adjacency:
    """Read lines "source target 1" (an edge) or "source target 0" (none)."""
    require_file(path)
    adjacency = np.zeros((len(nodes), len(nodes)), dtype=bool)
    places = {name: place for place, name in enumerate(nodes)}
    for row, line in enumerate(path.read_text().splitlines(), start=1):
        match line.split():
            case [source, target, "0" | "1" as edge] if source in places and target in places:
                adjacency[places[target], places[source]] = edge == "1"
            case _:
                raise InputError(
                    f"{path}: row {row} must have two genes of the series and 0 or 1, got {line!r}; "
                    "pass the files of one network"
                )
    return adjacency

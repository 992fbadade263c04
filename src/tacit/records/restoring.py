"""The columns of ``edges.csv`` in the shape of the graph again, for a model that is used further."""

import numpy as np
import torch

from tacit.graph import CandidateEdges
from tacit.records.edges_csv import CHANGED, EDGE_COLUMNS, GROUP, WORDS, EdgeFindings, group_numbers
from tacit.records.run import Run


def stored_findings(run: Run, candidates: CandidateEdges | None) -> EdgeFindings:
    """Return what a run knows of its edges besides the probabilities of its model; numbers have six digits.

    ``candidates``  the table that the graph of the model is over, if it is over one
    """
    names = [name for name in EDGE_COLUMNS[2:] if name in run.edges]
    columns = {name: run.edges[name] for name in names}
    moments = ("", *sorted(set(columns[CHANGED]) - {""})) if CHANGED in columns else ()
    found = {
        name: _shaped(
            values.cat.codes.to_numpy(dtype=np.uint8)
            if name in WORDS
            else group_numbers(run.edges)
            if name == GROUP
            else values.map(moments.index).to_numpy()
            if name == CHANGED
            else values.to_numpy(),
            run,
            candidates,
        )
        for name, values in columns.items()
    }
    probs = found.pop("probability")
    edges = EdgeFindings(**found, moments=moments, lags=run.lags, by=run.edges_by)
    dropped = edges.dropped(run.record.keep)
    kept = torch.ones_like(probs, dtype=torch.bool) if dropped is None else ~dropped
    if candidates is not None:
        kept &= candidates.used.cpu()
    return edges.updated(probability=probs) if (probs.isnan() & kept).any() else edges


def _shaped(values: np.ndarray, run: Run, candidates: CandidateEdges | None) -> torch.Tensor:
    """Return a column with a row per target: a column per source, or per candidate."""
    numbers = torch.from_numpy(np.array(values))
    if candidates is None:
        nodes = len(run.record.node_names)
        return numbers.reshape(nodes, nodes)
    used = candidates.used.cpu()
    placed = torch.full(used.shape, torch.nan if numbers.is_floating_point() else 0, dtype=numbers.dtype)
    placed[used] = numbers
    return placed

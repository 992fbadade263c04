"""The result of a run in words."""

import numpy as np

from tacit.edges import FLAGS, EdgeTable
from tacit.records import Run

LEVELS = (0.1, 0.5)
KINDS = {True: "fits", False: "misfit", None: "untested"}  # CSS classes of the verdict on the fit
UNTESTED = "The fit of the model was not tested."


def verdict(run: Run) -> tuple[str, str, str]:
    """Return the verdict of the fit test: a CSS class, the verdict, and the tests behind it in brackets."""
    tested = run.record.goodness
    said = (tested.get("sentences") or [UNTESTED])[0]
    words, bracket, tests = said.partition(" (")
    rest = f"({tests}." if bracket else ""
    return KINDS[tested.get("fits")], words[0].upper() + words[1:], rest


def answer(run: Run, columns: EdgeTable) -> list[str]:
    """Return sentences: the number of edges, those that are not identifiable, errors.

    Whether there is a graph, and which edges are listed, is in the sentences of the record.
    """
    if "exists" in columns:
        return _with_evidence(run, columns)
    possible = columns.drawable
    if "identifiable" in columns:
        possible = possible & (columns["identifiable"] != FLAGS.index(""))
    probs = columns["probability"][possible]
    counts = " and ".join(
        f"{_have(int((probs >= level).sum()))} a probability of {level:.2f} or more" for level in LEVELS
    )
    said = [f"{_nodes(run)} and {len(probs):,} learned {_edges_of(run)}: {counts}."]
    hidden = "identifiable" in columns and columns.index.between & (columns["identifiable"] == FLAGS.index("no"))
    count = int(np.sum(hidden))
    if count:
        edges_are, are = ("edge is", "is") if count == 1 else ("edges are", "are")
        said.append(f"{count:,} {edges_are} not identifiable from the data and {are} not drawn.")
    said += _error_sentences(run)
    if "std_error" not in columns:
        remedy = (
            "; tacit fit --std-errors 32 adds them" if run.record.preparation and run.edges.index.has_all_pairs else ""
        )
        said.append(f"Standard errors of the probabilities were not computed{remedy}.")
    return said


def _with_evidence(run: Run, columns: EdgeTable) -> list[str]:
    possible, keep = int(columns.index.between.sum()), run.record.keep
    kept = int((columns.index.between & (columns.decides >= keep)).sum())
    said = [
        f"{_nodes(run)} and {possible:,} {_edges_of(run)}; how often they act was estimated for the {kept:,} that "
        f"exist with probability {keep:g} or more."
    ]
    return said + _error_sentences(run)


def _nodes(run: Run) -> str:
    return f"{len(run.record.node_names):,} nodes"


def _edges_of(run: Run) -> str:
    what = "candidate edges" if not run.edges.index.has_all_pairs else "edges between different nodes"
    return f"{what} without direction" if run.record.is_symmetric else what


def _error_sentences(run: Run) -> list[str]:
    error = edge_error(run)
    return [] if error is None else [f"Mean absolute error of the probabilities against the truth: {error:.4f}."]


def edge_error(run: Run) -> float | None:
    """Return the mean absolute error of the identifiable edge probabilities, where the truth is known."""
    metrics = run.record.metrics
    return metrics.get("edge_prob_mae_identifiable", metrics.get("edge_prob_mae"))


def _have(count: int) -> str:
    return f"{count:,} {'has' if count == 1 else 'have'}"

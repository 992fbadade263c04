"""The answer of a run in words: what was found, before anything is drawn."""

import unicodedata

from tacit.records import Run
from tacit.report.edge_columns import FIXED, UNTOLD, EdgeColumns, is_symmetric
from tacit.report.strongest import strongest_edges

LEVELS = (0.1, 0.5)
NAMED, NAMED_FROM = 3, 0.005  # edges named, and how probable they need to be: 0.00 would be said of others
VERDICTS: dict[bool | None, tuple[str, str]] = {
    True: ("fits", "The model fits:"),
    False: ("misfit", "The model does not fit"),
}
UNTESTED = ("untested", "Whether the model fits was not found out.")
SAID_ALREADY = ("fits: ", "does not fit ")  # how the fit test's own sentence begins


def verdict(run: Run) -> tuple[str, str, str]:
    """Return the verdict of the fit test: a word for its look, how the sentence begins, and how it goes on."""
    tested = run.record.goodness
    kind, beginning = VERDICTS.get(tested.get("fits"), UNTESTED)
    rest = (tested.get("sentences") or [""])[0]
    for said in SAID_ALREADY:
        rest = rest.removeprefix(said)
    return kind, beginning, f"{rest}." if rest else ""


def answer(run: Run, columns: EdgeColumns) -> list[str]:
    """Return sentences on how many edges there are, which stand out, and which cannot be told.

    Whether there is a graph, and which edges are listed, is said before by the sentences of the record.
    """
    if columns.exists is not None:
        return _with_evidence(run, columns)
    nodes, possible = len(run.record.node_names), columns.drawable
    if columns.identifiable is not None:
        possible = possible & (columns.identifiable != FIXED)
    probs = columns.probability[possible]
    symmetric = is_symmetric(run)
    what = "candidates" if run.has_candidates else "edges between different nodes"
    what += ", which have no direction," if symmetric else ""
    counts = " and ".join(
        f"{_are(int((probs >= level).sum()))} a probability of {level:.2f} or more" for level in LEVELS
    )
    said = [f"{nodes:,} nodes and {len(probs):,} {what} that were learned: {counts}."]
    mark = "—" if symmetric else "→"
    named = [
        f"{isolated(edge['source'])} {mark} {isolated(edge['target'])} ({edge['probability']:.2f})"
        for edge in strongest_edges(run, NAMED, columns, possible & (columns.probability >= NAMED_FROM))
    ]
    if named:
        said.append(f"The most probable: {', '.join(named)}.")
    untold = 0 if columns.identifiable is None else int((columns.between & (columns.identifiable == UNTOLD)).sum())
    if untold:
        edges, are = ("edge", "is") if untold == 1 else ("edges", "are")
        said.append(f"{untold:,} {edges} cannot be told from the data, and {are} left out of the drawing.")
    error = edge_error(run)
    if error is not None:
        said.append(f"Against the truth the probabilities are off by {error:.4f} on average.")
    if columns.std_error is None:
        remedy = "; tacit fit --std-errors 32 adds them" if run.record.preparation and not run.has_candidates else ""
        said.append(f"Standard errors of the probabilities were not computed{remedy}.")
    return said


def _with_evidence(run: Run, columns: EdgeColumns) -> list[str]:
    possible = int(columns.between.sum())
    kept = int((columns.between & (columns.decides >= run.record.keep)).sum())
    what = "candidates" if run.has_candidates else "edges between different nodes"
    said = [
        f"{len(run.record.node_names):,} nodes and {possible:,} {what}: of {kept:,} that may exist (with probability "
        f"{run.record.keep:g} or more) it was learned how often they act."
    ]
    mark = "—" if is_symmetric(run) else "→"
    named = [
        f"{isolated(edge['source'])} {mark} {isolated(edge['target'])} (exists {edge['exists']:.2f}"
        + ("" if edge["probability"] is None else f", acts {edge['probability']:.2f}")
        + ")"
        for edge in strongest_edges(run, NAMED, columns, columns.listed)
    ]
    if named:
        said.append(f"The most likely: {', '.join(named)}.")
    error = edge_error(run)
    if error is not None:
        said.append(f"Against the truth the probabilities are off by {error:.4f} on average.")
    return said


def edge_error(run: Run) -> float | None:
    """Return the mean error of the edge probabilities over those that can be learned, where the truth is known."""
    metrics = run.record.metrics
    return metrics.get("edge_prob_mae_identifiable", metrics.get("edge_prob_mae"))


def isolated(name: str) -> str:
    """Return a name that does not turn the line round: names from right to left are set apart from what is beside them.

    >>> isolated("north"), len(isolated("\u05e9\u05dc\u05d5\u05dd"))
    ('north', 6)
    """
    turns = any(unicodedata.bidirectional(letter) in {"R", "AL", "AN"} for letter in name)
    return f"\u2068{name}\u2069" if turns else name


def _are(count: int) -> str:
    return f"{count:,} {'has' if count == 1 else 'have'}"

"""What the targets of a run are, in plain words: counts, yes or no, numbers with noise."""

from tacit.records import Run
from tacit.registry import OBSERVATIONS

NAMED = 8  # nodes of one kind
FURTHER = {"brier_score": "Brier score", "ranked_probability_score": "RPS", "log_score": "log score"}
EXPLAINED = {
    "brier_score": "Brier score: mean square of probability minus outcome, of yes-or-no targets.",
    "ranked_probability_score": "RPS: ranked probability score of ordered categories, in steps of a category.",
    "log_score": "Log score: mean log probability (of numbers: density) of the targets; higher is better.",
}


def targets_said(run: Run) -> str:
    """Return a sentence on the distribution of the targets, by node where it differs; nothing if it is not known."""
    kind = run.record.config.get("observation", {}).get("kind")
    if not kind:
        return ""
    if isinstance(kind, str):
        return f"The targets are {_words(kind)}."
    nodes: dict[str, list[str]] = {}
    for node, name in kind.items():
        nodes.setdefault(name, []).append(node)
    parts = [f"{_words(name)} ({_few(own)})" for name, own in nodes.items()]
    return f"The targets are {'; '.join(parts)}."


def further_scores(run: Run) -> dict[str, str]:
    """Return the titles of the scores of the observation model that a run has."""
    return {name: title for name, title in FURTHER.items() if name in run.record.metrics}


def scores_explained(run: Run) -> str:
    """Return what these scores are."""
    return " ".join(EXPLAINED[name] for name in further_scores(run))


def _words(kind: str) -> str:
    return str(OBSERVATIONS[kind].words or kind) if kind in OBSERVATIONS else kind


def _few(names: list[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest:,} more" if rest > 0 else "")

"""What a fit found besides the numbers of its edges: the kind of each finding, its values, and its sentence.

A record stores all three. Programs read the kind and the values; the sentence is for people, and may change.
"""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

NAMED = 3  # edges in a sentence


class FindingKind(StrEnum):
    """Kinds of findings, by the stage of the fit that makes them."""

    # the fit
    HELD = "held"
    # standard errors
    STD_ERRORS = "std_errors"
    NOT_ADOPTED = "not_adopted"
    FEW_SERIES = "few_series"
    FIT_WARNING = "fit_warning"
    # situations and regimes
    TRAINED_SITUATIONS = "trained_situations"
    SITUATION_NOTE = "situation_note"
    TRAINED_REGIMES = "trained_regimes"
    UNDETERMINED_REGIMES = "undetermined_regimes"
    # identification
    IDENTIFICATION = "identification"
    OTHER_START = "other_start"
    TOO_MANY_EDGES = "too_many_edges"
    INACTIVE_EDGES = "inactive_edges"
    # the fit test
    FIT_VERDICT = "fit_verdict"
    FIT_DETAIL = "fit_detail"
    FIT_NOT_TESTED = "fit_not_tested"
    # comparisons
    OTHER_GRAPH = "other_graph"
    RANKING = "ranking"
    WIDENED = "widened"
    NO_RIDGE = "no_ridge"
    # any stage
    NOT_COMPUTED = "not_computed"


# Made by the stage of the standard errors, and made again if it is run again.
FROM_ERRORS = {FindingKind.STD_ERRORS, FindingKind.NOT_ADOPTED, FindingKind.WIDENED}

WHY_NOT = {
    "training stopped": "training stopped too early, so replicas would stop too early as well",
    "stopped too early": "training stopped too early",
    "many nodes": (
        "it requires all pairs of nodes, and there are more than {limit} nodes; fit only the nodes around the edges of "
        "interest"
    ),
    "no edge probabilities": "it requires a probability for each edge, which this graph distribution does not have",
    "failed": "{error}",
}
FITTED_BY = {
    "regressions": "regressions of mean and variance of each node",
    "likelihood": "the likelihood of each node",
}
ADOPTED = {
    "mean": "the estimate is the mean over them",
    "fit, worse mean": (
        "the estimate is the fit, because their mean predicts worse; errors and intervals are those of the mean"
    ),
    "fit": "the estimate is the fit; errors and intervals are those of the mean over them",
}
SENTENCES = {
    FindingKind.NOT_ADOPTED: (
        "How often edges act was not estimated without training, because the model then forecasts worse: relations may "
        "be nonlinear, or the noise may depend on the inputs."
    ),
    FindingKind.FEW_SERIES: (
        "There are too few series for a bootstrap of series: standard errors ignore differences between series."
    ),
    FindingKind.TRAINED_SITUATIONS: (
        "The dependence on the situation was trained by gradients, so it has no tests, no standard errors and no "
        "intervals."
    ),
    FindingKind.TRAINED_REGIMES: (
        "The regimes were trained by gradients, so they have no standard errors and no intervals."
    ),
    FindingKind.UNDETERMINED_REGIMES: (
        "The data hardly restrict the probabilities in each regime for {unknown} of {count} edges: their intervals are "
        "wider than 0.9. If a block has few edges, many different regimes have the same distribution. How often these "
        "edges act over all regimes is known (edges.csv)."
    ),
    FindingKind.TOO_MANY_EDGES: (
        "Not computed, identifiability: it takes long for {count:,} learned edges; name candidates, or call "
        "tacit.identify."
    ),
    FindingKind.INACTIVE_EDGES: (
        "In a given observation, about {false:.1f} of the edges above {level:g} are inactive, and about {missed:.1f} "
        "of the other edges are active."
    ),
    FindingKind.FIT_NOT_TESTED: "Fewer than two test forecasts that do not overlap: too few for a fit test.",
    FindingKind.RANKING: (
        "These data do not distinguish an edge that acts at times from a weaker edge that always acts: use the "
        "probabilities as a ranking of edges."
    ),
    FindingKind.WIDENED: "Intervals are widened to contain every solution that is compatible with these data.",
    FindingKind.NO_RIDGE: (
        "Not computed, ridge regression on all nodes: it takes long with {columns:,} inputs and {pairs:,} training "
        "pairs; use a shorter window, for example --window 24."
    ),
}


class Finding(BaseModel):
    """A finding: its ``kind``, its ``values``, and the ``sentence`` that was made from them.

    >>> find(FindingKind.INACTIVE_EDGES, false=0.31, missed=1.2, level=0.5).sentence
    'In a given observation, about 0.3 of the edges above 0.5 are inactive, and about 1.2 of the other edges are \
active.'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: FindingKind
    sentence: str
    values: dict[str, Any] = {}

    def __str__(self) -> str:
        """Return the sentence."""
        return self.sentence


def find(kind: FindingKind, sentence: str | None = None, **values: Any) -> Finding:
    """Return a finding; a result of its own class passes its ``sentence``."""
    return Finding(kind=kind, sentence=_said(kind, values) if sentence is None else sentence, values=values)


def _said(kind: FindingKind, values: dict[str, Any]) -> str:
    """Return the sentence of a kind with these values."""
    match kind:
        case FindingKind.NOT_COMPUTED:
            why = WHY_NOT[values["reason"]].format(**values)
            question = f" ({values['question']})" if "question" in values else ""
            return f"Not computed, {values['stage']}{question}: {why}."
        case FindingKind.STD_ERRORS:
            resamples, drawn = values["resamples"], values["drawn"]
            if values["method"] == "bootstrap":
                adopted = ADOPTED[values["estimate"]]
                return f"Standard errors from {resamples} resamples of the data ({drawn}); {adopted}."
            scaled = f", scaled by {resamples} resamples of the data ({drawn})" if drawn else ""
            return f"Standard errors from {FITTED_BY[values['method']]}{scaled}."
        case FindingKind.NOT_ADOPTED:
            both = " Intervals contain both estimates." if values.get("both") else ""
            return SENTENCES[kind] + both
        case FindingKind.FIT_WARNING:
            text = values["warning"]
            return f"{text[0].upper()}{text[1:]}."
        case FindingKind.HELD:
            edges = values["edges"]
            names = [f"{source} - {target}" for source, target in edges[:NAMED]]
            more = f" and {len(edges) - NAMED} more" if len(edges) > NAMED else ""
            acts, their = ("1 edge acts is", "its") if len(edges) == 1 else (f"{len(edges)} edges act is", "their")
            said = f"{', '.join(names)}{more}"
            return f"How often {acts} not estimated: {their} direction within the step is open ({said})."
        case _:
            return SENTENCES[kind].format(**values)

"""Evidence: the probability that each edge exists, independent of how often it acts."""

from tacit.assessment.evidence.background_search import find_backgrounds
from tacit.assessment.evidence.backgrounds import (
    FEWEST_CYCLES,
    FEWEST_ROWS,
    HOURS,
    KINDS,
    MOST_SERIES,
    SHORTEST,
    WEEKEND,
    Backgrounds,
    Clock,
    Term,
)
from tacit.assessment.evidence.batched_regressions import joining_log_odds
from tacit.assessment.evidence.candidates import Candidates, ColumnForm, group_names, joined_names, merged, num_sent
from tacit.assessment.evidence.changes import ABSENT, find_changes
from tacit.assessment.evidence.diagnostics import CAUTION, CORRELATED, DRIVER, MOST_NODES, SUGGESTION
from tacit.assessment.evidence.forms import simplest_form
from tacit.assessment.evidence.lag_regressions import LagProfiles, lag_profiles
from tacit.assessment.evidence.model_evidence import keep_edges, model_evidence, without_edges, without_prior
from tacit.assessment.evidence.parent_evidence import (
    BELIEVED,
    RESAMPLES,
    ParentEvidence,
    likely_parents,
    parent_evidence,
)
from tacit.assessment.evidence.result import KEEP, Evidence, may_exist
from tacit.assessment.evidence.simultaneous import SimultaneousEvidence, simultaneous_evidence
from tacit.assessment.evidence.volatility import smoothed
from tacit.assessment.evidence.within_step import (
    LAGGED_PARENTS,
    LEARNED,
    NOT_GAUSSIAN,
    RULE,
    TIME,
    WithinStep,
)

__all__ = [
    "ABSENT",
    "BELIEVED",
    "CAUTION",
    "CORRELATED",
    "DRIVER",
    "FEWEST_CYCLES",
    "FEWEST_ROWS",
    "HOURS",
    "KEEP",
    "KINDS",
    "LAGGED_PARENTS",
    "LEARNED",
    "MOST_NODES",
    "MOST_SERIES",
    "NOT_GAUSSIAN",
    "RESAMPLES",
    "RULE",
    "SHORTEST",
    "SUGGESTION",
    "TIME",
    "WEEKEND",
    "Backgrounds",
    "Candidates",
    "Clock",
    "ColumnForm",
    "Evidence",
    "LagProfiles",
    "ParentEvidence",
    "SimultaneousEvidence",
    "Term",
    "WithinStep",
    "find_backgrounds",
    "find_changes",
    "group_names",
    "joined_names",
    "joining_log_odds",
    "keep_edges",
    "lag_profiles",
    "likely_parents",
    "may_exist",
    "merged",
    "model_evidence",
    "num_sent",
    "parent_evidence",
    "simplest_form",
    "simultaneous_evidence",
    "smoothed",
    "without_edges",
    "without_prior",
]

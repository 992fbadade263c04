"""Does an edge exist? A probability for every edge that it is needed at all, however often it acts."""

from tacit.assessment.evidence.candidates import Candidates
from tacit.assessment.evidence.columns import ColumnForm
from tacit.assessment.evidence.joining import joining_log_odds
from tacit.assessment.evidence.regression import ParentEvidence, likely_parents, parent_evidence
from tacit.assessment.evidence.removal import model_evidence
from tacit.assessment.evidence.result import KEEP, Evidence
from tacit.assessment.evidence.retraining import keep_edges

__all__ = [
    "KEEP",
    "Candidates",
    "ColumnForm",
    "Evidence",
    "ParentEvidence",
    "joining_log_odds",
    "keep_edges",
    "likely_parents",
    "model_evidence",
    "parent_evidence",
]

"""Does an edge exist? A probability for every edge that it is needed at all, whatever how often it acts."""

from tacit.evidence.removal import model_evidence
from tacit.evidence.result import Evidence
from tacit.evidence.retraining import keep_edges

__all__ = ["Evidence", "keep_edges", "model_evidence"]

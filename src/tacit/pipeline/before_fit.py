"""Results on the edges before a model is fitted: whether they exist, their effects, lags and directions."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.assessment.evidence import KEEP, Evidence
from tacit.config import FitConfig
from tacit.edges import EdgeIndex, EdgeTable
from tacit.graph import GraphDistribution
from tacit.pipeline.evidence import REGRESSION, RegressionEvidence
from tacit.pipeline.findings import Assessment
from tacit.pipeline.within_step import GAUSSIAN_P


def known_before_fit(evidence: RegressionEvidence | None, config: FitConfig, index: EdgeIndex) -> Assessment:
    """Return the results before the fit for the edges of a graph: which exist, their effects and lags."""
    if evidence is None:
        return Assessment(EdgeTable(index, fdr=config.assessment.fdr))
    about = _about(REGRESSION, evidence.prior, evidence.notes, config, evidence.resamples)
    about["smallest_effect"] = config.graph.smallest_effect
    if evidence.changes:
        about["changes"] = list(evidence.changes)
    if evidence.within is not None:
        about |= {GAUSSIAN_P: evidence.within.gaussian, "notes": [*about["notes"], *evidence.within.notes]}
    return Assessment(evidence.table.moved(index), evidence=about, evidence_seconds=evidence.seconds)


def from_evidence(found: Evidence, config: FitConfig, graph: GraphDistribution, index: EdgeIndex) -> Assessment:
    """Return the evidence of a fitted model."""
    table = EdgeTable(index, keep=KEEP, fdr=config.assessment.fdr)
    table = table.updated(exists=graph.vector(found.exists), effect=graph.vector(found.effect))
    return Assessment(table, evidence=_about(found.method, found.prior, found.notes, config))


def _about(
    method: str, prior: Mapping[str, float | str], notes: Sequence[str], config: FitConfig, resamples: int = 0
) -> dict[str, Any]:
    """Return how the edges were tested, for the record."""
    return {
        "method": method,
        "prior": prior,
        "keep": KEEP,
        "fdr": config.assessment.fdr,
        "resamples": resamples,
        "notes": list(notes),
    }

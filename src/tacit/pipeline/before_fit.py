"""Results on the edges before a model is fitted: whether they exist, their effects, lags and directions."""

from dataclasses import replace

import torch

from tacit.assessment.evidence import KEEP, Evidence
from tacit.config import FitConfig
from tacit.pipeline.edge_lags import lag_of_edges
from tacit.pipeline.evidence import RegressionEvidence
from tacit.pipeline.findings import Assessment
from tacit.pipeline.within_step import GAUSSIAN_P, within_columns
from tacit.records import EdgeFindings


def known_before_fit(evidence: RegressionEvidence | None, config: FitConfig, *, over_table: bool) -> Assessment:
    """Return the results before the fit: which edges exist, their effects and lags."""
    if evidence is None:
        return Assessment()
    found = evidence.evidence
    exists, effect = (evidence.shaped(values, over_table) for values in (found.exists, found.effect))
    shaped = replace(found, exists=exists, effect=effect)
    if found.groups is not None and found.either is not None:
        groups, either = (evidence.shaped(values, over_table) for values in (found.groups, found.either))
        shaped = replace(shaped, groups=groups, either=either.masked_fill(groups == 0, torch.nan))
    assessment, lags = (
        from_evidence(shaped, config, seconds=evidence.seconds, resamples=evidence.resamples),
        evidence.lags,
    )
    assessment.evidence["smallest_effect"] = config.graph.smallest_effect
    if lags is not None:
        lag = lag_of_edges(lags, evidence.rules, over_table=over_table)
        assessment.edges = assessment.edges.updated(lag=lag, lags=lags)
    if evidence.changed is not None:
        changed = evidence.shaped(evidence.changed, over_table)
        assessment.edges = assessment.edges.updated(changed=changed, moments=evidence.moments)
        assessment.evidence["changes"] = list(evidence.changes)
    if evidence.within is not None:
        assessment.edges = assessment.edges.updated(**within_columns(evidence.within))
        notes = [*assessment.evidence["notes"], *evidence.within.notes]
        assessment.evidence |= {GAUSSIAN_P: evidence.within.gaussian, "notes": notes}
    return assessment


def from_evidence(found: Evidence, config: FitConfig, *, seconds: float, resamples: int = 0) -> Assessment:
    """Return the results of the evidence on the edges, and how they were found."""
    about = {
        "method": found.method,
        "prior": found.prior,
        "keep": KEEP,
        "fdr": config.assessment.fdr,
        "resamples": resamples,
        "notes": list(found.notes),
    }
    edges = EdgeFindings(exists=found.exists, effect=found.effect, exists_either=found.either, group=found.groups)
    return Assessment(edges=edges, evidence=about, evidence_seconds=seconds)

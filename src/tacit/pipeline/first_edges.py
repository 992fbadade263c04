"""The edges that are shown before a model is fitted: those of a first look, then those of the evidence."""

from dataclasses import replace

import numpy as np

from tacit.pipeline.evidence import RegressionEvidence

SHOWN = 5
FIRST_LOOK = "first look (newest values only, before resampling)"
FROM_EVIDENCE = "from the evidence"
TOO_SMALL = (
    "{edges} not listed because the effect is small beside those of the other parents and drivers of the target. "
    "A slightly wrong form of these can look like such an effect (--smallest-effect 0 lists {them})."
)


def with_small_effects(evidence: RegressionEvidence, fdr: float) -> RegressionEvidence:
    """Return the evidence with a note on the edges that are not listed because their effects are too small."""
    if evidence.any_size is None:
        return evidence
    every = replace(evidence, table=evidence.table.updated(exists=evidence.any_size))
    count = int((every.listed(fdr) & ~evidence.listed(fdr)).sum())
    if not count:
        return evidence
    edges, them = ("1 edge is", "it") if count == 1 else (f"{count:,} edges are", "them")
    return replace(evidence, notes=(*evidence.notes, TOO_SMALL.format(edges=edges, them=them)))


def first_edges(evidence: RegressionEvidence, fdr: float, heading: str = FROM_EVIDENCE) -> str:
    """Return the edges that this evidence lists, the most likely first, in one line."""
    table, listed = evidence.table, np.flatnonzero(evidence.listed(fdr))
    if not len(listed):
        return f"{heading}: no edge is listed"
    listed = listed[np.argsort(-table.values[listed], kind="stable")]
    first = [f"{table.named(place)} {table.values[place]:.2f}" for place in listed[:SHOWN].tolist()]
    more = [f"and {len(listed) - SHOWN:,} more"] if len(listed) > SHOWN else []
    count = "1 edge" if len(listed) == 1 else f"{len(listed):,} edges"
    return f"{heading}: {', '.join([count, *first, *more])}"

"""The edges that are shown before a model is fitted: those of a first look, then those of the evidence."""

import torch

from tacit.assessment.evidence import edge_units, group_names
from tacit.assessment.uncertainty import listed_edges
from tacit.pipeline.evidence import RegressionEvidence

SHOWN = 5
FIRST_LOOK = "first look (newest values only, before resampling)"
FROM_EVIDENCE = "from the evidence"


def first_edges(evidence: RegressionEvidence, fdr: float, heading: str = FROM_EVIDENCE) -> str:
    """Return the edges that this evidence lists, the most likely first, in one line."""
    rules, within = evidence.rules, evidence.within
    found, groups = evidence.evidence, evidence.evidence.groups
    units = (
        found.units if within is None else edge_units(found.exists, within.either.to(found.exists), within.directions)
    )
    exists = units.values
    source, target, _, required = rules.open_edges()
    places = (target, source)
    if evidence.over_table:
        flat = rules.candidate_edges.positions(source, target)
        places = (flat // exists.shape[1], flat % exists.shape[1])
    learned = torch.zeros_like(exists, dtype=torch.bool)
    learned[places] = ~required & (evidence.kept | units.undirected)[places]
    listed = listed_edges(exists, fdr, learned, symmetric=rules.symmetric and not evidence.over_table)[places]
    if rules.symmetric:
        listed &= source < target
    chosen = listed.nonzero()[:, 0]
    chosen = chosen[exists[places][chosen].argsort(descending=True, stable=True)]
    if not len(chosen):
        return f"{heading}: no edge is listed"
    no_arrow, nodes, probs = units.undirected[places] | rules.symmetric, rules.nodes, exists[places]
    numbers = torch.zeros_like(source) if groups is None else groups[places]
    named = group_names(source.tolist(), target.tolist(), numbers.tolist(), nodes)
    first = [
        f"{named[edge] or nodes[source[edge]]} {'-' if no_arrow[edge] else '->'} {nodes[target[edge]]} "
        f"{float(probs[edge]):.2f}"
        for edge in chosen[:SHOWN].tolist()
    ]
    more = [f"and {len(chosen) - SHOWN:,} more"] if len(chosen) > SHOWN else []
    count = "1 edge" if len(chosen) == 1 else f"{len(chosen):,} edges"
    return f"{heading}: {', '.join([count, *first, *more])}"

"""The edges that are shown before a model is fitted: those of a first look, then those of the evidence."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence import edge_units, group_names
from tacit.assessment.uncertainty import listed_edges
from tacit.pipeline.evidence import RegressionEvidence
from tacit.shapes import EdgeMask

SHOWN = 5
FIRST_LOOK = "first look (newest values only, before resampling)"
FROM_EVIDENCE = "from the evidence"
TOO_SMALL = (
    "{edges} not listed because the effect is small beside those of the other parents and drivers of the target. "
    "A slightly wrong form of these can look like such an effect (--smallest-effect 0 lists {them})."
)


@dataclass(frozen=True, eq=False)
class EvidentEdges:
    """The open edges of the rules and which of them the evidence lists.

    ``exists``      the probability of each edge, in the shape of the evidence; ``places``  the open edges in it
    ``undirected``  the pairs whose direction is open, in the same shape
    """

    exists: Float[Tensor, "row slot"]
    places: tuple[Int[Tensor, " edge"], Int[Tensor, " edge"]]
    listed: Bool[Tensor, " edge"]
    undirected: EdgeMask


def edges_from_evidence(evidence: RegressionEvidence, fdr: float) -> EvidentEdges:
    """Return the edges that the evidence lists at a false discovery rate."""
    rules, within = evidence.rules, evidence.within
    found = evidence.evidence
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
    return EvidentEdges(exists, places, listed, units.undirected)


def with_small_effects(evidence: RegressionEvidence, fdr: float) -> RegressionEvidence:
    """Return the evidence with a note on the edges that are not listed because their effects are too small."""
    if evidence.any_size is None:
        return evidence
    every = replace(evidence, evidence=replace(evidence.evidence, exists=evidence.any_size))
    count = int((edges_from_evidence(every, fdr).listed & ~edges_from_evidence(evidence, fdr).listed).sum())
    if not count:
        return evidence
    edges, them = ("1 edge is", "it") if count == 1 else (f"{count:,} edges are", "them")
    said = TOO_SMALL.format(edges=edges, them=them)
    return replace(evidence, evidence=replace(evidence.evidence, notes=(*evidence.evidence.notes, said)))


def first_edges(evidence: RegressionEvidence, fdr: float, heading: str = FROM_EVIDENCE) -> str:
    """Return the edges that this evidence lists, the most likely first, in one line."""
    rules, groups, found = evidence.rules, evidence.evidence.groups, edges_from_evidence(evidence, fdr)
    source, target, _, _ = rules.open_edges()
    exists, places, listed = found.exists, found.places, found.listed
    chosen = listed.nonzero()[:, 0]
    chosen = chosen[exists[places][chosen].argsort(descending=True, stable=True)]
    if not len(chosen):
        return f"{heading}: no edge is listed"
    no_arrow, nodes, probs = found.undirected[places] | rules.symmetric, rules.nodes, exists[places]
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

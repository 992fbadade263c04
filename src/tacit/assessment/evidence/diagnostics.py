"""Sentences on the limits of the evidence: few rows, noisy values, effects within a step, unstable resamples."""

import math
from statistics import NormalDist

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.assessment.evidence.averaging import orthonormal
from tacit.assessment.evidence.candidates import Candidates, ColumnForm, Columns, Groups, joined_names
from tacit.assessment.evidence.products import parent_columns
from tacit.data import Pairs
from tacit.observation import ObservationModel

WEAK = 0.2  # share of a target's variance: a note is added if effects of this size cannot be detected
STRONG_CORRELATION = 0.3  # of residuals within a step
DISAGREE = 0.5
NAMED, MOST_DRIVEN = 3, 8
FALSE_ALARM = 0.01
MOST_NODES = 2000  # correlations of more are not computed
# names of findings
DRIVER, FEW_ROWS, NOISE, RESAMPLES_DIFFER = "driver", "few rows", "noise", "resamples differ"
SMOOTHED = "smoothed"
COPIED_NODES, COPIED_SOURCES, CORRELATED = "copied nodes", "copied sources", "correlated within a step"

NOISY = (
    "Noisy values: smoothed values explain more than the last ones, as if values were measured with noise. Indirect "
    "paths can then look direct. The probabilities of edges take it into account."
)
LASTING = (
    "Smoothed values explain more than the last ones: effects last for several steps, or the values follow something "
    "that is not in the table. Indirect paths can then look direct. The probabilities of edges take it into account."
)
CAUTION = "A common driver, or an effect faster than one step, can cause false edges."
DRIVEN = (
    "Shared driver: {nodes} move together. Something that is not in the table reaches them, or effects faster than one "
    "step. The probabilities of edges take it into account."
)
WITHIN = "Use --simultaneous to let edges act within a step."
SUGGESTION = f"{CAUTION} {WITHIN}"
GROUPED = (
    "Copied sources: the data show that one of them is a parent, not which, so they share one edge that is not "
    "identifiable for each of them:"
)
COPIES = "Copies: {pairs} have almost the same residuals within a step. Edges between copies cannot be tested."
UNSTABLE = (
    "Resamples of the data support other edges than the full data. The regressions are misspecified: some edges may "
    "represent indirect paths or common drivers."
)


def residuals(
    columns: Columns, candidates: Candidates, believed: Bool[Tensor, "target candidate"]
) -> Float[Tensor, "row target"]:
    """Return the residuals of the first channel of each target on its selected parents."""
    left = []
    for row, target in enumerate(candidates.targets.tolist()):
        parents, _ = parent_columns(columns, candidates, row, believed[row])
        always = candidates.always(columns, torch.tensor([row]))[0].mT
        seen = columns.observed[:, target]
        both = torch.cat([always, parents, columns.targets[:, target, :1]], 1)
        both = columns.without_intercepts(both.mT, seen).mT * seen[:, None]
        basis, values = orthonormal(both[:, :-1].mT), both[:, -1:]
        left.append(values - basis @ (basis.mT @ values))
    return torch.cat(left, 1)


def may_be_measured(pairs: Pairs, observation: ObservationModel | None) -> Bool[Tensor, " node"]:
    """Return the nodes whose values may have measurement noise: real numbers, of which there are more than two."""
    known = torch.ones_like(pairs.targets, dtype=torch.bool) if pairs.observed is None else pairs.observed > 0
    low, high = (
        pairs.targets.masked_fill(~known, torch.inf).amin(0),
        pairs.targets.masked_fill(~known, -torch.inf).amax(0),
    )
    found = ((pairs.targets > low) & (pairs.targets < high) & known).any(0).any(1).cpu()
    supports = () if observation is None else observation.supports or (observation.support,) * len(found)
    discrete = [support in ("counts", "two values", "categories") for support in supports] or [False] * len(found)
    return found & ~torch.tensor(discrete)


def smallest_effect(rows: float, group_size: int, density: float) -> float:
    r"""Return the partial $R^2$ at which an edge and no edge are equally likely.

    $$-\tfrac{n}{2} \log(1 - R^2) = \tfrac{k}{2} \log(1 + n) + \log \tfrac{1 - \pi}{\pi}$$
    """
    needed = group_size / 2 * math.log1p(rows) + math.log((1 - density) / density)
    return 1 - math.exp(-2 * needed / max(rows, 1.0))


def notes(
    columns: Columns,
    candidates: Candidates,
    believed: Bool[Tensor, "target candidate"],
    names: tuple[str, ...],
    *,
    form: ColumnForm,
    density: float,
    agreement: float,
    horizon: int,
    correlated: str | None = CAUTION,
    left: Float[Tensor, "row target"] | None = None,
    copied: Bool[Tensor, "node node"] | None = None,
    groups: Groups | None = None,
    driven: Bool[Tensor, " target"] | None = None,
    measured: bool = True,
) -> dict[str, str]:
    """Return the sentences that apply, by the names of the findings.

    ``correlated``  the remark on residuals that are correlated within a step; None if the model has effects within a
                    step
    ``left``        residuals of the targets on their selected parents; None if there are too many nodes
    ``copied``      the nodes that are copies of each other; ``groups``  groups of copied sources of each target
    ``driven``      the targets that a shared driver reaches, if there is one
    ``measured``    whether values may have measurement noise, which yes or no and counts do not have
    """
    said: dict[str, str] = {}
    if driven is not None:
        reached = [names[node] for node in candidates.targets[driven].tolist()]
        more = f" and {len(reached) - MOST_DRIVEN} more nodes" if len(reached) > MOST_DRIVEN else ""
        said[DRIVER] = DRIVEN.format(nodes=", ".join(reached[:MOST_DRIVEN]) + more)
    known = float(columns.observed[:, candidates.targets].sum(0).min()) / horizon
    rows = max(0.0, known - int(columns.num_always[candidates.targets].max()))
    size = 3 if columns.products else columns.group_size  # a first parent: its value, square, product with the target
    least = smallest_effect(rows, size, density)
    if least > WEAK:
        said[FEW_ROWS] = (
            f"Few observations: with {rows:.0f} degrees of freedom and {candidates.width} candidates per node, only "
            f"edges that explain more than {least:.0%} of the remaining variance of a node can be detected."
        )
    if form.decay:
        said |= {NOISE: NOISY} if measured else {SMOOTHED: LASTING}
    if agreement < DISAGREE and bool(believed.any()):
        said[RESAMPLES_DIFFER] = UNSTABLE
    if left is None:
        return said
    copied = columns.targets.new_zeros(2 * columns.targets.shape[1:2], dtype=torch.bool) if copied is None else copied
    if copied.any():
        said[COPIED_NODES] = _copies(copied, names)
    if groups is not None and groups.any():
        said[COPIED_SOURCES] = _groups(candidates, groups, names)
    if correlated is not None:
        remark = CAUTION if copied.any() else correlated  # effects within a step are refused for copies
        said |= _common_drivers(left, columns, names, remark, copied)
    return said


def _groups(candidates: Candidates, groups: Groups, names: tuple[str, ...]) -> str:
    """Return a sentence that names groups of copied sources."""
    found = []
    for row in groups.any(1).nonzero()[:, 0].tolist():
        for number in range(1, 1 + int(groups[row].max())):
            members = candidates.sources[row][groups[row] == number].tolist()
            if members:
                joined = joined_names([names[node] for node in members])
                found.append(f"{joined} -> {names[int(candidates.targets[row])]} (the model uses {names[members[0]]})")
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"{GROUPED} {', '.join(found[:NAMED])}{more}."


def _copies(copied: Bool[Tensor, "node node"], names: tuple[str, ...]) -> str:
    """Return a sentence that names the pairs of copies."""
    pairs = copied.triu(1).nonzero().tolist()
    named = ", ".join(f"{names[first]} and {names[second]}" for first, second in pairs[:NAMED])
    more = f" and {len(pairs) - NAMED} more pairs" if len(pairs) > NAMED else ""
    return COPIES.format(pairs=named + more)


def _common_drivers(
    left: Float[Tensor, "row node"],
    columns: Columns,
    names: tuple[str, ...],
    remark: str,
    copied: Bool[Tensor, "node node"],
) -> dict[str, str]:
    """Return a sentence that names the pairs of nodes whose residuals are correlated within a step, without copies."""
    nodes = left.shape[1]
    both = columns.observed.mT @ columns.observed
    correlation = torch.corrcoef(left.mT).nan_to_num().masked_fill(copied, 0.0)
    pairs = nodes * (nodes - 1) / 2
    bound = NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * pairs))
    strong = (correlation.abs() >= STRONG_CORRELATION) & (correlation.abs() * both.sqrt() > bound)
    first, second = strong.triu(1).nonzero().unbind(1)
    if not len(first):
        return {}
    sizes = correlation[first, second]
    order = sizes.abs().argsort(descending=True)[:NAMED].tolist()
    named = ", ".join(f"{names[first[k]]} and {names[second[k]]} ({sizes[k]:.2f})" for k in order)
    count = f"{len(first)} pairs of nodes" if len(first) > 1 else "one pair of nodes"
    return {CORRELATED: f"Residuals are correlated within a step for {count}: {named}. {remark}"}

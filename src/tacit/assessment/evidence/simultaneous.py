r"""Evidence where edges may act within a step: a structural model whose graph within the step has no cycles.

$$y_t = B_0\, y_t + \text{lagged part} + e_t$$

1. Regressions on lagged parents alone give the columns of a lagged parent and first residuals, whose correlations give
   the candidates within the step (:mod:`tacit.assessment.evidence.within_candidates`).
2. Every set of candidates of each target gets a score (:mod:`tacit.assessment.evidence.within_scores`).
3. Graphs without cycles are sampled by these scores (:mod:`tacit.assessment.evidence.acyclic_graphs`). If a test
   rejects Gaussian noise, its shape is a part of the scores: it gives directions that a Gaussian likelihood does not
   know.
4. The prior probabilities of edges within the step and of lagged edges are learned, as they are for lagged edges alone.

The direction of an edge within the step is *learned* if the shape of the noise decides it, *from lagged parents* if
Gaussian scores decide it alone, and otherwise *open*.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence import diagnostics
from tacit.assessment.evidence.acyclic_graphs import GraphSampler, ParentScores
from tacit.assessment.evidence.candidates import Candidates
from tacit.assessment.evidence.columns import Columns, build_columns
from tacit.assessment.evidence.parent_evidence import BELIEVED, BETA, ParentEvidence
from tacit.assessment.evidence.result import KEEP
from tacit.assessment.evidence.within_candidates import START_DENSITY, WithinCandidates, require_distinct
from tacit.assessment.evidence.within_effects import within_effects
from tacit.assessment.evidence.within_scores import TargetScores, target_scores
from tacit.assessment.evidence.within_step import LAGGED_PARENTS, LEARNED, NOT_GAUSSIAN, OPEN, TIME, WithinStep
from tacit.data import Pairs
from tacit.errors import require
from tacit.predictors import SeriesLayout

MOST_NODES = 100
MOST_LAGGED = 20  # candidates of a target at later lags
DECIDED = 0.9  # share of one direction in the probability of both
MOST_TESTED = 5000  # rows, evenly spaced, that the test of Gaussian noise looks at
SHORT = (20, 20)  # sweeps, and those before, to learn the priors
ROUNDS = 2  # of learning the priors
MOST_DENSITY = 0.3
ROWS_PER_NODE = 2
SAMPLER = 21  # its random numbers differ from those of other stages with the same seed
Matrix = Float[Tensor, "node node"]


@dataclass(frozen=True, eq=False)
class SimultaneousEvidence:
    """What is known of the edges, as matrices whose rows receive.

    ``exists``  at any lag; ``effect``  of all lags; ``lagged_density``, ``within_density``  learned priors
    """

    exists: Matrix
    effect: Matrix
    within: WithinStep
    lagged_density: float
    within_density: float


def simultaneous_evidence(
    pairs: Pairs,
    layout: SeriesLayout,
    first: ParentEvidence,
    may_act: Bool[Tensor, "node node"],
    *,
    density: float | None = None,
    seed: int = 0,
    names: tuple[str, ...] = (),
) -> SimultaneousEvidence:
    """Return the probability of each edge where those of ``may_act`` may act within the step.

    ``first`` is the evidence of lagged parents alone; its columns are used. ``density`` is the prior probability of an
    edge, lagged or within the step; both are learned when None.
    """
    names = names or tuple(map(str, range(pairs.num_nodes)))
    _require_sizes(pairs, first)
    columns = build_columns(pairs, layout, replace(first.form, products=False))
    require_distinct(columns.targets[..., 0], columns.observed, names)
    search = _Search.of(columns, first, may_act, seed)
    scores = search.scores(first.density)
    lagged_density, within_density = first.density, START_DENSITY if density is None else density
    for _ in range(ROUNDS if density is None else 0):
        found = search.sample(scores, within_density, short=True)
        lagged_density, within_density = found.densities(search)
    scores = search.scores(lagged_density)
    found = search.sample(scores, within_density)
    directions = search.directions(found, scores, within_density)
    outside = search.candidates.left_out(within_density)
    probs = found.within + outside
    exists = 1 - (1 - found.exists) * (1 - outside)
    either = 1 - (1 - found.either) * (1 - 2 * outside)
    acyclic = found.best & (probs + probs.mT >= BELIEVED)
    either = either.fill_diagonal_(0.0)
    within = WithinStep(probs, found.lagged, either, directions, acyclic, search.gaussian)
    effect = within_effects(columns, first.candidates, acyclic, found.lagged >= BELIEVED)
    return SimultaneousEvidence(exists.fill_diagonal_(0.0), effect, within, lagged_density, within_density)


def _require_sizes(pairs: Pairs, first: ParentEvidence) -> None:
    nodes = pairs.num_nodes
    require(
        nodes <= MOST_NODES,
        f"simultaneous in [graph] is for up to {MOST_NODES} nodes, got {nodes}; leave it out, or choose columns",
    )
    needed = ROWS_PER_NODE * (nodes + first.form.lags + 1)
    require(
        len(pairs) >= needed,
        f"simultaneous in [graph] requires at least {needed} rows beyond the window for {nodes} nodes, got "
        f"{len(pairs)}; leave it out, or pass more rows",
    )


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of the sets of all targets, without the prior of an edge within the step."""

    of_targets: list[TargetScores]
    lagged: list[Float[np.ndarray, "_ node"]]

    def tables(self, candidates: list[Int[np.ndarray, "_"]], density: float, *, shapes: bool) -> ParentScores:
        """Return the scores with the prior of an edge within the step, with the shape of the noise or without."""
        price = math.log(density / (1 - density))
        found = []
        for one, members in zip(self.of_targets, candidates, strict=True):
            sizes = (np.arange(len(one.scores))[:, None] >> np.arange(len(members)) & 1).sum(1)
            found.append((one.scores + one.shapes * shapes).numpy() + price * sizes)
        return ParentScores(candidates, found)


@dataclass(frozen=True, eq=False)
class _Sampled:
    """Means over sampled graphs; ``best`` is the one with the largest score."""

    within: Matrix
    lagged: Matrix
    exists: Matrix
    either: Matrix
    best: Bool[Tensor, "node node"]

    def densities(self, search: "_Search") -> tuple[float, float]:
        """Return the prior probabilities of a lagged edge and of one within the step."""
        start, total = BETA[0], sum(BETA)
        lagged = (start + float(self.lagged.sum())) / (total + search.num_lagged)
        within = (start + float(self.within.sum())) / (total + search.num_within)
        return min(lagged, MOST_DENSITY), min(within, MOST_DENSITY)


@dataclass(frozen=True, eq=False)
class _Search:
    """The columns, the candidates at later lags and within the step, and how likely Gaussian noise is."""

    columns: Columns
    later: Candidates
    candidates: WithinCandidates
    gaussian: float
    num_lagged: int
    num_within: int
    seed: int

    @property
    def members(self) -> list[Int[np.ndarray, "_"]]:
        """The candidates of each node within the step."""
        return [self.candidates.of_node(node).numpy() for node in range(len(self.candidates.chosen))]

    @classmethod
    def of(cls, columns: Columns, first: ParentEvidence, may_act: Bool[Tensor, "node node"], seed: int) -> "_Search":
        believed = first.probs >= KEEP
        left = diagnostics.residuals(columns, first.candidates, believed)
        within = WithinCandidates.of(left, columns.observed, may_act)
        later = _later_candidates(first, within)
        pairs = int((may_act | may_act.mT).triu(1).sum())
        return cls(
            columns,
            later,
            within,
            gaussian_noise(left, columns.observed),
            int(first.candidates.used.sum()),
            2 * pairs,
            seed,
        )

    @property
    def uses_shapes(self) -> bool:
        """Is the noise not Gaussian, so that its shape says something?"""
        return self.gaussian < NOT_GAUSSIAN

    def scores(self, density: float) -> _Scores:
        """Return the scores of all targets."""
        of_targets, by_source = [], []
        for node in range(len(self.members)):
            now, later = torch.from_numpy(self.members[node]), self.later
            found = target_scores(self.columns, later, node, now, density, shapes=self.uses_shapes)
            lagged = np.zeros((len(found.scores), len(self.members)))
            used = later.used[node]
            lagged[:, later.sources[node][used].numpy()] = found.lagged[:, used].numpy()
            of_targets.append(found)
            by_source.append(lagged)
        return _Scores(of_targets, by_source)

    def sample(self, scores: _Scores, density: float, *, short: bool = False, shapes: bool = True) -> _Sampled:
        """Return means over sampled graphs, given the prior probability of an edge within the step."""
        tables = scores.tables(self.members, density, shapes=shapes)
        sampler = GraphSampler(tables, np.random.default_rng([self.seed, SAMPLER]))
        nodes = len(self.members)
        sums, count = np.zeros((4, nodes, nodes)), 0
        best, largest = sampler.states[0], -math.inf
        for states in sampler.sweeps(*SHORT) if short else sampler.sweeps():
            within = tables.graphs(states).astype(float)
            lagged = np.stack([scores.lagged[node][states[:, node]] for node in range(nodes)], 1)
            exists = within + (1 - within) * lagged
            either = 1 - (1 - exists) * (1 - exists.transpose(0, 2, 1))
            sums += np.stack([values.mean(0) for values in (within, lagged, exists, either)])
            totals = tables.totals(states)
            if totals.max() > largest:
                best, largest = states[totals.argmax()].copy(), float(totals.max())
            count += 1
        within, lagged, exists, either = torch.from_numpy(sums / count)
        return _Sampled(within, lagged, exists, either, torch.from_numpy(tables.graphs(best[None])[0]))

    def directions(self, found: _Sampled, scores: _Scores, density: float) -> Int[Tensor, "node node"]:
        """Return how the direction of each pair is known."""
        directions = torch.full(found.within.shape, TIME, dtype=torch.long)
        may = found.within + found.within.mT >= KEEP
        decided = _decided(found.within)
        by_past = decided
        if self.uses_shapes:
            by_past = _decided(self.sample(scores, density, shapes=False).within) & decided
        directions[may & ~(decided | decided.mT)] = OPEN
        directions[may & decided] = LEARNED
        directions[may & by_past] = LAGGED_PARENTS
        return directions.fill_diagonal_(0)


def gaussian_noise(residuals: Float[Tensor, "row node"], known: Float[Tensor, "row node"]) -> float:
    """Return the p-value of the test that all nodes have Gaussian noise: the least of Shapiro and Wilk, times nodes."""
    from scipy import stats

    least = 1.0
    for values, seen in zip(residuals.mT, known.mT, strict=True):
        some = values[seen > 0]
        some = some[:: -(-len(some) // MOST_TESTED)] if len(some) else some
        if len(some) >= 3 and float(some.std()) > 0:
            least = min(least, float(stats.shapiro(some.numpy()).pvalue))
    return min(1.0, least * residuals.shape[1])


def _decided(within: Matrix) -> Bool[Tensor, "node node"]:
    """Return the edges that have most of the probability of both directions."""
    return within >= DECIDED * (within + within.mT).clamp_min(1e-12)


def _later_candidates(first: ParentEvidence, within: WithinCandidates) -> Candidates:
    """Return the lagged candidates of each target: likely ones, and those of its candidates within the step.

    Beside a child within the step the past of that child, and what leads to it, explains the target.
    """
    candidates = first.candidates
    if candidates.width <= MOST_LAGGED:
        return candidates
    probs = torch.zeros_like(within.strength)
    target = candidates.targets[:, None].expand_as(candidates.sources)
    probs[target[candidates.used], candidates.sources[candidates.used]] = first.probs[candidates.used]
    chosen = within.chosen.to(probs)
    around = (chosen[:, :, None] * probs).amax(1) + chosen
    ranks = (2 * probs + around).gather(1, candidates.sources)
    return candidates.picked(candidates.best(ranks, MOST_LAGGED))

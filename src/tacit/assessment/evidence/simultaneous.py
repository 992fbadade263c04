r"""Evidence if edges may act within a step: a structural model with an acyclic graph within the step.

$$y_t = B_0\, y_t + \text{lagged part} + e_t$$

1. Regressions on lagged parents only give the columns of a lagged parent and first residuals, whose correlations give
   the candidates within the step (:mod:`tacit.assessment.evidence.within_step`).
2. Every set of candidates of each target gets a score (:mod:`tacit.assessment.evidence.within_scores`).
3. Acyclic graphs are sampled by these scores (:mod:`tacit.assessment.evidence.within_step`). If a test rejects
   Gaussian noise, the scores include its shape, which identifies directions that a Gaussian likelihood does not.
4. The prior probabilities of edges within the step and of lagged edges are learned, as in the lagged-only case.

The direction of an edge within the step is *learned* if the shape of the noise determines it, *from lagged parents* if
Gaussian scores determine it, and otherwise *open*.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence import diagnostics
from tacit.assessment.evidence.candidates import DOUBLE, Candidates, Columns, build_columns
from tacit.assessment.evidence.parent_evidence import BELIEVED, BETA, ParentEvidence
from tacit.assessment.evidence.result import KEEP
from tacit.assessment.evidence.within_effects import within_effects
from tacit.assessment.evidence.within_scores import TargetScores, target_scores
from tacit.assessment.evidence.within_step import (
    LAGGED_PARENTS,
    LEARNED,
    MOST,
    NOT_GAUSSIAN,
    RULE,
    START_DENSITY,
    TIME,
    GraphSampler,
    ParentScores,
    WithinCandidates,
    WithinStep,
    require_distinct,
)
from tacit.data import Pairs
from tacit.edges import OPEN
from tacit.errors import require
from tacit.predictors import SeriesLayout

MOST_NODES = 100
MOST_LAGGED = 20  # lagged candidates of a target
DECIDED = 0.9  # share of one direction in the probability of both
CLEARLY_BETTER = 3.0  # log score of the best graph with an edge minus that of the best with the other direction
MOST_TESTED = 5000  # evenly spaced rows in the test of Gaussian noise
SHORT = (20, 20)  # sweeps, and burn-in sweeps, to learn the priors
ROUNDS = 2  # iterations for the priors
MOST_DENSITY = 0.3
ROWS_PER_NODE = 2
FEWEST_ROWS = 5  # per column of the smallest regression
LOWEST = -1e300  # score of a graph that was not sampled
SAMPLER = 21  # its random numbers differ from those of other stages with the same seed
Matrix = Float[Tensor, "node node"]


@dataclass(frozen=True, eq=False)
class SimultaneousEvidence:
    """The evidence for each edge, as matrices with targets as rows.

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
    required: Bool[Tensor, "node node"] | None = None,
    *,
    prior: Matrix | None = None,
    density: float | None = None,
    seed: int = 0,
    names: tuple[str, ...] = (),
) -> SimultaneousEvidence:
    """Return the probability of each edge; edges in ``may_act`` may act within the step, those ``required`` must.

    ``first`` is the evidence of lagged parents only; its columns are used. ``density`` is the prior probability of an
    edge, lagged or within the step; None to learn both. ``prior`` contains priors of single edges, NaN elsewhere.
    """
    names = names or tuple(map(str, range(pairs.num_nodes)))
    nodes = pairs.num_nodes
    required = torch.zeros_like(may_act) if required is None else required
    prior = torch.full((nodes, nodes), torch.nan, dtype=DOUBLE) if prior is None else prior
    columns = build_columns(pairs, layout, replace(first.form, products=False))
    _require_sizes(columns.observed, first, required, names)
    require_distinct(columns.targets[..., 0], columns.observed, names)
    search = _Search.of(columns, first, may_act, required, prior, seed)
    search.require_rows(names)
    scores = search.scores(first.density)
    lagged_density, within_density = first.density, START_DENSITY if density is None else density
    for _ in range(ROUNDS if density is None else 0):
        found = search.sample(scores, within_density, short=True)
        lagged_density, within_density = found.densities(search)
    scores = search.scores(lagged_density)
    found = search.sample(scores, within_density)
    outside, capped = search.candidates.left_out(within_density), search.candidates.capped
    probs = found.within + outside
    exists = 1 - (1 - found.exists) * (1 - outside)
    probs, exists = (torch.where(capped, (values + values.mT) / 2, values) for values in (probs, exists))
    either = (1 - (1 - found.either) * (1 - (outside + outside.mT).clamp_max(1.0))).fill_diagonal_(0.0)
    acyclic = found.best & (probs + probs.mT >= BELIEVED)
    directions = search.directions(found, scores, probs, within_density)
    within = WithinStep(probs, found.lagged, either, directions, acyclic, search.gaussian, _many(capped))
    effect = within_effects(search.columns, first.candidates, acyclic, found.lagged >= BELIEVED)
    return SimultaneousEvidence(exists.fill_diagonal_(0.0), effect, within, lagged_density, within_density)


def _many(capped: Bool[Tensor, "node node"]) -> tuple[str, ...]:
    """Return a sentence on pairs that are left open because a node has more candidates than can be compared."""
    pairs = int(capped.triu().sum())
    said = f"More than {MOST} nodes may act on one node within the step: the directions of {pairs} pairs are left open."
    return (said,) if pairs else ()


def _require_sizes(
    observed: Float[Tensor, "row node"],
    first: ParentEvidence,
    required: Bool[Tensor, "node node"],
    names: tuple[str, ...],
) -> None:
    nodes, known = observed.shape[1], int(observed.sum(0).min())
    require(
        nodes <= MOST_NODES,
        f"simultaneous in [graph] supports at most {MOST_NODES} nodes, got {nodes}; leave it out, or choose columns",
    )
    needed = ROWS_PER_NODE * (nodes + first.form.lags + 1)
    require(
        known >= needed,
        f"simultaneous in [graph] requires at least {needed} observed values per node for {nodes} nodes, got {known}; "
        "leave it out, or pass more rows",
    )
    counts = required.sum(1)
    require(
        int(counts.max()) <= MOST,
        f"at most {MOST} required edges into a node may act only within the step (max_lag = 0), got "
        f"{int(counts.max())} into {names[int(counts.argmax())]}; raise max_lag of some",
    )


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of the sets of all targets, without the prior of an edge within the step."""

    of_targets: list[TargetScores]
    lagged: list[Float[np.ndarray, "_ node"]]

    def tables(self, search: "_Search", density: float, *, shapes: bool) -> ParentScores:
        """Return the scores with the prior of an edge within the step, with the shape of the noise or without."""
        usual, found, start = torch.tensor(density, dtype=DOUBLE), [], []
        prices = torch.logit(torch.where(search.prior.isnan(), usual, search.prior)).numpy()
        for node, (one, members) in enumerate(zip(self.of_targets, search.members, strict=True)):
            numbers, must = np.arange(len(one.scores)), search.required[node].numpy()[members]
            inside = numbers[:, None] >> np.arange(len(members)) & 1
            least = int((must << np.arange(len(members))).sum())  # the set of the required parents
            scores = (one.scores + one.shapes * shapes).numpy() + inside @ prices[node, members]
            found.append(np.where(numbers & least == least, scores, -np.inf))
            start.append(least)
        return ParentScores(search.members, found, np.array(start))


@dataclass(frozen=True, eq=False)
class _Sampled:
    """Means over sampled graphs; ``best`` is the graph with the largest score, ``scores`` the best with each edge."""

    within: Matrix
    lagged: Matrix
    exists: Matrix
    either: Matrix
    best: Bool[Tensor, "node node"]
    scores: Matrix

    @property
    def decided(self) -> Bool[Tensor, "node node"]:
        """The edges with most of the probability of both directions, and with a clearly better graph.

        The share alone is not sufficient: most graphs of an equivalence class may have the same direction of an edge.
        """
        shares = self.within >= DECIDED * (self.within + self.within.mT).clamp_min(1e-12)
        return shares & (self.scores - self.scores.mT >= CLEARLY_BETTER)

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
    may_act: Bool[Tensor, "node node"]
    required: Bool[Tensor, "node node"]
    prior: Matrix
    num_lagged: int
    num_within: int
    seed: int

    @property
    def members(self) -> list[Int[np.ndarray, "_"]]:
        """The candidates of each node within the step."""
        return [self.candidates.of_node(node).numpy() for node in range(len(self.candidates.chosen))]

    @classmethod
    def of(
        cls,
        columns: Columns,
        first: ParentEvidence,
        may_act: Bool[Tensor, "node node"],
        required: Bool[Tensor, "node node"],
        prior: Matrix,
        seed: int,
    ) -> "_Search":
        believed = first.probs >= KEEP
        left = diagnostics.residuals(columns, first.candidates, believed)
        within = WithinCandidates.of(left, columns.observed, may_act, required)
        later = _later_candidates(first, within)
        pairs = int((may_act | may_act.mT).triu(1).sum())
        return cls(
            replace(columns, observed=within.complete_rows(columns.observed)),
            later,
            within,
            gaussian_noise(left, columns.observed),
            may_act,
            required,
            prior,
            int(first.candidates.used.sum()),
            2 * pairs,
            seed,
        )

    def require_rows(self, names: tuple[str, ...]) -> None:
        """Raise an error if too few rows have observed values of all connected nodes."""
        known = self.columns.observed.sum(0)
        needed = FEWEST_ROWS * (int(self.columns.num_always.max()) + self.columns.group_size + 1)
        node = int(known.argmin())
        require(
            int(known[node]) >= needed,
            f"simultaneous in [graph] requires at least {needed} rows in which a node and all nodes that it may act on "
            f"within the step are observed, got {int(known[node])} for {names[node]}; leave it out, or fill missing "
            "values",
        )

    @property
    def uses_shapes(self) -> bool:
        """True if the noise is not Gaussian, so that its shape is informative."""
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
        tables = scores.tables(self, density, shapes=shapes)
        sampler = GraphSampler(tables, np.random.default_rng([self.seed, SAMPLER]))
        nodes = len(self.members)
        sums, count, with_edge = np.zeros((4, nodes, nodes)), 0, np.full((nodes, nodes), -np.inf)
        best, largest = sampler.states[0], -math.inf
        for states in sampler.sweeps(*SHORT) if short else sampler.sweeps():
            within = tables.graphs(states).astype(float)
            lagged = np.stack([scores.lagged[node][states[:, node]] for node in range(nodes)], 1)
            exists = within + (1 - within) * lagged
            either = 1 - (1 - exists) * (1 - exists.transpose(0, 2, 1))
            sums += np.stack([values.mean(0) for values in (within, lagged, exists, either)])
            everywhere = tables.totals(sampler.states)[:, None, None]  # at all temperatures
            with_edge = np.maximum(with_edge, np.where(tables.graphs(sampler.states), everywhere, -np.inf).max(0))
            totals = tables.totals(states)
            if totals.max() > largest:
                best, largest = states[totals.argmax()].copy(), float(totals.max())
            count += 1
        within, lagged, exists, either = torch.from_numpy(sums / count)
        graph = torch.from_numpy(tables.graphs(best[None])[0])
        scores_with = torch.from_numpy(np.maximum(with_edge, LOWEST))
        return _Sampled(within, lagged, exists, either, graph, scores_with)

    def directions(self, found: _Sampled, scores: _Scores, probs: Matrix, density: float) -> Int[Tensor, "node node"]:
        """Return how the direction of each edge that probably acts within the step was determined."""
        directions = torch.full(probs.shape, TIME, dtype=torch.long)
        may = probs + probs.mT >= BELIEVED
        decided = found.decided & ~self.candidates.capped & self.candidates.chosen
        by_past = decided
        if self.uses_shapes:
            by_past = self.sample(scores, density, shapes=False).decided & decided
        later = found.lagged >= DECIDED  # a lagged effect determines the direction
        directions[may & ~(decided | decided.mT) & ~(later | later.mT)] = OPEN
        directions[may & decided] = LEARNED
        directions[may & by_past] = LAGGED_PARENTS
        directions[may & decided & (self.required | (self.may_act & ~self.may_act.mT))] = RULE
        return directions.fill_diagonal_(0)


def gaussian_noise(residuals: Float[Tensor, "row node"], known: Float[Tensor, "row node"]) -> float:
    """Return the p-value for Gaussian noise at all nodes: Shapiro-Wilk with a Bonferroni correction."""
    from scipy import stats

    least = 1.0
    for values, seen in zip(residuals.mT, known.mT, strict=True):
        some = values[seen > 0]
        some = some[:: -(-len(some) // MOST_TESTED)] if len(some) else some
        if len(some) >= 3 and float(some.std()) > 0:
            least = min(least, float(stats.shapiro(some.numpy()).pvalue))
    return min(1.0, least * residuals.shape[1])


def _later_candidates(first: ParentEvidence, within: WithinCandidates) -> Candidates:
    """Return the lagged candidates of each target: likely ones, and those of its candidates within the step.

    Given a child within the step, the past of that child and its parents help to explain the target.
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

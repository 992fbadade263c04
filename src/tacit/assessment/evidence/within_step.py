r"""Parts of the search for effects within a step.

The pairs of nodes that may act on each other within a step, from the residuals given lagged parents.

With $r_{ij \cdot Z}$ the correlation of two residuals given those of other nodes $Z$, a pair is a candidate if

$$-\tfrac{n}{2} \log(1 - r^2) - \tfrac12 \log n + \log \tfrac{2 \pi_0}{1 - 2 \pi_0} > -4, \qquad
r = \max\big( |r_{ij \cdot \text{all others}}|,\; \min_k |r_{ij \cdot k}|, \dots \big)$$

An edge shows in the correlation given all others, unless a common child hides it; then it shows given none or any
single one.

The evidence of residuals against a Gaussian shape.

For residuals $u_t$ with mean 0 and variance 1 the log Bayes factor against a Gaussian is

$$\log\Big( \tfrac12 + \tfrac12 \sum_d \pi_d \prod_t \frac{f_d(u_t)}{\varphi(u_t)} \Big),$$

with densities $f_d$ of many shapes (peaked, flat, heavy-tailed, skewed, bimodal) at several scales. The Gaussian has
half of the prior probability, so Gaussian residuals get about 0. All densities are tabulated over bins: the sums over
$t$ are products of a histogram with these tables.

Sampling of acyclic graphs by the scores of parent sets: block Gibbs over two nodes, with parallel tempering.

The probability of an acyclic graph is $\propto \exp \sum_i s_i(S_i)$, where $S_i$ are the parents of node $i$ among its
candidates. A step selects two nodes $i, j$ and resamples both parent sets given all others. Let $D_i$ and $D_j$ be $i$
and $j$ with all of their descendants while both have no parents. There is no cycle if
$S_i \cap D_i = S_j \cap D_j = \emptyset$ and at most one of $S_i \cap D_j$ and $S_j \cap D_i$ is nonempty. So the two
sets are independent in each of two cases, and a draw is exact:

$$\text{(a)}\; S_j \cap D_i = \emptyset, \qquad \text{(b)}\; S_j \cap D_i \ne \emptyset,\; S_i \cap D_j = \emptyset.$$

One step can reverse an edge together with all other parents of its ends. Chains at higher temperatures, which swap
their graphs with colder ones, move between distant modes. There are many small steps, for which numpy arrays are
several times faster than tensors.

Effects within a step: the edges that act at lag 0, and how their direction was determined.

$$y_t = B_0\, y_t + \text{lagged part} + e_t$$
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.edges import OPEN
from tacit.errors import InputError

MOST = 8  # candidates of a target within the step: 256 sets
LEAST_ODDS = -4.0
START_DENSITY = 0.05  # initial prior probability of an edge within the step
EXACT = 1e-9  # unexplained share of a node's variance below which it is a copy of other nodes
Matrix = Float[Tensor, "node node"]
Edges = Bool[Tensor, "node node"]


@dataclass(frozen=True, eq=False)
class WithinCandidates:
    """The candidates of each row's node.

    ``strength``  the absolute correlation of each pair; ``may_act``  the edges that rules allow within the step
    ``capped``    pairs of which one direction is excluded because a node has too many candidates; they stay open
    """

    strength: Matrix
    may_act: Edges
    chosen: Edges
    capped: Edges
    rows: float

    @classmethod
    def of(
        cls, residuals: Float[Tensor, "row node"], known: Float[Tensor, "row node"], may_act: Edges, required: Edges
    ) -> "WithinCandidates":
        """Return the candidates among the edges that may act within the step, including those that must."""
        correlation, rows = _correlations(residuals, known)
        nodes = len(correlation)
        given_all = _given_all(correlation, nodes / (4 * rows))
        given_one = _given_one(correlation)
        strength = torch.maximum(given_all, given_one).fill_diagonal_(0.0).clamp_max(1 - 1e-9)
        nothing = torch.zeros_like(may_act)
        odds = cls(strength, may_act, nothing, nothing, rows).log_odds(START_DENSITY)
        possible = ((odds > LEAST_ODDS) & may_act) | required
        ranks = odds.masked_fill(~possible, -torch.inf).masked_fill(required, torch.inf)
        best = torch.zeros_like(possible).scatter_(1, ranks.topk(min(MOST, nodes - 1), 1).indices, True)
        chosen = possible & best
        capped = possible & possible.mT & (chosen ^ chosen.mT)
        return cls(strength, may_act, chosen, capped, rows)

    def log_odds(self, density: float) -> Matrix:
        """Return the log odds of an edge in either direction, from the correlation only."""
        fit = -self.rows / 2 * torch.log1p(-self.strength.square()) - math.log(self.rows) / 2
        return fit + math.log(2 * density / (1 - 2 * density))

    def left_out(self, density: float) -> Matrix:
        """Return the probability of each edge that is not a candidate, split between the allowed directions."""
        both, may = self.chosen | self.chosen.mT, self.may_act.to(self.strength)
        shares = may / (may + may.mT).clamp_min(1.0)
        return (torch.sigmoid(self.log_odds(density)) * shares).masked_fill(both, 0.0).fill_diagonal_(0.0)

    def of_node(self, node: int) -> Int[Tensor, " member"]:
        """Return the candidates of a node."""
        return self.chosen[node].nonzero()[:, 0]

    def complete_rows(self, observed: Float[Tensor, "row node"]) -> Float[Tensor, "row node"]:
        """Return 1 for the rows in which a node and all nodes connected to it by candidates are observed.

        Scores of connected nodes are compared with each other, so they must use the same rows.
        """
        reach = (self.chosen | self.chosen.mT).to(observed) + torch.eye(len(self.chosen)).to(observed)
        for _ in range(len(self.chosen).bit_length()):
            reach = (reach @ reach).clamp_max(1.0)
        return ((1 - observed) @ reach == 0).to(observed)


def require_distinct(
    values: Float[Tensor, "row node"], known: Float[Tensor, "row node"], names: tuple[str, ...]
) -> None:
    """Raise an error for nodes that are copies of others: their effects within a step are not identifiable."""
    correlation, rows = _correlations(values, known)
    alike = (correlation.abs() > 1 - EXACT).triu(1).nonzero()
    if len(alike):
        first, second = (names[node] for node in alike[0].tolist())
        raise InputError(
            f"simultaneous in [graph] requires nodes with different values, got {first} and {second} with the same "
            "values up to scale; drop one of them"
        )
    if rows > 2 * len(names) and bool(known.all()):
        sizes, vectors = torch.linalg.eigh(correlation)
        if float(sizes[0]) < EXACT:
            name = names[int(vectors[:, 0].abs().argmax())]
            raise InputError(
                f"simultaneous in [graph] requires nodes with different values, got {name} as an exact linear "
                "combination of other nodes; drop it"
            )


def _correlations(values: Float[Tensor, "row node"], known: Float[Tensor, "row node"]) -> tuple[Matrix, float]:
    """Return the correlations over the rows in which both nodes are observed, and the smallest number of such rows."""
    both = known.mT @ known
    values = values * known
    mean = (values.mT @ known) / both.clamp_min(1)  # of the row's node, where the column's is observed
    cross = values.mT @ values / both.clamp_min(1) - mean * mean.mT
    square = values.square().mT @ known / both.clamp_min(1) - mean.square()
    found = cross / (square * square.mT).clamp_min(1e-300).sqrt()
    return found.clamp(-1, 1).fill_diagonal_(1.0), max(3.0, float(both.min()))


def _given_all(correlation: Matrix, shrinkage: float) -> Matrix:
    shrinkage = min(0.5, shrinkage)
    inverse = torch.linalg.inv((1 - shrinkage) * correlation + shrinkage * torch.eye(len(correlation)).to(correlation))
    size = inverse.diagonal()
    partial: Matrix = (inverse / (size[:, None] * size).abs().sqrt()).abs()
    return partial.nan_to_num(0.0)  # correlations over different rows may have no inverse


def _given_one(correlation: Matrix) -> Matrix:
    """Return the smallest absolute correlation of each pair, given no other node or any single one."""
    least = correlation.abs()
    rest = (1 - correlation.square()).clamp_min(1e-9)
    for other in range(len(correlation)):
        shared = correlation[other]
        partial = (correlation - shared[:, None] * shared) / (rest[other][:, None] * rest[other]).sqrt()
        partial[other], partial[:, other] = 1.0, 1.0
        least = torch.minimum(least, partial.abs())
    return least


WIDEST, BINS = 8.0, 640
SCALES = (0.8, 0.9, 1.0, 1.1, 1.25)
POWERS = (0.7, 1.0, 1.4, 3.0, 8.0)  # exp(-|u|^p): 1 is Laplace, 8 nearly uniform
DEGREES = (3.0, 5.0, 9.0)  # of Student's t
SKEWED = (0.6, 0.8, 0.95)  # share of an exponential in the variance, the rest is Gaussian
MODES = (0.7, 0.9)  # distance of two Gaussians from 0
FLOOR = -60.0  # lower bound of a log density
Bins = Float[Tensor, " bin"]


def shape_evidence(
    residuals: Float[Tensor, "set row"], weights: Float[Tensor, "set row"] | Float[Tensor, " row"]
) -> Float[Tensor, " set"]:
    """Return the log Bayes factor of each set of residuals against a Gaussian, with row weights."""
    weights = weights.expand_as(residuals)
    deviations = ((weights * residuals.square()).sum(1) / weights.sum(1)).sqrt().clamp_min(1e-300)
    places = ((residuals / deviations[:, None] + WIDEST) * (BINS / (2 * WIDEST))).long().clamp_(0, BINS - 1)
    counts = residuals.new_zeros(len(residuals), BINS).scatter_add_(1, places, weights)
    ratios = counts @ _log_ratios().to(counts)  # (set, shape)
    others = torch.logsumexp(ratios, 1) - torch.log(torch.tensor(float(ratios.shape[1])))
    return torch.logaddexp(others, torch.zeros_like(others)) - torch.log(torch.tensor(2.0))


@cache
def _log_ratios() -> Float[Tensor, "bin shape"]:
    """Return the log density of each shape minus that of a Gaussian, at the middle of each bin."""
    fine = torch.linspace(-4 * WIDEST, 4 * WIDEST, 8 * BINS + 1, dtype=torch.float64)
    middles = torch.linspace(-WIDEST, WIDEST, BINS + 1, dtype=torch.float64)
    middles = (middles[1:] + middles[:-1]) / 2
    gaussian = -middles.square() / 2 - 0.5 * torch.log(torch.tensor(2 * torch.pi, dtype=torch.float64))
    found = []
    for density in _densities(fine):
        logs = _standardised(fine, density)
        for scale in SCALES:
            found.append(_looked_up(fine, logs, middles / scale) - torch.log(torch.tensor(scale)) - gaussian)
    return torch.stack(found, 1)


def _densities(u: Bins) -> list[Bins]:
    """Return unnormalised densities, not yet standardised."""
    powers = [torch.exp(-(u.abs() ** power)) for power in POWERS]
    heavy = [(1 + u.square() / degrees) ** (-(degrees + 1) / 2) for degrees in DEGREES]
    modes = [
        torch.exp(-(u - mode).square() / (2 * (1 - mode**2))) + torch.exp(-(u + mode).square() / (2 * (1 - mode**2)))
        for mode in MODES
    ]
    skewed = []
    for share in SKEWED:  # an exponential plus a Gaussian
        rate, sigma = share**-0.5, (1 - share) ** 0.5
        tail = torch.special.log_ndtr(u / sigma - rate * sigma)
        skewed.append(torch.exp(-rate * u + (rate * sigma) ** 2 / 2 + tail))
    return [*powers, *heavy, *modes, *skewed, *(density.flip(0) for density in skewed)]


def _standardised(u: Bins, density: Bins) -> Bins:
    """Return the log density of the standardised variable."""
    density = density / torch.trapezoid(density, u)
    mean = torch.trapezoid(density * u, u)
    deviation = torch.trapezoid(density * (u - mean).square(), u).sqrt()
    return _looked_up(u, density.clamp_min(1e-300).log(), u * deviation + mean) + deviation.log()


def _looked_up(u: Bins, logs: Bins, at: Float[Tensor, " place"]) -> Float[Tensor, " place"]:
    """Return log densities from a table, by linear interpolation."""
    place = ((at - u[0]) / (u[1] - u[0])).clamp(0, len(u) - 1.001)
    low = place.long()
    return torch.lerp(logs[low], logs[low + 1], place - low).clamp_min(FLOOR)


TEMPERATURES = (1.0, 0.6, 0.35, 0.15)  # inverse
SWEEPS, FIRST = 150, 40
CHAINS = 4  # at each temperature
States = Int[np.ndarray, "chain node"]
Graphs = Bool[np.ndarray, "chain node node"]
Logits = Float[np.ndarray, "chain set"]
Sets = Bool[np.ndarray, "chain set"]


@dataclass(frozen=True, eq=False)
class ParentScores:
    """The score of every set of candidate parents of each node; the bits of the number ``s`` define set ``s``.

    ``candidates``  candidate node numbers of each node
    ``scores``      scores of the $2^K$ sets of K candidates
    ``start``       the initial set of each node; possible and without cycles
    """

    candidates: Sequence[Int[np.ndarray, "_"]]
    scores: Sequence[Float[np.ndarray, "_"]]
    start: Int[np.ndarray, " node"] | None = None

    def members(self, node: int) -> Bool[np.ndarray, "set member"]:
        """Mask of the candidates of a node that are in each set."""
        count = len(self.candidates[node])
        return (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(bool)

    def graphs(self, states: States) -> Graphs:
        """Return the graphs in which each node has the set of the given number; rows are targets."""
        chains, nodes = states.shape
        found = np.zeros((chains, nodes, nodes), dtype=bool)
        for node, members in enumerate(self.candidates):
            found[:, node, members] = self.members(node)[states[:, node]]
        return found

    def totals(self, states: States) -> Float[np.ndarray, " chain"]:
        """Return the score of each graph."""
        return np.asarray(np.sum([scores[states[:, node]] for node, scores in enumerate(self.scores)], 0))

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of nodes in which one is a candidate of the other."""
        both = ((node, int(other)) for node, members in enumerate(self.candidates) for other in members)
        return sorted({(min(ends), max(ends)) for ends in both})


class GraphSampler:
    """Markov chains at several temperatures, updated together."""

    def __init__(
        self,
        tables: ParentScores,
        generator: np.random.Generator,
        temperatures: tuple[float, ...] = TEMPERATURES,
        chains: int = CHAINS,
    ) -> None:
        self.tables, self.generator, self.chains = tables, generator, chains
        self.inverse = np.array(temperatures)
        self.states: States = np.zeros((len(temperatures) * chains, len(tables.scores)), dtype=np.int64)
        self.states += 0 if tables.start is None else tables.start
        self.packed = np.packbits(tables.graphs(self.states), 2)  # the parents of each node, eight nodes in a byte
        self.members = [tables.members(node) for node in range(len(tables.scores))]
        self.counts = [members.astype(np.float32) for members in self.members]
        self.logits = [np.repeat(self.inverse, chains)[:, None] * scores for scores in tables.scores]

    def sweeps(self, count: int = SWEEPS, first: int = FIRST) -> Iterator[States]:
        """Yield the states of the coldest chains after each sweep over all pairs, without the ``first`` sweeps."""
        pairs = self.tables.pairs()
        for sweep in range(first + count if pairs else 1):
            for place in self.generator.permutation(len(pairs)):
                self.step(*pairs[place])
            self.swap(sweep % 2)
            if sweep >= first or not pairs:
                yield self.states[: self.chains]

    def step(self, first: int, second: int) -> None:
        """Resample the parents of two nodes."""
        below_first, below_second = self._descendants(first, second)
        one, other = self.logits[first], self.logits[second]
        one_by_first, one_by_second = self._hits(first, below_first), self._hits(first, below_second)
        other_by_first, other_by_second = self._hits(second, below_first), self._hits(second, below_second)
        cases = [
            (one, ~one_by_first),
            (other, ~(other_by_first | other_by_second)),
            (one, ~(one_by_first | one_by_second)),
            (other, other_by_first & ~other_by_second),
        ]
        masses = [_masses(logits, allowed) for logits, allowed in cases]
        with np.errstate(divide="ignore"):  # the second case may be impossible
            sums = [largest + np.log(cumulated[:, -1]) for largest, cumulated in masses]
        log_odds = sums[2] + sums[3] - sums[0] - sums[1]  # of the second case
        uniforms = self.generator.random((3, len(log_odds)))
        takes_first = uniforms[0] * (1 + np.exp(np.minimum(log_odds, 700.0))) < 1
        for node, place in ((first, 0), (second, 1)):
            cumulated = np.where(takes_first[:, None], masses[place][1], masses[place + 2][1])
            below = cumulated <= (uniforms[place + 1] * cumulated[:, -1])[:, None]
            self.states[:, node] = np.minimum(below.sum(1), below.shape[1] - 1)
            parents = np.zeros(self.states.shape, dtype=bool)
            parents[:, self.tables.candidates[node]] = self.members[node][self.states[:, node]]
            self.packed[:, node] = np.packbits(parents, 1)

    def swap(self, parity: int) -> None:
        """Propose swaps of graphs between chains of neighbouring temperatures (Metropolis)."""
        cold = np.arange(parity, len(self.inverse) - 1, 2)
        if not len(cold):
            return
        totals = self.tables.totals(self.states).reshape(len(self.inverse), -1)
        gains = (self.inverse[cold] - self.inverse[cold + 1])[:, None] * (totals[cold + 1] - totals[cold])
        accepted = (np.log(self.generator.random(gains.shape)) < gains)[..., None]
        states = self.states.reshape(*totals.shape, -1)
        low, high = states[cold].copy(), states[cold + 1].copy()
        states[cold], states[cold + 1] = np.where(accepted, high, low), np.where(accepted, low, high)
        self.states = states.reshape(self.states.shape)
        self.packed = np.packbits(self.tables.graphs(self.states), 2)

    def _descendants(self, first: int, second: int) -> Bool[np.ndarray, "2 chain node"]:
        """Return the descendants of each of two nodes, including itself, while both have no parents."""
        reached = np.zeros((2, *self.states.shape), dtype=bool)
        reached[0, :, first] = reached[1, :, second] = True
        fresh = reached
        while fresh.any():
            fresh = (self.packed & np.packbits(fresh, 2)[:, :, None]).any(3) & ~reached
            fresh[:, :, [first, second]] = False
            reached = reached | fresh
        return reached

    def _hits(self, node: int, nodes: Bool[np.ndarray, "chain node"]) -> Sets:
        """Return which sets of a node have a member among the given nodes."""
        inside = nodes[:, self.tables.candidates[node]].astype(np.float32)
        return np.asarray(inside @ self.counts[node].T > 0)


def _masses(logits: Logits, allowed: Sets) -> tuple[Float[np.ndarray, " chain"], Float[np.ndarray, "chain set"]]:
    """Return the largest allowed logit, and the cumulative weights of the sets relative to it."""
    chosen = np.where(allowed, logits, -np.inf)
    largest = chosen.max(1)
    largest = np.where(np.isfinite(largest), largest, -1e300)
    return largest, np.cumsum(np.exp(chosen - largest[:, None]), 1)


# places in tacit.edges.DIRECTIONS
TIME = 1  # the edge acts at later lags, if it exists: time gives the direction
LEARNED = 2  # from noise that is not Gaussian
LAGGED_PARENTS = 3  # from lagged parents of both nodes
RULE = 5  # a rule requires the edge, or forbids the other direction within the step
NOT_GAUSSIAN = 0.01  # level of the test of Gaussian noise


@dataclass(frozen=True, eq=False)
class WithinStep:
    """Effects within a step; rows are targets, columns are sources.

    ``probs``       the probability that each edge acts within the step; ``lagged``  that it acts at later lags
    ``either``      the probability of an edge in either direction, at any lag; symmetric
    ``directions``  how the direction of an edge within the step was determined, a place in ``tacit.edges.DIRECTIONS``:
                    ``OPEN`` for both directions of a pair, ``TIME`` if there is no such effect
    ``acyclic``     the edges within the step of the fitted model: a most likely acyclic graph
    ``gaussian``    the p-value of the test that all noise is Gaussian
    ``notes``       sentences for the user
    """

    probs: Float[Tensor, "node node"]
    lagged: Float[Tensor, "node node"]
    either: Float[Tensor, "node node"]
    directions: Int[Tensor, "node node"]
    acyclic: Bool[Tensor, "node node"]
    gaussian: float
    notes: tuple[str, ...] = field(default=())

    @property
    def not_gaussian(self) -> bool:
        """True if the test rejects Gaussian noise, so that its shape is informative about directions."""
        return self.gaussian < NOT_GAUSSIAN

    def modelled(self, keep: float) -> Bool[Tensor, "node node"]:
        """Return the edges of the model: those that may act at later lags, and those within the step of its graph."""
        return (self.lagged >= keep) | self.acyclic

    @property
    def undirected(self) -> Bool[Tensor, "node node"]:
        """The undirected pairs, whose direction is open; each once, above the diagonal."""
        return (self.directions == OPEN).triu(1)

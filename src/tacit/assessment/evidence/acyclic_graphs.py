r"""Sampling of acyclic graphs by the scores of parent sets: block Gibbs over two nodes, with parallel tempering.

The probability of an acyclic graph is $\propto \exp \sum_i s_i(S_i)$, where $S_i$ are the parents of node $i$ among its
candidates. A step selects two nodes $i, j$ and resamples both parent sets given all others. Let $D_i$ and $D_j$ be $i$
and $j$ with all of their descendants while both have no parents. There is no cycle if
$S_i \cap D_i = S_j \cap D_j = \emptyset$ and at most one of $S_i \cap D_j$ and $S_j \cap D_i$ is nonempty. So the two
sets are independent in each of two cases, and a draw is exact:

$$\text{(a)}\; S_j \cap D_i = \emptyset, \qquad \text{(b)}\; S_j \cap D_i \ne \emptyset,\; S_i \cap D_j = \emptyset.$$

One step can reverse an edge together with all other parents of its ends. Chains at higher temperatures, which swap
their graphs with colder ones, move between distant modes. There are many small steps, for which numpy arrays are
several times faster than tensors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

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

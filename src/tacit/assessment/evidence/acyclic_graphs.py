r"""Graphs without cycles, sampled by their parents' scores: block Gibbs over two nodes, at several temperatures.

The probability of a graph is $\propto \exp \sum_i s_i(S_i)$ with $S_i$ the parents of node $i$ among its candidates,
for graphs without cycles. A step takes two nodes $i, j$ and draws both parent sets anew, given all others. Let $D_i$
and $D_j$ be $i$ and $j$ with all that descends from them while both have no parents. There is no cycle if
$S_i \cap D_i = S_j \cap D_j = \emptyset$ and not both $S_i \cap D_j$ and $S_j \cap D_i$ have members. So the two sets
are independent in each of two cases, and a draw is exact:

$$\text{(a)}\; S_j \cap D_i = \emptyset, \qquad \text{(b)}\; S_j \cap D_i \ne \emptyset,\; S_i \cap D_j = \emptyset.$$

One step can turn an edge around together with all other parents of its ends. Chains at higher temperatures, which swap
their graphs with colder ones, cross what lies between distant graphs.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

TEMPERATURES = (1.0, 0.6, 0.35, 0.15)  # inverse
SWEEPS, FIRST = 240, 60
CHAINS = 4  # at each temperature
States = Int[Tensor, "chain node"]
Graphs = Bool[Tensor, "chain node node"]


@dataclass(frozen=True, eq=False)
class ParentScores:
    """The score of every set of candidate parents of each node, for several versions of the data.

    ``candidates``  node numbers, padded with the node itself: sets with a padded member have the score minus infinity
    ``scores``      set ``s`` has the candidates whose bits are 1 in the number s
    """

    candidates: Int[Tensor, "node candidate"]
    scores: Float[Tensor, "version node set"]

    @property
    def members(self) -> Float[Tensor, "set candidate"]:
        """1 where a candidate is in a set."""
        count = self.candidates.shape[1]
        return (torch.arange(2**count)[:, None] >> torch.arange(count) & 1).to(self.scores)

    def adjacency(self, states: States) -> Graphs:
        """Return the graphs in which each node has the set of that number; rows receive."""
        chains, nodes = states.shape
        graphs = torch.zeros(chains, nodes, nodes, dtype=torch.bool)
        inside = self.members.bool()[states]  # (chain, node, candidate)
        where = self.candidates.expand(chains, -1, -1)
        return graphs.scatter_(2, where, inside)

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of nodes of which one is a candidate of the other."""
        nodes = torch.arange(len(self.candidates))[:, None]
        real = self.candidates != nodes
        first, second = nodes.expand_as(real)[real], self.candidates[real]
        both = {(min(ends), max(ends)) for ends in zip(first.tolist(), second.tolist(), strict=True)}
        return sorted(both)


@dataclass(eq=False)
class GraphSampler:
    """Chains for each version and temperature; all take the same steps at a time."""

    tables: ParentScores
    generator: Generator
    temperatures: tuple[float, ...] = TEMPERATURES
    chains: int = CHAINS

    def __post_init__(self) -> None:
        versions, nodes, _ = self.tables.scores.shape
        each = len(self.temperatures) * self.chains
        self.shape = (versions, len(self.temperatures), self.chains)
        self.version = torch.arange(versions).repeat_interleave(each)
        self.inverse = torch.tensor(self.temperatures).to(self.tables.scores)
        self.inverse = self.inverse.repeat_interleave(self.chains).repeat(versions)
        self.states: States = torch.zeros(versions * each, nodes, dtype=torch.long)
        self.graphs = self.tables.adjacency(self.states)
        self.members = self.tables.members
        self.logits = self.tables.scores[self.version] * self.inverse[:, None, None]  # (chain, node, set)

    def sweeps(self, count: int = SWEEPS, first: int = FIRST) -> Iterator[States]:
        """Yield the states of the coldest chains after each sweep over all pairs, but for the ``first``."""
        pairs = self.tables.pairs()
        for sweep in range(first + count if pairs else 1):
            for place in torch.randperm(len(pairs), generator=self.generator).tolist():
                self.step(*pairs[place])
            self.swap(sweep % 2)
            if sweep >= first or not pairs:
                yield self.states.view(*self.shape, -1)[:, 0].flatten(0, 1)

    def step(self, first: int, second: int) -> None:
        """Draw the parents of two nodes anew."""
        below_first, below_second = self._descendants(first, second)
        one, other = self.logits[:, first], self.logits[:, second]
        one_by_first, one_by_second = self._hits(first, below_first), self._hits(first, below_second)
        other_by_first, other_by_second = self._hits(second, below_first), self._hits(second, below_second)
        case_a = (
            one.masked_fill(one_by_first, -torch.inf),
            other.masked_fill(other_by_first | other_by_second, -torch.inf),
        )
        case_b = (
            one.masked_fill(one_by_first | one_by_second, -torch.inf),
            other.masked_fill(other_by_second | ~other_by_first, -torch.inf),
        )
        sums = [torch.logsumexp(part, 1) for part in (*case_a, *case_b)]
        log_odds = sums[0] + sums[1] - sums[2] - sums[3]
        uniforms = torch.rand(len(one), generator=self.generator, dtype=one.dtype)
        takes_a = uniforms < torch.sigmoid(log_odds)
        for node, part_a, part_b in ((first, case_a[0], case_b[0]), (second, case_a[1], case_b[1])):
            chosen = torch.where(takes_a[:, None], part_a, part_b)
            race = torch.empty_like(chosen).exponential_(generator=self.generator)
            self.states[:, node] = (chosen - race.log()).argmax(1)
            self._write(node)

    def swap(self, parity: int) -> None:
        """Let chains of neighbouring temperatures exchange their graphs, as their scores allow."""
        cold = torch.arange(parity, len(self.temperatures) - 1, 2)
        if not len(cold):
            return
        totals = self.totals().view(self.shape)
        inverse = torch.tensor(self.temperatures).to(totals)
        gains = (inverse[cold] - inverse[cold + 1])[:, None] * (totals[:, cold + 1] - totals[:, cold])
        uniforms = torch.rand(gains.shape, generator=self.generator, dtype=gains.dtype)
        accepted = (uniforms.log() < gains)[..., None]
        states = self.states.view(*self.shape, -1)
        low, high = states[:, cold].clone(), states[:, cold + 1].clone()
        states[:, cold], states[:, cold + 1] = torch.where(accepted, high, low), torch.where(accepted, low, high)
        self.graphs = self.tables.adjacency(self.states)

    def totals(self) -> Float[Tensor, " chain"]:
        """Return the score of each chain's graph."""
        scores = self.tables.scores[self.version]
        return scores.gather(2, self.states[:, :, None])[..., 0].sum(1)

    def _descendants(self, first: int, second: int) -> tuple[Tensor, Tensor]:
        """Return what descends from two nodes, themselves included, while both have no parents."""
        graphs = self.graphs.to(self.logits)
        graphs[:, [first, second]] = 0.0
        found = graphs.new_zeros(len(graphs), graphs.shape[1], 2)
        found[:, first, 0], found[:, second, 1] = 1.0, 1.0
        while True:
            more = (found + graphs @ found).clamp_max(1.0)
            if torch.equal(more, found):
                return found[..., 0], found[..., 1]
            found = more

    def _hits(self, node: int, nodes: Float[Tensor, "chain node"]) -> Bool[Tensor, "chain set"]:
        """Return which sets of a node have a member among some nodes."""
        return nodes[:, self.tables.candidates[node]] @ self.members.mT > 0

    def _write(self, node: int) -> None:
        """Take the present set of a node into the graphs."""
        row = torch.zeros_like(self.graphs[:, node])
        inside = self.members.bool()[self.states[:, node]]
        self.graphs[:, node] = row.scatter_(1, self.tables.candidates[node].expand(len(row), -1), inside)

"""The candidate parents of each target, those that are required, and the prior log odds of each."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.evidence.columns import DOUBLE, Columns
from tacit.evidence.tableau import Matrices, cross_products, quadratic_forms
from tacit.graph import EdgeRules

Weights = Float[Tensor, " row"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """A row per target: ``sources`` it may read, padded; ``used`` says where a place is not padding.

    ``prior``     log odds that a user gave, NaN where none are given
    ``required``  sources of each target that are always in
    """

    targets: Int[Tensor, " target"]
    sources: Int[Tensor, "target candidate"]
    used: Bool[Tensor, "target candidate"]
    prior: Float[Tensor, "target candidate"]
    required: tuple[Int[Tensor, "_"], ...]

    @classmethod
    def from_rules(cls, rules: EdgeRules) -> "Candidates":
        """Return the candidates between different nodes that the rules leave open."""
        num_nodes = len(rules.nodes)
        source, target, given, is_required = rules.open_edges()
        between = source != target
        free = between & ~is_required
        required = tuple(source[between & is_required & (target == node)] for node in range(num_nodes))
        source, target, given = source[free], target[free], given[free]
        order = (target * num_nodes + source).argsort()
        source, target, given = source[order], target[order], given[order]
        degree = torch.bincount(target, minlength=num_nodes)
        place = torch.arange(len(target)) - (degree.cumsum(0) - degree)[target]
        width = max(1, int(degree.max()))
        sources, used = torch.zeros(num_nodes, width, dtype=torch.long), torch.zeros(num_nodes, width, dtype=torch.bool)
        prior = torch.full((num_nodes, width), torch.nan, dtype=DOUBLE)
        sources[target, place], used[target, place], prior[target, place] = source, True, torch.logit(given.to(DOUBLE))
        return cls(torch.arange(num_nodes), sources, used, prior, required)

    @property
    def width(self) -> int:
        """Candidates of a target, with padding."""
        return self.sources.shape[1]

    def chosen(self, rows: slice | Tensor) -> "Candidates":
        """Return some of the targets."""
        numbers = torch.arange(len(self.targets))[rows]
        required = tuple(self.required[number] for number in numbers.tolist())
        parts = {name: getattr(self, name)[numbers] for name in ("targets", "sources", "used", "prior")}
        return replace(self, **parts, required=required)

    def first_targets(self, most: int) -> "Candidates":
        """Return evenly spread targets, at most so many."""
        count = len(self.targets)
        return self if count <= most else self.chosen(torch.linspace(0, count - 1, most).long())

    def screened(self, columns: Columns, most: int) -> "Candidates":
        """Return for each target the ``most`` candidates that explain the largest share of it, each by itself."""
        return self if self.width <= most else self.picked(self.best(self.single_gains(columns), most))

    def best(self, gains: Float[Tensor, "target candidate"], most: int) -> Int[Tensor, "target place"]:
        """Return the places of the candidates with the largest gains, in their order."""
        return gains.masked_fill(~self.used, -1.0).topk(most, 1).indices.sort(1).values

    def picked(self, places: Int[Tensor, "target place"]) -> "Candidates":
        """Return the candidates at some places."""
        return replace(self, **{name: getattr(self, name).gather(1, places) for name in ("sources", "used", "prior")})

    def single_gains(self, columns: Columns) -> Float[Tensor, "target candidate"]:
        """Return the share of its target that each candidate explains by itself, beside what is always in."""
        return torch.stack([self._single_gains(columns, row) for row in range(len(self.targets))])

    def num_always(self, columns: Columns) -> Float[Tensor, " target"]:
        """Return how many columns are always in for each target, those of required parents among them."""
        required = torch.tensor([len(sources) for sources in self.required], dtype=DOUBLE)
        return columns.num_always + columns.group_size * required

    def num_rows(self, columns: Columns, weights: Weights) -> Float[Tensor, " target"]:
        """Return how many rows count for each target."""
        return weights @ columns.observed[:, self.targets]

    def matrices(self, columns: Columns, weights: Weights) -> Matrices:
        """Return the matrix of cross products of each target; padding is a column of its own that explains nothing."""
        return torch.stack([self._matrix(columns, weights, row) for row in range(len(self.targets))])

    def _matrix(self, columns: Columns, weights: Weights, row: int) -> Float[Tensor, "both both"]:
        parents = columns.sources[:, self.sources[row]].flatten(1)  # (row, candidate * column)
        target = columns.targets[:, self.targets[row]]
        weights = weights * columns.observed[:, self.targets[row]]
        found = cross_products(parents, self.always(columns, row), target, weights)
        padding = (~self.used[row]).repeat_interleave(columns.group_size)
        padding = torch.cat([padding, padding.new_zeros(len(found) - len(padding))])
        found[padding] = 0
        found[:, padding] = 0
        found.diagonal()[padding] = 1
        return found

    def always(self, columns: Columns, row: int) -> Float[Tensor, "row column"]:
        """Return the columns that are always in for a target: its own, the shared ones, those of required parents."""
        node, required = self.targets[row], columns.sources[:, self.required[row]].flatten(1)
        return torch.cat([columns.own[:, node], columns.shared, required], 1)

    def _single_gains(self, columns: Columns, row: int) -> Float[Tensor, " candidate"]:
        root = columns.observed[:, self.targets[row], None]
        target, always = columns.targets[:, self.targets[row]] * root, self.always(columns, row) * root
        basis = torch.linalg.qr(always)[0]
        left = target - basis @ (basis.mT @ target)
        parents = columns.sources[:, self.sources[row]] * root[..., None]  # (row, candidate, column)
        within = basis.mT @ parents.flatten(1)  # what the columns share with those always in
        size = columns.group_size
        shared = within.view(len(within), -1, size)
        block = torch.einsum("tca,tcb->cab", parents, parents) - torch.einsum("tca,tcb->cab", shared, shared)
        block = block + 1e-8 * torch.diag_embed(parents.square().sum(0)) + 1e-12 * torch.eye(size, dtype=DOUBLE)
        cross = torch.einsum("tca,to->cao", parents, left)
        explained = quadratic_forms(block[None], cross[None])[0] / left.square().sum(0).clamp_min(1e-300)
        share: Float[Tensor, " candidate"] = explained.mean(-1)
        return share

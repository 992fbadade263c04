r"""Copies: nodes with almost equal values, whose edges into a target cannot be distinguished.

Sources $j$ and $k$ of a target are near-copies if their columns span almost the same space, given the always included
columns of the target. With $q_j$ an orthonormal basis of the $m$ columns of $j$ without that part,

$$\frac{1}{m} \| q_j^\top q_k \|^2 \ge 0.95,$$

for one column each the squared partial correlation. Near-copies are one *group* of the target if the data prefer none
of them: the odds between members are at most 10, and no member has 90% of the probability that any of them is a parent,

$$P(M \cap G \ne \emptyset \mid \text{data}) = \sum_{M: M \cap G \ne \emptyset} p(M \mid \text{data}),$$

which is the ``exists`` of the group. Two nodes are copies of each other if the same holds for their residuals within a
step. Then an edge between them cannot be distinguished from the copying, and has at most its prior probability.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

SAME = 0.95  # squared correlation
EXACT = 1 - 1e-6
ODDS = 10.0
CLEAR = 0.9  # share of a group's probability from which on one member is preferred to the others
LEAST = 0.01  # candidates with a smaller probability are in no group
Groups = Int[Tensor, "target candidate"]


def similarities(
    products: Float[Tensor, "target column column"], sizes: Float[Tensor, "target candidate"]
) -> Float[Tensor, "target candidate candidate"]:
    """Return the mean squared canonical correlation of the columns of two sources, from their cross products.

    ``products`` are those of all sources, residualised on the always included columns. Unused columns are 0.
    """
    targets, count = sizes.shape
    size = products.shape[1] // max(1, count)
    blocks = products.view(targets, count, size, count, size)
    own = blocks.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2)  # (target, candidate, size, size)
    factors, failed = torch.linalg.cholesky_ex(own)
    rows = torch.linalg.solve_triangular(factors, blocks.flatten(3), upper=False)
    both = rows.view(targets, count, size, count, size).permute(0, 3, 4, 1, 2).flatten(3)
    both = torch.linalg.solve_triangular(factors, both, upper=False).view(targets, count, size, count, size)
    shares = both.square().sum((2, 4)) / torch.maximum(sizes[:, :, None], sizes[:, None]).clamp_min(1.0)
    bad = failed > 0
    found: Float[Tensor, "target candidate candidate"] = shares.nan_to_num(0.0)
    return found.masked_fill(bad[:, :, None] | bad[:, None], 0.0)


def near_copies(
    similar: Float[Tensor, "target candidate candidate"], probs: Float[Tensor, "target candidate"]
) -> Groups:
    """Return the groups of near-copies between which the data do not decide: numbers from 1 on, 0 for no group."""
    groups = torch.zeros(probs.shape, dtype=torch.long)
    pool = probs >= LEAST
    alike = (similar >= SAME) & pool[:, :, None] & pool[:, None]
    alike.diagonal(dim1=1, dim2=2).fill_(False)
    for row in alike.any(2).any(1).nonzero()[:, 0].tolist():
        free = pool[row].clone()
        while free.any():
            leader = int(probs[row].masked_fill(~free, -1.0).argmax())
            members = free & alike[row, leader] & (probs[row] * ODDS >= probs[row, leader])
            free[leader] = False
            if members.any():
                members[leader] = True
                groups[row, members] = 1 + int(groups[row].max())
                free &= ~members
    return groups


def undecided(
    groups: Groups, probs: Float[Tensor, "target candidate"], of_any: Float[Tensor, "target candidate"], least: float
) -> Groups:
    """Return the groups in which no member is clear, and whose probability is at least ``least``."""
    drops = (groups > 0) & ((probs >= CLEAR * of_any) | (of_any < least))
    for number in range(1, 1 + int(groups.max())):
        mine = groups == number
        groups = groups.masked_fill(mine & (mine & drops).any(1, keepdim=True), 0)
    return groups


def equal_shares(
    probs: Float[Tensor, "target candidate"], groups: Groups, similar: Float[Tensor, "target candidate candidate"]
) -> Float[Tensor, "target candidate"]:
    """Return the probabilities with their mean for exact copies in a group, which differ by chance in the sampler."""
    same = (groups[:, :, None] == groups[:, None]) & (groups > 0)[:, None] & (similar >= EXACT)
    same.diagonal(dim1=1, dim2=2).fill_(True)
    weights = same.to(probs)
    return (weights @ probs[..., None])[..., 0] / weights.sum(2)


def first_members(groups: Int[Tensor, "row slot"]) -> Bool[Tensor, "row slot"]:
    """Return the first member of each group, which stands for the group in the model.

    >>> first_members(torch.tensor([[0, 1, 2, 1, 2]])).tolist()
    [[False, True, True, False, False]]
    """
    places = torch.arange(groups.numel()).view(groups.shape)
    keys = torch.arange(len(groups))[:, None] * (1 + int(groups.max())) + groups
    first = torch.full((int(keys.max()) + 1,), groups.numel())
    first = first.scatter_reduce(0, keys.flatten(), places.flatten(), "amin")
    return (groups > 0) & (first[keys] == places)


def merged(
    values: Float[Tensor, "*resample target candidate"], groups: Groups
) -> Float[Tensor, "*resample target candidate"]:
    """Return probabilities in which the first member of a group has the sum, at most 1, and the others have 0."""
    found = values.masked_fill(groups > 0, 0.0)
    for number in range(1, 1 + int(groups.max())):
        mine = groups == number
        total = (values * mine).sum(-1, keepdim=True).clamp_max(1.0)
        found = torch.where(mine & first_members(groups), total, found)
    return found


def copies_within_step(
    residuals: Float[Tensor, "row target"], targets: Int[Tensor, " target"], num_nodes: int
) -> Bool[Tensor, "node node"]:
    """Return the pairs of nodes with almost equal residuals."""
    found = torch.zeros(num_nodes, num_nodes, dtype=torch.bool)
    alike = torch.corrcoef(residuals.mT).nan_to_num().square().view(len(targets), len(targets)) >= SAME
    found[targets[:, None], targets] = alike.fill_diagonal_(False)
    return found


def group_names(source: Sequence[int], target: Sequence[int], groups: Sequence[int], nodes: Sequence[str]) -> list[str]:
    """Return the name of the group of each edge, from the number of its group in its row; "" without a group.

    >>> group_names([0, 1, 2], [2, 2, 0], [1, 1, 0], ["inlet", "inlet_copy", "tank"])
    ['inlet or inlet_copy', 'inlet or inlet_copy', '']
    """
    members: dict[tuple[int, int], list[int]] = {}
    for node, row, number in zip(source, target, groups, strict=True):
        if number:
            members.setdefault((row, number), []).append(node)
    names = {key: joined_names([nodes[node] for node in sorted(found)]) for key, found in members.items()}
    return [names.get(key, "") for key in zip(target, groups, strict=True)]


def joined_names(members: Sequence[str]) -> str:
    """Return the name of a group of copies."""
    return " or ".join(members)

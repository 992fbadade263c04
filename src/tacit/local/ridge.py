r"""Ridge regressions of each node on its own inputs and those of its candidates, not on all other nodes.

$$\hat y_i = b_i + u_i\, z_i + \sum_{k} w_{ik}\, x_{c(i, k)}$$

$c(i, k)$ is the node in slot $k$ of node $i$. $z_i$ and $x_j$ are the inputs that a node uses itself and those that it
sends; both are all inputs unless columns are chosen. Inputs and targets are standardised. All nodes share one penalty,
which is chosen on later pairs, from a subset of the nodes if matrices are large. Rows with a missing target are
excluded for that target. ``allowed`` marks the inputs of its source that each slot may use: the weights of others are
0. Nodes are solved in blocks, so that memory grows with the table. If all nodes are candidates and use what they send,
every node is regressed on the same columns, and :func:`~tacit.data.regression.ridge_regression` solves all regressions
together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tacit.data import RIDGE_PENALTIES, Deviations, Pairs, Rows, apply_to_all, ridge_regression, solve_ridge
from tacit.graph import CandidateEdges

BLOCK_NUMBERS = 2**23  # numbers of 8 bytes in the design matrices of one block of nodes
MOST_WORK = 3 * 10**11  # matrices times the cube of their rows: half a minute on one core
MOST_PRODUCTS = 4 * 10**11  # multiplications for the entries of all matrices: half a minute too
MOST_SIDE = 4000  # rows of a matrix: signals are blocked while it is factorised, for about a second
CHOICE_WORK = 5 * 10**9  # multiplications for the nodes on which the penalty is chosen
AllowedInputs = Float[Tensor, "row slot sent"]
OwnColumns = Int[Tensor, " own"]
SentColumns = Int[Tensor, " sent"]
FEWEST_CHOOSE = 4  # smallest number of such nodes, even if their matrices are large


@dataclass(frozen=True)
class LocalRidge:
    """The result of the regressions, in the units of the data.

    ``own``, ``edges``  weights of a node's own inputs and of those of each slot; 0 for empty slots and self-loops
    ``edge_scores``     sum of the absolute standardised weights of each slot
    ``sigmas``          root mean square error on the pairs on which the ``penalty`` was chosen
    """

    own: Float[Tensor, "node own channel"]
    edges: Float[Tensor, "row slot read channel"]
    edge_scores: Float[Tensor, "row slot"]
    intercepts: Float[Tensor, "node channel"]
    sigmas: Float[Tensor, "node channel"]
    penalty: float


def is_affordable(
    candidates: CandidateEdges, in_channels: int, pairs: Pairs | None = None, own: int | None = None
) -> bool:
    """Return whether the regressions take at most about half a minute, for any number of pairs or for these pairs.

    A node sends ``in_channels`` inputs and uses ``own`` itself, the same unless given.
    """
    own = in_channels if own is None else own
    widest = int(torch.bincount(candidates.edges()[1], minlength=candidates.num_nodes).max())
    columns, matrices = own + widest * in_channels, candidates.num_nodes
    side = other = columns
    if pairs is not None:
        side, other = sorted((columns, len(pairs)))
        together = pairs.observed is None and own == in_channels and _is_complete(candidates)
        matrices = 1 if together else matrices
    return side <= MOST_SIDE and matrices * side**3 <= MOST_WORK and matrices * side**2 * other <= MOST_PRODUCTS


def _is_complete(candidates: CandidateEdges) -> bool:
    """Return whether every node may read every other node."""
    source, target = candidates.edges()
    return int((source != target).sum()) == candidates.num_nodes * (candidates.num_nodes - 1)


def local_ridge(
    train: Pairs,
    validation: Pairs,
    candidates: CandidateEdges,
    *,
    penalties: Sequence[float] = RIDGE_PENALTIES,
    allowed: AllowedInputs | None = None,
    own: OwnColumns | None = None,
    sent: SentColumns | None = None,
) -> LocalRidge:
    """Fit every node on ``train`` for each penalty, and keep the penalty with the smallest error on ``validation``.

    ``own`` and ``sent`` are the columns of the inputs that a node uses itself and that it sends; None for all of them.

    >>> inputs = torch.randn(60, 3, 1, generator=torch.Generator().manual_seed(0))
    >>> table = CandidateEdges.from_edges(torch.tensor([2, 0]), torch.tensor([0, 1]), 3)  # 2 -> 0, 0 -> 1
    >>> pairs = Pairs(inputs, inputs[:, [2, 1, 0]])                                       # 0 reads 2, 1 itself
    >>> found = local_ridge(pairs[:40], pairs[40:], table)
    >>> round(found.edges[0].item(), 3), round(found.own[1].item(), 3)
    (1.0, 1.0)
    """
    if allowed is None and own is None and sent is None and _is_complete(candidates):
        return _of_all_nodes(train, validation, candidates, penalties)
    if len(penalties) > 1:
        penalties = [choose_penalty(train, validation, candidates, penalties, allowed, own, sent).penalty]
    penalty = penalties[0]
    readers, scales = _Readers.of(train, candidates, allowed, own, sent), Deviations.of(train)
    rows, later = scales.rows(train), scales.rows(validation)
    weights, shifts, squares = [], [], []
    for block in readers.blocks(train):
        found = _solve(rows, readers, block, [penalty])
        squares.append(_left(later, readers, block, *found)[0])
        weights.append(found[0][0])
        shifts.append(found[1][0])
    left = (torch.cat(squares) / later.there.sum(0).clamp_min(1)).sqrt() * scales.target_scale
    return _in_units(
        torch.cat(weights), torch.cat(shifts), scales, readers, candidates, left, penalty, train.inputs.dtype
    )


@dataclass(frozen=True)
class PenaltyChoice:
    """The penalty with the smallest error on later pairs; ``sigmas`` are the errors of the ``nodes`` used for it."""

    penalty: float
    nodes: Int[Tensor, " chosen"]
    sigmas: Float[Tensor, "chosen channel"]


def choose_penalty(
    train: Pairs,
    validation: Pairs,
    candidates: CandidateEdges,
    penalties: Sequence[float] = RIDGE_PENALTIES,
    allowed: AllowedInputs | None = None,
    own: OwnColumns | None = None,
    sent: SentColumns | None = None,
) -> PenaltyChoice:
    """Choose one penalty for all nodes, from a subset of the nodes if there are many large matrices."""
    if allowed is None and own is None and sent is None and _is_complete(candidates):
        found = ridge_regression(train, validation, penalties=penalties)
        return PenaltyChoice(
            found.penalty, torch.arange(candidates.num_nodes, device=found.sigmas.device), found.sigmas
        )
    readers, scales = _Readers.of(train, candidates, allowed, own, sent), Deviations.of(train)
    rows, later = scales.rows(train), scales.rows(validation)
    side, other = sorted((len(train), readers.num_columns))
    step = -(-candidates.num_nodes // max(FEWEST_CHOOSE, CHOICE_WORK // (side**2 * other)))
    nodes = torch.arange(0, candidates.num_nodes, step, device=train.inputs.device)
    squares = torch.cat(
        [_left(later, readers, b, *_solve(rows, readers, b, penalties)) for b in readers.blocks(train, nodes)], 1
    )  # (penalty, chosen, channel)
    best = int(squares.sum((1, 2)).argmin())
    left = (squares[best] / later.there.sum(0).clamp_min(1)[nodes]).sqrt() * scales.target_scale[nodes]
    return PenaltyChoice(penalties[best], nodes, left.to(train.inputs.dtype))


def _of_all_nodes(
    train: Pairs, validation: Pairs, candidates: CandidateEdges, penalties: Sequence[float]
) -> LocalRidge:
    """Return the regressions of all nodes on all nodes, placed in the table of candidates."""
    found = ridge_regression(train, validation, penalties=penalties)
    candidates = candidates.to(found.coefficients.device)
    (source, target), nodes = candidates.edges(), torch.arange(candidates.num_nodes, device=found.coefficients.device)
    others = (source != target).to(found.coefficients)
    edges = found.coefficients.new_zeros(*candidates.sources.shape, *found.coefficients.shape[2:])
    edges[candidates.used] = found.coefficients[target, source] * others[:, None, None]
    scores = found.edge_scores.new_zeros(candidates.sources.shape)
    scores[candidates.used] = found.edge_scores[target, source] * others
    own = found.coefficients[nodes, nodes]
    return LocalRidge(own, edges, scores, found.intercepts, found.sigmas, found.penalty)


@dataclass(frozen=True)
class _Readers:
    """The sources of each node in one row; ``real`` marks used entries.

    ``node``, ``order``, ``place``  for each edge its target, its column in ``members``, its flat position in the table
    ``allowed``  1 for each input of a member that may be used, None if all may be used
    ``own``, ``sent``  the columns of the inputs that a node uses itself, and those that it sends
    """

    members: Int[Tensor, "node width"]
    real: Bool[Tensor, "node width"]
    node: Int[Tensor, " edge"]
    order: Int[Tensor, " edge"]
    place: Int[Tensor, " edge"]
    allowed: Float[Tensor, "node width sent"] | None
    own: Int[Tensor, " own"]
    sent: Int[Tensor, " sent"]

    @classmethod
    def of(
        cls,
        pairs: Pairs,
        candidates: CandidateEdges,
        allowed: AllowedInputs | None = None,
        own: OwnColumns | None = None,
        sent: SentColumns | None = None,
    ) -> "_Readers":
        candidates = candidates.to(pairs.inputs.device)
        source, node = candidates.edges()
        others, nodes = source != node, torch.arange(candidates.num_nodes, device=source.device)
        source, node = source[others], node[others]
        degree = torch.bincount(node, minlength=candidates.num_nodes)
        order = torch.arange(len(node), device=node.device) - (degree.cumsum(0) - degree)[node]
        members = nodes[:, None].repeat(1, int(degree.max()))
        real = torch.zeros_like(members, dtype=torch.bool)
        members[node, order], real[node, order] = source, True
        place, limits = candidates.used.flatten().nonzero()[others, 0], None
        if allowed is not None:
            limits = torch.ones(*members.shape, allowed.shape[2], dtype=torch.double, device=members.device)
            limits[node, order] = allowed.flatten(0, 1)[place].to(limits)
        every = torch.arange(pairs.inputs.shape[2], device=members.device)
        own, sent = (every if one is None else one.to(every) for one in (own, sent))
        return cls(members, real, node, order, place, limits, own, sent)

    @property
    def num_columns(self) -> int:
        """Number of columns of the widest node."""
        return len(self.own) + self.members.shape[1] * len(self.sent)

    def blocks(self, pairs: Pairs, nodes: Int[Tensor, " chosen"] | None = None) -> Iterator[Int[Tensor, " block"]]:
        """Yield the blocks of nodes that are solved together, of all nodes or of some."""
        size = max(1, BLOCK_NUMBERS // (self.num_columns * max(len(pairs), self.num_columns)))
        nodes = torch.arange(len(self.members), device=self.members.device) if nodes is None else nodes
        return iter(torch.split(nodes, size))


def _design(rows: Rows, readers: _Readers, nodes: Int[Tensor, " block"]) -> Float[Tensor, "block pair column"]:
    """Return the design matrix of each node of a block, padded with 0 for nodes with fewer candidates."""
    real = readers.real[nodes]
    width, every = int(real.sum(1).max()) if real.shape[1] else 0, rows.inputs.shape[2]
    members, real = readers.members[nodes, :width], real[:, :width, None]
    allowed = None if readers.allowed is None else readers.allowed[nodes, :width]
    if len(readers.own) == len(readers.sent) == every:  # one copy of whole rows, the node's own first
        members, real = torch.cat([nodes[:, None], members], 1), nn.functional.pad(real, (0, 0, 1, 0), value=True)
        read = rows.inputs[:, members] * real  # (pair, block, 1 + width, sent)
        if allowed is not None:
            read = read * nn.functional.pad(allowed, (0, 0, 1, 0), value=1.0)
        return read.flatten(2).transpose(0, 1)
    read = rows.inputs[:, members[..., None], readers.sent] * real  # (pair, block, width, sent)
    if allowed is not None:
        read = read * allowed
    own = rows.inputs[:, nodes[:, None], readers.own]  # (pair, block, own)
    return torch.cat([own, read.flatten(2)], 2).transpose(0, 1)


def _solve(
    rows: Rows, readers: _Readers, nodes: Int[Tensor, " block"], penalties: Sequence[float]
) -> tuple[Float[Tensor, "penalty block column channel"], Float[Tensor, "penalty block channel"]]:
    """Return weights and intercepts of some nodes for every penalty."""
    design = _design(rows, readers, nodes)
    weights, shifts = [], []
    for channel in range(rows.targets.shape[2]):
        there = rows.there[:, nodes, channel].T[..., None].double()  # (block, pair, 1)
        count = there.sum(1).clamp_min(1)
        targets = rows.targets[:, nodes, channel].T[..., None]
        design_mean, target_mean = (design * there).sum(1) / count, (targets * there).sum(1) / count
        centred = (design - design_mean[:, None]) * there
        aims = (targets - target_mean[:, None]) * there  # (block, pair, 1)
        found = solve_ridge(centred, aims, count[:, 0], penalties)[..., 0]  # (penalty, block, column)
        weights.append(found)
        shifts.append(target_mean[:, 0] - (design_mean * found).sum(-1))
    padded = torch.nn.functional.pad(torch.stack(weights, -1), (0, 0, 0, readers.num_columns - design.shape[2]))
    return padded, torch.stack(shifts, -1)


def _left(
    rows: Rows, readers: _Readers, nodes: Int[Tensor, " block"], weights: Tensor, shifts: Tensor
) -> Float[Tensor, "penalty block channel"]:
    """Return the sum of squared errors of some nodes on other pairs, for every penalty."""
    design = _design(rows, readers, nodes)
    means = (
        apply_to_all(design, weights[:, :, : design.shape[2]]) + shifts[:, :, None]
    )  # (penalty, block, pair, channel)
    errors = torch.where(rows.there[:, nodes], means.movedim(2, 1) - rows.targets[:, nodes], 0.0)
    return errors.square().sum(1)


def _in_units(
    weights: Float[Tensor, "node column channel"],
    shifts: Float[Tensor, "node channel"],
    scales: Deviations,
    readers: _Readers,
    candidates: CandidateEdges,
    sigmas: Float[Tensor, "node channel"],
    penalty: float,
    dtype: torch.dtype,
) -> LocalRidge:
    """Return the regressions in the units of the data, with the edge weights in their slots."""
    used = len(readers.own)
    target_scale = scales.target_scale[:, None]  # (node, 1, channel)
    own = weights[:, :used] * target_scale / scales.input_scale[:, readers.own, None]
    by_member = weights[:, used:].reshape(*readers.members.shape, len(readers.sent), weights.shape[-1])
    means, sizes = (  # (node, width, sent, 1)
        one[readers.members[..., None], readers.sent][..., None] for one in (scales.input_mean, scales.input_scale)
    )
    in_units = by_member * target_scale[:, None] / sizes
    taken = (means * in_units).sum((1, 2)) + (scales.input_mean[:, readers.own, None] * own).sum(1)
    intercepts = scales.target_mean + shifts * scales.target_scale - taken
    edges = in_units.new_zeros(candidates.used.numel(), *in_units.shape[2:])
    edges[readers.place] = in_units[readers.node, readers.order]
    scores = in_units.new_zeros(candidates.used.numel())
    scores[readers.place] = by_member.abs().sum((2, 3))[readers.node, readers.order]
    size = tuple(candidates.sources.shape)
    return LocalRidge(
        own.to(dtype),
        edges.view(*size, *edges.shape[1:]).to(dtype),
        scores.view(size).to(dtype),
        intercepts.to(dtype),
        sigmas.to(dtype),
        penalty,
    )

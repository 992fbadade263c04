r"""Interactions of parents: all sets of few parents, with all products of two of them.

With $v_j$ the value of source $j$ and $v_i$ that of the target itself, the regression on a set $M$ has the columns

$$v_j, \quad v_j v_i, \quad v_j v_k \qquad (j, k \in M,\ j \le k).$$

A product requires both of its parents, so a set of $s$ parents has $2 s + s (s + 1) / 2$ columns. A product does not
belong to a single parent, so sets cannot be built group by group: all sets of at most ``MOST_PARENTS`` are solved, by
Cholesky factors of submatrices of one matrix of cross products per target. A required parent is always included,
without products.
"""

from collections.abc import Callable
from functools import cache
from itertools import chain, combinations, combinations_with_replacement

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.averaging import MOST_COLUMNS, MarginalLikelihood, Matrices, orthonormal
from tacit.assessment.evidence.candidates import DOUBLE, Candidates, Columns, ResampledMatrices, Resamples, Weights

MOST_PARENTS = 5
MOST_CANDIDATES = 12
MOST_SETS = 800  # per target: with more, the largest set has one parent fewer
MOST_BYTES = 64e6
CACHED_BYTES = 2e6  # of the matrices of sets: about the size of a cache
TINY = 1e-6  # nats
Scores = Float[Tensor, "chain set"]


def pairs_of(width: int) -> list[tuple[int, int]]:
    """Return the products of a target and ``width`` candidates as pairs of positions; 0 is the target itself."""
    return [pair for pair in combinations_with_replacement(range(width + 1), 2) if pair != (0, 0)]


def _pair_places(width: int) -> tuple[Int[Tensor, " pair"], Int[Tensor, " pair"]]:
    first, second = torch.tensor(pairs_of(width), dtype=torch.long).view(-1, 2).unbind(1)
    return first, second


def sets_of(width: int) -> list[list[tuple[int, ...]]]:
    """Return all sets of candidates by size, up to the largest size within ``MOST_SETS``."""
    found: list[list[tuple[int, ...]]] = []
    for size in range(min(MOST_PARENTS, width) + 1):
        more = list(combinations(range(width), size))
        if sum(map(len, found)) + len(more) > MOST_SETS:
            break
        found.append(more)
    return found


def set_columns(width: int, members: tuple[int, ...]) -> list[int]:
    """Return the columns of a set: its values, then the products within it and with the target."""
    inside = {0, *(member + 1 for member in members)}
    products = [width + place for place, pair in enumerate(pairs_of(width)) if inside.issuperset(pair)]
    return [*members, *products]


def design(columns: Columns, target: int, sources: Int[Tensor, " candidate"]) -> Float[Tensor, "row column"]:
    """Return the values of some sources and all their products, with each other and with the target."""
    values = columns.sources[:, :, 0]
    of_all = torch.cat([values[:, [target]], values[:, sources]], 1)
    first, second = _pair_places(len(sources))
    return torch.cat([values[:, sources], of_all[:, first] * of_all[:, second]], 1)


def parent_columns(
    columns: Columns, candidates: Candidates, row: int, chosen: Bool[Tensor, " candidate"]
) -> tuple[Float[Tensor, "row column"], Bool[Tensor, "chosen column"]]:
    """Return the columns of some parents of a target, with their products, and which of the parents each one needs."""
    sources = candidates.sources[row][chosen]
    own = torch.eye(len(sources), dtype=torch.bool)
    if columns.products:
        first, second = _pair_places(len(sources))
        needs = torch.nn.functional.pad(own, (1, 0))  # the target itself is no parent
        owners = torch.cat([own, needs[:, first] | needs[:, second]], 1)
        return design(columns, int(candidates.targets[row]), sources), owners
    found, owners = columns.sources[:, sources].flatten(1), own.repeat_interleave(columns.group_size, 1)
    if candidates.ages is None:
        return found, owners
    allowed = columns.within(candidates.ages[row][chosen]).flatten()
    return found[:, allowed], owners[:, allowed]


def product_matrices(columns: Columns, candidates: Candidates, weights: Resamples) -> ResampledMatrices:
    """Return the cross products of each target; padding is a separate column that explains nothing."""
    first, second = _pair_places(candidates.width)
    padded = torch.nn.functional.pad(~candidates.used, (1, 0))
    gone = torch.cat([~candidates.used, padded[:, first] | padded[:, second]], 1)

    def parents(places: Int[Tensor, " place"]) -> Float[Tensor, "place parent row"]:
        nodes = torch.cat([candidates.targets[places, None], candidates.sources[places]], 1)
        values = columns.by_node(nodes)[:, :: columns.group_size]  # the first value that each sends
        return torch.cat([values[:, 1:], values[:, first] * values[:, second]], 1)

    return candidates.matrices_of(columns, weights, gone, parents)


@cache
def _all_sets(width: int) -> tuple[Bool[Tensor, "set candidate"], tuple[Int[Tensor, "some column"], ...]]:
    """Return the members of all sets, and their columns by size."""
    sizes = sets_of(width)
    members = [[place in chosen for place in range(width)] for sets in sizes for chosen in sets]
    columns = (torch.tensor([set_columns(width, chosen) for chosen in sets], dtype=torch.long) for sets in sizes)
    return torch.tensor(members), tuple(columns)


def set_residuals(
    matrices: Matrices, width: int
) -> tuple[Bool[Tensor, "set candidate"], Float[Tensor, "chain set channel"], Float[Tensor, " set"]]:
    """Return all sets, their residual sums of squares of the target columns, and their numbers of columns."""
    first = width + len(pairs_of(width))  # of the target's columns
    totals = matrices.diagonal(dim1=1, dim2=2)[:, None, first:]
    members, by_size = _all_sets(width)
    left = torch.cat([totals - _explained(matrices, columns, first) for columns in by_size], 1)
    return members, left, torch.cat([torch.full((len(one),), one.shape[1], dtype=DOUBLE) for one in by_size])


def _explained(matrices: Matrices, columns: Int[Tensor, "set place"], first: int) -> Float[Tensor, "chain set channel"]:
    sets, size = columns.shape
    if size == 0:
        return matrices.new_zeros(len(matrices), sets, matrices.shape[1] - first)
    at_once = max(1, int(MOST_BYTES / (8 * sets * size**2)))
    entries = (columns[:, :, None] * matrices.shape[1] + columns[:, None, :]).flatten()
    found = []
    for part in torch.split(matrices, at_once):
        inner = part.flatten(1).index_select(1, entries).view(len(part), sets, size, size)
        factor = torch.linalg.cholesky(inner)
        found.append(torch.linalg.solve_triangular(factor, part[:, columns, first:], upper=False).square().sum(2))
    return torch.cat(found)


def best_of_sets(
    matrices: Matrices,
    used: Bool[Tensor, "chain candidate"],
    fit: Callable[[Float[Tensor, "chain some channel"]], Float[Tensor, "chain some"]],
    per_column: Float[Tensor, " chain"],
    per_member: float,
) -> Float[Tensor, " chain"]:
    """Return the largest value of all sets: the ``fit`` of the residual sums of squares less the cost of the set.

    A set leaves over at least what a larger one does. So sets of three or more are evaluated only within those unions
    of pairs of candidates whose fit, at the cost of the set, exceeds the value of all smaller sets.
    """
    width = used.shape[1]
    first, (members, by_size) = width + len(pairs_of(width)), _all_sets(width)
    totals = matrices.diagonal(dim1=1, dim2=2)[:, None, first:]
    best, of_size = fit(totals)[:, 0], torch.split(members, [len(columns) for columns in by_size])
    for size, columns in enumerate(by_size[1:], 1):
        cost = columns.shape[1] * per_column + size * per_member
        tried = ~(of_size[size] & ~used[:, None]).any(2)  # (chain, set)
        if size > 2:
            unions, of_unions = _unions(width, size)
            every = torch.ones(len(used), len(unions), dtype=torch.bool)
            reach = fit(totals - _explained_of(matrices, of_unions, every, first)) - cost[:, None]
            open_unions = ~(reach <= best[:, None] - TINY)  # NaN: some columns of the union are redundant
            inside = ~(of_size[size] & ~unions[:, None]).any(2)  # (union, set)
            tried &= (open_unions.double() @ inside.double()) > 0
        values = fit(totals - _explained_of(matrices, columns, tried, first)) - cost[:, None]
        best = torch.maximum(best, values.masked_fill(~tried | values.isnan(), -torch.inf).amax(1))
    return best


@cache
def _unions(width: int, size: int) -> tuple[Bool[Tensor, "union candidate"], Int[Tensor, "union column"]]:
    """Return unions of pairs of candidates that contain all sets of a size, and the columns of each."""
    pairs = [(place, min(place + 1, width - 1)) for place in range(0, width, 2)]
    found = []
    for some in combinations(pairs, min(size, len(pairs))):
        inside = {*chain(*some)}
        others = [place for place in range(width) if place not in inside]
        found.append(tuple(sorted([*inside, *others[: 2 * size - len(inside)]])))  # all of one size
    members = torch.tensor([[place in one for place in range(width)] for one in found])
    return members, torch.tensor([set_columns(width, one) for one in found])


def _explained_of(
    matrices: Matrices, columns: Int[Tensor, "set place"], which: Bool[Tensor, "chain set"], first: int
) -> Float[Tensor, "chain set channel"]:
    """Return the sums of squares that ``which`` sets explain, 0 for the others, NaN if their columns are redundant."""
    found = matrices.new_zeros(*which.shape, matrices.shape[1] - first)
    chains, sets = which.nonzero().unbind(1)
    for some in torch.split(torch.arange(len(chains)), max(1, int(CACHED_BYTES / (8 * columns.shape[1] ** 2)))):
        of_chain, read = chains[some, None], columns[sets[some]]
        factor, failed = torch.linalg.cholesky_ex(matrices[of_chain[..., None], read[:, :, None], read[:, None]])
        solved = torch.linalg.solve_triangular(factor, matrices[of_chain, read, first:], upper=False)
        explained = solved.square().sum(1)
        found[chains[some], sets[some]] = explained.masked_fill(failed[:, None] > 0, torch.nan)
    return found


def set_scores(
    matrices: Matrices, width: int, rows: Float[Tensor, " chain"], always: Float[Tensor, " chain"]
) -> tuple[Float[Tensor, "set candidate"], Scores]:
    """Return all sets, as rows of 0 and 1, and the log marginal likelihood of each, -inf for too large sets."""
    members, left, sizes = set_residuals(matrices, width)
    likelihood = MarginalLikelihood(rows, always, left[:, 0])
    scores = likelihood(left, sizes.expand(len(rows), -1))
    too_large = sizes > MOST_COLUMNS * (rows - always)[:, None]
    return members.to(DOUBLE), scores.masked_fill(too_large & (sizes > 0), -torch.inf)


def product_gains(columns: Columns, candidates: Candidates) -> Float[Tensor, "target candidate"]:
    """Return the largest share of its target that a candidate explains in a product with any other, or its square."""
    values = columns.sources[:, :, 0].contiguous()
    found, squares, before = [], values.new_zeros(0, 0), None
    for row, target in enumerate(candidates.targets.tolist()):
        known = columns.observed[:, target, None]
        always = columns.without_intercepts(candidates.always(columns, torch.tensor([row]))[0], known[:, 0])
        basis = orthonormal(always * known[:, 0])
        aim = columns.without_intercepts(columns.targets[:, target].mT, known[:, 0]).mT * known
        aim = aim - basis @ (basis.mT @ aim)
        if before is None or not torch.equal(known, before):  # most targets are observed in the same rows
            seen, before = values * known, known
            squares = (seen.square().mT @ seen.square() - (seen.mT @ seen).square() / known.sum()).clamp_min(1e-9)
        among = torch.cat([torch.tensor([target]), candidates.sources[row]])
        seen, spread = values[:, among] * known, squares[among][:, among]
        shared = torch.stack([(seen * one[:, None]).mT @ seen for one in aim.mT])  # (channel, node, node)
        shares = shared.square() / spread / aim.square().sum(0)[:, None, None].clamp_min(1e-300)
        shares[:, :, 1:][:, :, ~candidates.used[row]] = 0
        found.append(shares.mean(0)[1:].amax(1))
    return torch.stack(found)


def screened(columns: Columns, candidates: Candidates) -> Candidates:
    """Return, for each target, the candidates that explain most of it, in any product or alone."""
    if candidates.width <= MOST_CANDIDATES:
        return candidates
    gains = torch.maximum(product_gains(columns, candidates), candidates.single_gains(columns))
    return candidates.picked(candidates.best(gains, MOST_CANDIDATES))


def effects(
    columns: Columns, candidates: Candidates, weights: Weights, believed: Bool[Tensor, "target candidate"]
) -> Float[Tensor, "target candidate"]:
    r"""Return the standard deviation of all terms that contain a source, given the selected parents.

    Its sign is that of the coefficient of $v_j$, the mean slope, since values have mean 0.
    """
    found = torch.zeros(believed.shape, dtype=DOUBLE)
    for row, target in enumerate(candidates.targets.tolist()):
        for place in candidates.used[row].nonzero()[:, 0].tolist():
            others = believed[row].clone()
            others[place] = False
            members = torch.cat([candidates.sources[row, [place]], candidates.sources[row][others]])
            parents = design(columns, target, members)
            weight = weights * columns.observed[:, target]
            root, of_target = weight.sqrt(), columns.targets[:, target].mT
            both = torch.cat([parents.mT, candidates.always(columns, torch.tensor([row]))[0]])
            both, of_target = (columns.without_intercepts(one, weight) * root for one in (both, of_target))
            coefficients = torch.linalg.lstsq(both.mT, of_target.mT, driver="gelsd").solution
            mine = [0] + [len(members) + k for k, pair in enumerate(pairs_of(len(members))) if 1 in pair]
            size = columns.deviations((parents[:, mine] @ coefficients[mine]).mT) / columns.target_deviations[target]
            channel = int(size.argmax())
            found[row, place] = size[channel] * coefficients[0, channel].sign()
    return found

r"""Regressions of one target on every set of parents, by sweeping one matrix of cross products.

For each target the columns of its $K$ candidate parents (a group of $k$ columns each) and its target columns are
residualised on the always included columns: its own past, covariates, required parents. Their cross products are

$$T = \begin{pmatrix} X^\top X & X^\top y \\ y^\top X & y^\top y \end{pmatrix}.$$

Sweeping the columns of a set $M$ turns $T$ into the regression on $M$: the lower right corner contains the residual sum
of squares. For every group $j$, $q_j = T_{yj} T_{jj}^{-1} T_{jy}$ is the decrease of that sum when $j$ is added to $M$,
or minus the increase when $j$ is removed from $M$. So one sweep gives the scores of all sets that differ from $M$ in
one parent. All targets are one batch.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Matrices = Float[Tensor, "chain column column"]
FLOOR = 1e-4
TINY = 1e-8  # share of a column's sum of squares below which the own past fully explains it


@dataclass
class Tableau:
    """The matrices of a batch of chains, the parents that are swept in, and the sizes.

    ``matrices``    $T$, with ``num_groups * group_size`` columns of parents and then the columns of the target
    ``included``    the set $M$ of each chain
    ``sizes``       number of used columns of each group; the others explain nothing
    """

    matrices: Matrices
    included: Bool[Tensor, "chain group"]
    group_size: int
    sizes: Float[Tensor, "chain group"]

    @classmethod
    def start(
        cls,
        matrices: Matrices,
        num_groups: int,
        group_size: int,
        sizes: Float[Tensor, "chain group"] | None = None,
    ) -> "Tableau":
        """Return a tableau with empty sets; it uses the given matrices and changes them."""
        included = torch.zeros(len(matrices), num_groups, dtype=torch.bool)
        sizes = matrices.new_full(included.shape, group_size) if sizes is None else sizes
        return cls(matrices, included, group_size, sizes)

    @property
    def num_parents(self) -> int:
        """Number of columns of parents."""
        return self.included.shape[1] * self.group_size

    @property
    def residuals(self) -> Float[Tensor, "chain channel"]:
        """The residual sum of squares of each target column given the set."""
        return self.matrices.diagonal(dim1=1, dim2=2)[:, self.num_parents :]

    def changes(self) -> Float[Tensor, "chain group channel"]:
        """Return the decrease of each residual sum of squares when a group is added or removed (negative: increase)."""
        chains, groups = self.included.shape
        size, parents = self.group_size, self.num_parents
        rows = self.matrices[:, :parents].view(chains, groups, size, -1)
        own = rows[..., :parents].view(chains, groups, size, groups, size)
        block = own.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2)  # (chain, group, size, size)
        return quadratic_forms(block, rows[..., parents:])

    def coefficients(self) -> Float[Tensor, "chain group column channel"]:
        """Return the coefficients of each group in the regression on the set and that group."""
        chains, groups = self.included.shape
        size, parents = self.group_size, self.num_parents
        rows = self.matrices[:, :parents].view(chains, groups, size, self.matrices.shape[2])
        own = rows[..., :parents].view(chains, groups, size, groups, size)
        block = own.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2)
        cross = rows[..., parents:]
        joined = torch.linalg.solve_ex(block, cross).result
        return torch.where(self.included[..., None, None], cross, joined)

    def flip(self, group: Int[Tensor, " chain"]) -> None:
        """Add or remove one group of each chain."""
        chains, width, size = len(group), self.matrices.shape[1], self.group_size
        columns = group[:, None] * size + torch.arange(size)  # (chain, size)
        starts = torch.arange(chains)[:, None] * width
        as_rows = (starts + columns).flatten()
        as_columns = ((starts + torch.arange(width))[:, None] * width + columns[:, :, None]).flatten()
        within = columns[:, None, :].expand(-1, size, size)
        all_rows = self.matrices.view(chains * width, width)
        rows = all_rows.index_select(0, as_rows).view(chains, size, width)
        inverse = torch.linalg.inv_ex(rows.gather(2, within)).inverse  # of a singular block: :func:`lost_chains`
        swept = inverse * rows if size == 1 else inverse @ rows
        self.matrices.baddbmm_(rows.mT, swept, alpha=-1)
        was_in = self.included.gather(1, group[:, None])
        swept *= 1.0 - 2.0 * was_in[:, :, None].to(swept)  # removal is a sweep with the opposite sign
        swept.scatter_(2, within, -inverse)
        all_rows.index_copy_(0, as_rows, swept.flatten(0, 1))
        self.matrices.view(-1).index_copy_(0, as_columns, swept.flatten())
        self.included.scatter_(1, group[:, None], ~was_in)

    def flip_in(self, chains: Bool[Tensor, " chain"], group: Int[Tensor, " chosen"]) -> None:
        """Add or remove one group of some chains."""
        part = Tableau(self.matrices[chains], self.included[chains], self.group_size, self.sizes[chains])
        part.flip(group)
        self.matrices[chains], self.included[chains] = part.matrices, part.included

    def include(self, members: Bool[Tensor, "chain group"]) -> None:
        """Add or remove the members of each chain's set, one after the other."""
        counts, order = members.sum(1), members.int().argsort(dim=1, descending=True, stable=True)
        for place in range(int(counts.max())):
            chains = counts > place
            self.flip_in(chains, order[chains, place])


def quadratic_forms(
    block: Float[Tensor, "chain group column column"], cross: Float[Tensor, "chain group column channel"]
) -> Float[Tensor, "chain group channel"]:
    """Return $b^T B^{-1} b$ for many small definite matrices, by elimination over the few columns."""
    if block.shape[2] == 1:
        return cross[:, :, 0].square() / block[:, :, 0]
    block, cross = block.clone(), cross.clone()
    total = torch.zeros_like(cross[:, :, 0])
    for column in range(block.shape[2]):
        pivot = block[:, :, column, column, None]
        total += cross[:, :, column].square() / pivot
        factor = block[:, :, :, column] / pivot
        cross -= factor[..., None] * cross[:, :, column, None]
        block -= factor[..., None] * block[:, :, None, column].clone()
    return total


def cross_products(
    values: Float[Tensor, "chain both row"],
    always: Float[Tensor, "chain always row"],
    weights: Float[Tensor, "chain row"],
    channels: int,
) -> Float[Tensor, "chain both both"]:
    """Return $T$ of each target: weighted cross products, residualised on the always included columns.

    ``values``  the columns of the parents, then ``channels`` columns of the target
    """
    root = weights.sqrt()[:, None]
    values = values * root
    basis = orthonormal(always * root)
    before = torch.linalg.vector_norm(values, dim=2).square() + FLOOR  # a constant column has sum of squares 0
    before[:, -channels:] = 0
    values.baddbmm_(values @ basis, basis.mT, alpha=-1)
    products: Float[Tensor, "chain both both"] = values @ values.mT
    products.diagonal(dim1=1, dim2=2).add_(TINY * before)
    return products


def orthonormal(columns: Float[Tensor, "*chain column row"]) -> Float[Tensor, "*chain row column"]:
    """Return an orthonormal basis of the span of the columns; a column of zeros gives a column of zeros."""
    sizes = torch.linalg.vector_norm(columns, dim=-1)
    empty = sizes <= TINY * sizes.amax(-1, keepdim=True)
    order = empty.int().argsort(dim=-1, stable=True)  # at the end, where they do not affect the others
    some = bool(empty.any())
    if some:
        first = torch.arange(order.numel() // order.shape[-1]).view(*order.shape[:-1], 1) * order.shape[-1]
        columns = columns.flatten(0, -2).index_select(0, (first + order).flatten()).view(columns.shape)
    basis: Tensor = torch.linalg.qr(columns.mT)[0]
    return basis if not some else basis * (~empty.gather(-1, order))[..., None, : basis.shape[-1]]


def without_columns(
    matrices: Float[Tensor, "resample target column column"], gone: Bool[Tensor, "target parent"]
) -> Float[Tensor, "resample target column column"]:
    """Replace some columns of parents in the matrices by columns that explain nothing, in place."""
    if gone.any():
        gone = torch.nn.functional.pad(gone, (0, matrices.shape[2] - gone.shape[1]))
        matrices.masked_fill_(gone[:, :, None] | gone[:, None], 0.0)
        matrices.diagonal(dim1=2, dim2=3).masked_fill_(gone, 1.0)
    return matrices

r"""Sets of parents: regressions by sweeps of one matrix, and model averaging.

Regressions of one target on every set of parents, by sweeping one matrix of cross products.

For each target the columns of its $K$ candidate parents (a group of $k$ columns each) and its target columns are
residualised on the always included columns: its own past, covariates, required parents. Their cross products are

$$T = \begin{pmatrix} X^\top X & X^\top y \\ y^\top X & y^\top y \end{pmatrix}.$$

Sweeping the columns of a set $M$ turns $T$ into the regression on $M$: the lower right corner contains the residual sum
of squares. For every group $j$, $q_j = T_{yj} T_{jj}^{-1} T_{jy}$ is the decrease of that sum when $j$ is added to $M$,
or minus the increase when $j$ is removed from $M$. So one sweep gives the scores of all sets that differ from $M$ in
one parent. All targets are one batch.

Bayesian model averaging over the parents of each node.

For a set $M$ of parents with $k$ columns, a unit-information g-prior ($g = n$) on their coefficients gives the log
marginal likelihood, up to a constant,

$$\ell(M) = \tfrac{n - q - k}{2} \log(1 + g) - \tfrac{n - q}{2} \log\big(1 + g (1 - R^2_M)\big),$$

where $R^2_M$ is the partial one and $q$ the number of columns that are always included; several target columns are
summed. With prior odds $\pi_j / (1 - \pi_j)$ for each candidate, an edge exists with probability

$$P(j \in M \mid \text{data}) = \sum_{M \ni j} p(M) e^{\ell(M)} \Big/ \sum_M p(M) e^{\ell(M)}.$$

With few candidates all sets are enumerated: each candidate in turn doubles them, left out or eliminated. With more
candidates the sets are sampled by the weighted tempered Gibbs sampler of Zanella and Roberts (2019). With
$\gamma_j = 1$ for $j \in M$, the group to flip is drawn with weight $\omega_j = \eta_j / p(\gamma_j \mid
\gamma_{-j})$, $\eta_j = p(\gamma_j = 1 \mid \gamma_{-j}) + c / K$. Each state has weight $1 / \sum_j \omega_j$. The
inclusion probabilities are means of the full conditionals, which the tableau provides for all candidates at once.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

Matrices = Float[Tensor, "chain column column"]
FLOOR = 1e-4
TINY = 1e-8  # share of a column's sum of squares below which the own past fully explains it
SURE = 1e-3  # share of a column's size that other columns must leave over for sums of squares without a basis


@dataclass
class Tableau:
    """The matrices of a batch of chains, the parents that are swept in, and the sizes.

    ``matrices``    $T$, with ``num_groups * group_size`` columns of parents and then the columns of the target
    ``joins``       1 for each group outside the set $M$ of a chain, which a flip adds to it, and -1 for those in $M$
    ``sizes``       number of used columns of each group; the others explain nothing
    """

    matrices: Matrices
    joins: Float[Tensor, "chain group"]
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
        joins = matrices.new_ones(len(matrices), num_groups)
        return cls(matrices, joins, group_size, torch.full_like(joins, group_size) if sizes is None else sizes)

    @property
    def included(self) -> Bool[Tensor, "chain group"]:
        """The set $M$ of each chain."""
        return self.joins < 0

    @property
    def num_parents(self) -> int:
        """Number of columns of parents."""
        return self.joins.shape[1] * self.group_size

    @property
    def residuals(self) -> Float[Tensor, "chain channel"]:
        """The residual sum of squares of each target column given the set."""
        return self.matrices.diagonal(dim1=1, dim2=2)[:, self.num_parents :]

    @cached_property
    def _blocks(self) -> tuple[Float[Tensor, "chain group column column"], Float[Tensor, "chain group column channel"]]:
        """The products of the columns of each group, with each other and with the target; views of the matrices."""
        size, parents = self.group_size, self.num_parents
        rows = torch.unflatten(self.matrices[:, :parents], 1, (-1, size))
        own = torch.unflatten(rows[..., :parents], 3, (-1, size))
        return own.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2), rows[..., parents:]

    @cached_property
    def _places(self) -> tuple[Int[Tensor, "group column"], Int[Tensor, "chain 1"], Int[Tensor, "chain 1 all"]]:
        """The columns of each group, the first row of each chain among all rows, the first entry of each row."""
        chains, width = self.matrices.shape[:2]
        starts = torch.arange(chains)[:, None] * width
        places = (starts + torch.arange(width))[:, None] * width
        return torch.arange(self.num_parents).view(-1, self.group_size), starts, places

    def changes(self) -> Float[Tensor, "chain group channel"]:
        """Return the decrease of each residual sum of squares when a group is added or removed (negative: increase)."""
        return quadratic_forms(*self._blocks)

    def coefficients(self) -> Float[Tensor, "chain group column channel"]:
        """Return the coefficients of each group in the regression on the set and that group."""
        block, cross = self._blocks
        joined = torch.linalg.solve_ex(block, cross).result
        return torch.where(self.included[..., None, None], cross, joined)

    def flip(self, group: Int[Tensor, " chain"]) -> None:
        """Add or remove one group of each chain."""
        (chains, width), size = self.matrices.shape[:2], self.group_size
        all_columns, starts, places = self._places
        columns = all_columns.index_select(0, group)  # (chain, size)
        as_rows = (starts + columns).flatten()
        as_columns = (places + columns[:, :, None]).flatten()
        within = columns[:, None].expand(-1, size, size)
        all_rows = self.matrices.view(chains * width, width)
        rows = all_rows.index_select(0, as_rows).view(chains, size, width)
        block = rows.gather(2, within)
        inverse = block.reciprocal() if size == 1 else torch.linalg.inv_ex(block).inverse  # singular: `lost_chains`
        # numpy is faster for many small products
        swept = inverse * rows if size == 1 else torch.from_numpy(inverse.numpy() @ rows.numpy())
        self.matrices.baddbmm_(rows.mT, swept, alpha=-1)
        joins = self.joins.gather(1, group[:, None])
        swept *= joins[..., None]  # removal is a sweep with the opposite sign
        swept.scatter_(2, within, -inverse)
        all_rows.index_copy_(0, as_rows, swept.flatten(0, 1))
        self.matrices.view(-1).index_copy_(0, as_columns, swept.flatten())
        self.joins.scatter_(1, group[:, None], -joins)

    def flip_in(self, chains: Bool[Tensor, " chain"], group: Int[Tensor, " chosen"]) -> None:
        """Add or remove one group of some chains."""
        part = Tableau(self.matrices[chains], self.joins[chains], self.group_size, self.sizes[chains])
        part.flip(group)
        self.matrices[chains], self.joins[chains] = part.matrices, part.joins

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
    total: Float[Tensor, "chain group channel"] = cross[:, :, 0].square() / block[:, :, 0, :1]
    for _ in range(block.shape[2] - 1):
        factor = block[:, :, 1:, :1] / block[:, :, :1, :1]
        cross = torch.addcmul(cross[:, :, 1:], factor, cross[:, :, :1], value=-1)
        block = torch.addcmul(block[:, :, 1:, 1:], factor, block[:, :, :1, 1:], value=-1)
        total += cross[:, :, 0].square() / block[:, :, 0, :1]
    return total


def cross_products(
    columns: Float[Tensor, "chain all row"], weights: Float[Tensor, "chain row"], num_always: int, channels: int
) -> Float[Tensor, "chain both both"]:
    r"""Return $T$ of each target: weighted cross products, residualised on the always included columns.

    ``columns``  those of the parents, then ``channels`` of the target, then those that are always included

    With $X$ all other columns and $A$ those always included, $T = X^T X - X^T A (A^T A)^{-1} A^T X$, from one product
    of all columns. Where $A$ is nearly collinear, or explains nearly all of a target, an orthonormal basis is used.
    """
    both = columns.shape[1] - num_always
    rows = columns * weights.sqrt()[:, None]
    products = rows @ rows.mT
    sizes = products.diagonal(dim1=1, dim2=2).clone()
    before = sizes[:, :both] + FLOOR  # a constant column has sum of squares 0
    before[:, -channels:] = 0
    roots = sizes[:, both:].sqrt()
    empty = roots <= TINY * roots.amax(1, keepdim=True)
    scale = roots.masked_fill(empty, torch.inf)[..., None]
    block = products[:, both:, both:] / (scale * scale.mT)
    block.diagonal(dim1=1, dim2=2).add_(empty)
    factors, failed = torch.linalg.cholesky_ex(block)
    part = torch.linalg.solve_triangular(factors, products[:, both:, :both] / scale, upper=False)
    found: Float[Tensor, "chain both both"] = products[:, :both, :both].baddbmm(part.mT, part, alpha=-1)
    left, whole = found.diagonal(dim1=1, dim2=2)[:, -channels:], sizes[:, both - channels : both]
    near = factors.diagonal(dim1=1, dim2=2) < SURE
    lost = (failed > 0) | near.any(1) | (left < SURE**2 * whole).any(1)
    if lost.any():
        some, always = rows[lost, :both], orthonormal(rows[lost, both:])
        some.baddbmm_(some @ always, always.mT, alpha=-1)
        found[lost] = some @ some.mT
    found.diagonal(dim1=1, dim2=2).add_(TINY * before)
    return found


def left_over(columns: Float[Tensor, "column row"], values: Float[Tensor, "value row"]) -> Float[Tensor, "value row"]:
    """Return values less their regression on columns, by an orthonormal basis where these are nearly collinear."""
    products = columns @ columns.mT
    roots = products.diagonal().sqrt()
    used = roots > TINY * roots.amax()
    columns, roots = columns[used], roots[used, None]
    factor, failed = torch.linalg.cholesky_ex(products[used][:, used] / (roots * roots.mT))
    if bool(failed > 0) or bool((factor.diagonal() < SURE).any()):
        basis = orthonormal(columns)
        return values - (values @ basis) @ basis.mT
    weights = torch.cholesky_solve(columns @ values.mT / roots, factor) / roots
    return values - weights.mT @ columns


def orthonormal(columns: Float[Tensor, "*chain column row"]) -> Float[Tensor, "*chain row some"]:
    """Return an orthonormal basis of the span of the columns, padded with columns of zeros for those that are zero.

    Columns of zeros that all chains have are left out.
    """
    sizes = torch.linalg.vector_norm(columns, dim=-1)
    empty = sizes <= TINY * sizes.amax(-1, keepdim=True)
    basis: Tensor
    if not bool(empty.any()):
        basis = torch.linalg.qr(columns.mT)[0]
        return basis
    order = empty.int().argsort(dim=-1, stable=True)  # at the end, where they do not affect the others
    order = order[..., : max(1, int((~empty).sum(-1).max()))]
    first = torch.arange(empty.numel() // empty.shape[-1]).view(*empty.shape[:-1], 1) * empty.shape[-1]
    read = columns.flatten(0, -2).index_select(0, (first + order).flatten()).view(*order.shape, -1)
    basis = torch.linalg.qr(read.mT)[0]
    shown: Tensor = basis * (~empty.gather(-1, order))[..., None, : basis.shape[-1]]
    return shown


def without_columns(
    matrices: Float[Tensor, "resample target column column"], gone: Bool[Tensor, "target parent"]
) -> Float[Tensor, "resample target column column"]:
    """Replace some columns of parents in the matrices by columns that explain nothing, in place."""
    if gone.any():
        gone = torch.nn.functional.pad(gone, (0, matrices.shape[2] - gone.shape[1]))
        matrices.masked_fill_(gone[:, :, None] | gone[:, None], 0.0)
        matrices.diagonal(dim1=2, dim2=3).masked_fill_(gone, 1.0)
    return matrices


MOST_ENUMERATED = 12  # candidates: 4,096 sets
CACHED_BYTES = 4e6  # of the matrices of all sets of some chains
STEPS = 150  # flips of the sampler after the burn-in PART
PART = 0.4
FOCUS = 0.5  # c: larger values visit unlikely candidates more often
MOST_COLUMNS = 1 / 3  # of the rows: larger sets of parents have probability 0
CONSTANT = 1e-12  # a target with a smaller sum of squares is constant
LIMIT = 50.0  # bound on log odds
ROUNDING = 1e-6  # relative error of a sum of squares above which a chain is restarted
PerChain = Float[Tensor, " chain"]
LogOdds = Float[Tensor, "chain group"]
Groups = Bool[Tensor, "chain group"]
Found = Float[Tensor, "chain found"]  # one number per candidate, or one number


@dataclass(frozen=True)
class MarginalLikelihood:
    """$\\ell(M)$ for all chains; ``rows`` is $n$, and ``always`` the number of always included columns, $q$."""

    rows: PerChain
    always: PerChain
    totals: Float[Tensor, "chain channel"]  # residual sums of squares without any parent

    def __call__(
        self, residuals: Float[Tensor, "chain group channel"], columns: Float[Tensor, "chain group"]
    ) -> Float[Tensor, "chain group"]:
        """Return the log marginal likelihoods of sets from their residual sums of squares and numbers of columns."""
        return self.fit(residuals) + (self._free - columns) * self.per_column

    def fit(self, residuals: Float[Tensor, "chain group channel"]) -> Float[Tensor, "chain group"]:
        """Return the part of the log marginal likelihoods that does not depend on the number of columns."""
        left = residuals / self.totals[:, None]
        if self._constant is not None:
            left.masked_fill_(self._constant, 1.0)
        logs = left.clamp_(1e-12, 1.0).mul_(self.rows[:, None, None]).log1p_()
        return (logs[..., 0] if logs.shape[-1] == 1 else logs.sum(-1)).mul_(-self._free / 2)

    @cached_property
    def per_column(self) -> Float[Tensor, "chain 1"]:
        """Penalty per column."""
        return self.totals.shape[1] / 2 * torch.log1p(self.rows)[:, None]

    @cached_property
    def most(self) -> Float[Tensor, "chain 1"]:
        """Number of columns above which a set is too large."""
        return (MOST_COLUMNS * (self.rows - self.always))[:, None]

    @cached_property
    def _constant(self) -> Bool[Tensor, "chain 1 channel"] | None:
        constant = (self.totals <= CONSTANT)[:, None]
        return constant if bool(constant.any()) else None

    @cached_property
    def _free(self) -> Float[Tensor, "chain 1"]:
        return (self.rows - self.always).clamp_min(1.0)[:, None]


def inclusion_probs(
    tableau: Tableau,
    likelihood: MarginalLikelihood,
    prior: LogOdds,
    generator: Generator,
    steps: int = STEPS,
    group: Groups | None = None,
) -> Found:
    """Return $P(j \\in M)$ for every chain and candidate; the tableau is overwritten.

    ``group``  candidates of each chain; the result is then $P(M \\cap G \\ne \\emptyset)$, one number per chain
    """
    if tableau.joins.shape[1] <= MOST_ENUMERATED:
        sizes, scores = enumerate_sets(tableau, likelihood)
        return averaged(sizes, scores, prior, group)
    return _sampled(tableau, likelihood, prior, generator, steps, group)


def enumerate_sets(
    tableau: Tableau, likelihood: MarginalLikelihood
) -> tuple[Float[Tensor, "set group"], Float[Tensor, "chain set"]]:
    """Return all sets, as rows of 0 and 1, and the log marginal likelihood of each; the sets must be empty.

    Each group in turn doubles the sets: it is left out, or eliminated. The matrices shrink as their number grows. Too
    large sets have -inf.
    """
    groups, size = tableau.joins.shape[1], tableau.group_size
    members = (torch.arange(2**groups)[:, None] >> torch.arange(groups)) & 1
    channels = tableau.matrices.shape[1] - tableau.num_parents
    each = max(2**group * ((groups - group) * size + channels) ** 2 for group in range(groups + 1))
    left = []
    for some in torch.split(tableau.matrices, max(1, int(CACHED_BYTES / (8 * each)))):
        rest = some[:, None]  # (chain, set, column, column)
        for _ in range(groups):
            block, cross = rest[..., :size, :size], rest[..., :size, size:]
            out = rest[..., size:, size:]
            if size == 1:
                given = out - cross.mT * (cross / block)
            else:
                given = out - cross.mT @ (torch.linalg.inv_ex(block).inverse @ cross)
            rest = torch.cat([out, given], 1)
        left.append(rest.diagonal(dim1=2, dim2=3))
    sets = members.to(tableau.matrices)
    columns = tableau.sizes @ sets.mT
    too_large = (columns > likelihood.most) & (columns > 0)
    return sets, likelihood(torch.cat(left), columns).masked_fill_(too_large, -torch.inf)


def averaged(
    sets: Float[Tensor, "set group"], scores: Float[Tensor, "chain set"], prior: LogOdds, group: Groups | None = None
) -> Found:
    """Return the inclusion probabilities from the scores of all sets, or the probability of any of a group."""
    probs = torch.softmax(scores + prior.clamp(-LIMIT, LIMIT) @ sets.mT, 1)
    return probs @ sets if group is None else (probs * (group.to(sets) @ sets.mT > 0)).sum(1, keepdim=True)


def conditional_log_odds(tableau: Tableau, likelihood: MarginalLikelihood, prior: LogOdds) -> LogOdds:
    """Return the conditional log odds of each candidate."""
    return _log_odds(tableau, likelihood, prior - tableau.sizes * likelihood.per_column, limited=True)


def _log_odds(tableau: Tableau, likelihood: MarginalLikelihood, net: LogOdds, *, limited: bool) -> LogOdds:
    """Return the conditional log odds; ``net`` are prior log odds less the penalty, and ``limited`` sets stay small."""
    left = tableau.residuals[:, None]
    now, after = likelihood.fit(left), likelihood.fit(left - tableau.changes())
    odds = after.sub_(now).mul_(tableau.joins).add_(net)
    if limited:
        included, sizes = tableau.included, tableau.sizes
        full = (sizes * included).sum(1, keepdim=True) + sizes > likelihood.most
        odds.masked_fill_(~included & full, -LIMIT)
    return odds.clamp_(-LIMIT, LIMIT)


def lost_chains(tableau: Tableau, likelihood: MarginalLikelihood) -> Bool[Tensor, " chain"]:
    """Return the chains with invalid sums of squares: rounding errors accumulated over flips of collinear columns."""
    share = tableau.residuals / likelihood.totals.clamp_min(CONSTANT)
    return ~(share.sub_(0.5).abs_() <= 0.5 + ROUNDING).all(1)  # also of NaN


def _sampled(
    tableau: Tableau,
    likelihood: MarginalLikelihood,
    prior: LogOdds,
    generator: Generator,
    steps: int,
    group: Groups | None,
) -> Found:
    total = torch.zeros_like(prior if group is None else prior[:, :1])
    weights, joins = prior.new_zeros(len(prior), 1), tableau.joins
    net, limited = (
        prior - tableau.sizes * likelihood.per_column,
        bool((tableau.sizes.sum(1) > likelihood.most[:, 0]).any()),
    )
    first, start, focus = round(PART * steps), tableau.matrices.clone(), FOCUS / prior.shape[1]
    for step in range(-first, steps):
        lost = lost_chains(tableau, likelihood)
        if lost.any():
            tableau.matrices[lost], joins[lost] = start[lost], 1.0
        probs = _log_odds(tableau, likelihood, net, limited=limited).sigmoid_()
        stays = joins.clamp_min(0.0).sub_(probs).abs_().clamp_min_(1e-22)  # the probability of the current state
        flip_weights = (probs + focus).div_(stays)
        all_weights = flip_weights.sum(1, keepdim=True)
        race = torch.empty_like(probs).exponential_(generator=generator)
        winner = flip_weights.div_(race).argmax(1)  # each with probability flip_weights / all_weights
        if step >= 0:
            probs = probs if group is None else _any_of(probs, tableau.included, group)
            total += probs.div_(all_weights)
            weights += 1 / all_weights
        tableau.flip(winner)
    return total / weights


def _any_of(probs: LogOdds, included: Groups, group: Groups) -> Found:
    """Return the probability of any member, the mean over members of that given all other candidates."""
    inside = included & group
    by_others = inside.sum(1, keepdim=True) - inside.int() > 0
    return (probs.masked_fill(by_others, 1.0) * group).sum(1, keepdim=True) / group.sum(1, keepdim=True)

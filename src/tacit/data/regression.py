r"""Linear regressions of each target on the inputs of all nodes, with one penalty, chosen on validation pairs.

$$\hat y_{io} = b_{io} + \sum_{j,c} w_{ijco}\, x_{jc}$$

On a series this is a vector autoregression: $c$ runs over the lags (and the features at each lag), and $w_{ij}$ is the
effect of node $j$ on node $i$. A :class:`PathSolver` computes the weights for each penalty. Inputs and targets are
scaled to mean 0 and deviation 1, so the result does not depend on units. Rows in which a target is missing are left
out for that target.

Ridge regression is solved in closed form, primal or dual, whichever is smaller.

$$w = \arg\min_w \tfrac1n \lVert y - X w \rVert^2 + \lambda \lVert w \rVert^2
   = (\tfrac1n X^\top X + \lambda)^{-1} \tfrac1n X^\top y = \tfrac1n X^\top (\tfrac1n X X^\top + \lambda)^{-1} y$$

The matrix has as many rows as the smaller side of $X$, which bounds time and memory for a long window. A small matrix
is decomposed once for all penalties, $V (\Lambda + \lambda)^{-1} V^\top$. A large one is factorised for each penalty:
this is as fast, and no single call takes long, so that signals such as Ctrl-C are handled soon.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.data.pairs import Pairs
from tacit.errors import require
from tacit.shapes import Inputs, PointPrediction

Path = Float[Tensor, "penalty feature target"]
CONSTANT = 1e-10  # a deviation below this share of the mean is rounding
# Half decades. Inputs have deviation 1, so at 100 every weight is below 0.01 and the fit is close to 0.
RIDGE_PENALTIES = tuple(10.0 ** (half / 2) for half in range(-12, 5))
MOST_DECOMPOSED = 256  # rows of a matrix that is decomposed; larger ones are factorised for each penalty
MOST_PRODUCTS = 2**33  # multiplications of one call: less than a second


@runtime_checkable
class PathSolver(Protocol):
    """A function that computes the weights for several penalties, from rows whose columns have mean 0."""

    def __call__(
        self, design: Float[Tensor, "row feature"], targets: Float[Tensor, "row target"], penalties: Sequence[float]
    ) -> Path:
        """Return the weights of every target for every penalty."""
        ...


@dataclass(frozen=True)
class RegressionFit:
    """The result of a regression.

    ``coefficients``  weights in the units of the data; (target, source, lag, 1) for a series with one variable
    ``edge_scores``   sum of the absolute weights of each source for each target, in standard deviations
    ``sigmas``        root mean square residual of each target on the validation pairs
    ``penalty``       the chosen penalty
    """

    coefficients: Float[Tensor, "node node in_channel channel"]
    intercepts: Float[Tensor, "node channel"]
    edge_scores: Float[Tensor, "node node"]
    sigmas: Float[Tensor, "node channel"]
    penalty: float

    def predict(self, inputs: Inputs) -> PointPrediction:
        """Return the predicted mean of every target, for each pair."""
        return torch.einsum("bjc,ijco->bio", inputs, self.coefficients) + self.intercepts


@dataclass(frozen=True)
class Rows:
    """Pairs with mean 0 and deviation 1, in double precision; targets that are missing (not ``there``) are 0."""

    inputs: Float[Tensor, "pair node in_channel"]
    targets: Float[Tensor, "pair node channel"]
    there: Bool[Tensor, "pair node channel"]


@dataclass(frozen=True)
class Deviations:
    """Mean and standard deviation of every input and target over the pairs in which it was observed."""

    input_mean: Float[Tensor, "node in_channel"]
    input_scale: Float[Tensor, "node in_channel"]
    target_mean: Float[Tensor, "node channel"]
    target_scale: Float[Tensor, "node channel"]

    @classmethod
    def of(cls, pairs: Pairs) -> "Deviations":
        """Return those of some pairs; a constant column has an infinite scale, so that its weight is 0."""
        inputs, targets, there = pairs.inputs.double(), pairs.targets.double(), pairs.seen > 0
        count = there.sum(0).clamp_min(1)
        mean = torch.where(there, targets, 0.0).sum(0) / count
        deviation = (torch.where(there, (targets - mean).square(), 0.0).sum(0) / count).sqrt()
        centre, spread = inputs.mean(0), inputs.std(0, correction=0)
        input_scale = torch.where(spread > CONSTANT * centre.abs(), spread, torch.inf)
        return cls(centre, input_scale, mean, torch.where(deviation > CONSTANT * mean.abs(), deviation, 1.0))

    def rows(self, pairs: Pairs) -> Rows:
        """Return pairs in units of standard deviations."""
        there = pairs.seen > 0
        targets = torch.where(there, (pairs.targets.double() - self.target_mean) / self.target_scale, 0.0)
        return Rows((pairs.inputs.double() - self.input_mean) / self.input_scale, targets, there)


def distinct_inputs(pairs: Pairs, known: int) -> Float[Tensor, "node in_channel"]:
    """Return 1 for inputs to regress on, 0 for copies among the last ``known`` ones: those of an earlier node.

    Covariates and waves are the same for all nodes that use them; with a column per node they would be collinear.

    >>> inputs = torch.tensor([[[1.0, 3.0], [2.0, 3.0]], [[5.0, 4.0], [0.0, 4.0]]])  # the second is shared
    >>> distinct_inputs(Pairs(inputs, inputs[..., :1]), known=1).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    kept, first = pairs.inputs.new_ones(pairs.inputs.shape[1:]), pairs.inputs.shape[2] - known
    for column in range(first, pairs.inputs.shape[2]):
        seen = list[Tensor]()
        for node, values in enumerate(pairs.inputs[:, :, column].unbind(1)):
            if not values.any() or any(torch.equal(values, one) for one in seen):
                kept[node, column] = 0.0
            else:
                seen.append(values)
    return kept


def regress(train: Pairs, validation: Pairs, solve: PathSolver, penalties: Sequence[float]) -> RegressionFit:
    """Fit every target on ``train`` for each penalty, and keep the penalty with the lowest error on ``validation``."""
    require(
        train.inputs.shape[1:] == validation.inputs.shape[1:]
        and train.targets.shape[1:] == validation.targets.shape[1:],
        f"validation must have nodes and channels like train, {tuple(train.inputs.shape[1:])}, "
        f"got {tuple(validation.inputs.shape[1:])}; cut both from one series",
    )
    require(
        len(penalties) > 0 and all(0 < penalty < float("inf") for penalty in penalties),
        f"penalties must have at least one positive number, got {list(penalties)}; pass for example [0.01, 0.1, 1.0]",
    )
    if train.observed is not None:
        counts = train.observed.sum(0)
        require(
            bool((counts >= 2).all()),
            f"train must have two observed targets or more of every node, got {int(counts.min())} of node "
            f"{int(counts.amin(1).argmin())}; leave that node out",
        )

    # Nodes and channels are flattened: (row, feature) and (row, target).
    scales = Deviations.of(train)
    rows, later = (scales.rows(part) for part in (train, validation))
    design, targets, there = (values.flatten(1) for values in (rows.inputs, rows.targets, rows.there))
    later_design, later_targets, known = (values.flatten(1) for values in (later.inputs, later.targets, later.there))
    weights, shifts = _solve_all(
        design, targets, there, solve, penalties
    )  # (penalty, feature, target), (penalty, target)
    errors = torch.einsum("rf,pft->prt", later_design, weights) + shifts[:, None] - later_targets
    squares = torch.where(known, errors.square(), 0.0).sum(1)  # (penalty, target)
    best = int(squares.sum(1).argmin())
    left = squares[best] / known.sum(0).clamp_min(1)
    own = torch.where(there, design @ weights[best] + shifts[best] - targets, 0.0)
    left = torch.where(known.any(0), left, own.square().sum(0) / there.sum(0)).sqrt()

    # The fit in the units of the data.
    nodes, channels, dtype = train.num_nodes, train.targets.shape[2], train.inputs.dtype
    in_units = weights[best] * scales.target_scale.flatten() / scales.input_scale.flatten()[:, None]
    taken = (scales.input_mean.flatten() @ in_units).view(nodes, channels)
    strength = weights[best].abs().view(nodes, -1, nodes, channels).sum((1, 3)).T  # (target, source)
    return RegressionFit(
        in_units.view(nodes, -1, nodes, channels).permute(2, 0, 1, 3).to(dtype),
        (scales.target_mean + shifts[best].view(nodes, channels) * scales.target_scale - taken).to(dtype),
        strength.clone().fill_diagonal_(0).to(dtype),
        (left.view(nodes, channels) * scales.target_scale).to(dtype),
        float(penalties[best]),
    )


def _solve_all(
    design: Tensor, targets: Tensor, there: Tensor, solve: PathSolver, penalties: Sequence[float]
) -> tuple[Path, Tensor]:
    """Solve for all targets; those that are missing in the same rows are solved together."""
    weights = design.new_zeros(len(penalties), design.shape[1], targets.shape[1])
    shifts = design.new_zeros(len(penalties), targets.shape[1])
    moving = (design != 0).any(0)  # constant columns have the weight 0
    design = design if moving.all() else design[:, moving]
    patterns, pattern_of = torch.unique(there, dim=1, return_inverse=True)
    for number, rows in enumerate(patterns.T):
        members = pattern_of == number
        known, own = design[rows], targets[rows][:, members]
        design_mean, target_mean = known.mean(0), own.mean(0)
        found = solve(known - design_mean, own - target_mean, penalties)
        weights[:, moving[:, None] & members] = found.flatten(1)
        shifts[:, members] = target_mean - torch.einsum("f,pft->pt", design_mean, found)
    return weights, shifts


def ridge_path(
    design: Float[Tensor, "row feature"], targets: Float[Tensor, "row target"], penalties: Sequence[float]
) -> Path:
    """Return the weights of every target for every penalty.

    >>> design, targets = torch.tensor([[1.0], [-1.0]]), torch.tensor([[2.0], [-2.0]])
    >>> ridge_path(design, targets, [1.0, 3.0]).flatten().tolist()
    [1.0, 0.5]
    """
    return solve_ridge(design, targets, design.new_tensor(len(design)), penalties)


def solve_ridge(
    design: Float[Tensor, "*block row feature"],
    targets: Float[Tensor, "*block row target"],
    count: Float[Tensor, "*block"],
    penalties: Sequence[float],
) -> Float[Tensor, "penalty *block feature target"]:
    """Return the weights of several regressions for every penalty; ``count`` is $n$, rows of 0 are not in it."""
    count = count[..., None, None]
    if design.shape[-2] < design.shape[-1]:
        return apply_to_all(design.mT, _solve(_second_moments(design.mT) / count, targets / count, penalties))
    return _solve(_second_moments(design) / count, design.mT @ targets / count, penalties)


def _solve(
    matrix: Float[Tensor, "*block side side"], right: Float[Tensor, "*block side target"], penalties: Sequence[float]
) -> Float[Tensor, "penalty *block side target"]:
    """Return (matrix + penalty)^-1 right for every penalty."""
    if matrix.shape[-1] > MOST_DECOMPOSED:
        found = list[Tensor]()
        for penalty in penalties:
            shifted = matrix.clone()
            shifted.diagonal(dim1=-2, dim2=-1).add_(penalty)
            factor, failed = torch.linalg.cholesky_ex(shifted)
            if failed.any():  # rounding made the matrix indefinite: decompose it
                break
            found.append(torch.cholesky_solve(right, factor))
        else:
            return torch.stack(found)
    values, vectors = torch.linalg.eigh(matrix)
    lambdas = values.new_tensor(list(penalties))[(..., *[None] * values.ndim)]
    shrunk = values.clamp_min(0) + lambdas  # (penalty, *block, side)
    return apply_to_all(vectors, (vectors.mT @ right) / shrunk[..., None])


def apply_to_all(
    matrix: Float[Tensor, "*block row side"], values: Float[Tensor, "penalty *block side target"]
) -> Float[Tensor, "penalty *block row target"]:
    """Return the product with the values of every penalty, without the copies that broadcasting would make."""
    together = values.movedim(0, -1).flatten(-2)  # (*block, side, target * penalty)
    found = matrix @ together
    return found.view(*found.shape[:-1], values.shape[-1], len(values)).movedim(-1, 0)


def _second_moments(design: Float[Tensor, "*block row column"]) -> Float[Tensor, "*block column column"]:
    """Return the sums of products of columns, some rows at a time."""
    columns = design.shape[-1]
    size = max(1, MOST_PRODUCTS // max(1, columns * columns * design.shape[:-2].numel()))
    total = design.new_zeros(*design.shape[:-2], columns, columns)
    for part in torch.split(design, size, -2):
        total += part.mT @ part
    return total


def ridge_regression(train: Pairs, validation: Pairs, *, penalties: Sequence[float] = RIDGE_PENALTIES) -> RegressionFit:
    """Return the ridge regression of each target on the inputs of all nodes; for a series, a ridge VAR.

    >>> inputs = torch.randn(60, 2, 1, generator=torch.Generator().manual_seed(0))
    >>> targets = torch.stack([3 * inputs[:, 1] + 1, inputs[:, 1]], dim=1)      # both nodes read node 1
    >>> pairs = Pairs(inputs, targets)
    >>> fit = ridge_regression(pairs[:40], pairs[40:])
    >>> fit.coefficients[..., 0, 0].round(decimals=3).tolist()
    [[0.0, 3.0], [0.0, 1.0]]
    """
    return regress(train, validation, ridge_path, penalties)

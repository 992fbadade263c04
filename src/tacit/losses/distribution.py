r"""Losses between distributions: MMD and energy score, over the whole output or node by node.

Both are kernel scores. With $S$ graphs, samples $y_s = f(x, A_s)$ and the target $y$,

$$L = c \Big( \tfrac{1}{S(S-1)} \sum_{s \neq t} k(y_s, y_t) - \tfrac{2}{S} \sum_s k(y, y_s) \Big)$$

MMD has $c = 1$ and a positive definite $k$ (its third term does not depend on the model and is dropped); the energy
score has $c = 1/2$ and $k = -d$. The cost of graph $s$ is what multiplies its score in the gradient for $\theta$:

$$w_s = 2 c \Big( \tfrac{1}{S-1} \sum_{t \neq s} k(y_s, y_t) - k(y, y_s) \Big)$$

Baselines, subtracted from the two parts of the cost:

``none``
    nothing.
``paper``
    one mean per part over the batch and its graphs. It contains graph $s$ itself and so shrinks the gradient a little:
    by $1 - 2/S$ and $1 - 1/S$ when the batch shares its graphs, by $1 - 2/(SB)$ and $1 - 1/(SB)$ when not.
``leave_one_out``
    the means over everything that does not involve graph $s$: pairs $(t, u)$ with both different from $s$, and
    targets against $t \neq s$. Exact in expectation.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

from torch import Tensor

from tacit.errors import InputError, did_you_mean
from tacit.losses.kernels import Kernel, NegativeDistance, RationalQuadratic
from tacit.losses.terms import LossTerms
from tacit.shapes import Samples, Targets

Scope = Literal["node", "joint"]
BaselineName = Literal["none", "paper", "leave_one_out"]


@dataclass(frozen=True)
class KernelScore:
    """The common form of MMD and energy score; see the module's text for the equations."""

    kernel: Kernel
    weight: float = 1.0
    scope: Scope = "node"
    baseline: BaselineName = "leave_one_out"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("scope", self.scope, get_args(Scope)),
            ("baseline", self.baseline, get_args(BaselineName)),
        ):
            if value not in known:
                raise InputError(f"{name} needs one of {', '.join(known)}, got '{value}'{did_you_mean(value, known)}")

    @property
    def min_graphs(self) -> int:
        """Two graphs make a pair; leaving one out of a pair takes a third."""
        return 3 if self.baseline == "leave_one_out" else 2

    def __call__(self, samples: Samples, targets: Targets) -> LossTerms:
        """Return value, cost and baseline for a batch."""
        num_graphs = samples.shape[1]
        if num_graphs < self.min_graphs:
            raise InputError(
                f"{type(self).__name__} with baseline '{self.baseline}' needs num_graphs >= {self.min_graphs}, "
                f"got {num_graphs}; raise num_graphs"
            )
        if (samples.shape[0], *samples.shape[2:]) != tuple(targets.shape):
            raise InputError(
                f"samples {tuple(samples.shape)} (batch, graph, node, channel) and targets {tuple(targets.shape)} "
                "(batch, node, channel) need the same batch, nodes and channels; check the predictor's output"
            )
        pairwise = self.kernel(self._pairwise_squared_distance(samples))
        self_similarity = self.kernel(targets.new_zeros(()))
        row = (pairwise.sum(2) - self_similarity) / (num_graphs - 1)  # (batch, graph, unit)
        data = self.kernel(self._squared_distance(samples - targets[:, None]))  # (batch, graph, unit)

        value = self.weight * (row.mean(1) - 2 * data.mean(1))
        cost = 2 * self.weight * (row - data)
        return LossTerms(value, cost, 2 * self.weight * self._baseline(row, data))

    def _pairwise_squared_distance(self, samples: Samples) -> Tensor:
        """Return the squared distance of every two samples of a pair: (batch, graph, graph, unit).

        At joint scope by one matrix product, of samples around their mean so that rounding stays small against the
        spread; the diagonal comes out of the same product, so that equal samples are at distance zero.
        """
        if self.scope == "node":
            return self._squared_distance(samples[:, :, None] - samples[:, None])
        flat = (samples - samples.mean(1, keepdim=True)).flatten(2)  # (batch, graph, node * channel)
        products = flat @ flat.mT
        norms = products.diagonal(dim1=-2, dim2=-1)
        squares = (norms[:, :, None] + norms[:, None] - 2 * products).clamp_min(0)
        return squares[..., None] / flat.shape[-1]

    def _squared_distance(self, difference: Tensor) -> Tensor:
        """Return the mean square over channels, and over nodes too at joint scope: (..., unit)."""
        squares = (difference * difference).mean(-1)
        return squares if self.scope == "node" else squares.mean(-1, keepdim=True)

    def _baseline(self, row: Tensor, data: Tensor) -> Tensor:
        num_graphs = row.shape[1]
        if self.baseline == "none":
            return row.new_zeros(1, 1, row.shape[-1])
        if self.baseline == "paper":
            return (row.mean(1, keepdim=True) - data.mean(1, keepdim=True)).mean(0, keepdim=True)
        # The sum of all rows holds each pair with s twice, once in row s and once in the row of its partner.
        row_rest = (row.sum(1, keepdim=True) - 2 * row) / (num_graphs - 2)
        data_rest = (data.sum(1, keepdim=True) - data) / (num_graphs - 1)
        return row_rest - data_rest


@dataclass(frozen=True)
class MMD(KernelScore):
    r"""Squared maximum mean discrepancy, up to a constant.

    $\mathrm{mean}_{s \neq t}\, k(y_s, y_t) - 2\, \mathrm{mean}_s\, k(y, y_s)$
    """

    kernel: Kernel = field(default_factory=RationalQuadratic)


@dataclass(frozen=True)
class EnergyScore(KernelScore):
    r"""$\mathrm{mean}_s\, d(y, y_s) - \tfrac12 \mathrm{mean}_{s \neq t}\, d(y_s, y_t)$; for one number it is the CRPS.

    It has no scale to choose.
    """

    kernel: Kernel = field(default_factory=NegativeDistance)
    weight: float = 0.5

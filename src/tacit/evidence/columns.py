r"""The columns by which one node may explain another: its lags and their squares, as one group.

With $x_{j,t-l}$ the scaled values of source $j$ and $\bar x_j$ their mean over the lags, a :class:`ColumnForm` says
which of these form the group: each lag or only the mean, with or without $\bar x_j^2$. Squares let nonlinear effects
count, a mean over lags averages measurement noise away. The own past of the target enters lag by lag and is always in.
With products (:mod:`tacit.evidence.products`) a source sends one value, its newest or the mean.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data import Pairs
from tacit.errors import require
from tacit.predictors.series import SeriesLayout

DOUBLE = torch.float64
TINY = 1e-9
Grouped = Float[Tensor, "row node column"]


@dataclass(frozen=True)
class ColumnForm:
    """``lags`` newest values of a source, each of them or their ``mean``, with ``squares`` or without.

    ``offsets``   an intercept per series, where there are several
    ``products``  of the values of two parents count, and squares; of the lags only the newest or the mean is sent
    """

    lags: int = 1
    mean: bool = False
    squares: bool = False
    offsets: bool = False
    products: bool = False

    def words(self) -> str:
        """Return what an edge carries, in words."""
        what = "the last value" if self.lags == 1 else f"{'the mean of ' * self.mean}the last {self.lags} values"
        if self.products:
            what = what if self.mean else "the last value"
            return what + ", its square and its products with other values"
        several = self.lags > 1 and not self.mean
        return what + (" and their squares" if several else " and its square") * self.squares


@dataclass(frozen=True, eq=False)
class Columns:
    """The regressions' columns over all rows, in double precision.

    ``sources``  the group of each node as a source; ``own``  of each node as a target; ``shared``  of all targets;
    ``targets``, ``observed``  scaled targets, and 1 where they are known
    """

    sources: Grouped
    own: Float[Tensor, "row node own"]
    shared: Float[Tensor, "row shared"]
    targets: Float[Tensor, "row node channel"]
    observed: Float[Tensor, "row node"]
    products: bool = False
    num_squares: int = 0

    @property
    def num_linear(self) -> int:
        """Columns of one source that are not squares; these come first."""
        return self.group_size - self.num_squares

    @property
    def group_size(self) -> int:
        """Columns of one source."""
        return self.sources.shape[2]

    @property
    def num_always(self) -> int:
        """Columns that are always in, without those of required parents."""
        return self.own.shape[2] + self.shared.shape[1]

    def rows(self, chosen: slice) -> "Columns":
        """Return some of the rows."""
        parts = {name: getattr(self, name)[chosen] for name in ("sources", "own", "shared", "targets", "observed")}
        return replace(self, **parts)


def build_columns(pairs: Pairs, layout: SeriesLayout, form: ColumnForm) -> Columns:
    """Return the columns of pairs; sources send the target variables, or all inputs where there is no time."""
    require(
        form.lags <= layout.window,
        f"lags must be at most window={layout.window}, got {form.lags}; pass pairs with a longer window",
    )
    inputs = pairs.inputs.cpu().to(DOUBLE)
    sent = layout.num_features if layout.window == 1 else min(layout.out_channels, layout.num_features)
    lags = layout.lags(inputs)[:, :, layout.window - form.lags :]  # (row, node, lag, feature), the oldest first
    values = _scaled(lags[..., :sent])
    sent_value = values.mean(2) if form.mean or not form.products else values[:, :, -1]
    squares = [sent_value.square()] if form.squares or form.products else []
    own = [values.flatten(2), *squares]
    group = [sent_value] if form.mean or form.products else [values.flatten(2)]
    if layout.num_features > sent:  # flags and covariates, at the newest step
        own.append(_scaled(lags[:, :, -1, sent:]))
    known = torch.ones(pairs.targets.shape[:2], dtype=DOUBLE)
    targets = pairs.targets.cpu().to(DOUBLE)
    if pairs.observed is not None:
        known = pairs.observed.cpu().to(DOUBLE).amin(2)  # a row counts where all channels of the target are known
    return Columns(
        torch.cat(group if form.products else [*group, *squares], 2),
        torch.cat(own, 2),
        _shared(pairs, form),
        _scaled(targets, known[..., None]),
        known,
        form.products,
        0 if form.products else sum(column.shape[2] for column in squares),
    )


def _shared(pairs: Pairs, form: ColumnForm) -> Float[Tensor, "row column"]:
    one = torch.ones(len(pairs), 1, dtype=DOUBLE)
    if not form.offsets or pairs.series is None:
        return one
    numbers = torch.unique(pairs.series.cpu(), return_inverse=True)[1]
    return torch.nn.functional.one_hot(numbers).to(DOUBLE)


def _scaled(values: Tensor, known: Tensor | None = None) -> Tensor:
    """Return values with mean 0 and deviation 1 over the rows; constants become 0, unknown values too."""
    weights = torch.ones_like(values) if known is None else known.expand_as(values)
    count = weights.sum(0).clamp_min(1)
    values = (values - (values * weights).sum(0) / count) * weights
    return values / (values.square().sum(0) / count).sqrt().clamp_min(TINY)

r"""The regression columns of a source: its lags and their squares, as one group.

With $x_{j,t-l}$ the scaled values of source $j$ and $\bar x_j$ their mean over the lags, a :class:`ColumnForm` defines
the group: each lag, with or without $\bar x_j^2$, or only a smoothed value $\sum_l \rho^l x_{j,t-l}$, with or without
its square. Squares allow nonlinear effects. If values are measured with noise, the best guess of the last one is a
smoothed value (a Kalman filter of a persistent series), and so is what the target's own past says; otherwise the own
past enters lag by lag. It is always included. With products (:mod:`tacit.assessment.evidence.products`) a source sends
one value, its newest or the smoothed one.

Where a background is added to the values of a system, effects act on what a node does beside it. Such a source sends
its deviations: its values without their regression on the background of the node itself, which is the same at earlier
rows up to its phase.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.tableau import orthonormal
from tacit.data import Pairs
from tacit.errors import require
from tacit.predictors import SeriesLayout

DOUBLE = torch.float64
TINY = 1e-9
Grouped = Float[Tensor, "row node column"]


@dataclass(frozen=True)
class ColumnForm:
    """The form of the columns: the ``lags`` newest values of a source or their smoothed value, with or without squares.

    ``decay``     weight of each value of a smoothed value by that of the next newer one, $\\rho$; 0 for separate lags
    ``offsets``   an intercept per series, if there are several
    ``products``  include products of the values of two parents, and squares; a source sends its newest value or mean
    ``deviations``  sources send deviations from the background of their node; the number of known columns before those
                    of the background, which are covariates; None: sources send values
    """

    lags: int = 1
    decay: float = 0.0
    squares: bool = False
    offsets: bool = False
    products: bool = False
    deviations: int | None = None

    def words(self) -> str:
        """Describe the columns of an edge as text."""
        return self._words() + " less the background" * (self.deviations is not None)

    def _words(self) -> str:
        what = "the last value" if self.lags == 1 or self.products else f"the last {self.lags} values"
        what = "a smoothed value" if self.decay else what
        if self.products:
            return what + ", its square and its products with other values"
        several = self.lags > 1 and not self.decay
        return what + (" and their squares" if several else " and its square") * self.squares


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of the regressions over all rows, in double precision; the rows of a column are contiguous in memory.

    ``sources``      the group of each node as a source
    ``own``          own columns of each node as a target
    ``shared``       columns that all targets share
    ``targets``, ``observed``  scaled targets, and 1 for observed ones
    ``num_lags``     lags in a group, the oldest first
    ``series``       the series of each row, if each series has its own intercept
    ``row_weights``  row weights of each target, if they are not equal
    """

    sources: Grouped
    own: Float[Tensor, "row node own"]
    shared: Float[Tensor, "row shared"]
    targets: Float[Tensor, "row node channel"]
    observed: Float[Tensor, "row node"]
    products: bool = False
    num_squares: int = 0
    num_lags: int = 0
    series: Int[Tensor, " row"] | None = None
    row_weights: Float[Tensor, "row node"] | None = None

    @property
    def weights(self) -> Float[Tensor, "row node"]:
        """Weight of each row in the regression of a target; 0 if the target is missing."""
        return self.observed if self.row_weights is None else self.observed * self.row_weights

    @property
    def num_linear(self) -> int:
        """Number of columns of one source that are not squares; these come first."""
        return self.group_size - self.num_squares

    @property
    def group_size(self) -> int:
        """Number of columns of one source."""
        return self.sources.shape[2]

    @cached_property
    def num_always(self) -> Int[Tensor, " node"]:
        """Number of always included columns of each node, without those of required parents and columns of 0."""
        intercepts = 0 if self.series is None else len(torch.unique(self.series))
        return (self.own != 0).any(0).sum(1) + self.shared.shape[1] + intercepts

    def without_intercepts(
        self, values: Float[Tensor, "*leading column row"], weights: Float[Tensor, "*leading row"]
    ) -> Float[Tensor, "*leading column row"]:
        r"""Subtract the weighted mean of each series from the columns if each has an intercept: $v - \bar v_s$.

        Intercepts then require no columns: regressions on the centred columns equal those with a column per series.
        """
        if self.series is None:
            return values
        series, weights = torch.unique(self.series, return_inverse=True)[1], weights[..., None, :]
        count = int(series.max()) + 1
        totals, masses = (
            one.new_zeros(*one.shape[:-1], count).index_add_(-1, series, one) for one in (values * weights, weights)
        )
        return values - (totals / masses.clamp_min(TINY))[..., series]

    def last(self, rows: int) -> "Columns":
        """Return the columns of the last rows, all if there are no more."""
        return replace(
            self,
            sources=self.sources[-rows:],
            own=self.own[-rows:],
            shared=self.shared[-rows:],
            targets=self.targets[-rows:],
            observed=self.observed[-rows:],
            series=None if self.series is None else self.series[-rows:],
            row_weights=None if self.row_weights is None else self.row_weights[-rows:],
        )

    def deviations(self, values: Float[Tensor, "*leading column row"]) -> Float[Tensor, "*leading column"]:
        """Return the standard deviation of columns over all rows, within series if each has an intercept."""
        weights = values.new_ones(*values.shape[:-2], values.shape[-1])
        rest = self.without_intercepts(values, weights) if self.series is not None else values - values.mean(-1, True)
        return rest.square().mean(-1).sqrt()

    @property
    def target_deviations(self) -> Float[Tensor, "node channel"]:
        """The standard deviation of each observed target, within series if each has an intercept; 1 otherwise."""
        if self.series is None:
            return self.targets.new_ones(self.targets.shape[1:])
        known = self.observed.mT  # (node, row)
        rest = self.without_intercepts(self.targets.permute(1, 2, 0), known) * known[:, None]
        return (rest.square().sum(-1) / known.sum(-1, keepdim=True).clamp_min(1)).sqrt().clamp_min(TINY)

    def by_node(self, nodes: Int[Tensor, "target node"]) -> Float[Tensor, "target column row"]:
        """Return the concatenated groups of some sources, for many targets."""
        return self.sources.permute(1, 2, 0)[nodes].flatten(1, 2)

    def within(self, ages: Int[Tensor, "*edge 2"]) -> Bool[Tensor, "*edge column"]:
        """Return which columns of a group belong to a range of lags; requires a group with one column per lag."""
        require(
            self.num_lags * (self.group_size // max(1, self.num_lags)) == self.group_size and not self.num_squares,
            "lags can be limited only if a group has one column per lag and no others; use another form of columns",
        )
        age = torch.arange(self.num_lags).flip(0).repeat_interleave(self.group_size // self.num_lags)
        return (ages[..., :1] <= age) & (age <= ages[..., 1:])


def num_sent(layout: SeriesLayout) -> int:
    """Return how many numbers a source sends at each lag: the target variables, or all inputs of a pair."""
    return layout.num_features if layout.window == 1 else min(layout.out_channels, layout.num_features)


@dataclass(frozen=True, eq=False)
class ScaledValues:
    """Standardised values from which columns are built; the values of a node are contiguous, rows are the last axis.

    ``values``      the last lags of the sent variables, the oldest first
    ``covariates``  flags of the newest step, then the columns known at the time of the target
    ``num_others``  number of these columns before those of the background
    """

    values: Float[Tensor, "node lag sent row"]
    covariates: Float[Tensor, "node covariate row"]
    num_others: int
    targets: Float[Tensor, "node channel row"]
    known: Float[Tensor, "node row"]
    pairs: Pairs

    @classmethod
    def of(
        cls,
        pairs: Pairs,
        layout: SeriesLayout,
        lags: int,
        nodes: slice | Int[Tensor, " node"] = slice(None),
        background: int = 0,
    ) -> "ScaledValues":
        """Return the values of some nodes; sources send the target variables, or all inputs for data without time.

        ``background`` is the number of known columns before those of the background.
        """
        require(
            lags <= layout.window,
            f"lags must be at most window={layout.window}, got {lags}; pass pairs with a longer window",
        )
        sent = num_sent(layout)
        inputs = layout.lags(pairs.inputs[:, nodes])[:, :, layout.window - lags :]  # (row, node, lag, feature)
        targets = _rows_last(pairs.targets[:, nodes])
        known = torch.ones(len(targets), len(pairs), dtype=DOUBLE)
        if pairs.observed is not None:
            known = _rows_last(pairs.observed[:, nodes]).amin(
                1
            )  # a row counts if all channels of the target are observed
        values = _scaled(_rows_last(inputs[..., :sent]))
        flags, trailing = inputs[:, :, -1, sent:], layout.trailing(pairs.inputs[:, nodes])
        covariates = _scaled(_rows_last(torch.cat([flags, trailing], -1)))
        return cls(values, covariates, flags.shape[-1] + background, _scaled(targets, known[:, None]), known, pairs)

    @cached_property
    def deviations(self) -> Float[Tensor, "node lag sent row"]:
        """The values of each node without their regression on its background."""
        background = self.covariates[:, self.num_others :]
        basis = orthonormal(torch.cat([background, torch.ones_like(self.known)[:, None]], 1))
        values = self.values.flatten(1, 2)
        return (values - (values @ basis) @ basis.mT).view_as(self.values)

    def columns(self, form: ColumnForm) -> Columns:
        """Return the columns of a form with at most as many lags."""
        values = self.values if form.deviations is None else self.deviations
        values = values[:, values.shape[1] - form.lags :]
        series = self.pairs.series.cpu() if form.offsets and self.pairs.series is not None else None
        linear = values.flatten(1, 2)
        sent_value = values[:, -1] if form.products else values.mean(1)
        if form.decay:
            falling = form.decay ** torch.arange(form.lags, dtype=DOUBLE).flip(0)
            linear = sent_value = torch.einsum("nlsr,l->nsr", values, falling)
        squares = [sent_value.square()] if form.squares or form.products else []
        group = [sent_value] if form.products else [linear]
        own = [linear, *squares] + [self.covariates] * (self.covariates.shape[1] > 0)
        return Columns(
            _joined(group if form.products else [*group, *squares]).permute(2, 0, 1),
            _joined(own).permute(2, 0, 1),
            torch.ones(len(self.pairs), int(series is None), dtype=DOUBLE),
            self.targets.permute(2, 0, 1),
            self.known.mT,
            form.products,
            0 if form.products else sum(column.shape[1] for column in squares),
            0 if form.decay or form.products else form.lags,
            series,
        )


def build_columns(pairs: Pairs, layout: SeriesLayout, form: ColumnForm) -> Columns:
    """Return the columns of pairs in one form."""
    return ScaledValues.of(pairs, layout, form.lags, background=form.deviations or 0).columns(form)


def _rows_last(values: Float[Tensor, "row *rest"]) -> Float[Tensor, "*rest row"]:
    return values.cpu().movedim(0, -1).to(DOUBLE, copy=True, memory_format=torch.contiguous_format)


def _joined(parts: list[Float[Tensor, "node _ row"]]) -> Float[Tensor, "node column row"]:
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _scaled(values: Float[Tensor, "*rest row"], known: Tensor | None = None) -> Float[Tensor, "*rest row"]:
    """Standardise values over the rows; constants and missing values become 0."""
    count: Tensor | int = values.shape[-1]
    if known is None:
        values = values - values.mean(-1, keepdim=True)
    else:
        count = known.sum(-1, keepdim=True).clamp_min(1)
        values = (values - (values * known).sum(-1, keepdim=True) / count) * known
    return values / (values.square().sum(-1, keepdim=True) / count).sqrt().clamp_min(TINY)

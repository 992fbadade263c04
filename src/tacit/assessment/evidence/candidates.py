r"""The columns and the candidate parents of each target, and nodes whose columns are copies.

The regression columns of a source: its lags and their squares or splines, as one group.

With $x_{j,t-l}$ the scaled values of source $j$ and $\bar x_j$ their mean over the lags, a :class:`ColumnForm` defines
the group: each lag, with or without $\bar x_j^2$, or only a smoothed value $\sum_l \rho^l x_{j,t-l}$, with or without
its square. Squares allow nonlinear effects, and splines effects of any smooth shape: in place of a square there are the
columns of a natural cubic spline, which is linear beyond its outer knots. If values are measured with noise, the best
guess of the last one is a smoothed value (a Kalman filter of a persistent series), and so is what the target's own past
says; otherwise the own past enters lag by lag. It is always included. With products
(:mod:`tacit.assessment.evidence.products`) a source sends one value, its newest or the smoothed one.

Where a background is added to the values of a system, effects act on what a node does beside it. Such a source sends
its deviations: its values without their regression on the background of the node itself, which is the same at earlier
rows up to its phase.

The candidate and required parents of each target, and their prior log odds.

Copies: nodes with almost equal values, whose edges into a target cannot be distinguished.

Sources $j$ and $k$ of a target are near-copies if their columns span almost the same space, given the always included
columns of the target. With $q_j$ an orthonormal basis of the $m$ columns of $j$ without that part,

$$\frac{1}{m} \| q_j^\top q_k \|^2 \ge 0.95,$$

for one column each the squared partial correlation. Near-copies are one *group* of the target if the data prefer none
of them: the odds between members are at most 10, and no member has 90% of the probability that any of them is a parent,

$$P(M \cap G \ne \emptyset \mid \text{data}) = \sum_{M: M \cap G \ne \emptyset} p(M \mid \text{data}),$$

which is the ``exists`` of the group. Two nodes are copies of each other if the same holds for their residuals within a
step. Then an edge between them cannot be distinguished from the copying, and has at most its prior probability.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.averaging import cross_products, orthonormal, quadratic_forms, without_columns
from tacit.data import Pairs
from tacit.errors import require
from tacit.graph import EdgeRules
from tacit.predictors import SeriesLayout

DOUBLE = torch.float64
TINY = 1e-9
KNOTS = (0.05, 0.35, 0.65, 0.95)  # of a spline, as shares of the values below them
Grouped = Float[Tensor, "row node column"]


@dataclass(frozen=True)
class ColumnForm:
    """The form of the columns: the ``lags`` newest values of a source or their smoothed value, with or without squares.

    ``decay``     weight of each value of a smoothed value by that of the next newer one, $\\rho$; 0 for separate lags
    ``offsets``   an intercept per series, if there are several
    ``products``  include products of the values of two parents, and squares; a source sends its newest value or mean
    ``deviations``  sources send deviations from the background of their node; the number of known columns before those
                    of the background, which are covariates; None: sources send values
    ``splines``   a natural cubic spline of the mean or smoothed value in place of squares
    """

    lags: int = 1
    decay: float = 0.0
    squares: bool = False
    offsets: bool = False
    products: bool = False
    deviations: int | None = None
    splines: bool = False

    def words(self) -> str:
        """Describe the columns of an edge as text."""
        return self._words() + " less the background" * (self.deviations is not None)

    def _words(self) -> str:
        what = "the last value" if self.lags == 1 or self.products else f"the last {self.lags} values"
        what = "a smoothed value" if self.decay else what
        if self.products:
            return what + ", its square and its products with other values"
        several = self.lags > 1 and not self.decay
        if self.splines:
            return what + (" and their spline" if several else " and its spline")
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
        squares = [spline_columns(sent_value)] if form.splines else squares
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


def spline_columns(values: Float[Tensor, "node sent row"]) -> Float[Tensor, "node column row"]:
    r"""Return the columns of a natural cubic spline beside the value itself, 0 if values hardly differ.

    With knots $k_1 < \dots < k_m$ and $c_j = (x - k_j)_+^3 / (k_m - k_1)^2$, column $j \le m - 2$ is

    $$c_j - c_{m-1} \frac{k_m - k_j}{k_m - k_{m-1}} + c_m \frac{k_{m-1} - k_j}{k_m - k_{m-1}}.$$

    The knots are quantiles of the values.

    >>> columns = spline_columns(torch.arange(0, 105, 5, dtype=DOUBLE)[None, None])  # knots at 5, 35, 65 and 95
    >>> columns.shape, columns[0, :, :2].tolist()  # 0 up to the first knot
    (torch.Size([1, 2, 21]), [[0.0, 0.0], [0.0, 0.0]])
    """
    last = values.shape[-1] - 1
    places = [round(share * last) for share in KNOTS]
    knots = values.sort(-1).values[..., places]  # (node, sent, knot)
    apart = knots.diff(dim=-1).amin(-1) > TINY
    knots = torch.where(apart[..., None], knots, torch.arange(len(KNOTS), dtype=DOUBLE))
    cubes = (values[:, :, None] - knots[..., None]).clamp_min(0.0) ** 3
    cubes = cubes / (knots[..., -1] - knots[..., 0]).square()[..., None, None]
    inner, before, end = knots[..., :-2, None], knots[..., -2, None, None], knots[..., -1, None, None]
    first = cubes[..., :-2, :] - cubes[..., -2:-1, :] * (end - inner) / (end - before)
    return ((first + cubes[..., -1:, :] * (before - inner) / (end - before)) * apart[..., None, None]).flatten(1, 2)


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


BYTES_AT_ONCE = 4e6  # of columns: about the size of a cache
Weights = Float[Tensor, " row"]
Resamples = Float[Tensor, "resample row"]
ResampledMatrices = Float[Tensor, "resample target column column"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """One row per target: its candidate ``sources``, padded; ``used`` is false for padding.

    ``prior``     prior log odds set by the user, NaN if not set
    ``required``  sources of each target that are always included
    ``ages``      the newest and the oldest allowed lag of each edge, counted from the newest input; None without
                  limits; ``required_ages`` likewise
    """

    targets: Int[Tensor, " target"]
    sources: Int[Tensor, "target candidate"]
    used: Bool[Tensor, "target candidate"]
    prior: Float[Tensor, "target candidate"]
    required: tuple[Int[Tensor, "_"], ...]
    ages: Int[Tensor, "target candidate 2"] | None = None
    required_ages: tuple[Int[Tensor, "_ 2"], ...] | None = None

    @classmethod
    def from_rules(cls, rules: EdgeRules, horizon: int = 1) -> "Candidates":
        """Return the candidates between different nodes that the rules neither forbid nor require."""
        num_nodes = len(rules.nodes)
        source, target, given, is_required = rules.open_edges()
        between = source != target
        free = between & ~is_required
        fixed = between & is_required
        order = target[fixed].argsort(stable=True)
        counts = torch.bincount(target[fixed], minlength=num_nodes).tolist()
        required = torch.split(source[fixed][order], counts)
        ages = _ages(rules, source, target, horizon)
        found = cls.from_edges(
            source[free],
            target[free],
            num_nodes,
            prior=torch.logit(given[free].to(DOUBLE)),
            ages=None if ages is None else ages[free],
        )
        required_ages = None if ages is None else torch.split(ages[fixed][order], counts)
        return replace(found, required=required, required_ages=required_ages)

    @classmethod
    def kept(
        cls, rules: EdgeRules, source: Int[Tensor, " edge"], target: Int[Tensor, " edge"], horizon: int = 1
    ) -> "Candidates":
        """Return some edges as candidates, with the lags that the rules allow."""
        return cls.from_edges(source, target, len(rules.nodes), ages=_ages(rules, source, target, horizon))

    @classmethod
    def from_edges(
        cls,
        source: Int[Tensor, " edge"],
        target: Int[Tensor, " edge"],
        num_nodes: int,
        *,
        prior: Float[Tensor, " edge"] | None = None,
        ages: Int[Tensor, "edge 2"] | None = None,
    ) -> "Candidates":
        """Return the candidates for a list of edges, sorted by target and then source."""
        order = (target * num_nodes + source).argsort()
        source, target = source[order], target[order]
        degree = torch.bincount(target, minlength=num_nodes)
        place = torch.arange(len(target)) - (degree.cumsum(0) - degree)[target]
        width = max(1, int(degree.max()))
        sources, used = torch.zeros(num_nodes, width, dtype=torch.long), torch.zeros(num_nodes, width, dtype=torch.bool)
        odds = torch.full((num_nodes, width), torch.nan, dtype=DOUBLE)
        sources[target, place], used[target, place] = source, True
        if prior is not None:
            odds[target, place] = prior[order]
        limits = None
        if ages is not None:
            limits = torch.zeros(num_nodes, width, 2, dtype=torch.long)
            limits[target, place] = ages[order]
        none = (torch.zeros(0, dtype=torch.long),) * num_nodes
        return cls(torch.arange(num_nodes), sources, used, odds, none, limits)

    @property
    def width(self) -> int:
        """Number of candidates per target, with padding."""
        return self.sources.shape[1]

    @property
    def fewest_lags(self) -> int:
        """The smallest number of lags such that each edge has at least one allowed lag."""
        if self.ages is None:
            return 1
        newest = [self.ages[self.used][:, 0], *(ages[:, 0] for ages in self.required_ages or ())]
        return 1 + int(torch.cat(newest).max()) if sum(map(len, newest)) else 1

    def own_columns(self, columns: Columns) -> Bool[Tensor, "target candidate column"]:
        """Return which columns of a source belong to each edge: all, or those of its allowed lags."""
        if self.ages is None:
            return torch.ones(*self.sources.shape, columns.group_size, dtype=torch.bool)
        return columns.within(self.ages)

    def sizes(self, columns: Columns) -> Float[Tensor, "target candidate"]:
        """Return the number of columns of each candidate."""
        return self.own_columns(columns).sum(2).to(DOUBLE)

    def chosen(self, rows: slice | Tensor) -> "Candidates":
        """Return some of the targets."""
        numbers = torch.arange(len(self.targets))[rows]
        required = tuple(self.required[number] for number in numbers.tolist())
        ages = None if self.required_ages is None else tuple(self.required_ages[number] for number in numbers.tolist())
        names = ("targets", "sources", "used", "prior", "ages")
        parts = {name: values[numbers] for name in names if (values := getattr(self, name)) is not None}
        return replace(self, **parts, required=required, required_ages=ages)

    def first_targets(self, most: int) -> "Candidates":
        """Return evenly spaced targets, at most the given number."""
        count = len(self.targets)
        return self if count <= most else self.chosen(torch.linspace(0, count - 1, most).long())

    def screened(self, columns: Columns, most: int) -> "Candidates":
        """Return, for each target, the ``most`` candidates that individually explain the largest share of it."""
        return self if self.width <= most else self.picked(self.best(self.single_gains(columns), most))

    def best(self, gains: Float[Tensor, "target candidate"], most: int) -> Int[Tensor, "target place"]:
        """Return the positions of the candidates with the largest gains, sorted by position; ties go to the first."""
        ranks = gains.masked_fill(~self.used, -1.0).round(decimals=9)  # factors of a product differ by rounding
        return ranks.sort(dim=1, descending=True, stable=True).indices[:, :most].sort(1).values

    def picked(self, places: Int[Tensor, "target place"]) -> "Candidates":
        """Return the candidates at given positions."""
        parts = {name: getattr(self, name).gather(1, places) for name in ("sources", "used", "prior")}
        if self.ages is not None:
            parts["ages"] = self.ages.gather(1, places[..., None].expand(-1, -1, 2))
        return replace(self, **parts)

    def num_always(self, columns: Columns) -> Float[Tensor, " target"]:
        """Return the number of always included columns of each target, with those of required parents."""
        return (columns.num_always[self.targets] + self._num_required(columns)).to(DOUBLE)

    def num_rows(self, columns: Columns, weights: Weights) -> Float[Tensor, " target"]:
        """Return the (weighted) number of rows of each target."""
        return weights @ columns.observed[:, self.targets]

    def compact(self) -> tuple[Int[Tensor, " node"], "Candidates"]:
        """Return the nodes that occur, and the candidates renumbered among these."""
        nodes = torch.unique(torch.cat([self.targets, self.sources[self.used], *self.required]))
        sources = torch.searchsorted(nodes, self.sources).masked_fill(~self.used, 0)
        required = tuple(torch.searchsorted(nodes, one) for one in self.required)
        targets = torch.searchsorted(nodes, self.targets)
        return nodes, replace(self, targets=targets, sources=sources, required=required)

    def batches(self, columns: Columns, width: int) -> Iterator[Int[Tensor, " place"]]:
        """Yield batches of targets with equally many columns of required parents, small enough for a cache."""
        counts = self._num_required(columns)
        at_once = max(1, int(BYTES_AT_ONCE / (8 * len(columns.targets) * width)))
        for count in torch.unique(counts):
            yield from torch.split((counts == count).nonzero()[:, 0], at_once)

    def always(self, columns: Columns, places: Int[Tensor, " place"]) -> Float[Tensor, "place column row"]:
        """Return the always included columns: the target's own, the shared ones, those of required parents."""
        of_each = torch.stack([self._required_columns(columns, place) for place in places.tolist()])
        required = columns.sources.permute(1, 2, 0).flatten(0, 1)[of_each]
        own = columns.own.permute(1, 2, 0)[self.targets[places]]
        return torch.cat([own, columns.shared.mT.expand(len(own), -1, -1), required], 1)

    def _required_columns(self, columns: Columns, number: int) -> Int[Tensor, "_"]:
        """Return the column numbers of the required parents of a target, among the groups of all nodes."""
        found = self.required[number][:, None] * columns.group_size + torch.arange(columns.group_size)
        return found.flatten() if self.required_ages is None else found[columns.within(self.required_ages[number])]

    def _num_required(self, columns: Columns) -> Int[Tensor, " target"]:
        if self.required_ages is None:
            return columns.group_size * torch.tensor([len(one) for one in self.required])
        return torch.tensor([int(columns.within(ages).sum()) for ages in self.required_ages])

    def matrices(self, columns: Columns, weights: Resamples) -> ResampledMatrices:
        """Return the matrices of cross products; padding is a separate column that explains nothing."""
        gone = ~(self.own_columns(columns) & self.used[..., None]).flatten(1)
        return self.matrices_of(columns, weights, gone, lambda places: columns.by_node(self.sources[places]))

    def matrices_of(
        self,
        columns: Columns,
        weights: Resamples,
        gone: Bool[Tensor, "target parent"],
        parents: Callable[[Int[Tensor, " place"]], Float[Tensor, "place parent row"]],
    ) -> ResampledMatrices:
        """Return the matrices of each resample and target for the columns from ``parents``, without those ``gone``."""
        channels = columns.targets.shape[2]
        width = gone.shape[1] + channels
        found, all_known = columns.targets.new_empty(len(weights), len(gone), width, width), columns.weights.mT
        for places in self.batches(columns, width):
            targets = self.targets[places]
            of_targets, known = columns.targets.permute(1, 2, 0)[targets], all_known[targets]
            both = torch.cat([parents(places), of_targets, self.always(columns, places)], 1)
            for number, one in enumerate(weights):
                rest = columns.without_intercepts(both, one * known)
                found[number, places] = cross_products(rest, one * known, rest.shape[1] - width, channels)
        return without_columns(found, gone)

    def single_gains(self, columns: Columns) -> Float[Tensor, "target candidate"]:
        """Return the share of its target that each candidate explains alone, given the always included columns."""
        equal = columns.row_weights is None and bool((columns.observed[:, self.targets] == 1).all())
        if equal and self.ages is None and 2 * self.width >= columns.sources.shape[1]:
            return self._gains_of_equal_rows(columns)
        found = columns.targets.new_empty(self.sources.shape)
        for places in self.batches(columns, self.width * columns.group_size):
            found[places] = self._single_gains(columns, places)
        return found

    def _gains_of_equal_rows(self, columns: Columns) -> Float[Tensor, "target candidate"]:
        """Return the gains if all rows have weight 1 for all targets: the products of the sources are computed once."""
        ones = columns.observed.new_ones(columns.observed.shape).mT  # (node, row)
        sources = columns.without_intercepts(columns.sources.permute(1, 2, 0), ones)  # (node, column, row)
        flat, of_sources = sources.flatten(0, 1), sources @ sources.mT
        found = columns.targets.new_empty(self.sources.shape)
        for places in self.batches(columns, columns.own.shape[2] + columns.group_size):
            basis = orthonormal(columns.without_intercepts(self.always(columns, places), ones[: len(places)]))
            target = columns.targets.permute(1, 2, 0)[self.targets[places]]
            target = columns.without_intercepts(target, ones[: len(places)])
            left = target - (target @ basis) @ basis.mT  # (target, channel, row)
            both = torch.cat([basis.mT, left], 1)  # (target, column, row)
            products = torch.unflatten(flat @ both.flatten(0, 1).mT, 1, both.shape[:2]).transpose(0, 1)
            chosen = torch.unflatten(products, 1, sources.shape[:2])[
                torch.arange(len(places))[:, None], self.sources[places]
            ]
            within, cross = chosen[..., : basis.shape[2]], chosen[..., basis.shape[2] :]
            block = of_sources[self.sources[places]]
            squares = block.diagonal(dim1=2, dim2=3).clone()
            block -= within @ within.mT
            block.diagonal(dim1=2, dim2=3).add_(1e-8 * squares + 1e-12)
            share = quadratic_forms(block, cross) / left.square().sum(-1)[:, None].clamp_min(1e-300)
            found[places] = share.mean(-1)
        return found

    def _single_gains(self, columns: Columns, places: Int[Tensor, " place"]) -> Float[Tensor, "place candidate"]:
        targets, size = self.targets[places], columns.group_size
        seen = columns.weights.mT[targets]
        known = seen[:, None].sqrt()  # (target, 1, row)
        basis = orthonormal(columns.without_intercepts(self.always(columns, places), seen) * known)
        target = columns.without_intercepts(columns.targets.permute(1, 2, 0)[targets], seen) * known
        left = target - (target @ basis) @ basis.mT  # (target, channel, row)
        parents = columns.without_intercepts(columns.by_node(self.sources[places]), seen).mul_(known)
        if self.ages is not None:
            parents *= columns.within(self.ages[places]).flatten(1)[..., None]
        within = parents @ basis  # projection on the always included columns
        cross = torch.unflatten(parents @ left.mT, 1, (-1, size))  # (target, candidate, column, channel)
        parents, within = (torch.unflatten(values, 1, (-1, size)) for values in (parents, within))
        block = parents @ parents.mT
        squares = block.diagonal(dim1=2, dim2=3).clone()
        block -= within @ within.mT
        block.diagonal(dim1=2, dim2=3).add_(1e-8 * squares + 1e-12)
        share: Float[Tensor, "place candidate"]
        share = (quadratic_forms(block, cross) / left.square().sum(-1)[:, None].clamp_min(1e-300)).mean(-1)
        return share


def _ages(
    rules: EdgeRules, source: Int[Tensor, " edge"], target: Int[Tensor, " edge"], horizon: int
) -> Int[Tensor, "edge 2"] | None:
    """Return the newest and the oldest lag of some edges, counted from the newest input; None without limits."""
    if rules.lag_ranges is None:
        return None
    low, high = rules.lag_ranges.limits(source, target)
    return torch.stack([(low - horizon).clamp_min(0), high - horizon], 1)  # no lag from 1 on: the oldest is -1


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

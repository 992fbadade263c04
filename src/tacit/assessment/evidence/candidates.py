"""The candidate and required parents of each target, and their prior log odds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.evidence.columns import DOUBLE, Columns
from tacit.assessment.evidence.tableau import cross_products, orthonormal, quadratic_forms, without_columns
from tacit.graph import EdgeRules

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
        found = columns.targets.new_empty(len(weights), len(gone), width, width)
        for places in self.batches(columns, width):
            targets = self.targets[places]
            values = torch.cat([parents(places), columns.targets.permute(1, 2, 0)[targets]], 1)
            both, known = torch.cat([values, self.always(columns, places)], 1), columns.weights.mT[targets]
            for number, one in enumerate(weights):
                rest = columns.without_intercepts(both, one * known)
                found[number, places] = cross_products(rest[:, :width], rest[:, width:], one * known, channels)
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

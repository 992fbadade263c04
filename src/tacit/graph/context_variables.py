r"""Variables that edge probabilities may depend on, their features, and splines.

Variables that edge probabilities may depend on, and their features.

$$\phi(c) = R^\top (\beta(c) - m)$$

$\beta$ is the basis of a variable $c$: an indicator of each level, or cubic splines, which are periodic for a periodic
variable. $m$ and $R$ are chosen so that over the training pairs the features $\phi$ have mean 0, are uncorrelated and
have variance 1. All weights of a constant edge are then 0, and the sum of an edge's squared weights is the variance of
its logit.

A variable is read from the :class:`~tacit.graph.Context` of a pair: from covariates, the number of the series, the
time, or the input of the node at one end of an edge.

Cubic B-splines with equidistant knots, on an interval or periodic.

$$B(d) = \begin{cases} \tfrac16 (4 - 6 d^2 + 3 d^3) & d < 1 \\ \tfrac16 (2 - d)^3 & 1 \le d < 2 \\ 0 & \text{else}
\end{cases}$$

where $d$ is the distance of a position from the middle of a spline, in knots. At every position the splines sum to 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tacit.errors import require
from tacit.graph.distribution import Context

FEWEST_SPLINES = 4  # each spline covers four intervals between knots

Positions = Float[Tensor, "*any"]
SplineValues = Float[Tensor, "*any spline"]


def periodic_splines(phases: Positions, count: int) -> SplineValues:
    """Return ``count`` periodic splines; phases run from 0 to 1.

    >>> (6 * periodic_splines(torch.tensor([0.0, 1.0]), 4)).round().tolist()
    [[4.0, 1.0, 0.0, 1.0], [4.0, 1.0, 0.0, 1.0]]
    """
    middles = torch.arange(count, device=phases.device, dtype=phases.dtype)
    away = (phases[..., None] * count - middles + count / 2) % count - count / 2
    return _bump(away.abs())


def interval_splines(positions: Positions, count: int) -> SplineValues:
    """Return ``count`` splines over the interval from 0 to 1; positions outside are clamped to it.

    >>> (6 * interval_splines(torch.tensor([0.0, 1.0, 2.0]), 4)).round().tolist()
    [[1.0, 4.0, 1.0, 0.0], [0.0, 1.0, 4.0, 1.0], [0.0, 1.0, 4.0, 1.0]]
    """
    middles = torch.arange(-1, count - 1, device=positions.device, dtype=positions.dtype)
    return _bump((positions.clamp(0, 1)[..., None] * (count - 3) - middles).abs())


def _bump(away: SplineValues) -> SplineValues:
    near, far = (4 - 6 * away**2 + 3 * away**3) / 6, (2 - away).clamp_min(0) ** 3 / 6
    return torch.where(away < 1, near, far)


End = Literal["source", "target"]
Raw = Float[Tensor, "batch *node"]
PERIODIC_SPLINES, INTERVAL_SPLINES = 8, 5  # 7 and 4 free weights per edge: one peak a day (6 splines miss it by .013)
QUANTILES = 9  # of a numeric variable; its position is linear between them
# Directions of the basis with less than this share of the mean variance are dropped: the data do not inform them.
LEAST_SPLINE, LEAST_LEVEL = 1e-3, 1e-9


class Reading(ABC):
    """How the value of a variable is read; ``fields`` are the fields of the context that it requires."""

    fields: ClassVar[tuple[str, ...]] = ()
    end: End | None = None

    @abstractmethod
    def __call__(self, context: Context) -> Raw:
        """Return the value for each pair, or for each pair and node."""


@dataclass(frozen=True)
class CovariateColumn(Reading):
    """A numeric covariate: column ``column``, times ``scale`` plus ``shift``."""

    fields: ClassVar[tuple[str, ...]] = ("covariates",)
    column: int
    shift: float = 0.0
    scale: float = 1.0

    def __call__(self, context: Context) -> Raw:
        """Return the covariate in its own units."""
        assert context.covariates is not None
        return context.covariates[:, self.column] * self.scale + self.shift


@dataclass(frozen=True)
class CovariateLevel(Reading):
    """A categorical covariate: the number of the level whose indicator is 1; the first level has no indicator."""

    fields: ClassVar[tuple[str, ...]] = ("covariates",)
    columns: tuple[int, ...]
    shifts: tuple[float, ...]
    scales: tuple[float, ...]

    def __call__(self, context: Context) -> Raw:
        """Return the level, counted from 0."""
        assert context.covariates is not None
        level = torch.zeros_like(context.covariates[:, 0])
        for place, (column, shift, scale) in enumerate(zip(self.columns, self.shifts, self.scales, strict=True), 1):
            indicator = context.covariates[:, column] * scale + shift
            level = level + place * (indicator > 0.5).to(level)
        return level


@dataclass(frozen=True)
class CovariatePhase(Reading):
    """A part of the date, stored in the covariates as a sine and a cosine; its phase from 0 to 1."""

    fields: ClassVar[tuple[str, ...]] = ("covariates",)
    columns: tuple[int, int]
    shifts: tuple[float, float]
    scales: tuple[float, float]

    def __call__(self, context: Context) -> Raw:
        """Return the phase."""
        assert context.covariates is not None
        sine, cosine = (
            context.covariates[:, column] * scale + shift
            for column, shift, scale in zip(self.columns, self.shifts, self.scales, strict=True)
        )
        return torch.atan2(sine, cosine) / (2 * torch.pi) % 1


@dataclass(frozen=True)
class SeriesNumber(Reading):
    """The series that a pair comes from, counted from 0."""

    fields: ClassVar[tuple[str, ...]] = ("series",)

    def __call__(self, context: Context) -> Raw:
        """Return the number of the series."""
        assert context.series is not None
        return context.series.to(context.inputs.dtype)


@dataclass(frozen=True)
class PairTime(Reading):
    """The time of a pair, as a share of the time from ``first`` to ``last``."""

    fields: ClassVar[tuple[str, ...]] = ("times",)
    first: float
    last: float

    def __call__(self, context: Context) -> Raw:
        """Return the share."""
        assert context.times is not None
        return ((context.times - self.first) / (self.last - self.first)).to(context.inputs.dtype)


@dataclass(frozen=True)
class OwnInput(Reading):
    """An input of the node at one end of an edge, in scaled units; ``channel`` -1 is often the newest value."""

    fields: ClassVar[tuple[str, ...]] = ("inputs",)
    end: End
    channel: int = 0

    def __call__(self, context: Context) -> Raw:
        """Return the input of every node."""
        return context.inputs[:, :, self.channel]


READINGS: dict[str, type[Reading]] = {
    kind.__name__: kind for kind in (CovariateColumn, CovariateLevel, CovariatePhase, SeriesNumber, PairTime, OwnInput)
}


class ContextVariable(nn.Module, ABC):
    """One variable: how it is read, its basis, and the values ``grid`` at which tables show it, with ``labels``.

    ``centre`` is $m$ and ``root`` is $R$ of the module docstring; :meth:`measure` sets them.
    """

    least: ClassVar[float] = LEAST_SPLINE
    places: Float[Tensor, " place"]
    centre: Float[Tensor, " basis"]
    root: Float[Tensor, "basis feature"]

    def __init__(self, name: str, reading: Reading, grid: Sequence[float], labels: Sequence[str]) -> None:
        super().__init__()
        require(
            len(grid) == len(labels) and len(grid) > 1,
            f"grid and labels of '{name}' must have equal length, at least 2, got {len(grid)} and {len(labels)}; "
            "correct them",
        )
        self.name, self.reading = name, reading
        self.grid, self.labels = tuple(grid), tuple(labels)
        self.register_buffer("places", torch.tensor(self.grid, dtype=torch.float32), persistent=False)
        self.register_buffer("centre", torch.zeros(0), persistent=False)
        self.register_buffer("root", torch.zeros(0, 0), persistent=False)

    @abstractmethod
    def basis(self, values: Raw) -> Float[Tensor, "batch *node basis"]:
        """Return the basis at some values."""

    @property
    def num_features(self) -> int:
        """Number of features."""
        return self.root.shape[1]

    def measure(self, context: Context) -> "ContextVariable":
        """Centre and decorrelate the basis over the training pairs; return ``self``."""
        values = self.reading(context).double()
        rows = self.basis(values).flatten(0, -2)
        centre = rows.mean(0)
        spread = (rows - centre).mT @ (rows - centre) / len(rows)
        sizes, directions = torch.linalg.eigh(spread)
        kept = sizes > self.least * sizes.sum().clamp_min(torch.finfo(torch.float64).tiny) / max(1, len(sizes) - 1)
        require(
            bool(kept.any()),
            f"depends_on names '{self.name}', which is the same in all training pairs; leave it out",
        )
        like = context.inputs
        self.centre = centre.to(like)
        self.root = (directions[:, kept] / sizes[kept].sqrt()).to(like)
        return self

    def forward(self, context: Context) -> Float[Tensor, "batch *node feature"]:
        """Return the features of each pair, or of each pair and node."""
        return self.at(self.reading(context))

    def at(self, values: Raw) -> Float[Tensor, "batch *node feature"]:
        """Return the features at some values."""
        return (self.basis(values) - self.centre) @ self.root

    def on_grid(self) -> Float[Tensor, "place feature"]:
        """Return the features at the values of the grid."""
        return self.at(self.places)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        reading = {"kind": type(self.reading).__name__, **asdict(self.reading)}  # type: ignore[call-overload]
        return {
            "kind": type(self).__name__,
            "name": self.name,
            "reading": reading,
            "grid": list(self.grid),
            "labels": list(self.labels),
            "centre": self.centre.double().tolist(),
            "root": self.root.double().tolist(),
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> "ContextVariable":
        """Build the variable from the values of :meth:`to_dict`."""
        parts = dict(stored)
        kind, centre, root = KINDS[parts.pop("kind")], parts.pop("centre"), parts.pop("root")
        read = dict(parts.pop("reading"))
        read_as = READINGS[read.pop("kind")]
        reading = read_as(**{name: tuple(value) if isinstance(value, list) else value for name, value in read.items()})
        variable: ContextVariable = kind(reading=reading, **parts)
        variable.centre = torch.tensor(centre, dtype=torch.float32)
        variable.root = torch.tensor(root, dtype=torch.float32).view(len(centre), -1)
        return variable


class Category(ContextVariable):
    """A categorical variable: one indicator per level.

    >>> season = Category("season", SeriesNumber(), labels=("dry", "wet"))
    >>> context = Context(torch.zeros(4, 1, 1), series=torch.tensor([0, 0, 1, 1]))
    >>> season.measure(context)(context).abs().round(decimals=3).flatten().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    least: ClassVar[float] = LEAST_LEVEL

    def __init__(self, name: str, reading: Reading, labels: Sequence[str], grid: Sequence[float] | None = None) -> None:
        super().__init__(name, reading, range(len(labels)) if grid is None else grid, labels)

    def basis(self, values: Raw) -> Float[Tensor, "batch *node basis"]:
        """Return 1 for the level of each value, 0 for the others."""
        return (values[..., None] == self.places.to(values)).to(values)


class Periodic(ContextVariable):
    """A periodic variable: a phase from 0 to 1, with periodic splines."""

    def basis(self, values: Raw) -> Float[Tensor, "batch *node basis"]:
        """Return the splines."""
        return periodic_splines(values, PERIODIC_SPLINES)


class Smooth(ContextVariable):
    """A numeric variable: splines over its range, with about equally many training pairs between knots.

    ``quantiles`` are increasing quantiles of the training pairs; the position in the range is linear between them.
    """

    knots: Float[Tensor, " quantile"]

    def __init__(
        self, name: str, reading: Reading, quantiles: Sequence[float], grid: Sequence[float], labels: Sequence[str]
    ) -> None:
        super().__init__(name, reading, grid, labels)
        require(
            len(quantiles) > 1 and all(low < high for low, high in pairwise(quantiles)),
            f"quantiles of '{name}' must be two or more increasing numbers; use Smooth.of",
        )
        self.quantiles = tuple(quantiles)
        self.register_buffer("knots", torch.tensor(self.quantiles, dtype=torch.float32), persistent=False)

    @classmethod
    def of(cls, name: str, reading: Reading, context: Context, digits: int = 3) -> "Smooth":
        """Build the variable from the quantiles of ``values``, which are also its grid."""
        values = reading(context).double().flatten()
        at = torch.linspace(0, 1, QUANTILES, dtype=torch.float64, device=values.device)
        found = torch.quantile(values[:: max(1, len(values) // 1_000_000)], at).unique()  # type: ignore[no-untyped-call]
        require(len(found) > 1, f"depends_on names '{name}', which is the same in all training pairs; leave it out")
        quantiles = [float(value) for value in found]
        return cls(name, reading, quantiles, quantiles, _labels(quantiles, digits))

    def basis(self, values: Raw) -> Float[Tensor, "batch *node basis"]:
        """Return the splines; they are constant beyond the range of the training pairs."""
        knots = self.knots.to(values)
        low, width = knots[:-1], knots.diff()
        position = ((values[..., None] - low) / width).clamp(0, 1).mean(-1)
        return interval_splines(position, INTERVAL_SPLINES)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with the quantiles."""
        return {**super().to_dict(), "quantiles": list(self.quantiles)}


def _labels(values: Sequence[float], digits: int) -> list[str]:
    """Format numbers with enough digits to distinguish them.

    >>> _labels([990.0, 1001.3, 1001.9], 3)
    ['990', '1001', '1002']
    """
    for more in range(digits, 12):
        labels = [f"{float(f'{value:.{more}g}'):.12g}" for value in values]
        if len(set(labels)) == len(labels):
            return labels
    return [repr(value) for value in values]


KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Category, Periodic, Smooth)}

"""Pairs (x, y): the only form in which data reaches training and evaluation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tacit.data.scaling import SeriesUnits
from tacit.errors import InputError, require


@dataclass(frozen=True)
class Split:
    """Training, validation and test pairs."""

    train: "Pairs"
    validation: "Pairs"
    test: "Pairs"

    def to(self, device: torch.device | str) -> "Split":
        """Return the same parts on another device."""
        return Split(self.train.to(device), self.validation.to(device), self.test.to(device))

    @property
    def num_series(self) -> int:
        """Number of series that the pairs come from; 1 for pairs without time."""
        numbers = [part.series for part in (self.train, self.validation, self.test) if part.series is not None]
        return 1 + max((int(series.max()) for series in numbers), default=0)


@dataclass(frozen=True)
class Pairs:
    """Inputs and their targets, checked once: shapes, lengths, finite numbers.

    ``observed``  1 where a target is known, 0 where it is missing; None: all are known
    ``series``    the number of the series of each pair, if there are several series
    ``times``     the time of each target as a number (dates: seconds since 1970), if there are times
    ``covariates``  known numbers of each pair that all nodes share, if there are any
    ``units``     the units of the targets of each series, if they differ

    >>> pairs = Pairs(torch.zeros(10, 3, 2), torch.zeros(10, 3, 1))
    >>> len(pairs), pairs.num_nodes
    (10, 3)
    >>> [len(part) for part in (pairs.split().train, pairs.split().validation, pairs.split().test)]
    [8, 1, 1]
    """

    inputs: Float[Tensor, "pair node in_channel"]
    targets: Float[Tensor, "pair node channel"]
    observed: Float[Tensor, "pair node channel"] | None = None
    series: Int[Tensor, " pair"] | None = None
    times: Float[Tensor, " pair"] | None = None
    covariates: Float[Tensor, "pair covariate"] | None = None
    units: SeriesUnits | None = None

    def __post_init__(self) -> None:
        for name, values in (("inputs", self.inputs), ("targets", self.targets)):
            _require_tensor(name, values)
            require(
                values.dtype in (torch.float32, torch.float64),
                f"{name} must be float32 or float64, got {values.dtype}; use {name}.float()",
            )
            require(
                values.ndim == 3,
                f"{name} must have shape (pairs, nodes, channels), got {tuple(values.shape)}; add the missing axis",
            )
        _require_finite("inputs", self.inputs, "remove or fill them")
        require(
            self.inputs.shape[:2] == self.targets.shape[:2],
            f"inputs and targets must have the same number of pairs and nodes, got {tuple(self.inputs.shape[:2])} and "
            f"{tuple(self.targets.shape[:2])}; pass rows that belong together",
        )
        require(
            self.inputs.dtype == self.targets.dtype,
            f"inputs and targets must have one type, got {self.inputs.dtype} and {self.targets.dtype}; convert one of "
            "them",
        )
        require(len(self) > 0, "inputs must have at least one pair, got none; pass more rows")
        if self.observed is None:
            _require_finite("targets", self.targets, "remove them, or use Pairs.with_missing(inputs, targets)")
        else:
            got = getattr(self.observed, "dtype", type(self.observed).__name__)
            require(
                isinstance(self.observed, Tensor) and got == self.targets.dtype,
                f"observed must be a tensor of {self.targets.dtype} like targets, got {got}; use "
                "mask.to(targets.dtype)",
            )
            require(
                self.observed.shape == self.targets.shape,
                f"observed must have the shape of targets, {tuple(self.targets.shape)}, got "
                f"{tuple(self.observed.shape)}; pass one value per target",
            )
            require(
                bool(((self.observed == 0) | (self.observed == 1)).all()),
                "observed must be 1 where a target is known and 0 where it is missing, got other numbers; pass a mask",
            )
            _require_finite("targets", self.targets, "use any number where observed is 0; it is ignored")
        for name, numbers, dtype in (("series", self.series, torch.int64), ("times", self.times, torch.float64)):
            if numbers is not None:
                _require_tensor(name, numbers)
                require(
                    numbers.dtype == dtype and numbers.shape == (len(self),),
                    f"{name} must be {dtype} of shape {(len(self),)}, one number per pair, got {numbers.dtype} of "
                    f"shape {tuple(numbers.shape)}; pass torch.as_tensor(numbers, dtype={dtype})",
                )
        if self.covariates is not None:
            _require_tensor("covariates", self.covariates)
            require(
                self.covariates.ndim == 2 and len(self.covariates) == len(self),
                f"covariates must have shape (pairs, covariates) with {len(self)} pairs, got "
                f"{tuple(self.covariates.shape)}; pass a row for each pair",
            )

    @classmethod
    def with_missing(
        cls,
        inputs: Tensor,
        targets: Tensor,
        series: Tensor | None = None,
        times: Tensor | None = None,
        covariates: Tensor | None = None,
    ) -> "Pairs":
        """Return pairs from targets in which NaN marks missing ones; the loss leaves these out.

        >>> pairs = Pairs.with_missing(torch.zeros(2, 1, 1), torch.tensor([1.0, torch.nan]).view(2, 1, 1))
        >>> pairs.observed.flatten().tolist(), pairs.targets.flatten().tolist()
        ([1.0, 0.0], [1.0, 0.0])
        """
        _require_tensor("targets", targets)
        missing = torch.isnan(targets)
        return cls(inputs, torch.where(missing, 0.0, targets), (~missing).to(targets.dtype), series, times, covariates)

    def __len__(self) -> int:
        return self.inputs.shape[0]

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.inputs.shape[1]

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> "Pairs":
        """Return the pairs on ``device``; ``dtype`` applies to inputs and targets, times stay in double precision."""
        inputs, targets, observed, covariates = (
            None if one is None else one.to(device, dtype)
            for one in (self.inputs, self.targets, self.observed, self.covariates)
        )
        series, times = (None if one is None else one.to(device) for one in (self.series, self.times))
        return Pairs(inputs, targets, observed, series, times, covariates, self.units)  # type: ignore[arg-type]

    @property
    def seen(self) -> Float[Tensor, "pair node channel"]:
        """1 where a target is known, 0 where it is missing, also if all are known."""
        return torch.ones_like(self.targets) if self.observed is None else self.observed

    def with_mask(self) -> "Pairs":
        """Return the same pairs with an explicit ``observed``."""
        return replace(self, observed=self.seen) if self.observed is None else self

    def with_targets(self) -> "Pairs":
        """Return the pairs with at least one known target."""
        return self if self.observed is None else self[self.observed.flatten(1).any(1)]

    def __getitem__(self, rows: Tensor | slice) -> "Pairs":
        parts = (self.inputs, self.targets, self.observed, self.series, self.times, self.covariates)
        return Pairs(*(None if part is None else part[rows] for part in parts), units=self.units)  # type: ignore

    def split(self, fractions: tuple[float, float] = (0.8, 0.1), generator: Generator | None = None) -> Split:
        """Split into ``fractions[0]`` for training, ``fractions[1]`` for validation, and the rest for the test.

        Without a ``generator`` the parts are consecutive. With one, each pair is assigned to a part at random: use this
        for pairs without time, which may be sorted. Every part keeps the order of its pairs.

        >>> pairs = Pairs(torch.arange(10.0).view(10, 1, 1), torch.zeros(10, 1, 1))
        >>> pairs.split(generator=Generator().manual_seed(0)).train.inputs.flatten().tolist()
        [0.0, 1.0, 3.0, 4.0, 5.0, 7.0, 8.0, 9.0]
        """
        train, validation = round(len(self) * fractions[0]), round(len(self) * fractions[1])
        if min(train, validation, len(self) - train - validation) < 1:
            raise InputError(
                f"fractions must have at least one pair in each part, got {fractions} of {len(self)} pairs; "
                "use more pairs or other fractions"
            )
        rows = torch.arange(len(self)) if generator is None else torch.randperm(len(self), generator=generator)
        parts = torch.tensor_split(rows, (train, train + validation))
        return Split(*(self[part.sort().values] for part in parts))


def epoch_batches(num_pairs: int, batch_size: int, generator: Generator) -> Int[Tensor, "step batch"]:
    """Return a random order of all pairs, cut into full batches; the rest is not used in this epoch."""
    steps = num_pairs // batch_size
    order = torch.randperm(num_pairs, generator=generator, device=generator.device)
    return order[: steps * batch_size].view(steps, batch_size)


def covering_batches(num_pairs: int, batch_size: int) -> Iterator[tuple[Int[Tensor, " batch"], int]]:
    """Yield batches of one size that cover all pairs in order, with the number of new entries of each.

    The last batch is filled up from the first pair, so that every batch has the same shape.
    """
    for start in range(0, num_pairs, batch_size):
        yield torch.arange(start, start + batch_size) % num_pairs, min(batch_size, num_pairs - start)


def _require_tensor(name: str, values: object) -> None:
    got = "a NumPy array" if type(values).__name__ == "ndarray" else type(values).__name__
    require(isinstance(values, Tensor), f"{name} must be a torch tensor, got {got}; pass torch.as_tensor({name})")


def _require_finite(name: str, values: Tensor, remedy: str) -> None:
    bad = ~torch.isfinite(values)
    if bad.any():
        pair, node, channel = (int(i) for i in bad.nonzero()[0])
        raise InputError(
            f"{name} must have finite numbers, got {values[pair, node, channel].item()} at pair {pair}, node {node}, "
            f"channel {channel} ({int(bad.sum())} such values); {remedy}"
        )

"""Pairs (x, y): the only form in which data reaches training and evaluation."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tacit.errors import InputError, require


@dataclass(frozen=True)
class Split:
    """Training, validation and test pairs."""

    train: "Pairs"
    validation: "Pairs"
    test: "Pairs"


@dataclass(frozen=True)
class Pairs:
    """Inputs and targets that belong together, checked once: right shapes, same length, finite.

    >>> pairs = Pairs(torch.zeros(10, 3, 2), torch.zeros(10, 3, 1))
    >>> len(pairs), pairs.num_nodes
    (10, 3)
    >>> [len(part) for part in (pairs.split().train, pairs.split().validation, pairs.split().test)]
    [8, 1, 1]
    """

    inputs: Float[Tensor, "pair node in_channel"]
    targets: Float[Tensor, "pair node channel"]

    def __post_init__(self) -> None:
        for name, values in (("inputs", self.inputs), ("targets", self.targets)):
            require(
                isinstance(values, Tensor) and values.dtype in (torch.float32, torch.float64),
                f"{name} needs a tensor of floats (float32 or float64), "
                f"got {getattr(values, 'dtype', type(values).__name__)}; "
                "use torch.as_tensor(values).float()",
            )
            require(
                values.ndim == 3,
                f"{name} needs shape (pairs, nodes, channels), got {tuple(values.shape)}; add the missing axis",
            )
            _require_finite(name, values)
        require(
            self.inputs.shape[:2] == self.targets.shape[:2],
            "inputs and targets need the same number of pairs and nodes, got "
            f"{tuple(self.inputs.shape[:2])} and {tuple(self.targets.shape[:2])}; pass rows that belong together",
        )
        require(
            self.inputs.dtype == self.targets.dtype,
            f"inputs and targets need one type, got {self.inputs.dtype} and {self.targets.dtype}; convert one of them",
        )
        require(len(self) > 0, "inputs needs at least one pair, got none; pass more rows")

    def __len__(self) -> int:
        return self.inputs.shape[0]

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.inputs.shape[1]

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> "Pairs":
        """Return the pairs on ``device``."""
        return Pairs(self.inputs.to(device, dtype), self.targets.to(device, dtype))

    def split(self, fractions: tuple[float, float] = (0.8, 0.1)) -> Split:
        """Cut into the first ``fractions[0]`` for training, the next for validation, the rest for test."""
        train, validation = round(len(self) * fractions[0]), round(len(self) * fractions[1])
        if min(train, validation, len(self) - train - validation) < 1:
            raise InputError(
                f"fractions needs at least one pair in each part, got {fractions} of {len(self)} pairs; "
                "use more pairs or other fractions"
            )
        parts = torch.tensor_split(torch.arange(len(self)), (train, train + validation))
        return Split(*(Pairs(self.inputs[part], self.targets[part]) for part in parts))


def epoch_batches(num_pairs: int, batch_size: int, generator: Generator) -> Int[Tensor, "step batch"]:
    """Return a random order of all pairs, cut into full batches; what is left over waits for the next epoch."""
    steps = num_pairs // batch_size
    order = torch.randperm(num_pairs, generator=generator, device=generator.device)
    return order[: steps * batch_size].view(steps, batch_size)


def covering_batches(num_pairs: int, batch_size: int) -> Iterator[tuple[Int[Tensor, " batch"], int]]:
    """Yield batches of one size that cover all pairs in order, and how many entries of each are new.

    The last batch starts over at the first pair, so that every batch has the same shape.
    """
    for start in range(0, num_pairs, batch_size):
        yield torch.arange(start, start + batch_size) % num_pairs, min(batch_size, num_pairs - start)


def _require_finite(name: str, values: Tensor) -> None:
    bad = ~torch.isfinite(values)
    if bad.any():
        pair, node, channel = (int(i) for i in bad.nonzero()[0])
        raise InputError(
            f"{name} needs finite numbers, got {values[pair, node, channel].item()} at pair {pair}, node {node}, "
            f"channel {channel} ({int(bad.sum())} such values); remove or fill them"
        )

r"""Data-parallel training: each process computes its share of every batch, and all take the same step.

With $P_p$ the pairs of process $p$, $w_b$ the weight of pair $b$ (1 unless targets are missing) and $g_p$ the gradient
of the weighted mean over its own pairs, the gradient over the whole batch is

$$g = \frac{\sum_p W_p\, g_p}{\sum_p W_p}, \qquad W_p = \sum_{b \in P_p} w_b$$

for shares of any size. The penalty of a prior is in every $g_p$ and so counts once. One all-reduce per step sums
gradients, losses and weights. Every process draws the uniforms of the whole batch and uses those of its share. All
processes start equal and use the same $g$, so nothing else is communicated, and the result equals that of one process
up to the rounding of sums.

Before the first step the processes compare the facts that must be equal; if they differ, every process raises the same
error. A process that has already ended sends this instead, so that no other process waits for it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from tacit.data import Pairs
from tacit.errors import InputError, ProcessesError, require
from tacit.training.gradient import StepResult
from tacit.training.model import LatentGraphModel
from tacit.training.settings import FitSettings

Found = TypeVar("Found")

# Weight of a share without observed targets: far below the rounding error of any other weight, but positive, so that
# the gradient is that of the prior if no share has an observed target.
NOTHING = 1e-30
LOST = "another process of this training ended; start all processes again"
SILENT = "another process of this training did not answer in time; check it, and start all processes again"


class Ended(NamedTuple):
    """Sent by a process that has ended: its exit code and its message."""

    code: int
    message: str | None


class EndedElsewhereError(ProcessesError):
    """Another process had ended when this one started to train."""

    in_step = True


@dataclass(frozen=True)
class Processes:
    """Rank and number of processes; with a single process all methods are free."""

    rank: int = 0
    count: int = 1

    @classmethod
    def current(cls) -> "Processes":
        """Return the processes of the default group of ``torch.distributed``, or only this one."""
        if not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def several(self) -> bool:
        """True if there is more than one process."""
        return self.count > 1

    @property
    def first(self) -> bool:
        """True for the process that writes files and messages."""
        return self.rank == 0

    def share(self, size: int) -> slice:
        """Return this process's share of a batch.

        >>> [Processes(rank, 3).share(8) for rank in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 8, None)]
        """
        return slice(self.rank * size // self.count, (self.rank + 1) * size // self.count)

    def combined(self, result: StepResult) -> StepResult:
        """Combine the results of all shares: losses and weights as sums, (replica, 1)."""
        if not self.several:
            return result
        weights = result.weights.sum(1, keepdim=True).clamp_min(NOTHING)
        means = {**result.gradients, **result.carried}
        columns = [value.reshape(len(weights), -1) for value in means.values()]
        losses = result.losses.sum(1, keepdim=True)
        total = self.summed(torch.cat([weights, losses, *(weights * column for column in columns)], 1))
        weights, losses, *sums = torch.split(total, [1, 1, *(column.shape[1] for column in columns)], 1)
        whole = {name: (part / weights).view_as(value) for (name, value), part in zip(means.items(), sums, strict=True)}
        gradients = {name: whole[name] for name in result.gradients}
        return StepResult(gradients, losses, weights, {name: whole[name] for name in result.carried})

    def summed(self, values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the sum over the processes, bit-identical in each; ``values`` are overwritten."""
        if self.several:
            with _others_needed():
                dist.all_reduce(values)
        return values

    def meet(self, brought: Any) -> list[Any]:
        """Wait for all processes and return the value of each, by rank."""
        if not self.several:
            return [brought]
        found: list[Any] = [None] * self.count
        with _others_needed():
            dist.all_gather_object(found, brought)
        return found

    def broadcast(self, value: Any) -> Any:
        """Return the value of the first process in all processes."""
        if not self.several:
            return value
        values = [value]
        with _others_needed():
            dist.broadcast_object_list(values, src=0)
        return values[0]


@contextmanager
def _others_needed() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # messages differ between transports
        raise ProcessesError(SILENT if "imed out" in str(error) else LOST) from error


def require_shareable(model: LatentGraphModel, train: Pairs, settings: FitSettings, processes: Processes) -> None:
    """Raise :class:`InputError` if a batch of this training cannot be split exactly."""
    if not processes.several:
        return
    size, count, baseline = min(settings.batch_size, len(train)), processes.count, model.loss.baseline
    require(
        size >= count, f"batch_size must have a pair for each of {count} processes, got {size}; start fewer processes"
    )
    if baseline == "paper" or (baseline == "moving_average" and train.observed is not None):
        why = "mixes the pairs of a batch" if baseline == "paper" else "weights pairs by their missing targets"
        raise InputError(
            f"baseline '{baseline}' {why}, and these are split between {count} processes; use baseline "
            "'leave_one_out', or one process"
        )


def require_same_in_all_processes(processes: Processes, facts: Mapping[str, str]) -> None:
    """Raise :class:`InputError` in every process, naming the fact, unless all processes have equal facts."""
    met = meet_in_step(processes, dict(facts))
    for rank, other in enumerate(met):
        for name, value in met[0].items():
            require(
                other.get(name) == value,
                f"{name} must be the same in every process, got {value} in process 0 and {other.get(name)} in "
                f"process {rank}; use the same data, settings and seeds in all of them",
            )


def from_the_first(processes: Processes, find: Callable[[], Found]) -> Found:
    """Return the first process's result in every process, or raise its :class:`InputError`.

    Files are read in this way, so that all processes use the same content even if they cannot access the same file.
    """
    if not processes.several:
        return find()
    found, refused = None, None
    if processes.first:
        try:
            found = find()
        except InputError as error:
            refused = str(error)
    refused = meet_in_step(processes, refused)[0]  # before long data is sent: no process may have ended
    if refused is not None:
        raise InputError(refused)
    shared: Found = processes.broadcast(found)
    return shared


def meet_in_step(processes: Processes, brought: Any) -> list[Any]:
    """Wait for all processes and return the value of each; raise an error if one has ended."""
    met = processes.meet(brought)
    for rank, other in enumerate(met):
        if isinstance(other, Ended):
            raise EndedElsewhereError(
                f"process {rank} ended before this training: {other.message or 'its job was done'}"
            )
    return met

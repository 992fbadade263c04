r"""The processes that train together: each takes its share of every batch, and all take the same step.

With $P_p$ the pairs of process $p$, $w_b$ the weight of pair $b$ (1 unless targets are missing) and $g_p$ the gradient
of the weighted mean over its own pairs, the gradient over the whole batch is

$$g = \frac{\sum_p W_p\, g_p}{\sum_p W_p}, \qquad W_p = \sum_{b \in P_p} w_b$$

whatever the shares are: a batch need not split evenly. The penalty of a prior is in every $g_p$ and so counts once.
One sum over the processes per step carries gradients, losses and weights. Every process draws the uniforms of the whole
batch and uses those of its share, and all start alike and move by the same $g$: nothing else needs to be sent, and the
result is that of one process, up to the rounding of sums.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from tacit.errors import ProcessesError
from tacit.training.lift import Outcome

# Stands for the weight of a share that observes nothing: far below the rounding of any other, yet where no share
# observes anything the gradient is still that of the prior.
NOTHING = 1e-30
LOST = "another process of this training ended, and this one cannot go on alone; all need to start again"
SILENT = "another process of this training did not answer in time; see what became of it; all need to start again"


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this is; alone, everything below costs nothing."""

    rank: int = 0
    count: int = 1

    @classmethod
    def current(cls) -> "Processes":
        """Return the processes of the default group of ``torch.distributed``, or this one alone."""
        if not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def several(self) -> bool:
        """Is there another one?"""
        return self.count > 1

    @property
    def first(self) -> bool:
        """Is this the one that writes and speaks?"""
        return self.rank == 0

    def share(self, size: int) -> slice:
        """Return the part of a batch that is this process's.

        >>> [Processes(rank, 3).share(8) for rank in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 8, None)]
        """
        return slice(self.rank * size // self.count, (self.rank + 1) * size // self.count)

    def combined(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the whole batch from that of this share: losses and weights as sums, (replica, 1)."""
        if not self.several:
            return outcome
        weights = outcome.weights.sum(1, keepdim=True).clamp_min(NOTHING)
        means = {**outcome.gradients, **outcome.carried}
        columns = [value.reshape(len(weights), -1) for value in means.values()]
        losses = outcome.losses.sum(1, keepdim=True)
        total = self.summed(torch.cat([weights, losses, *(weights * column for column in columns)], 1))
        weights, losses, *sums = torch.split(total, [1, 1, *(column.shape[1] for column in columns)], 1)
        whole = {name: (part / weights).view_as(value) for (name, value), part in zip(means.items(), sums, strict=True)}
        gradients = {name: whole[name] for name in outcome.gradients}
        return Outcome(gradients, losses, weights, {name: whole[name] for name in outcome.carried})

    def summed(self, values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the sum over the processes, the same to the last bit in each; ``values`` are overwritten."""
        if self.several:
            with _others_needed():
                dist.all_reduce(values)
        return values

    def meet(self, brought: Any) -> list[Any]:
        """Wait for all processes and return what each brings, by rank."""
        if not self.several:
            return [brought]
        found: list[Any] = [None] * self.count
        with _others_needed():
            dist.all_gather_object(found, brought)
        return found

    def told(self, word: Any) -> Any:
        """Return what the first process says, in all of them."""
        if not self.several:
            return word
        said = [word]
        with _others_needed():
            dist.broadcast_object_list(said, src=0)
        return said[0]


@contextmanager
def _others_needed() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # whatever the transport says, of which no two say the same
        raise ProcessesError(SILENT if "imed out" in str(error) else LOST) from error

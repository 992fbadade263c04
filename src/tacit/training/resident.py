"""What the steps of a training need, lying on the device, and a counter that the recorded step moves on by itself.

A step that is replayed takes less time than Python needs to hand it a batch. So the plan of all steps, the order of an
epoch and the random bits of many steps are put in place once, and each step looks up its own by a number on the device.
"""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from tacit.randomness import JoinedStreams

OF_TRAINING, OF_EPOCH, OF_BITS = range(3)


class Resident:
    """Buffers that stay where they are: a recorded step reads from them."""

    def __init__(self, plan: Float[Tensor, "step number"], streams: JoinedStreams) -> None:
        self.plan = plan
        self.counter = torch.zeros(3, dtype=torch.int64, device=plan.device)
        self._streams = streams
        self._order: Tensor | None = None
        self._joined: tuple[Tensor, Tensor] | None = None
        self._bits: tuple[Tensor, Tensor] | None = None

    def begin_epoch(self, step: int, order: Int[Tensor, "step replica batch"], done: int = 0) -> None:
        """Put the order of an epoch in place; ``step`` of the training comes next, ``done`` of the epoch are behind."""
        if self._order is None:
            self._order = torch.empty_like(order)
        self._order.copy_(order)
        self.counter[OF_TRAINING], self.counter[OF_EPOCH] = step, done

    def prepare(self) -> tuple[Tensor, ...]:
        """Make sure that the bits of the next step are in place, and return what :func:`at` takes."""
        joined, place = self._streams.next_place()
        if self._bits is None:
            self._bits = torch.empty_like(joined[0]), torch.empty_like(joined[1])
        if joined is not self._joined:
            self._joined = joined
            for part, value in zip(self._bits, joined, strict=True):
                part.copy_(value)
            self.counter[OF_BITS] = place
        if self._order is None:
            raise RuntimeError("begin_epoch needs to come before the first step")
        return self.counter, self.plan, self._order, *self._bits


def at(
    counter: Int[Tensor, "3"], plan: Tensor, order: Tensor, bytes_: UInt8[Tensor, "step ..."], fractions: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return numbers, rows, bytes and fractions of the step that the counter is at, and move it on."""
    parts = (plan, OF_TRAINING), (order, OF_EPOCH), (_in_words(bytes_), OF_BITS), (fractions, OF_BITS)
    numbers, rows, words, own_fractions = (values.index_select(0, counter[which, None])[0] for values, which in parts)
    counter.add_(1)
    return numbers, rows, words.view(torch.uint8).view(bytes_.shape[1:]), own_fractions


def _in_words(bytes_: UInt8[Tensor, "step ..."]) -> Tensor:
    """Return the bytes of each step as words of eight where they fill them: an eighth of the numbers to copy."""
    flat = bytes_.flatten(1)
    return flat.view(torch.int64) if flat.shape[1] % 8 == 0 else flat

"""CUDA graphs: a function of tensors is recorded once on a GPU and then replayed, with buffers for its inputs.

A training step is about a hundred small kernels, and launching each from Python takes ten times as long as running it.
A CUDA graph launches all of them with one call. The first calls run normally, so that libraries are initialised and
code is compiled. Then one call is recorded; later calls copy the inputs into fixed buffers and replay the record.

A replayed step takes less time than Python needs to pass it a batch. So the plan of all steps, the order of an epoch
and the random bits of many steps are copied to the device once, and each step reads its part at a counter that it
increments itself.
"""

import gc
from collections.abc import Callable

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from tacit.randomness import JoinedStreams
from tacit.training.gradient import first_line
from tacit.training.settings import StepNumbers

Outputs = tuple[Tensor, ...]
Bits = tuple[Tensor, Tensor]  # bytes and fractions, see tacit.randomness
WARM_UP_CALLS = 3
NOT_RECORDED = "the step cannot be recorded, so it launches its kernels one by one, which is slower"
OF_TRAINING, OF_EPOCH, OF_BITS = range(3)  # entries of the counter


class Recorded:
    """Call ``function`` through a CUDA graph if its inputs are on a GPU.

    The next call overwrites the returned tensors. The function may change tensors in place, but every varying input
    must be a tensor of constant shape, and the function must not read values on the host. With ``fixed`` the inputs
    are the same tensors in every call, and nothing is copied.
    ``fallback`` is the reason why the function could not be recorded, or None.
    """

    def __init__(self, function: Callable[..., Outputs], *, fixed: bool = False) -> None:
        self.fallback: str | None = None
        self._function, self._fixed = function, fixed
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: list[Tensor] = []
        self._outputs: Outputs = ()

    def __call__(self, *inputs: Tensor) -> Outputs:
        """Return the result of the function."""
        self._calls += 1
        usual = inputs[0].device.type != "cuda" or self.fallback is not None or self._calls <= WARM_UP_CALLS
        if self._graph is None and not usual:
            self._record(inputs)
        if self._graph is None:
            return self._function(*inputs)
        if not self._fixed:
            torch._foreach_copy_(self._inputs, inputs)
        self._graph.replay()
        return self._outputs

    def _record(self, inputs: tuple[Tensor, ...]) -> None:
        """Record one call; recording runs no kernel, so a failure changes nothing."""
        self._inputs = list(inputs) if self._fixed else [value.clone() for value in inputs]
        gc.collect()  # an unreferenced record cannot be freed during recording
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(graph):
                self._outputs = self._function(*self._inputs)
            self._graph = graph
        except Exception as error:  # the predictor cannot be recorded: run it normally
            torch.cuda.synchronize()
            self.fallback = f"{NOT_RECORDED} ({first_line(error)})"


class DeviceBuffers:
    """Inputs of the training steps, in tensors with fixed addresses on the device."""

    def __init__(self, plan: Float[Tensor, "step number"], streams: JoinedStreams) -> None:
        self.plan = plan
        self.counter = torch.zeros(3, dtype=torch.int64, device=plan.device)
        self._streams = streams
        self._order: Tensor | None = None
        self._joined: Bits | None = None
        self._bits: Bits | None = None

    def begin_epoch(self, step: int, order: Int[Tensor, "step replica batch"], done: int = 0) -> None:
        """Copy the order of an epoch; ``step`` is the next training step, ``done`` steps of the epoch are complete."""
        if self._order is None:
            self._order = torch.empty_like(order)
        self._order.copy_(order)
        self.counter[OF_TRAINING], self.counter[OF_EPOCH] = step, done

    def prepare(self) -> tuple[Tensor, ...]:
        """Ensure that the random bits of the next step are on the device; return the inputs of :func:`read_buffers`."""
        joined, place = self._streams.next_place()
        if self._bits is None:
            self._bits = torch.empty_like(joined[0]), torch.empty_like(joined[1])
        if joined is not self._joined:
            self._joined = joined
            for part, value in zip(self._bits, joined, strict=True):
                part.copy_(value)
            self.counter[OF_BITS] = place
        if self._order is None:
            raise RuntimeError("begin_epoch must come before the first step")
        return self.counter, self.plan, self._order, *self._bits


def read_buffers(
    counter: Int[Tensor, "3"], plan: Tensor, order: Tensor, bytes_: UInt8[Tensor, "step ..."], fractions: Tensor
) -> tuple[StepNumbers, Int[Tensor, "replica batch"], Bits]:
    """Return numbers, rows and bits of the step at the counter, and increment the counter."""
    parts = (plan, OF_TRAINING), (order, OF_EPOCH), (_in_words(bytes_), OF_BITS), (fractions, OF_BITS)
    numbers, rows, words, own_fractions = (values.index_select(0, counter[which, None])[0] for values, which in parts)
    counter.add_(1)
    return StepNumbers(*numbers), rows, (words.view(torch.uint8).view(bytes_.shape[1:]), own_fractions)


def _in_words(bytes_: UInt8[Tensor, "step ..."]) -> Tensor:
    """View the bytes of each step as 8-byte words if their number allows it, so that fewer numbers are copied."""
    flat = bytes_.flatten(1)
    return flat.view(torch.int64) if flat.shape[1] % 8 == 0 else flat

"""A function of tensors recorded once on a GPU and then replayed.

A training step is some hundred small kernels, and starting each from Python takes ten times as long as running it. A
CUDA graph starts all of them with one call. The first calls run as usual, so that libraries set themselves up and
compilers compile; then one is recorded, and from there on inputs are copied into fixed places and the record replayed.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Outputs = tuple[Tensor, ...]
WARM_UP_CALLS = 3


class Replayed:
    """Call ``function`` through a CUDA graph, wherever its inputs are on a GPU.

    What it returns is overwritten by the next call. The function may change tensors in place, but must take every
    input that varies as a tensor, of the same shape each time, and must not look at values on the way. With ``fixed``
    all inputs are the same tensors in every call, and nothing is copied.
    ``fallback`` says why it could not be recorded, or is None.
    """

    def __init__(self, function: Callable[..., Outputs], *, fixed: bool = False) -> None:
        self.fallback: str | None = None
        self._function, self._fixed = function, fixed
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: list[Tensor] = []
        self._outputs: Outputs = ()

    def __call__(self, *inputs: Tensor) -> Outputs:
        """Return what the function gives."""
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
        """Record one call; recording runs nothing, so that a failure leaves everything as it was."""
        self._inputs = list(inputs) if self._fixed else [value.clone() for value in inputs]
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(graph):
                self._outputs = self._function(*self._inputs)
            self._graph = graph
        except Exception as error:  # whatever a predictor does that cannot be recorded: it runs as before
            torch.cuda.synchronize()
            self.fallback = (str(error).strip() or type(error).__name__).splitlines()[0][:120]

"""From the gradient of one replica to the gradients of R, compiled where a compiler is at hand.

The step is written for one replica as a pure function of (parameters, batch, uniforms). On a GPU it is lifted by
``vmap``: one program for all replicas fills the chip. On a CPU replicas are looped over: the working set of one stays
in the cache, and replicas can be dropped without compiling again (measured in ``benchmarks/replicas.py``).
"""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call, grad, vmap

from tacit.training.model import LatentGraphModel

LiftName = Literal["auto", "loop", "vmap"]
Stack = dict[str, Tensor]  # by name, with a leading replica axis
Batch = tuple[Tensor, Tensor, Tensor]  # inputs, targets, uniforms, each with a leading replica axis

MANY_MODELS = 1000
NO_COMPILER = "torch.compile is not usable here, so training runs eagerly, several times slower"


class LiftedGradient:
    """Gradients and losses of R replicas from stacked parameters and batches.

    ``compile_seconds``  what the first call took, when it compiled
    ``fallback``         why the compiled version is not used, or None
    """

    def __init__(self, model: LatentGraphModel, *, lift: LiftName = "auto", compile: bool = True) -> None:
        device = model.graph.edge_logits.device
        self.lifted = lift == "vmap" or (lift == "auto" and device.type == "cuda")
        self.compile_seconds = 0.0
        self.fallback: str | None = None
        self._eager = _gradient_function(model)
        if self.lifted:
            self._eager = vmap(self._eager)
        self._run = self._eager
        self._pending = compile
        self._options = _compiler_options(model)

    def __call__(
        self, parameters: Stack, frozen: Stack, batch: Batch, running: Sequence[int]
    ) -> tuple[Stack, Float[Tensor, "replica batch"]]:
        """Return stacked gradients and losses of the ``running`` replicas, whose batch this is; zero elsewhere."""
        if self.lifted:
            return self._first_or_run(parameters, frozen, *batch)
        grads = {name: torch.zeros_like(value) for name, value in parameters.items()}
        losses = batch[0].new_zeros(len(next(iter(parameters.values()))), batch[0].shape[1])
        for position, r in enumerate(running):
            one, losses[r] = self._first_or_run(
                _pick(parameters, r), _pick(frozen, r), *(part[position] for part in batch)
            )
            for name, value in one.items():
                grads[name][r] = value
        return grads, losses

    def _first_or_run(self, *args: Any) -> tuple[Stack, Tensor]:
        if self._pending:
            self._pending = False
            self._compile(*args)
        result: tuple[Stack, Tensor] = self._run(*args)
        return result

    def _compile(self, *args: Any) -> None:
        """Try the compiled version once; without a working compiler stay eager and say so."""
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the compiler's own deprecations are not the user's business
                compiled = torch.compile(self._eager, dynamic=False, options=self._options)
                # Every model is compiled under the one code object of torch.func.grad: leave room for many.
                with torch._dynamo.config.patch(recompile_limit=MANY_MODELS):
                    compiled(*args)
            self._run = compiled
        except Exception as error:  # whatever the toolchain raises: the eager version is equal, only slower
            reason = str(error).strip().splitlines() or [type(error).__name__]
            self.fallback = f"{NO_COMPILER} ({reason[0][:120]})"
        self.compile_seconds = time.perf_counter() - start


def _gradient_function(model: LatentGraphModel) -> Callable[..., Any]:
    def objective(parameters: Stack, frozen: Stack, inputs: Tensor, targets: Tensor, uniforms: Tensor) -> Any:
        return functional_call(model, {**parameters, **frozen}, (inputs, targets, uniforms))

    return grad(objective, has_aux=True)


def _compiler_options(model: LatentGraphModel) -> dict[str, Any] | None:
    """Return options for the CPU compiler.

    With fewer nodes than lanes in a 512-bit register, inductor (torch 2.13) puts its threads around the innermost
    reduction: thousands of thread launches a step, five times slower. 256-bit registers avoid that at 8 nodes or more.
    """
    if model.graph.edge_logits.device.type != "cpu" or model.loss.scope != "node":
        return None
    return {"cpp.simdlen": 256} if model.graph.num_nodes < 16 else None


def _pick(stack: Stack, replica: int) -> Stack:
    return {name: value[replica] for name, value in stack.items()}

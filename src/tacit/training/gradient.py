"""The gradient of one replica, and from it the gradients of R replicas, compiled if a compiler is available.

The gradient of one replica is a pure function of (parameters, constants, batch). On a GPU it is vectorised over
replicas by ``vmap``. On a CPU there is a loop over replicas: the working set of one replica fits into the cache, and
replicas can be dropped without compiling again (measured in ``benchmarks/replicas.py``).
"""

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tacit.graph import Context
from tacit.randomness import uniforms_from
from tacit.training.compile_cache import keep_compiled
from tacit.training.model import LatentGraphModel

LiftName = Literal["auto", "loop", "vmap"]
Stack = dict[str, Tensor]  # by name, with a leading replica axis
# Of one replica: inputs, targets, uniforms or the bytes and fractions that determine them; the mask of observed targets
# if some are missing; and further context of the pairs that the graphs depend on.
Batch = tuple[Tensor, ...]
NOT_LIFTED = "the predictor does not support vmap, so replicas are trained one after another, which is slower on a GPU"
NOT_TRACED = "the predictor cannot be compiled, so training runs eagerly, several times slower"
NO_COMPILER = "torch.compile is not available, so training runs eagerly, several times slower; install g++"


class StackedBatch(NamedTuple):
    """The stacked batches of all replicas: the input of a program that is vectorised over replicas."""

    parts: tuple[Tensor, ...]


class StepResult(NamedTuple):
    """The result of one step, stacked over replicas; a mean loss is the sum of losses divided by the sum of weights."""

    gradients: Stack
    losses: Float[Tensor, "replica batch"]
    weights: Float[Tensor, "replica batch"]
    carried: Stack


class LiftedGradient:
    """Gradients and losses of R replicas from stacked parameters and batches.

    ``lifted``    whether one program computes all replicas
    ``fallback``  why replicas are not vectorised, or why the compiled version is not used or not cached; or None
    """

    def __init__(self, model: LatentGraphModel, *, lift: LiftName = "auto", compile: bool = True) -> None:
        device = model.graph.raw.device
        not_kept = keep_compiled()  # before torch reads the variable, which it does even if nothing is compiled
        self._not_kept = not_kept if compile else None
        self.lifted = lift == "vmap" or (lift == "auto" and device.type == "cuda")
        self.compiles = compile
        self._names, self._constants, self._carried = trainable_names(model), list(constants_of(model)), model.carried
        self._program = CompiledProgram(gradient_of_one(model), compile=compile, options=_compiler_options(model))
        self._untried = self.lifted
        self._not_lifted: str | None = None

    @property
    def fallback(self) -> str | None:
        """Why the fast version is not used, or None."""
        return self._program.fallback or self._not_lifted or self._not_kept

    @property
    def compile_seconds(self) -> float:
        """Time spent on compiling."""
        return self._program.compile_seconds

    def __call__(
        self, parameters: Stack, constants: Stack, batches: Iterable[Batch] | StackedBatch, running: Sequence[int]
    ) -> StepResult:
        """Return the result of a step for the ``running`` replicas; zero elsewhere.

        ``batches`` may be a generator: the loop requests a batch when it needs it.
        """
        if self.lifted and not isinstance(batches, StackedBatch):
            batches = StackedBatch(tuple(torch.stack(parts) for parts in zip(*batches, strict=True)))
        if self._untried and isinstance(batches, StackedBatch):
            self.try_to_lift(parameters, constants, batches)
        stacks = self._stacks(parameters, constants)
        if self.lifted and isinstance(batches, StackedBatch):
            outputs = self._program(*stacks, *batches.parts)
        else:
            each = zip(*batches.parts, strict=True) if isinstance(batches, StackedBatch) else batches
            results = [
                self._program(*(value[r] for value in stacks), *batch) for r, batch in zip(running, each, strict=True)
            ]
            outputs = tuple(_spread(values, running, len(stacks[0])) for values in zip(*results, strict=True))
        gradients = dict(zip(self._names, outputs, strict=False))
        losses, weights, *carried = outputs[len(self._names) :]
        return StepResult(gradients, losses, weights, dict(zip(self._carried, carried, strict=True)))

    def try_to_lift(self, parameters: Stack, constants: Stack, batches: StackedBatch) -> None:
        """Vectorise the gradient by ``vmap``; if the predictor does not support it, loop, with the same results."""
        self._untried = False
        try:
            lifted = vmap(self._program.function)
            lifted(*self._stacks(parameters, constants), *batches.parts)
            self._program.function = lifted
        except Exception as error:  # if the predictor itself is wrong, the loop raises the error again
            self.lifted = False
            self._not_lifted = f"{NOT_LIFTED} ({first_line(error)})"

    def _stacks(self, parameters: Stack, constants: Stack) -> list[Tensor]:
        return [parameters[name] for name in self._names] + [constants[name] for name in self._constants]


class CompiledProgram:
    """A function of tensors, compiled at the first call; if that fails it runs eagerly, with equal results.

    ``in_place`` means that the function changes its tensors: it is then compiled on copies, so that nothing changes
    before the first real call.

    The function is first traced into a flat list of tensor operations. The compiled program then checks its few tensors
    at each call instead of every attribute of the model. It belongs to one fit: compiled as a method, the programs of
    all fits of a process would share one cache, and the compiler would stop compiling from the ninth on.

    ``compile_seconds``  time spent on compiling
    ``fallback``         why the compiled version is not used, or None
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        compile: bool = True,
        in_place: bool = False,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.function = function
        self.compile_seconds = 0.0
        self.fallback: str | None = None
        self._pending, self._in_place, self._options = compile, in_place, options

    def __call__(self, *tensors: Tensor) -> Any:
        """Return the result of the function."""
        if self._pending:
            self._pending = False
            self._compile(*(tensor.clone() for tensor in tensors) if self._in_place else tensors)
        return self.function(*tensors)

    def _compile(self, *tensors: Tensor) -> None:
        start, reason = time.perf_counter(), NOT_TRACED
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecations inside the compiler do not concern the user
                traced, reason = make_fx(self.function)(*tensors), NO_COMPILER
                compiled = torch.compile(traced, dynamic=False, options=self._options)
                compiled(*tensors)
            self.function = compiled
        except Exception as error:  # any failure of the toolchain: the eager version is equal, only slower
            self.fallback = f"{reason} ({first_line(error)})"
        self.compile_seconds += time.perf_counter() - start


def trainable_names(model: LatentGraphModel) -> list[str]:
    """Return the names of the parameters that are trained."""
    return [name for name, value in model.named_parameters() if value.requires_grad]


def constants_of(model: LatentGraphModel) -> Stack:
    """Return the constants of a step by name: parameters that are not trained, and buffers."""
    known = {name: value.detach() for name, value in model.named_parameters() if not value.requires_grad}
    return known | dict(model.named_buffers())


def first_line(error: Exception) -> str:
    """Return the first line of an error message, shortened."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:120]


def gradient_of_one(model: LatentGraphModel) -> Callable[..., tuple[Tensor, ...]]:
    """Return the gradient function of one replica: (parameters, constants, batch) to (gradients, outputs).

    Parameters are in the order of :func:`trainable_names`, constants in the order of :func:`constants_of`.
    """
    names, known = trainable_names(model), list(constants_of(model))

    def objective(parameters: Stack, constants: Stack, *batch: Tensor) -> Any:
        fields = dict(zip(model.context_fields, batch[4:], strict=True))
        context = {"context": Context(batch[0], **fields)} if fields else {}
        return functional_call(model, {**parameters, **constants}, batch[:4], context)

    def gradient(*tensors: Tensor) -> tuple[Tensor, ...]:
        parameters = dict(zip(names, tensors, strict=False))
        constants = dict(zip(known, tensors[len(names) :], strict=False))
        batch = _with_uniforms(tensors[len(names) + len(known) :])
        gradients, outputs = grad(objective, has_aux=True)(parameters, constants, *batch)
        return (*(gradients[name] for name in names), *outputs)

    return gradient


def _with_uniforms(batch: Batch) -> Batch:
    """Compute the uniforms of a batch from their bits inside the program, which reads a quarter of the memory."""
    if batch[2].dtype != torch.uint8:
        return batch
    inputs, targets, bytes_, fraction, *observed = batch
    return inputs, targets, uniforms_from(bytes_, fraction), *observed


def _spread(values: Sequence[Tensor], running: Sequence[int], num_replicas: int) -> Tensor:
    """Stack the results of the running replicas at their positions among all replicas; zero elsewhere."""
    if len(running) == num_replicas == 1:
        return values[0][None]
    stacked = torch.stack(list(values))
    if len(running) == num_replicas:
        return stacked
    return stacked.new_zeros(num_replicas, *stacked.shape[1:]).index_copy(
        0, torch.tensor(running, device=stacked.device), stacked
    )


def _compiler_options(model: LatentGraphModel) -> dict[str, Any] | None:
    """Return options for the CPU compiler.

    With fewer nodes than lanes in a 512-bit register, inductor (torch 2.13) parallelises the innermost reduction:
    thousands of thread launches per step, ten times slower. 256-bit registers avoid this from 8 nodes on. Measured at
    node scope with hops and at joint scope with stacks of convolutions; in other cases it makes no difference.
    """
    if model.graph.raw.device.type != "cpu":
        return None
    return {"cpp.simdlen": 256} if model.graph.num_nodes < 16 else None

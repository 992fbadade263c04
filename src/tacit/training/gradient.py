"""The gradients of R replicas, compiled if a compiler is available, and CUDA graphs.

The gradient of one replica, and from it the gradients of R replicas, compiled if a compiler is available.

The gradient of one replica is a pure function of (parameters, constants, batch). On a GPU it is vectorised over
replicas by ``vmap``. On a CPU there is a loop over replicas: the working set of one replica fits into the cache, and
replicas can be dropped without compiling again (measured in ``benchmarks/replicas.py``).

CUDA graphs: a function of tensors is recorded once on a GPU and then replayed, with buffers for its inputs.

A training step is about a hundred small kernels, and launching each from Python takes ten times as long as running it.
A CUDA graph launches all of them with one call. The first calls run normally, so that libraries are initialised and
code is compiled. Then one call is recorded; later calls copy the inputs into fixed buffers and replay the record.

A replayed step takes less time than Python needs to pass it a batch. So the plan of all steps, the order of an epoch
and the random bits of many steps are copied to the device once, and each step reads its part at a counter that it
increments itself.
"""

import gc
import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tacit.graph import Context
from tacit.randomness import JoinedStreams, uniforms_from
from tacit.training.model import LatentGraphModel
from tacit.training.settings import StepNumbers

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"  # read by torch when it first compiles or differentiates
NOT_KEPT = (
    "compiled programs cannot be cached in {directory}, so every run compiles them again; set " + VARIABLE + " to a "
    "directory that can be written and whose path has no spaces"
)


def keep_compiled() -> str | None:
    """Set a directory for compiled programs, unless the user set one; return a note if it cannot be written.

    It is ``$XDG_CACHE_HOME/tacit/compiled``, or ``~/.cache/tacit/compiled``. If that cannot be written, or if its path
    has spaces, which the C++ compiler does not support, torch's own directory below ``/tmp`` is used. Torch identifies
    a program by its source, the versions and the processor.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    directory = Path(os.environ.get(VARIABLE) or Path(base) / "tacit" / "compiled")
    try:
        usable = not any(letter.isspace() for letter in str(directory.absolute()))
        if usable:
            directory.mkdir(parents=True, exist_ok=True)
            usable = os.access(directory, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    if usable:
        os.environ[VARIABLE] = str(directory)
        return None
    os.environ.pop(VARIABLE, None)
    return NOT_KEPT.format(directory=directory)


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
        function = gradient_of_one(model, plain=not (compile or self.lifted))
        self._program = CompiledProgram(function, compile=compile, options=_compiler_options(model))
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
            examples = tuple(tensor.clone() for tensor in tensors) if self._in_place else tensors
            start, reason = time.perf_counter(), NOT_TRACED
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # deprecations inside the compiler do not concern the user
                    traced, reason = make_fx(self.function)(*examples), NO_COMPILER
                    compiled = torch.compile(traced, dynamic=False, options=self._options)
                    compiled(*examples)
                self.function = compiled
            except Exception as error:  # any failure of the toolchain: the eager version is equal, only slower
                self.fallback = f"{reason} ({first_line(error)})"
            self.compile_seconds += time.perf_counter() - start
        return self.function(*tensors)


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


def gradient_of_one(model: LatentGraphModel, *, plain: bool = False) -> Callable[..., tuple[Tensor, ...]]:
    """Return the gradient function of one replica: (parameters, constants, batch) to (gradients, outputs).

    Parameters are in the order of :func:`trainable_names`, constants in the order of :func:`constants_of`. A ``plain``
    gradient is that of autograd: equal and faster, but it can be neither vectorised nor traced.
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
        if plain:
            parameters = {name: value.detach().requires_grad_() for name, value in parameters.items()}
            with torch.enable_grad():
                value, outputs = objective(parameters, constants, *batch)
            found = torch.autograd.grad(value, list(parameters.values()), materialize_grads=True)
            return (*found, *(one.detach() for one in outputs))
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
    # The bytes of each step are copied as 8-byte words if their number allows it: fewer numbers.
    flat = bytes_.flatten(1)
    flat = flat.view(torch.int64) if flat.shape[1] % 8 == 0 else flat
    parts = (plan, OF_TRAINING), (order, OF_EPOCH), (flat, OF_BITS), (fractions, OF_BITS)
    numbers, rows, words, own_fractions = (values.index_select(0, counter[which, None])[0] for values, which in parts)
    counter.add_(1)
    return StepNumbers(*numbers), rows, (words.view(torch.uint8).view(bytes_.shape[1:]), own_fractions)

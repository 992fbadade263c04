r"""One training step for all replicas: batch, gradient, Adam, floor, average.

$$g = \nabla_{\theta, \psi} L(\text{batch}), \qquad
  m \leftarrow \beta_1 m + (1 - \beta_1)\, g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2, \qquad
  p \leftarrow p - \eta\, \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \varepsilon}$$

:meth:`TrainingStep._step` is the step on every device. On a GPU it is recorded once and replayed, without waiting for
the device (:mod:`tacit.training.gradient`). Parameters change only in :class:`Update`.
"""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from tacit.data import Pairs
from tacit.randomness import JoinedStreams
from tacit.training.gradient import (
    Batch,
    Bits,
    CompiledProgram,
    DeviceBuffers,
    LiftedGradient,
    Recorded,
    Stack,
    StackedBatch,
    StepResult,
    read_buffers,
)
from tacit.training.model import LatentGraphModel
from tacit.training.processes import Processes
from tacit.training.settings import FitSettings, StepNumbers
from tacit.training.state import TrainingState, raw_name

TINY = torch.finfo(torch.float32).tiny
EPSILON = 1e-8  # of Adam, as in PyTorch


class TrainingStep:
    """Takes the steps of a training; each updates the state.

    If several processes train, each computes its share of every batch, and the step is that of the whole batch.
    """

    def __init__(
        self,
        model: LatentGraphModel,
        train: Pairs,
        settings: FitSettings,
        state: TrainingState,
        gradient: LiftedGradient,
        processes: Processes,
    ) -> None:
        self.model, self.train, self.state = model, train, state
        self.gradient, self.processes = gradient, processes
        self.share = processes.share(state.plan.batch_size)
        self._joined = JoinedStreams(state.streams)
        self._order: Int[Tensor, "step running batch"] | None = None
        if gradient.lifted:
            gradient.try_to_lift(state.parameters, state.constants, self._example())
        device = train.inputs.device
        on_gpu = device.type == "cuda"
        self._plan = torch.tensor(state.plan.numbers, device=device) if on_gpu else None
        # With several processes it is not recorded: not every transport supports a recorded sum over processes.
        records = gradient.lifted and not processes.several
        self._buffers = DeviceBuffers(self._plan, self._joined) if self._plan is not None and records else None
        self._recorded = Recorded(self._step_from_buffers, fixed=True)
        compiles = on_gpu and gradient.compiles and not processes.several  # rounding must be equal in all processes
        self._update = Update(state, settings, compile=compiles)

    @property
    def compile_seconds(self) -> float:
        """Time spent on compiling in this process."""
        return self.gradient.compile_seconds + self._update.compile_seconds

    @property
    def fallback(self) -> str | None:
        """Why steps on a GPU are not replayed, or None."""
        return self._recorded.fallback

    def begin_epoch(self, order: Int[Tensor, "step running batch"]) -> None:
        """Set the rows of the training pairs for the steps of an epoch; some steps may already be complete."""
        self._order = order
        if self._buffers is not None:
            self._buffers.begin_epoch(self.state.log.steps_done, order, self.state.steps_in_epoch)

    def take(self, running: Sequence[int]) -> None:
        """Take the next step, and store its losses in the state; call :meth:`begin_epoch` first."""
        state, within = self.state, self.state.steps_in_epoch
        if self._order is None:
            raise RuntimeError("begin_epoch must come before the first step")
        if self._buffers is not None:
            (losses,) = self._recorded(*self._buffers.prepare())
        else:
            step = state.log.steps_done
            numbers = state.plan.numbers[step] if self._plan is None else StepNumbers(*self._plan[step])
            each = (state.streams[replica].bits() for replica in running)
            bits = self._joined.bits() if self.gradient.lifted else each
            losses = self._step(numbers, self._order[within], bits, running)
        state.step_losses[within].copy_(losses)
        state.log.steps_done += 1

    def _step_from_buffers(self, *buffers: Tensor) -> tuple[Tensor, ...]:
        """Take the step at the counter in the buffers; this function is recorded on a GPU."""
        return (self._step(*read_buffers(*buffers), range(len(self.state.seeds))),)

    def _step(
        self,
        numbers: StepNumbers,
        rows: Int[Tensor, "running batch"],
        bits: Bits | Iterable[Bits],
        running: Sequence[int],
    ) -> Float[Tensor, " replica"]:
        """Take a step, recorded or not, and return the loss of each replica.

        ``bits`` determine the uniforms of the graphs: stacked if replicas are vectorised, else one replica at a time.
        """
        state = self.state
        if self.model.estimator.scheduled:
            state.constants["progress"].fill_(numbers.progress)
        # The batches of the replicas: one at a time in a loop over replicas, else all at once.
        batches: Iterable[Batch] | StackedBatch
        if isinstance(bits, tuple):
            batches = StackedBatch(self.batch(self.train, rows, bits))
        else:
            batches = (self.batch(self.train, one, one_bits) for one, one_bits in zip(rows, bits, strict=True))
        own = self.gradient(state.parameters, state.constants, batches, running)
        result = self.processes.combined(own)
        losses = self._update(result, numbers)
        for name, value in result.carried.items():
            state.constants[name].copy_(value)
        return losses

    def batch(self, pairs: Pairs, rows: Int[Tensor, "*replica batch"], bits: Bits) -> Batch:
        """Return this process's share of a batch; graphs that a batch shares are drawn by all processes."""
        rows, (bytes_, fraction) = rows[..., self.share], bits
        own_bytes = bytes_ if self.model.share_graphs else bytes_[..., self.share, :, :, :]
        batch = (pairs.inputs[rows], pairs.targets[rows], own_bytes, fraction)
        fields = [getattr(pairs, name)[rows] for name in self.model.context_fields]
        if pairs.observed is None and not fields:
            return batch
        observed = torch.ones_like(batch[1]) if pairs.observed is None else pairs.observed[rows]
        return (*batch, observed, *fields)

    def _example(self) -> StackedBatch:
        """Return a batch of the first pairs, to test whether replicas can be vectorised."""
        replicas, size, inputs = len(self.state.seeds), self.state.plan.batch_size, self.train.inputs
        pairs, *rest = self.model.uniforms_shape(size)
        bytes_ = torch.zeros(replicas, pairs, *rest, dtype=torch.uint8, device=inputs.device)
        fraction = inputs.new_full((replicas, 1, *rest), 0.5)
        rows = torch.arange(size, device=inputs.device).expand(replicas, -1)
        return StackedBatch(self.batch(self.train, rows, (bytes_, fraction)))


class Update:
    """Update the parameters of all replicas in place: Adam, floor, average.

    With ``compile`` it is one program: on a GPU one or two kernels instead of a dozen small ones. The numbers of the
    step are then tensors.
    """

    def __init__(self, state: TrainingState, settings: FitSettings, *, compile: bool = False) -> None:
        self.state, self._settings, self._compiles = state, settings, compile
        self._program = CompiledProgram(self._move_flat, in_place=True)
        self._spec: TreeSpec | None = None

    @property
    def compile_seconds(self) -> float:
        """Time spent on compiling."""
        return self._program.compile_seconds

    @property
    def fallback(self) -> str | None:
        """Why the compiled program is not used, or None."""
        return self._program.fallback

    def __call__(self, result: StepResult, numbers: StepNumbers) -> Float[Tensor, " replica"]:
        """Update the parameters and return the loss of each replica."""
        state = self.state
        moved = state.parameters, state.first_moments, state.second_moments, state.averages
        arguments = *moved, result.gradients, result.losses, result.weights, numbers
        if not self._compiles:
            return self._move(*arguments)
        tensors, self._spec = tree_flatten(arguments)
        losses: Tensor = self._program(*tensors)
        return losses

    def _move_flat(self, *tensors: Tensor) -> Tensor:
        if self._spec is None:
            raise RuntimeError("a call must come first")
        return self._move(*tree_unflatten(list(tensors), self._spec))

    def _move(
        self,
        parameters: Stack,
        first_moments: Stack,
        second_moments: Stack,
        averages: Stack,
        gradients: Stack,
        losses: Float[Tensor, "replica batch"],
        weights: Float[Tensor, "replica batch"],
        numbers: StepNumbers,
    ) -> Float[Tensor, " replica"]:
        graph, settings, raw = self.state.graph, self._settings, raw_name(self.state.graph)
        for name, value in parameters.items():
            adam_(
                value,
                gradients[name],
                first_moments[name],
                second_moments[name],
                rate=numbers.rate if name.startswith("graph.") else numbers.rate * settings.predictor_factor,
                betas=settings.adam_betas,
                corrections=(numbers.first_correction, numbers.second_correction),
            )
        if raw in parameters and settings.min_draws_per_edge > 0 and _may_differ_from_0(numbers.floor):
            parameters[raw].copy_(graph.clamp_probs(parameters[raw], numbers.floor))
        if settings.average_fraction > 0 and _may_differ_from_0(numbers.weight):
            for name, value in parameters.items():  # a mean of logits would be dominated by extreme values
                shown = graph.link.probs(value) if name == raw else value
                averages[name].add_((shown - averages[name]) * numbers.weight)
        return losses.sum(1) / weights.sum(1).clamp_min(TINY)


def adam_(
    value: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    rate: float | Tensor,
    betas: tuple[float, float],
    corrections: tuple[float | Tensor, float | Tensor],
) -> None:
    r"""Take a step of Adam (Kingma and Ba 2015) in place; ``corrections`` are $1 - \beta_1^t$ and $1 - \beta_2^t$.

    The result equals that of ``torch.optim.Adam``. It is written out because a step takes a fraction of a millisecond:
    six operations avoid the overhead of an optimizer, and on a GPU they are compiled into one kernel with the rest.

    >>> value, first, second = torch.ones(1), torch.zeros(1), torch.zeros(1)
    >>> adam_(value, torch.tensor([3.0]), first, second, rate=0.1, betas=(0.9, 0.99), corrections=(0.1, 0.01))
    >>> round(value.item(), 4)  # the first step is as long as the rate, whatever the gradient
    0.9
    """
    first.lerp_(gradient, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    length = (second / corrections[1]).sqrt_().add_(EPSILON)
    value.sub_(first / length * (rate / corrections[0]))


def _may_differ_from_0(number: float | Tensor) -> bool:
    """Return whether a number may be nonzero; a number on a GPU is not read, which would wait for the device."""
    return isinstance(number, Tensor) or number > 0

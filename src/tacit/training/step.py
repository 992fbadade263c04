"""One training step: batches and uniforms, gradient, Adam, average, for all replicas."""

from collections.abc import Iterable, Sequence
from itertools import repeat

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.data import Pairs
from tacit.data.pairs import covering_batches
from tacit.randomness import JoinedStreams, UniformStream, generator_for
from tacit.training.compiled_move import CompiledMove
from tacit.training.floor import edge_floor
from tacit.training.lift import Batch, LiftedGradient, Outcome, Stack, Together
from tacit.training.model import LatentGraphModel
from tacit.training.processes import Processes
from tacit.training.replay import Replayed
from tacit.training.resident import Resident, at
from tacit.training.settings import FitSettings
from tacit.training.state import TINY, ReplicaState, StepNumbers


class Stepper:
    """Takes steps and validates. On a GPU both are recorded once and replayed, without a wait for the device.

    Where several processes train, each computes its share of every batch, and steps and losses are those of the whole.
    """

    def __init__(
        self,
        model: LatentGraphModel,
        train: Pairs,
        validation: Pairs,
        settings: FitSettings,
        seeds: Sequence[int],
        state: ReplicaState,
        gradient: LiftedGradient,
        processes: Processes,
    ) -> None:
        self.model, self.train, self.validation, self.settings = model, train, validation, settings
        self.state, self.gradient = state, gradient
        self.batch_size = min(settings.batch_size, len(train))
        self.processes, self._share = processes, processes.share(self.batch_size)
        self.steps_per_epoch = len(train) // self.batch_size
        self.total_steps = self.steps_per_epoch * settings.epochs
        self._averaging_from = round((1 - settings.average_fraction) * self.total_steps)
        device = train.inputs.device
        self._streams = [self._stream(generator_for(seed, "graphs", device)) for seed in seeds]
        self._together = JoinedStreams(self._streams)
        self._plan = [self._numbers(step) for step in range(self.total_steps)]
        on_gpu = device.type == "cuda"
        self._plan_there = torch.tensor(self._plan, device=device) if on_gpu else None
        self._resident = None if self._plan_there is None else Resident(self._plan_there, self._together)
        self._order: Int[Tensor, "step running batch"] | None = None
        self._first = 0  # the step of the training with which the order begins
        self._covering = [(index.to(device), new) for index, new in covering_batches(len(validation), self.batch_size)]
        self._take, self._look = Replayed(self._step, fixed=True), Replayed(self._loss_of_batch)
        compiles = on_gpu and gradient.compiles and not processes.several  # several must all round alike
        self._compiled = CompiledMove(state, settings) if compiles else None

    @property
    def streams(self) -> list[UniformStream]:
        """The uniforms of each replica."""
        return self._streams

    @property
    def compile_seconds(self) -> float:
        """How long compiling took, up to now."""
        return self.gradient.compile_seconds + (self._compiled.compile_seconds if self._compiled is not None else 0.0)

    @property
    def _replays(self) -> bool:
        """Is the step one program for all replicas, that a GPU can replay?

        With several processes it is not recorded: whether a record may hold their sum depends on the transport.
        """
        return self.gradient.lifted and not self.processes.several

    @property
    def fallback(self) -> str | None:
        """Why steps on a GPU are not replayed, or None."""
        reason = self._take.fallback or self._look.fallback
        return f"the step cannot be recorded, so that it starts kernel by kernel, slower ({reason})" if reason else None

    def begin(self, step: int, order: Int[Tensor, "step running batch"], done: int = 0) -> None:
        """Take the rows of the training pairs for an epoch, of which ``step`` comes next and ``done`` are behind."""
        self._first, self._order = step - done, order
        if self._resident is not None and self._replays:
            self._resident.begin_epoch(step, order, done)

    def take(self, step: int, running: Sequence[int]) -> Float[Tensor, " replica"]:
        """Take the next step and return the loss of each replica; see :meth:`begin`."""
        numbers = self._plan[step]
        if self._resident is not None and self._replays:
            losses = self._take(*self._resident.prepare())[0].clone()
        else:
            if self._order is None:
                raise RuntimeError("begin needs to come before the first step")
            self._tell_progress(float(numbers.progress))
            now = numbers if self._plan_there is None else StepNumbers(*self._plan_there[step])
            if not numbers.weight:
                now = now._replace(weight=None)
            losses = self._move(self._batches(self._order[step - self._first], running), now, running)
        self.state.has_average |= bool(numbers.weight)
        return losses

    def validate(self, parameters: Stack, running: Sequence[int]) -> Float[Tensor, " replica"]:
        """Return the validation loss of each replica, all of them under the same random graphs."""
        device, dtype = self.train.inputs.device, self.train.inputs.dtype
        draws = self._stream(generator_for(0, "validation", device))
        total, count = (torch.zeros(len(self._streams), device=device, dtype=dtype) for _ in range(2))
        for rows, new in self._covering:
            bits = self._own(*draws.bits())
            if self.gradient.lifted and parameters is self.state.parameters:
                losses, weights = self._look(rows[self._share], *bits)
            else:
                batch = _batch(self.validation, rows[self._share], *bits)
                losses, weights = self._losses(batch, parameters, running)
            new_here = max(0, new - self._share.start)
            total += losses[:, :new_here].sum(1)
            count += weights[:, :new_here].sum(1)
        sums = self.processes.summed(torch.stack([total, count]))
        return (sums[0] / sums[1].clamp_min(TINY)).cpu()

    def _step(self, *resident: Tensor) -> tuple[Tensor, ...]:
        scalars, rows, bytes_, fraction = at(*resident)
        numbers = StepNumbers(*scalars)
        if self.model.estimator.scheduled:
            self.state.frozen["progress"] = scalars[2].to(self.train.inputs.dtype).expand(len(rows))
        if self.settings.average_fraction == 0:
            numbers = numbers._replace(weight=None)
        batches = Together(_batch(self.train, rows, bytes_, fraction))
        return (self._move(batches, numbers, range(len(rows))),)

    def _loss_of_batch(self, rows: Tensor, bytes_: Tensor, fraction: Tensor) -> tuple[Tensor, ...]:
        batch = _batch(self.validation, rows, bytes_, fraction)
        return self._losses(batch, self.state.parameters, range(len(self._streams)))

    def _losses(self, batch: Batch, parameters: Stack, running: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return losses and weights of a batch that all replicas share."""
        batches: Iterable[Batch] | Together = repeat(batch, len(running))
        if self.gradient.lifted:  # in memory as in training, or it would be compiled once more
            batches = Together(tuple(part.expand(len(running), *part.shape).contiguous() for part in batch))
        outcome = self.gradient(parameters, self.state.frozen, batches, running)
        return outcome.losses, outcome.weights

    def _move(
        self, batches: Iterable[Batch] | Together, numbers: StepNumbers, running: Sequence[int]
    ) -> Float[Tensor, " replica"]:
        own: Outcome = self.gradient(self.state.parameters, self.state.frozen, batches, running)
        outcome = self.processes.combined(own)
        losses = self._advance(outcome, numbers)
        self.state.carry(outcome.carried)
        return losses

    def _advance(self, outcome: Outcome, numbers: StepNumbers) -> Float[Tensor, " replica"]:
        if self._compiled is None:
            return self.state.move(outcome, numbers, self.settings)
        return self._compiled(outcome, numbers)

    def _batches(self, rows: Tensor, running: Sequence[int]) -> Iterable[Batch] | Together:
        """Return what the replicas train on: one after another where they are looped over, else all at once."""
        rows = rows[:, self._share]
        if not self.gradient.lifted:
            each = zip(rows, running, strict=True)
            return (_batch(self.train, own, *self._own(*self._streams[r].bits())) for own, r in each)
        bytes_, fraction = self._together.bits()
        own_bytes = bytes_ if self.model.share_graphs else bytes_[:, self._share]
        return Together(_batch(self.train, rows, own_bytes, fraction))

    def _own(self, bytes_: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """Return of the bits of a batch those for this process's share; graphs that all pairs share are everyone's."""
        return bytes_ if self.model.share_graphs else bytes_[self._share], fraction

    def _stream(self, generator: torch.Generator) -> UniformStream:
        return UniformStream(self.model.uniforms_shape(self.batch_size), generator, self.train.inputs.dtype)

    def _numbers(self, step: int) -> StepNumbers:
        """Return what differs from step to step; a weight of 0 before the average begins."""
        settings, (epoch, within) = self.settings, divmod(step, self.steps_per_epoch)
        counted = step - self._averaging_from + 1
        rate = settings.schedule(epoch + within / self.steps_per_epoch, settings.epochs)
        done = step / self.total_steps
        floor = edge_floor(settings.sightings, self.model.draws(self.batch_size), done)
        corrections = (1 - beta ** (step + 1) for beta in settings.adam_betas)
        return StepNumbers(rate, 1 / counted if counted > 0 else 0.0, done, floor, *corrections)

    def _tell_progress(self, done: float) -> None:
        """Let an estimator with a schedule know how much of the training is done."""
        if self.model.estimator.scheduled:
            self.state.frozen["progress"] = torch.full_like(self.state.frozen["progress"], done)


def _batch(pairs: Pairs, rows: Tensor, bytes_: Tensor, fraction: Tensor) -> Batch:
    batch = (pairs.inputs[rows], pairs.targets[rows], bytes_, fraction)
    return batch if pairs.observed is None else (*batch, pairs.observed[rows])

"""One training step: batches and uniforms, gradient, Adam, average, for all replicas."""

from collections.abc import Iterable, Sequence
from itertools import repeat

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.data import Pairs
from tacit.data.pairs import covering_batches
from tacit.randomness import UniformStream, generator_for, uniforms_from
from tacit.training.floor import edge_floor
from tacit.training.lift import Batch, LiftedGradient, Outcome, Stack, Together
from tacit.training.model import LatentGraphModel
from tacit.training.processes import Processes
from tacit.training.replay import Replayed
from tacit.training.settings import FitSettings
from tacit.training.state import ReplicaState

TINY = torch.finfo(torch.float32).tiny


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
        self._plan = [self._scalars(step) for step in range(self.total_steps)]
        on_gpu = device.type == "cuda"
        self._plan_there = torch.tensor(self._plan, device=device) if on_gpu else None  # fused Adam wants floats
        self._covering = [(index.to(device), new) for index, new in covering_batches(len(validation), self.batch_size)]
        self._take, self._look = Replayed(self._step), Replayed(self._loss_of_batch)

    @property
    def streams(self) -> list[UniformStream]:
        """The uniforms of each replica."""
        return self._streams

    @property
    def fallback(self) -> str | None:
        """Why steps on a GPU are not replayed, or None."""
        reason = self._take.fallback or self._look.fallback
        return f"the step cannot be recorded, so that it starts kernel by kernel, slower ({reason})" if reason else None

    def take(self, step: int, rows: Int[Tensor, "running batch"], running: Sequence[int]) -> Float[Tensor, " replica"]:
        """Take one step on these rows of the training pairs and return the loss of each replica."""
        rate, weight, progress, floor = self._plan[step]
        there = None if self._plan_there is None else self._plan_there[step]
        # With several processes the step is not recorded: whether a record may hold their sum depends on the transport.
        if there is not None and self.gradient.lifted and not self.processes.several:
            losses = self._take(there, rows, *self._bits(running))[0].clone()
        else:
            self._tell_progress(progress)
            scalars = (rate, weight, floor) if there is None else (there[0], there[1], there[3])
            batches = self._batches(rows, running)
            losses = self._move(batches, scalars[0], scalars[1] if weight > 0 else None, scalars[2], running)
        self.state.has_average |= weight > 0
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
                batch = _batch(self.validation, rows[self._share], uniforms_from(*bits))
                losses, weights = self._losses(batch, parameters, running)
            new_here = max(0, new - self._share.start)
            total += losses[:, :new_here].sum(1)
            count += weights[:, :new_here].sum(1)
        sums = self.processes.summed(torch.stack([total, count]))
        return (sums[0] / sums[1].clamp_min(TINY)).cpu()

    def _step(self, scalars: Tensor, rows: Tensor, bytes_: Tensor, fraction: Tensor) -> tuple[Tensor, ...]:
        rate, weight, progress, floor = scalars
        if self.model.estimator.scheduled:
            self.state.frozen["progress"] = progress.to(self.train.inputs.dtype).expand(len(rows))
        batches = Together(_batch(self.train, rows, uniforms_from(bytes_, fraction)))
        averaged = weight if self.settings.average_fraction > 0 else None
        return (self._move(batches, rate, averaged, floor, range(len(rows))),)

    def _loss_of_batch(self, rows: Tensor, bytes_: Tensor, fraction: Tensor) -> tuple[Tensor, ...]:
        batch = _batch(self.validation, rows, uniforms_from(bytes_, fraction))
        return self._losses(batch, self.state.parameters, range(len(self._streams)))

    def _losses(self, batch: Batch, parameters: Stack, running: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return losses and weights of a batch that all replicas share."""
        batches: Iterable[Batch] | Together = repeat(batch, len(running))
        if self.gradient.lifted:  # in memory as in training, or it would be compiled once more
            batches = Together(tuple(part.expand(len(running), *part.shape).contiguous() for part in batch))
        outcome = self.gradient(parameters, self.state.frozen, batches, running)
        return outcome.losses, outcome.weights

    def _move(
        self,
        batches: Iterable[Batch] | Together,
        rate: float | Tensor,
        weight: float | Tensor | None,
        floor: float | Tensor,
        running: Sequence[int],
    ) -> Float[Tensor, " replica"]:
        own: Outcome = self.gradient(self.state.parameters, self.state.frozen, batches, running)
        outcome = self.processes.combined(own)
        self.state.update(outcome.gradients, rate, self.settings, weight, floor)
        self.state.carry(outcome.carried)
        return outcome.losses.sum(1) / outcome.weights.sum(1).clamp_min(TINY)

    def _batches(self, rows: Tensor, running: Sequence[int]) -> Iterable[Batch] | Together:
        """Return what the replicas train on: one after another where they are looped over, else all at once."""
        rows = rows[:, self._share]
        if not self.gradient.lifted:
            each = zip(rows, running, strict=True)
            return (_batch(self.train, own, uniforms_from(*self._own(*self._streams[r].bits()))) for own, r in each)
        return Together(_batch(self.train, rows, uniforms_from(*self._bits(running))))

    def _bits(self, running: Sequence[int]) -> tuple[Tensor, Tensor]:
        bytes_, fraction = zip(*(self._own(*self._streams[r].bits()) for r in running), strict=True)
        return torch.stack(bytes_), torch.stack(fraction)

    def _own(self, bytes_: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """Return of the bits of a batch those for this process's share; graphs that all pairs share are everyone's."""
        return bytes_ if self.model.share_graphs else bytes_[self._share], fraction

    def _stream(self, generator: torch.Generator) -> UniformStream:
        return UniformStream(self.model.uniforms_shape(self.batch_size), generator, self.train.inputs.dtype)

    def _scalars(self, step: int) -> tuple[float, float, float, float]:
        """Return learning rate, weight of the step in the average, how much of the training is done, and the floor."""
        settings, (epoch, within) = self.settings, divmod(step, self.steps_per_epoch)
        counted = step - self._averaging_from + 1
        rate = settings.schedule(epoch + within / self.steps_per_epoch, settings.epochs)
        done = step / self.total_steps
        floor = edge_floor(settings.sightings, self.model.draws(self.batch_size), done)
        return rate, 1 / counted if counted > 0 else 0.0, done, floor

    def _tell_progress(self, done: float) -> None:
        """Let an estimator with a schedule know how much of the training is done."""
        if self.model.estimator.scheduled:
            self.state.frozen["progress"] = torch.full_like(self.state.frozen["progress"], done)


def _batch(pairs: Pairs, rows: Tensor, uniforms: Tensor) -> Batch:
    batch = (pairs.inputs[rows], pairs.targets[rows], uniforms)
    return batch if pairs.observed is None else (*batch, pairs.observed[rows])

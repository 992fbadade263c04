"""The training loop: epochs, validation, early stopping, dropping of bad replicas, and the final choice."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tacit.data import Pairs, covering_batches, epoch_batches
from tacit.errors import TrainingError, require_int
from tacit.randomness import UniformStream, generator_for
from tacit.training.gradient import Batch, Bits, Recorded, Stack, StackedBatch
from tacit.training.result import Epoch, FitResult, Progress, Replica
from tacit.training.settings import FitSettings
from tacit.training.state import TrainingState
from tacit.training.step import TINY, TrainingStep

NOTICE_EVERY = 20  # steps between two reported losses
Monitor = Callable[[Float[Tensor, "replica row slot"], Stack], dict[str, list[float]]]


@dataclass(frozen=True)
class Trace:
    """A monitor that is called at an interval of steps, not only after an epoch."""

    every: int
    monitor: Monitor

    def __post_init__(self) -> None:
        require_int("every", self.every)


class Loop:
    """Trains a state epoch by epoch. Everything that a resumed training requires is in the state, not here.

    ``save``  called whenever training can be resumed from the state
    """

    def __init__(
        self,
        step: TrainingStep,
        validation: Pairs,
        settings: FitSettings,
        resamples: Int[Tensor, "replica pair"] | None = None,
        save: Callable[[], None] | None = None,
    ) -> None:
        self.step, self.state, self.settings = step, step.state, settings
        self._resamples, self._save = resamples, save or (lambda: None)
        self._validation = Validation(step, validation)
        self._compiled_before = self.state.log.compile_seconds  # by a process that was stopped
        self._clock = 0.0

    @property
    def done(self) -> bool:
        """True if all epochs are complete or early stopping ended the training."""
        log, patience = self.state.log, self.settings.patience
        stopped_early = patience is not None and log.epochs_without_gain >= patience
        return stopped_early or len(log.history) == self.settings.epochs

    @property
    def running(self) -> list[int]:
        """Replicas that are computed: all in a vectorised program (fixed shapes), those not dropped in a loop."""
        return list(range(len(self.state.seeds))) if self.step.gradient.lifted else self.state.active

    def run_epoch(
        self, monitor: Monitor | None, on_progress: Callable[[Progress], None] | None, trace: Trace | None = None
    ) -> None:
        """Train one epoch, or the rest of it; validate, and drop the worse half after the epochs in ``halve_after``."""
        state, log, epoch = self.state, self.state.log, len(self.state.log.history)
        self._clock = time.perf_counter() - self.step.compile_seconds - log.epoch_seconds
        try:
            train_loss, order_states = self._train(epoch, on_progress, trace)
            state.validation_loss[state.active] = self._validate(state.parameters)[state.active]
        finally:  # the time until Ctrl-C counts too
            self._note_time()
            log.train_seconds += log.epoch_seconds
        monitored = monitor(state.edge_probs, state.parameters) if monitor else {}
        log.history.append(
            Epoch(
                epoch + 1,
                self.settings.schedule(epoch, self.settings.epochs),
                self._listed(train_loss),
                self._listed(state.validation_loss),
                log.epoch_seconds,
                {name: self._listed(torch.tensor(values)) for name, values in monitored.items()},
            )
        )
        log.epoch_seconds = 0.0
        state.order_states.copy_(order_states)
        if self.settings.patience is not None:
            keep_best(state)
        if epoch + 1 in self.settings.halve_after:  # drop the worse half
            ranked = sorted(state.active, key=lambda replica: float(state.validation_loss[replica]))
            log.dropped |= dict.fromkeys(ranked[max(1, len(ranked) // 2) :], epoch + 1)
        self._save()

    def _train(
        self, epoch: int, on_progress: Callable[[Progress], None] | None, trace: Trace | None
    ) -> tuple[Float[Tensor, " replica"], Tensor]:
        """Take the remaining steps of an epoch; return the mean loss of each replica, and the generators' states."""
        state, log, running = self.state, self.state.log, self.running
        train, order_states, orders = self.step.train, state.order_states.clone(), []
        for replica in running:
            generator = Generator(train.inputs.device)
            generator.set_state(order_states[replica].clone())  # a view may not be aligned
            batches = epoch_batches(len(train), state.plan.batch_size, generator)
            orders.append(batches if self._resamples is None else self._resamples[replica][batches])
            order_states[replica] = generator.get_state()
        order = torch.stack(orders, 1)  # (step, running, batch)
        self.step.begin_epoch(order)
        last = min(loss for loss in log.history[-1].train_loss if loss is not None) if log.history else None
        epochs, total = self.settings.epochs, state.plan.total_steps
        while state.steps_in_epoch < len(order):
            if on_progress is not None:
                on_progress(Progress(epoch, epochs, log.steps_done, total, last))
            self.step.take(running)
            if trace is not None and log.steps_done % trace.every == 0:
                log.trace.append({"step": log.steps_done, **trace.monitor(state.edge_probs, state.parameters)})
            taken = state.steps_in_epoch
            if taken % NOTICE_EVERY == 1 and state.step_losses.device.type == "cpu":  # a GPU would have to wait
                last = state.step_losses[taken - 1, state.active].min().item()
            self._note_time()
            self._save()
        by_step = state.step_losses.cpu()  # (step, replica): the only wait for the device in an epoch
        self._require_finite(by_step, f"the loss became {{value}} at epoch {epoch + 1}, step {{step}}")
        return by_step.mean(0), order_states

    def _validate(self, parameters: Stack) -> Float[Tensor, " replica"]:
        mean = self._validation(parameters, self.running)
        self._require_finite(
            mean[None], f"the validation loss became {{value}} after {self.state.log.steps_done} steps"
        )
        return mean

    def _note_time(self) -> None:
        log, compiled = self.state.log, self.step.compile_seconds
        log.epoch_seconds = time.perf_counter() - compiled - self._clock
        log.compile_seconds = self._compiled_before + compiled

    def finish(self, interrupted: bool) -> FitResult:
        """Use the averaged parameters, or those of the best epoch if they are better, and keep the best replica."""
        state, log, model = self.state, self.state.log, self.step.model
        parameters, loss = state.averaged(), state.validation_loss
        loss[state.active] = self._validate(parameters)[state.active]
        if self.settings.patience is not None:
            parameters, loss = better_than_best(state, loss, parameters)
        best = min(state.active, key=lambda replica: float(loss[replica]))
        known = {name: value[best] for name, value in state.constants.items() if name in model.state_dict()}
        model.load_state_dict({**known, **{name: value[best] for name, value in parameters.items()}}, strict=False)
        not_recorded = self.step.fallback or self._validation.fallback
        notes = [note for note in (self.step.gradient.fallback, not_recorded) if note]
        if interrupted:
            notes.append(f"stopped by the user after {log.steps_done} of {state.plan.total_steps} steps")
        ends = zip(state.seeds, loss.tolist(), strict=True)
        return FitResult(
            model,
            best,
            [Replica(seed, value, log.dropped.get(replica)) for replica, (seed, value) in enumerate(ends)],
            log.history,
            parameters,
            log.steps_done,
            log.train_seconds,
            self._compiled_before + self.step.compile_seconds,
            interrupted,
            notes,
            log.trace,
        )

    def _listed(self, values: Tensor) -> list[float | None]:
        return [None if replica in self.state.log.dropped else float(value) for replica, value in enumerate(values)]

    def _require_finite(self, losses: Float[Tensor, "step replica"], what: str) -> None:
        active = self.state.active
        bad = ~torch.isfinite(losses[:, active])
        if bad.any():
            step, position = (int(i) for i in bad.nonzero()[0])
            replica = active[position]
            where = what.format(value=losses[step, replica].item(), step=step + 1)
            who = f"replica {replica}, seed {self.state.seeds[replica]}"
            raise TrainingError(f"{where} ({who}); lower the learning rate or check the predictor")


class Validation:
    """The loss of each replica on the validation pairs, with the same random graphs for all replicas."""

    def __init__(self, step: TrainingStep, pairs: Pairs) -> None:
        self._step, self._pairs, self._size = step, pairs, step.state.plan.batch_size
        device = pairs.inputs.device
        self._covering = [(index.to(device), new) for index, new in covering_batches(len(pairs), self._size)]
        self._recorded = Recorded(self._of_present_parameters)

    @property
    def fallback(self) -> str | None:
        """Why the losses are not replayed on a GPU, or None."""
        return self._recorded.fallback

    def __call__(self, parameters: Stack, running: Sequence[int]) -> Float[Tensor, " replica"]:
        """Return the mean loss over the pairs, weighted by their observed targets."""
        step, inputs = self._step, self._pairs.inputs
        shape, generator = step.model.uniforms_shape(self._size), generator_for(0, "validation", inputs.device)
        draws = UniformStream(shape, generator, inputs.dtype)
        total, count = (inputs.new_zeros(len(step.state.seeds)) for _ in range(2))
        for rows, new in self._covering:
            bits = draws.bits()
            if step.gradient.lifted and parameters is step.state.parameters:
                losses, weights = self._recorded(rows, *bits)
            else:
                losses, weights = self._losses(rows, bits, parameters, running)
            new_here = max(0, new - step.share.start)
            total += losses[:, :new_here].sum(1)
            count += weights[:, :new_here].sum(1)
        sums = step.processes.summed(torch.stack([total, count]))
        return (sums[0] / sums[1].clamp_min(TINY)).cpu()

    def _of_present_parameters(self, rows: Tensor, *bits: Tensor) -> tuple[Tensor, ...]:
        state = self._step.state
        return self._losses(rows, (bits[0], bits[1]), state.parameters, range(len(state.seeds)))

    def _losses(self, rows: Tensor, bits: Bits, parameters: Stack, running: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return losses and weights of a batch that all replicas share."""
        batch, step = self._step.batch(self._pairs, rows, bits), self._step
        batches: Iterable[Batch] | StackedBatch = repeat(batch, len(running))
        if step.gradient.lifted:  # the memory layout of training, which avoids a second compilation
            batches = StackedBatch(tuple(part.expand(len(running), *part.shape).contiguous() for part in batch))
        result = step.gradient(parameters, step.state.constants, batches, running)
        return result.losses, result.weights


def keep_best(state: TrainingState) -> None:
    """Store the parameters of each replica if its validation loss is the lowest so far; count epochs without gain.

    The loss of a dropped replica does not change, so it never improves.
    """
    better = bool((state.validation_loss < state.best_losses).any())
    best, losses = better_than_best(state, state.validation_loss, state.parameters)
    for name, value in best.items():
        state.best[name].copy_(value)
    state.best_losses.copy_(losses)
    state.log.epochs_without_gain = 0 if better else state.log.epochs_without_gain + 1


def better_than_best(
    state: TrainingState, losses: Float[Tensor, " replica"], parameters: Stack
) -> tuple[Stack, Float[Tensor, " replica"]]:
    """Return, for each replica, these parameters or those of its best epoch, whichever has the lower loss."""
    lower = losses < state.best_losses
    chosen = {
        name: torch.where(lower.to(value.device).view(-1, *[1] * (value.ndim - 1)), value, state.best[name])
        for name, value in parameters.items()
    }
    return chosen, torch.where(lower, losses, state.best_losses)

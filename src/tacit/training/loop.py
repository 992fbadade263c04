"""The training loop: steps, validation, the dropping of bad replicas, and the choice at the end."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.data.pairs import epoch_batches
from tacit.errors import TrainingError, require_whole
from tacit.randomness import generator_for
from tacit.training.lift import Stack
from tacit.training.patience import BestEpochs
from tacit.training.result import Epoch, FitResult, Progress, Replica
from tacit.training.step import Stepper

NOTICE_EVERY = 20  # steps between two losses shown
Monitor = Callable[[Float[Tensor, "replica row slot"], Stack], dict[str, list[float]]]


@dataclass(frozen=True)
class Trace:
    """Look at the replicas every so many steps, not only after an epoch."""

    every: int
    monitor: Monitor

    def __post_init__(self) -> None:
        require_whole("every", self.every)


class Loop:
    """The moving parts of one fit."""

    def __init__(
        self, stepper: Stepper, seeds: Sequence[int], resamples: Int[Tensor, "replica pair"] | None = None
    ) -> None:
        self.stepper, self.seeds, self.resamples = stepper, seeds, resamples
        self.model, self.train, self.settings = stepper.model, stepper.train, stepper.settings
        self.state, self.gradient = stepper.state, stepper.gradient
        train, settings = self.train, self.settings
        self.orders = [generator_for(seed, "batches", train.inputs.device) for seed in seeds]
        self.active = list(range(len(seeds)))
        self.dropped: dict[int, int] = {}
        self.history: list[Epoch] = []
        self.traced: list[dict[str, Any]] = []
        self.validation_loss = torch.full((len(seeds),), torch.inf, dtype=train.inputs.dtype)
        self.steps_done = 0
        self.seconds = self._clock = 0.0
        self.epoch_losses: list[Tensor] = []  # of the steps of an epoch under way
        self.epoch_orders = [order.get_state() for order in self.orders]  # when it began
        self.epoch_seconds = 0.0  # that it took in a process that was stopped
        self.save: Callable[[], None] = lambda: None  # called whenever another process could go on from here
        self.best_epochs = None if settings.patience is None else BestEpochs(settings.patience)

    @property
    def done(self) -> bool:
        """Is there nothing more to be gained?"""
        return self.best_epochs is not None and self.best_epochs.exhausted

    @property
    def running(self) -> list[int]:
        """Replicas that are computed: one lifted program keeps its shape, a loop leaves out the dropped ones."""
        return list(range(len(self.seeds))) if self.gradient.lifted else self.active

    def run_epoch(
        self,
        epoch: int,
        monitor: Monitor | None,
        on_progress: Callable[[Progress], None] | None,
        trace: Trace | None = None,
    ) -> None:
        """Train one epoch, validate, and drop the worse half where the settings say so."""
        self._clock = time.perf_counter() - self.stepper.compile_seconds - self.epoch_seconds
        try:
            train_loss = self._train(epoch, on_progress, trace)
            self.validation_loss[self.active] = self.validate(self.state.parameters)[self.active]
        finally:  # the time until Ctrl-C counts too
            seconds = self.seconds_of_epoch()
            self.seconds += seconds
        monitored = monitor(self.state.edge_probs, self.state.parameters) if monitor else {}
        self.history.append(
            Epoch(
                epoch + 1,
                self.settings.schedule(epoch, self.settings.epochs),
                self._listed(train_loss),
                self._listed(self.validation_loss),
                seconds,
                {name: self._listed(torch.tensor(values)) for name, values in monitored.items()},
            )
        )
        if self.best_epochs is not None:
            self.best_epochs.look(self.validation_loss, self.state.parameters)
        if epoch + 1 in self.settings.halve_after:
            self._drop_worse_half(epoch + 1)
        self.epoch_losses, self.epoch_seconds = [], 0.0
        self.save()

    def seconds_of_epoch(self) -> float:
        """How long the epoch under way took up to now, without compiling."""
        return time.perf_counter() - self.stepper.compile_seconds - self._clock

    def _train(
        self, epoch: int, on_progress: Callable[[Progress], None] | None, trace: Trace | None
    ) -> Float[Tensor, " replica"]:
        """Take the steps of one epoch, or those that are left of it, and return the mean loss of each replica."""
        stepper, running, losses = self.stepper, self.running, self.epoch_losses
        self.epoch_orders = [order.get_state() for order in self.orders]
        orders = [self._batches(r) for r in running]
        last = min(loss for loss in self.history[-1].train_loss if loss is not None) if self.history else None
        order = torch.stack(orders, 1)  # (step, replica, batch)
        stepper.begin(self.steps_done, order, len(losses))
        for _ in range(len(losses), len(order)):
            if on_progress is not None:
                on_progress(Progress(epoch, self.settings.epochs, self.steps_done, stepper.total_steps, last))
            losses.append(stepper.take(self.steps_done, running))
            self.steps_done += 1
            if trace is not None and self.steps_done % trace.every == 0:
                seen = trace.monitor(self.state.edge_probs, self.state.parameters)
                self.traced.append({"step": self.steps_done, **seen})
            if len(losses) % NOTICE_EVERY == 1 and losses[-1].device.type == "cpu":  # elsewhere it would have to wait
                last = losses[-1][self.active].min().item()
            self.save()
        by_step = torch.stack(losses).cpu()  # (step, replica): the only wait for the device in an epoch
        self._require_finite(by_step, f"the loss became {{value}} at epoch {epoch + 1}, step {{step}}")
        return by_step.mean(0)

    def _batches(self, replica: int) -> Int[Tensor, "step batch"]:
        """Return the training pairs of an epoch of one replica, in its own order, cut into batches."""
        batches = epoch_batches(len(self.train), self.stepper.batch_size, self.orders[replica])
        return batches if self.resamples is None else self.resamples[replica][batches]

    def validate(self, parameters: Stack) -> Float[Tensor, " replica"]:
        """Return the validation loss of each replica, all of them under the same random graphs."""
        mean = self.stepper.validate(parameters, self.running)
        self._require_finite(mean[None], f"the validation loss became {{value}} after {self.steps_done} steps")
        return mean

    def finish(self, interrupted: bool) -> FitResult:
        """Take the averaged parameters, or those of the best epoch if better; keep the best replica."""
        parameters = self.state.averaged()
        self.validation_loss[self.active] = self.validate(parameters)[self.active]
        if self.best_epochs is not None:
            parameters, self.validation_loss = self.best_epochs.better_than(self.validation_loss, parameters)
        best = min(self.active, key=lambda r: float(self.validation_loss[r]))
        known = {name: value[best] for name, value in self.state.frozen.items() if name in self.model.state_dict()}
        self.model.load_state_dict({**known, **{name: value[best] for name, value in parameters.items()}}, strict=False)
        notes = [note for note in (self.gradient.fallback, self.stepper.fallback) if note]
        if interrupted:
            notes.append(f"stopped by the user after {self.steps_done} of {self.stepper.total_steps} steps")
        losses = self.validation_loss.tolist()
        replicas = [Replica(seed, losses[r], self.dropped.get(r)) for r, seed in enumerate(self.seeds)]
        return FitResult(
            self.model,
            best,
            replicas,
            self.history,
            parameters,
            self.steps_done,
            self.seconds,
            self.stepper.compile_seconds,
            interrupted,
            notes,
            self.traced,
        )

    def _drop_worse_half(self, epoch: int) -> None:
        ranked = sorted(self.active, key=lambda r: float(self.validation_loss[r]))
        keep = max(1, len(ranked) // 2)
        self.dropped |= dict.fromkeys(ranked[keep:], epoch)
        self.active = sorted(ranked[:keep])

    def _listed(self, values: Tensor) -> list[float | None]:
        return [float(value) if r in self.active else None for r, value in enumerate(values)]

    def _require_finite(self, losses: Float[Tensor, "step replica"], what: str) -> None:
        bad = ~torch.isfinite(losses[:, self.active])
        if bad.any():
            step, position = (int(i) for i in bad.nonzero()[0])
            replica = self.active[position]
            where = what.format(value=losses[step, replica].item(), step=step + 1)
            who = f"replica {replica}, seed {self.seeds[replica]}"
            raise TrainingError(f"{where} ({who}); lower the learning rate or check the predictor")

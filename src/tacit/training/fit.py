"""The training loop: R replicas, each with its own seed, as one program.

A replica is what its seed makes it: initial values, order of batches and uniforms come from generators of its own, so
that R replicas together equal R fits alone.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data import Pairs
from tacit.data.pairs import covering_batches, epoch_batches
from tacit.errors import InputError, TrainingError, require
from tacit.randomness import draw_uniforms, generator_for
from tacit.training.lift import Batch, LiftedGradient, LiftName, Stack
from tacit.training.model import LatentGraphModel
from tacit.training.settings import FitSettings
from tacit.training.state import ReplicaState

Monitor = Callable[[Float[Tensor, "replica node node"]], dict[str, list[float]]]


@dataclass(frozen=True)
class Epoch:
    """What one epoch showed; lists have an entry per replica, None once it was dropped."""

    epoch: int
    learning_rate: float
    train_loss: list[float | None]
    validation_loss: list[float | None]
    seconds: float
    monitored: dict[str, list[float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Replica:
    """How one replica ended; ``dropped_after`` is the epoch after which it was given up, or None."""

    seed: int
    validation_loss: float
    dropped_after: int | None


@dataclass(frozen=True)
class FitResult:
    """The trained model (the replica with the lowest validation loss) and how it came about."""

    model: LatentGraphModel
    best: int
    replicas: list[Replica]
    history: list[Epoch]
    parameters: Stack
    steps: int
    train_seconds: float
    compile_seconds: float
    interrupted: bool
    warnings: list[str]


@dataclass(frozen=True)
class Progress:
    """Where training stands, for a progress bar; ``loss`` is that of the last finished epoch."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float | None


def fit(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings | None = None,
    *,
    seeds: Sequence[int] = (0,),
    lift: LiftName = "auto",
    compile: bool = True,
    start_at_model: bool = False,
    monitor: Monitor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> FitResult:
    """Train one replica per seed on the device the data is on, and keep the best by validation loss.

    ``start_at_model`` starts every replica at the model's present parameters instead of fresh random ones.
    ``monitor`` sees the edge probabilities of all replicas after each epoch and returns numbers to record.
    Ctrl-C ends the training; what was learned up to then is returned, with ``interrupted`` set.
    """
    settings = settings or FitSettings()
    require(len(seeds) >= 1, "seeds needs at least one seed, got none; pass for example seeds=(0,)")
    if any(epoch > settings.epochs for epoch in settings.halve_after):
        raise InputError(
            f"halve_after needs epochs up to epochs={settings.epochs}, got {settings.halve_after}; lower them"
        )
    device, dtype = train.inputs.device, train.inputs.dtype
    model = model.to(device, dtype)
    model.check(train.inputs, train.targets)
    loop = _Loop(model, train, validation, settings, seeds, LiftedGradient(model, lift=lift, compile=compile))
    loop.state = ReplicaState.create(model, seeds, fresh=not start_at_model)
    interrupted = False
    try:
        for epoch in range(settings.epochs):
            loop.run_epoch(epoch, monitor, on_progress)
    except KeyboardInterrupt:
        if loop.steps_done == 0:
            raise
        interrupted = True
    return loop.finish(interrupted)


class _Loop:
    """The moving parts of one fit."""

    state: ReplicaState

    def __init__(
        self,
        model: LatentGraphModel,
        train: Pairs,
        validation: Pairs,
        settings: FitSettings,
        seeds: Sequence[int],
        gradient: LiftedGradient,
    ) -> None:
        self.model, self.train, self.validation, self.settings = model, train, validation, settings
        self.seeds, self.gradient = seeds, gradient
        device = train.inputs.device
        self.batch_size = min(settings.batch_size, len(train))
        self.steps_per_epoch = len(train) // self.batch_size
        self.orders = [generator_for(seed, "batches", device) for seed in seeds]
        self.graph_draws = [generator_for(seed, "graphs", device) for seed in seeds]
        self.active = list(range(len(seeds)))
        self.dropped: dict[int, int] = {}
        self.history: list[Epoch] = []
        self.validation_loss = torch.full((len(seeds),), torch.inf)
        self.steps_done = 0
        self.seconds = 0.0

    @property
    def running(self) -> list[int]:
        """Replicas that are computed: one lifted program keeps its shape, a loop leaves out the dropped ones."""
        return list(range(len(self.seeds))) if self.gradient.lifted else self.active

    def run_epoch(self, epoch: int, monitor: Monitor | None, on_progress: Callable[[Progress], None] | None) -> None:
        """Train one epoch, validate, and drop the worse half where the settings say so."""
        settings, steps = self.settings, self.steps_per_epoch
        total_steps = steps * settings.epochs
        start, compiled_before = time.perf_counter(), self.gradient.compile_seconds
        running = self.running
        orders = [epoch_batches(len(self.train), self.batch_size, self.orders[r]) for r in running]
        losses, rate = [], 0.0
        for step in range(steps):
            if on_progress is not None:
                last = self.history[-1].train_loss[self.active[0]] if self.history else None
                on_progress(Progress(epoch, settings.epochs, self.steps_done, total_steps, last))
            rate = settings.schedule(epoch + step / steps, settings.epochs)
            batches = (
                _batch(self.train, orders[position][step], self._draw(self.graph_draws[r]))
                for position, r in enumerate(running)
            )
            grads, pair_losses = self.gradient(self.state.parameters, self.state.frozen, batches, running)
            averaging = self.steps_done >= round((1 - settings.average_fraction) * total_steps)
            self.state.update(grads, rate, settings, averaging=averaging)
            losses.append(pair_losses.mean(1))
            self.steps_done += 1
        train_loss = torch.stack(losses).cpu()  # (step, replica): the only wait for the device in an epoch
        self._require_finite(train_loss, epoch)
        self.validation_loss[self.active] = self.validate(self.state.parameters)[self.active]
        seconds = time.perf_counter() - start - (self.gradient.compile_seconds - compiled_before)
        self.seconds += seconds
        monitored = monitor(torch.sigmoid(self.state.parameters["graph.edge_logits"])) if monitor else {}
        self.history.append(
            Epoch(
                epoch + 1,
                rate,
                self._listed(train_loss.mean(0)),
                self._listed(self.validation_loss),
                seconds,
                {name: self._listed(torch.tensor(values)) for name, values in monitored.items()},
            )
        )
        if epoch + 1 in settings.halve_after:
            self._drop_worse_half(epoch + 1)

    def validate(self, parameters: Stack) -> Float[Tensor, " replica"]:
        """Return the validation loss of each replica, all of them under the same random graphs."""
        draws = generator_for(0, "validation", self.train.inputs.device)
        running, total, count = self.running, torch.zeros(len(self.seeds)), 0
        for index, new in covering_batches(len(self.validation), self.batch_size):
            batch = _batch(self.validation, index.to(self.train.inputs.device), self._draw(draws))
            _, losses = self.gradient(parameters, self.state.frozen, repeat(batch, len(running)), running)
            total += losses[:, :new].sum(1).cpu()
            count += new
        return total / count

    def finish(self, interrupted: bool) -> FitResult:
        """Take the averaged parameters, validate them once more and keep the best replica."""
        parameters = self.state.averaged()
        self.validation_loss[self.active] = self.validate(parameters)[self.active]
        best = min(self.active, key=lambda r: float(self.validation_loss[r]))
        self.model.load_state_dict({name: value[best] for name, value in parameters.items()}, strict=False)
        notes = [self.gradient.fallback] if self.gradient.fallback else []
        if interrupted:
            notes.append(
                f"stopped by the user after {self.steps_done} of {self.steps_per_epoch * self.settings.epochs} steps"
            )
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
            self.gradient.compile_seconds,
            interrupted,
            notes,
        )

    def _draw(self, generator: torch.Generator) -> Tensor:
        draws, nodes = 1 if self.model.share_graphs else self.batch_size, self.model.graph.num_nodes
        shape = (draws, self.model.num_graphs, nodes, nodes)
        return draw_uniforms(*shape, generator=generator, dtype=self.train.inputs.dtype)

    def _drop_worse_half(self, epoch: int) -> None:
        ranked = sorted(self.active, key=lambda r: float(self.validation_loss[r]))
        keep = max(1, len(ranked) // 2)
        self.dropped |= dict.fromkeys(ranked[keep:], epoch)
        self.active = sorted(ranked[:keep])

    def _listed(self, values: Tensor) -> list[float | None]:
        return [float(value) if r in self.active else None for r, value in enumerate(values)]

    def _require_finite(self, losses: Float[Tensor, "step replica"], epoch: int) -> None:
        bad = ~torch.isfinite(losses[:, self.active])
        if bad.any():
            step, position = (int(i) for i in bad.nonzero()[0])
            replica = self.active[position]
            raise TrainingError(
                f"the loss became {losses[step, replica].item()} at epoch {epoch + 1}, step {step + 1} "
                f"(replica {replica}, seed {self.seeds[replica]}); lower the learning rate or check the predictor"
            )


def _batch(pairs: Pairs, rows: Tensor, uniforms: Tensor) -> Batch:
    return pairs.inputs[rows], pairs.targets[rows], uniforms

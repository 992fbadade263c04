"""The state of a training: everything that a step or an epoch changes. A checkpoint is this state in a file.

Data, the plan of learning rates and compiled code are not part of it: a fit derives them from its arguments.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from jaxtyping import Float, UInt8
from pydantic import FiniteFloat, NonNegativeInt, TypeAdapter, ValidationError
from torch import Tensor

from tacit.graph import GraphDistribution
from tacit.randomness import MOST_STEPS_AHEAD, UniformStream, generator_for
from tacit.training.gradient import Stack, constants_of, trainable_names
from tacit.training.model import LatentGraphModel
from tacit.training.result import Epoch
from tacit.training.settings import StepPlan


@dataclass
class TrainingLog:
    """Counters and records of the training: the part of the state that is text in a checkpoint.

    ``dropped``              the epoch after which a replica was dropped, by replica
    ``epochs_without_gain``  epochs since the validation loss of any replica last improved
    ``train_seconds``        time of the completed epochs, without compiling
    ``epoch_seconds``        time of the current epoch
    """

    steps_done: NonNegativeInt = 0
    epochs_without_gain: NonNegativeInt = 0
    dropped: dict[NonNegativeInt, NonNegativeInt] = field(default_factory=dict)
    history: list[Epoch] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)
    train_seconds: FiniteFloat = 0.0
    epoch_seconds: FiniteFloat = 0.0
    compile_seconds: FiniteFloat = 0.0


@dataclass
class TrainingState:
    """Tensors with an entry per replica, random streams, and the log; tensors are changed in place.

    ``constants``      known parameters and buffers; those named in ``changing`` are passed from step to step
    ``averages``       the mean over the last steps; edge probabilities are averaged as probabilities
    ``best``           with early stopping, the parameters of each replica at its lowest validation loss
    ``step_losses``    losses of the steps of the current epoch
    ``order_states``   states of the generators of the batches at the start of the current epoch
    """

    seeds: Sequence[int]
    plan: StepPlan
    graph: GraphDistribution
    parameters: Stack
    constants: Stack
    changing: list[str]
    first_moments: Stack
    second_moments: Stack
    averages: Stack
    best: Stack
    best_losses: Float[Tensor, " replica"]
    validation_loss: Float[Tensor, " replica"]
    step_losses: Float[Tensor, "step replica"]
    order_states: UInt8[Tensor, "replica byte"]
    streams: list[UniformStream]
    log: TrainingLog

    @classmethod
    def create(
        cls,
        model: LatentGraphModel,
        seeds: Sequence[int],
        plan: StepPlan,
        stacks: tuple[Stack, Stack] | None = None,
        *,
        early_stopping: bool = False,
    ) -> "TrainingState":
        """Return the state before the first step; ``stacks`` are the result of :func:`initial_stacks`."""
        parameters, constants = initial_stacks(model, seeds) if stacks is None else stacks
        like, shape = model.graph.raw.detach(), model.uniforms_shape(plan.batch_size)
        changing = [*model.carried, *(["progress"] if model.estimator.scheduled else [])]
        own = {name: constants[name].clone(memory_format=torch.contiguous_format) for name in changing}
        first, second, averages = (
            {name: torch.zeros_like(value) for name, value in parameters.items()} for _ in range(3)
        )
        infinite = torch.full((len(seeds),), torch.inf, dtype=like.dtype)
        return cls(
            seeds,
            plan,
            model.graph,
            parameters,
            constants | own,
            changing,
            first,
            second,
            averages,
            best={name: value.clone() for name, value in parameters.items()} if early_stopping else {},
            best_losses=infinite,
            validation_loss=infinite.clone(),
            step_losses=like.new_zeros(plan.steps_per_epoch, len(seeds)),
            order_states=torch.stack([generator_for(seed, "batches", like.device).get_state() for seed in seeds]),
            streams=[UniformStream(shape, generator_for(seed, "graphs", like.device), like.dtype) for seed in seeds],
            log=TrainingLog(),
        )

    @property
    def active(self) -> list[int]:
        """The replicas that were not dropped."""
        return [replica for replica in range(len(self.seeds)) if replica not in self.log.dropped]

    @property
    def steps_in_epoch(self) -> int:
        """Number of completed steps of the current epoch."""
        return self.log.steps_done - len(self.log.history) * self.plan.steps_per_epoch

    @property
    def edge_probs(self) -> Float[Tensor, "replica row slot"]:
        """The edge probabilities of all replicas."""
        own = {name: value for name, value in self.parameters.items() if name.startswith("graph.")}
        return self.graph.probs_of({name.removeprefix("graph."): value for name, value in own.items()})

    def averaged(self) -> Stack:
        """Return the averaged parameters, or the current ones if nothing was averaged."""
        if not self.log.steps_done or not self.plan.numbers[self.log.steps_done - 1].weight:
            return self.parameters
        raw = raw_name(self.graph)
        return {name: self.graph.link.raw(value) if name == raw else value for name, value in self.averages.items()}

    def to_tensors(self) -> tuple[dict[str, Any], Stack]:
        """Return the state as text and tensors, between two steps or two epochs.

        Within an epoch, the states of the generators are those at its start: the order of the batches is drawn again,
        and completed steps are skipped.
        """
        places = [stream.place() for stream in self.streams]
        streams = {
            "streams/states": torch.stack([state for state, _ in places]),
            "streams/steps": torch.tensor([steps for _, steps in places]),
        }
        return asdict(self.log), self._named() | streams

    def load_tensors(self, text: dict[str, Any], tensors: Stack) -> None:
        """Load the result of :meth:`to_tensors`; raise ValueError if it is not of an identical training."""
        log = self._checked_log(text)
        self._check(tensors, [replica for replica in range(len(self.seeds)) if replica not in log.dropped])
        for name, value in self._named().items():
            value.copy_(tensors[name])
        for stream, state, steps in zip(
            self.streams, tensors["streams/states"], tensors["streams/steps"].tolist(), strict=True
        ):
            stream.go_to(state.clone(), steps)
        self.log = log

    def _named(self) -> Stack:
        """Return the tensors that are changed in place, by name."""
        parts = {
            "parameters": self.parameters,
            "first_moments": self.first_moments,
            "second_moments": self.second_moments,
            "averages": self.averages,
            "carried": {name: self.constants[name] for name in self.changing},
            "best": self.best,
        }
        alone = ("best_losses", "validation_loss", "step_losses", "order_states")
        by_part = {f"{part}/{name}": value for part, stack in parts.items() for name, value in stack.items()}
        return by_part | {name: getattr(self, name) for name in alone}

    def _checked_log(self, text: dict[str, Any]) -> TrainingLog:
        """Return the log, with consistency checks; a checksum only shows that a file is unchanged."""
        try:
            log = TypeAdapter(TrainingLog).validate_python(text)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None
        replicas, epochs, steps = range(len(self.seeds)), len(log.history), self.plan.steps_per_epoch
        possible = {
            "dropped": log.dropped.keys() < set(replicas)
            and all(1 <= epoch <= epochs for epoch in log.dropped.values()),
            "history": all(
                [loss is None for loss in losses] == [log.dropped.get(replica, epochs) < number for replica in replicas]
                for number, line in enumerate(log.history, 1)
                for losses in (line.train_loss, line.validation_loss)
            ),
            "steps_done": epochs * steps <= log.steps_done <= min((epochs + 1) * steps, self.plan.total_steps),
        }
        for name, is_possible in possible.items():
            if not is_possible:
                raise ValueError(f"{name} is inconsistent")
        return log

    def _check(self, tensors: Stack, active: list[int]) -> None:
        """Raise ValueError unless tensors have the names, shapes and types of this state, and are finite."""
        own = self.to_tensors()[1]
        for name in (*own, *tensors):
            if name not in tensors:
                raise ValueError(f"{name} is missing")
            if name not in own:
                raise ValueError(f"{name} does not belong to this training")
        for name, like in own.items():
            value, like = tensors[name], like.cpu()
            if (value.shape, value.dtype) != (like.shape, like.dtype):
                raise ValueError(f"{name} has another shape or type")
            if value.is_floating_point() and name != "step_losses":  # these are checked at the end of the epoch
                there = value.isfinite() | (value == like)  # an edge that starts at 0 has a logit of -inf
                if not there[active].all():
                    raise ValueError(f"{name} is not finite")
        steps = tensors["streams/steps"]
        if int(steps.min()) < 0 or int(steps.max()) > MOST_STEPS_AHEAD:
            raise ValueError("streams/steps is inconsistent")


def initial_stacks(model: LatentGraphModel, seeds: Sequence[int], *, fresh: bool = True) -> tuple[Stack, Stack]:
    """Return parameters and constants of the replicas; with ``fresh`` random ones, else the model's parameters."""
    present = {name: value.detach() for name, value in model.named_parameters()}
    starts = [model.initial_parameters(generator_for(seed, "initial")) if fresh else present for seed in seeds]
    parameters = {
        name: torch.stack([start[name] for start in starts]).to(present[name]).clone()
        for name in trainable_names(model)
    }
    return parameters, {name: value.expand(len(seeds), *value.shape) for name, value in constants_of(model).items()}


def raw_name(graph: GraphDistribution) -> str:
    """Return the name of the parameter that determines the edge probabilities."""
    return f"graph.{graph.link.parameter}"

"""The parameters of all replicas, how a gradient moves them, and their running average."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.graph import GraphDistribution
from tacit.randomness import generator_for
from tacit.training.adam import adam_
from tacit.training.lift import Outcome, Stack, constants_of, trainable_names
from tacit.training.model import LatentGraphModel
from tacit.training.settings import FitSettings

TINY = torch.finfo(torch.float32).tiny


class StepNumbers(NamedTuple):
    """What differs from step to step beside the data: floats, or tensors on a GPU.

    ``rate``        learning rate
    ``weight``      of the step in the average; the first that counts has 1. None where nothing is averaged
    ``progress``    how much of the training is done
    ``floor``       lowest edge probability, see :mod:`tacit.training.floor`
    ``..._correction``  of Adam's moments, which start at 0
    """

    rate: float | Tensor
    weight: float | Tensor | None
    progress: float | Tensor
    floor: float | Tensor
    first_correction: float | Tensor
    second_correction: float | Tensor


@dataclass
class ReplicaState:
    """Stacks of tensors, the first axis the replica; Adam works entry by entry and so needs no lifting."""

    graph: GraphDistribution
    parameters: Stack
    frozen: Stack
    moments: dict[str, tuple[Tensor, Tensor]]
    averages: Stack
    has_average: bool = False

    @classmethod
    def create(cls, model: LatentGraphModel, seeds: Sequence[int], *, fresh: bool) -> "ReplicaState":
        """Return the state at which the replicas of these seeds start."""
        present = {name: value.detach() for name, value in model.named_parameters()}
        starts = [model.initial_parameters(generator_for(seed, "initial")) if fresh else present for seed in seeds]
        parameters = {
            name: torch.stack([start[name] for start in starts]).to(present[name]).clone()
            for name in trainable_names(model)
        }
        frozen = {name: value.expand(len(seeds), *value.shape) for name, value in constants_of(model).items()}
        frozen |= {name: frozen[name].contiguous() for name in model.carried}  # as the steps will return them
        moments = {name: (torch.zeros_like(value), torch.zeros_like(value)) for name, value in parameters.items()}
        averages = {name: torch.zeros_like(value) for name, value in parameters.items()}
        return cls(model.graph, parameters, frozen, moments, averages)

    def update(self, gradients: Stack, numbers: StepNumbers, settings: FitSettings) -> None:
        """Take one step of Adam, keep edges alive, and move the average towards the result.

        Everything happens in place. On a GPU the numbers are tensors: the step can be compiled, recorded and replayed.
        """
        for name, value in self.parameters.items():
            adam_(
                value,
                gradients[name],
                *self.moments[name],
                rate=numbers.rate if name.startswith("graph.") else numbers.rate * settings.predictor_rate,
                betas=settings.adam_betas,
                corrections=(numbers.first_correction, numbers.second_correction),
            )
        raw, floor = self.parameters.get(self._raw_name), numbers.floor
        if raw is not None and settings.sightings > 0 and (isinstance(floor, Tensor) or floor > 0):
            raw.copy_(self.graph.kept_off(raw, floor))
        if numbers.weight is not None:
            for name, value in self.parameters.items():
                average = self.averages[name]
                average.add_((self._shown(name, value) - average) * numbers.weight)

    def move(self, outcome: Outcome, numbers: StepNumbers, settings: FitSettings) -> Float[Tensor, " replica"]:
        """Move by what a step gave, and return the loss of each replica."""
        self.update(outcome.gradients, numbers, settings)
        return outcome.losses.sum(1) / outcome.weights.sum(1).clamp_min(TINY)

    def carry(self, carried: Stack) -> None:
        """Keep what a step hands to the next."""
        for name, value in carried.items():
            if value.device.type == "cuda":
                self.frozen[name].copy_(value)
            else:
                self.frozen[name] = value

    def averaged(self) -> Stack:
        """Return the averaged parameters, or the present ones when nothing was averaged."""
        if not self.has_average:
            return self.parameters
        return {name: self._stored(name, value) for name, value in self.averages.items()}

    @property
    def edge_probs(self) -> Float[Tensor, "replica row slot"]:
        """The edge probabilities of all replicas."""
        own = {name: value for name, value in self.parameters.items() if name.startswith("graph.")}
        return self.graph.probs_of({name.removeprefix("graph."): value for name, value in own.items()})

    @property
    def _raw_name(self) -> str:
        return f"graph.{self.graph.link.parameter}"

    def _shown(self, name: str, value: Tensor) -> Tensor:
        """Edge probabilities are averaged as probabilities: the mean of logits would favour the extremes."""
        return self.graph.link.probs(value) if name == self._raw_name else value

    def _stored(self, name: str, value: Tensor) -> Tensor:
        return self.graph.link.raw(value) if name == self._raw_name else value

"""The parameters of all replicas, how a gradient moves them, and their running average."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.graph import BernoulliGraph
from tacit.randomness import generator_for
from tacit.training.lift import Stack, constants_of, trainable_names
from tacit.training.model import LatentGraphModel
from tacit.training.settings import FitSettings


@dataclass
class ReplicaState:
    """Stacks of tensors, the first axis the replica; Adam works entry by entry and so needs no lifting."""

    graph: BernoulliGraph
    parameters: Stack
    frozen: Stack
    averages: Stack = field(default_factory=dict)
    has_average: bool = False
    optimizer: torch.optim.Optimizer | None = None
    given_moments: dict[str, Stack] = field(default_factory=dict)  # those that Adam starts with, if not with none

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
        return cls(model.graph, parameters, frozen)

    def update(
        self,
        gradients: Stack,
        rate: float | Tensor,
        settings: FitSettings,
        weight: float | Tensor | None,
        floor: float | Tensor = 0.0,
    ) -> None:
        """Take one step of Adam, and move the average by ``weight`` times its distance from the result.

        Edge probabilities end no nearer to 0 and 1 than ``floor``. On a GPU everything happens in place and the three
        numbers are tensors: the step can be recorded and replayed.
        """
        in_place = isinstance(rate, Tensor)
        if self.optimizer is None:
            groups = [{"params": [value]} for value in self.parameters.values()]
            betas = settings.adam_betas
            self.optimizer = torch.optim.Adam(groups, lr=rate, betas=betas, fused=True, capturable=in_place)
            for name, moments in self.given_moments.items():
                self.optimizer.state[self.parameters[name]] = moments
        for (name, value), group in zip(self.parameters.items(), self.optimizer.param_groups, strict=True):
            value.grad = gradients[name].contiguous()  # fused Adam reads memory in order, whatever the strides
            group["lr"] = rate if name.startswith("graph.") else rate * settings.predictor_rate
        self.optimizer.step()
        if settings.sightings > 0 and (raw := self.parameters.get(self._raw_name)) is not None:
            raw.copy_(self.graph.kept_off(raw, floor))
        if weight is None:
            return
        shown = {name: self._shown(name, value) for name, value in self.parameters.items()}
        old = self.averages or {name: value.clone() for name, value in shown.items()}
        new = {name: old[name] + (value - old[name]) * weight for name, value in shown.items()}
        if in_place and self.averages:
            for name, value in new.items():
                self.averages[name].copy_(value)
        else:  # all averages at once, so that Ctrl-C finds either the old or the new ones
            self.averages = new

    def carry(self, carried: Stack) -> None:
        """Keep what a step hands to the next."""
        for name, value in carried.items():
            if value.device.type == "cuda":
                self.frozen[name].copy_(value)
            else:
                self.frozen[name] = value

    @property
    def moments(self) -> dict[str, Stack]:
        """What Adam remembers of each parameter."""
        if self.optimizer is None:
            return self.given_moments
        return {name: self.optimizer.state[value] for name, value in self.parameters.items()}

    def averaged(self) -> Stack:
        """Return the averaged parameters, or the present ones when nothing was averaged."""
        if not self.has_average:
            return self.parameters
        return {name: self._stored(name, value) for name, value in self.averages.items()}

    @property
    def edge_probs(self) -> Float[Tensor, "replica node node"]:
        """The edge probabilities of all replicas."""
        return self.graph.probs_from(self.parameters[self._raw_name])

    @property
    def _raw_name(self) -> str:
        return f"graph.{self.graph.link.parameter}"

    def _shown(self, name: str, value: Tensor) -> Tensor:
        """Edge probabilities are averaged as probabilities: the mean of logits would favour the extremes."""
        return self.graph.link.probs(value) if name == self._raw_name else value

    def _stored(self, name: str, value: Tensor) -> Tensor:
        return self.graph.link.raw(value) if name == self._raw_name else value

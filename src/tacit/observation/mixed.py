"""Different observation models for different nodes.

Each model describes its own nodes. The number of parameters per target, and of uniforms per sample, is that of the
model with the most; the other models leave the last ones unused. Nodes are selected by slices, so that a step has fixed
shapes and copies nothing from the host.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import pad

from tacit.errors import require
from tacit.observation.model import ObservationModel
from tacit.shapes import Draws, Inputs, NoiseUniforms, Outputs, Samples, TargetParams, Targets

Part = tuple[ObservationModel, Tensor, list[slice]]


class MixedObservation(ObservationModel):
    """Several observation models, each for some nodes; every node has exactly one model.

    >>> from tacit.observation import GaussianNoise, PoissonCounts
    >>> mixed = MixedObservation([(PoissonCounts(2), [0, 2]), (GaussianNoise(1), [1])])
    >>> mixed.num_parameters, mixed.supports, mixed.reparameterized
    (2, ('counts', 'real', 'counts'), False)
    """

    def __init__(self, parts: Sequence[tuple[ObservationModel, Sequence[int]]]) -> None:
        models, nodes = [model for model, _ in parts], [list(own) for _, own in parts]
        order = [node for own in nodes for node in own]
        require(
            len(order) > 0 and sorted(order) == list(range(len(order))),
            f"parts must name every node exactly once, got the nodes {order}; give each node one model",
        )
        channels = {model.channels for model in models if model.channels is not None}
        given = {model.num_given for model in models}
        require(
            len(channels) == 1 and len(given) == 1,
            f"parts must agree in channels and num_given, got {sorted(channels)} and {sorted(given)}; use models with "
            "equal num_given",
        )
        names = [type(model).__name__ for model in models if model.joint]
        require(not names, f"parts must be models of single nodes, got {names}; use one model for all nodes")
        super().__init__(channels.pop())
        self.parts, self.nodes = nn.ModuleList(models), nodes
        self.num_parameters = max(model.num_parameters for model in models)
        self.num_given = given.pop()
        self.num_uniforms = max(model.num_uniforms for model in models)
        self.working_numbers = max(model.working_numbers for model in models)
        self.closed_forms = all(model.closed_forms for model in models)
        self.by_moments = all(model.by_moments for model in models)
        self.reparameterized = all(model.reparameterized for model in models)
        kinds = {node: model.support for model, own in zip(models, nodes, strict=True) for node in own}
        self.supports = tuple(kinds[node] for node in sorted(kinds))
        self.support = self.supports[0] if len(set(self.supports)) == 1 else "real"
        self._taken = [_runs(own) for own in nodes]
        self._back = _runs([order.index(node) for node in range(len(order))])

    @property
    def models(self) -> list[ObservationModel]:
        """The models, in the order of ``nodes``."""
        return list(self.parts)  # type: ignore[arg-type]

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the parameters from each node's model, padded with zeros to equal length."""
        self._require_outputs(outputs)
        width = self.num_parameters * (self.channels or 0)
        described = [
            model.describe(_take(outputs, 2, runs), _take(inputs, 1, runs))
            for model, runs in zip(self.models, self._taken, strict=True)
        ]
        return self._joined([pad(one, (0, width - one.shape[-1])) for one in described])

    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return the samples of each model, from the first uniforms of its nodes."""
        channels = self.channels or 0
        return self._each(
            parameters,
            lambda model, own, runs: model.sample(own, _take(uniforms, 2, runs)[..., : model.num_uniforms * channels]),
        )

    def draw(self, parameters: TargetParams, *, generator: Generator, draws: int = 1) -> Draws:
        """Return ``draws`` samples of each graph, concatenated along the graph axis."""
        return self._each(parameters, lambda model, own, _: model.draw(own, generator=generator, draws=draws))

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the mean of each target."""
        return self._each(parameters, lambda model, own, _: model.mean(own))

    def variance(self, parameters: TargetParams) -> Samples:
        """Return the variance of each target."""
        return self._each(parameters, lambda model, own, _: model.variance(own))

    def scales(self, spread: Float[Tensor, "node channel"]) -> Float[Tensor, "node number"]:
        """Return the scales of each model; the scales of unused numbers do not matter."""
        width = self.num_parameters * (self.channels or 0)
        found = torch.ones(len(spread), width).to(spread)
        for model, own in zip(self.models, self.nodes, strict=True):
            scales = model.scales(spread[own])
            found[own, : scales.shape[1]] = scales
        return found

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        """Return the log probability of each target: a mass for discrete nodes, a density for continuous ones."""
        return self._each(parameters, lambda model, own, runs: model.log_prob(own, _take(targets, 1, runs)))

    def sample_log_prob(self, parameters: TargetParams, samples: Samples) -> Samples:
        """Return the log probability of the samples that have no derivatives, 0 for the others."""
        return self._each(parameters, lambda model, own, runs: model.sample_log_prob(own, _take(samples, 2, runs)))

    def information(self, parameters: TargetParams) -> Samples:
        """Return the expected Fisher information of the predictor's output."""
        return self._each(parameters, lambda model, own, _: model.information(own))

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $E|Y_s - y|$ of each target under each graph $s$."""
        return self._each(parameters, lambda model, own, runs: model.expected_distance(own, _take(targets, 1, runs)))

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        r"""Return $E|Y_s - Y_t|$ for every two graphs."""
        return self._joined([model.pair_distance(own) for model, own, _ in self._split(parameters)], 3)

    def distances(self, parameters: TargetParams, targets: Targets, group_size: int = 1) -> tuple[Samples, Samples]:
        """Return both mean distances, computed by each node's model."""
        found = [
            model.distances(own, _take(targets, 1, runs), group_size) for model, own, runs in self._split(parameters)
        ]
        return self._joined([one for one, _ in found]), self._joined([other for _, other in found])

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        """Return the probabilities of a value below the target, and of a value at most the target."""
        found = [model.cdf(own, _take(targets, 1, runs)) for model, own, runs in self._split(parameters)]
        return self._joined([below for below, _ in found]), self._joined([up_to for _, up_to in found])

    def chosen(self, nodes: list[int]) -> ObservationModel:
        """Return the model of some nodes; a single model if they share it."""
        parts = []
        for model, own in zip(self.models, self.nodes, strict=True):
            places = [place for place, node in enumerate(nodes) if node in own]
            if places:
                parts.append((model.chosen([own.index(nodes[place]) for place in places]), places))
        return parts[0][0] if len(parts) == 1 else MixedObservation(parts)

    def joined(self, parts: list[ObservationModel]) -> dict[str, Tensor]:
        """Combine the parameters of models of one node each, by name."""
        found = zip(self.models, self.nodes, strict=True)
        return self._named([model.joined([parts[node] for node in own]) for model, own in found])

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return the initial parameters of each model."""
        return self._named([model.initial_parameters(generator) for model in self.models])

    def with_deviations(self, sigmas: Float[Tensor, "node channel"]) -> dict[str, Tensor]:
        """Return parameters for given standard deviations, for the models that have such parameters."""
        return self._named(
            [model.with_deviations(sigmas[own]) for model, own in zip(self.models, self.nodes, strict=True)]
        )

    def _named(self, found: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        return {f"parts.{number}.{name}": value for number, part in enumerate(found) for name, value in part.items()}

    def _split(self, parameters: TargetParams) -> list[Part]:
        return [
            (model, _take(parameters, 2, runs)[..., : model.num_parameters * (self.channels or 0)], runs)
            for model, runs in zip(self.models, self._taken, strict=True)
        ]

    def _each(self, parameters: TargetParams, of: Callable[[ObservationModel, Tensor, list[slice]], Tensor]) -> Tensor:
        return self._joined([of(*part) for part in self._split(parameters)])

    def _joined(self, found: list[Tensor], axis: int = 2) -> Tensor:
        """Concatenate the parts of the models in the order of the nodes."""
        return _take(torch.cat(found, axis), axis, self._back)


def _runs(numbers: list[int]) -> list[slice]:
    """Return slices that select these numbers in their order.

    >>> _runs([3, 4, 0, 5])
    [slice(3, 5, None), slice(0, 1, None), slice(5, 6, None)]
    """
    starts = [place for place in range(len(numbers)) if place == 0 or numbers[place] != numbers[place - 1] + 1]
    ends = [*starts[1:], len(numbers)]
    return [slice(numbers[start], numbers[end - 1] + 1) for start, end in zip(starts, ends, strict=True)]


def _take(values: Tensor, axis: int, runs: list[slice]) -> Tensor:
    parts = [values.narrow(axis, run.start, run.stop - run.start) for run in runs]
    return parts[0] if len(parts) == 1 else torch.cat(parts, axis)

r"""The interface of observation models: the distribution of a target, given prediction and input.

$$y \sim p(y \mid f_\psi(x, A), x)$$

Where the graph is the only randomness of a model, its edge probabilities must explain the noise as well, and are
biased. The predictor gives ``num_given`` numbers per target, in most cases its mean; the observation model makes of
them the ``num_parameters`` numbers that describe the distribution. How these numbers are laid out along the last axis
is known to the observation model alone: all others ask it for samples, means, densities.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.errors import InputError, require, require_int
from tacit.shapes import Draws, Inputs, NoiseUniforms, Outputs, Samples, TargetParams, Targets

Support = Literal["real", "positive", "counts", "two values", "categories"]


@dataclass(frozen=True, eq=False)
class TargetValues:
    r"""What an observation model must know of the values of its targets.

    $$v = \text{offset} + \text{unit} \cdot y$$

    Pairs hold scaled targets $y$, while counts, yes or no, categories and positive numbers are values $v$ in the units
    of the data. ``categories`` are the values of ordered categories, in their order; ``largest`` is the largest count
    that exact sums over counts reach.
    """

    offset: Float[Tensor, "node channel"]
    unit: Float[Tensor, "node channel"]
    categories: tuple[float, ...] = ()
    largest: int = 100

    @classmethod
    def plain(cls, num_nodes: int, channels: int = 1, categories: tuple[float, ...] = ()) -> "TargetValues":
        """Return those of targets that are not scaled: $v = y$."""
        return cls(torch.zeros(num_nodes, channels), torch.ones(num_nodes, channels), categories)

    def chosen(self, nodes: list[int]) -> "TargetValues":
        """Return those of some nodes."""
        return TargetValues(self.offset[nodes], self.unit[nodes], self.categories, self.largest)


class ObservationModel(nn.Module, ABC):
    """The interface; capabilities are attributes.

    ``num_parameters``  numbers that describe the distribution of one target
    ``num_given``       how many of them the predictor gives
    ``random``          False where a target equals its mean, so that nothing has to be drawn
    ``follows_input``   the size of the noise changes with the input
    ``closed_forms``    :meth:`expected_distance`, :meth:`pair_distance` and :meth:`cdf` are there
    ``words``           what targets are, for the report; the registered name where it is empty
    ``support``         which values a target can have
    ``by_moments``      a target is the output plus noise with light tails: its mean and variance say all of it
    ``reparameterized`` samples have derivatives; where not, :meth:`log_prob` of the samples carries the gradient
    ``num_uniforms``    uniforms that :meth:`sample` takes for each target
    ``supports``        those of all nodes, where they differ; empty where ``support`` is that of all
    ``working_numbers`` numbers of each target and graph that distances and samples are computed from
    ``wider``           the kind to try where targets vary more, or have heavier tails; empty if there is none
    ``joint``           nodes share their noise within a step: scores of each node alone cannot fit it, regressions do
    ``channels``        target channels per node; None where it does not matter
    """

    num_parameters: int = 1
    num_given: int = 1
    random: ClassVar[bool] = True
    follows_input: ClassVar[bool] = False
    closed_forms: bool = False
    joint: ClassVar[bool] = False
    words: ClassVar[str] = ""
    support: Support = "real"
    supports: tuple[Support, ...] = ()
    by_moments: bool = False
    reparameterized: bool = True
    num_uniforms: int = 1
    working_numbers: int = 1
    wider: ClassVar[str] = ""

    def __init__(self, channels: int | None = None) -> None:
        super().__init__()
        if channels is not None:
            require_int("channels", channels)
        require(
            channels is not None or not self.random,
            f"channels must be the number of target channels for {type(self).__name__}, got None; pass for example 1",
        )
        self.channels = channels

    @classmethod
    def for_sizes(
        cls, *, num_nodes: int, in_channels: int, channels: int, values: TargetValues | None = None
    ) -> "ObservationModel":
        """Return the model for data of these sizes: what a name in a config stands for."""
        del num_nodes, in_channels, values
        return cls(channels)

    @abstractmethod
    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the numbers that describe each target, of the predictor's outputs: num_parameters per channel."""

    @abstractmethod
    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return what given uniforms make, ``num_uniforms`` per target; see ``reparameterized`` for derivatives."""

    @abstractmethod
    def mean(self, parameters: TargetParams) -> Samples:
        """Return the mean of each target."""

    @abstractmethod
    def variance(self, parameters: TargetParams) -> Samples:
        """Return the variance of each target."""

    def draw(self, parameters: TargetParams, *, generator: Generator, draws: int = 1) -> Draws:
        """Return ``draws`` samples of each graph, side by side on the axis of the graphs.

        Under a graph only the noise differs from draw to draw, so that several make quantiles smooth at little cost.
        Without randomness one draw is enough.
        """
        if not self.random:
            return self.mean(parameters)
        repeated = parameters.repeat_interleave(draws, 1)
        *shape, channels = self.mean(repeated).shape
        shape = [*shape, channels * self.num_uniforms]
        uniforms = torch.rand(shape, generator=generator, device=generator.device, dtype=parameters.dtype)
        smallest = torch.finfo(parameters.dtype).eps
        return self.sample(repeated, uniforms.clamp(smallest, 1 - smallest).to(parameters.device))

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return where a fit starts; the present values unless a model says otherwise."""
        return {name: value.detach().to(generator.device) for name, value in self.named_parameters()}

    def with_deviations(self, sigmas: Float[Tensor, "node channel"]) -> dict[str, Tensor]:
        """Return the parameters with which the noise has these deviations; none where it has no such parameters."""
        del sigmas
        return {}

    def scales(self, spread: Float[Tensor, "node channel"]) -> Float[Tensor, "node number"]:
        """Return what a change of each parameter is measured against, from the spread of the targets.

        Parameters in the units of the targets, as means and deviations are, share their spread.
        """
        return spread.repeat(1, self.num_parameters)

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $\log p(y \mid f(x, A_s), x)$ of each target under each graph $s$: of values, a mass or a density.

        The density is that of the scaled targets.
        """
        del parameters, targets
        raise InputError(f"{type(self).__name__} has no log_prob; use an observation model that has one")

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return the expected Fisher information of the predictor's output, $E[(\partial \log p / \partial f)^2]$."""
        del parameters
        raise InputError(f"{type(self).__name__} has no information; use an observation model that has it")

    def chosen(self, nodes: list[int]) -> "ObservationModel":
        """Return the model of some nodes, with their parameters as they are now."""
        del nodes
        raise InputError(f"{type(self).__name__} cannot be taken apart by nodes; use another observation model")

    def joined(self, parts: list["ObservationModel"]) -> dict[str, Tensor]:
        """Return the parameters of this model by name, of models of one node each: what :meth:`chosen` took apart."""
        tables = [dict(part.named_parameters()) for part in parts]
        return {name: torch.cat([table[name].detach() for table in tables]) for name in tables[0]}

    @property
    def has_likelihood(self) -> bool:
        """Are there :meth:`log_prob` and :meth:`chosen`, so that each node has a likelihood of its own?"""
        base, own = ObservationModel, type(self)
        return own.log_prob is not base.log_prob and own.chosen is not base.chosen

    def sample_log_prob(self, parameters: TargetParams, samples: Samples) -> Samples:
        """Return the log probability of each sample under its graph; 0 where samples have derivatives themselves.

        Its gradient, times the cost of a sample, is an estimate of the gradient for the parameters.
        """
        if self.reparameterized:
            return torch.zeros_like(samples)
        found = self.log_prob(parameters.flatten(0, 1)[:, None], samples.detach().flatten(0, 1))
        return found[:, 0].view_as(samples)

    def distances(self, parameters: TargetParams, targets: Targets, group_size: int = 1) -> tuple[Samples, Samples]:
        r"""Return $E|Y_s - y|$, and the mean of $E|Y_s - Y_t|$ over all graphs $t$ of other groups than that of $s$.

        ``group_size`` consecutive graphs are a group.
        """
        pairs = self.pair_distance(parameters)  # (batch, graph, graph, node, channel)
        group = torch.arange(parameters.shape[1], device=parameters.device) // group_size
        apart = (group[:, None] != group).to(pairs.dtype)  # (graph, graph): those that are compared
        others = torch.einsum("bstnc,st->bsnc", pairs, apart) / (parameters.shape[1] - group_size)
        return self.expected_distance(parameters, targets), others

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $E|Y_s - y|$ of each target under each graph $s$."""
        del parameters, targets
        raise self._without_closed_forms()

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        r"""Return $E|Y_s - Y_t|$ for every two graphs, noise independent, the diagonal included."""
        del parameters
        raise self._without_closed_forms()

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        """Return the probability of a value below each target, and of one up to it."""
        del parameters, targets
        raise self._without_closed_forms()

    def _without_closed_forms(self) -> InputError:
        return InputError(f"{type(self).__name__} has no closed forms (closed_forms=False); draw samples of it")

    def _require_outputs(self, outputs: Outputs) -> None:
        given = self.num_given * (self.channels or 0)
        require(
            outputs.shape[-1] == given,
            f"outputs must have num_given * channels = {given} numbers per node for {type(self).__name__}, "
            f"got {outputs.shape[-1]}; correct channels, or the predictor",
        )

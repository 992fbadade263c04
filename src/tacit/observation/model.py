r"""The interface of observation models: the distribution of a target given prediction and input.

$$y \sim p(y \mid f_\psi(x, A), x)$$

If the graph is the only source of randomness in a model, the edge probabilities must also account for the noise, and
are biased. The predictor returns ``num_given`` numbers per target, usually the mean; the observation model converts
them to ``num_parameters`` parameters of the distribution. The layout of these parameters along the last axis is
internal to the observation model; use its methods for samples, means and densities.

The mean of counts and of positive numbers has a link to the output of a predictor.

$$m = s \log(1 + e^{(o + u f) / s})$$

$f$ is the output, $o$ and $u$ are offset and unit of the targets (:class:`~tacit.observation.TargetValues`). For large
means $m \approx o + u f$, as in a Gaussian model, so effects are additive. Near 0 the link is curved, so that no mean
is negative. $s$ is the width of the curved part: one count for counts, so that scaled and unscaled counts have the same
model; $s = u$ for other positive numbers.
"""

import inspect
import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import softplus

from tacit.errors import InputError, require, require_int
from tacit.registry import register
from tacit.shapes import Draws, Inputs, NoiseUniforms, Outputs, Samples, TargetParams, Targets

Support = Literal["real", "positive", "counts", "two values", "categories"]
LEAST_MEAN = 1e-6  # in units of s: with a mean of 0 any event would be impossible


@dataclass(frozen=True, eq=False)
class TargetValues:
    r"""The relation between scaled targets and values in the units of the data.

    $$v = \text{offset} + \text{unit} \cdot y$$

    Pairs contain scaled targets $y$, while counts, binary values, categories and positive numbers are values $v$ in the
    units of the data. ``categories`` are the values of ordered categories, in order; ``largest`` is the largest count
    in exact sums over counts.
    """

    offset: Float[Tensor, "node channel"]
    unit: Float[Tensor, "node channel"]
    categories: tuple[float, ...] = ()
    largest: int = 100

    @classmethod
    def plain(cls, num_nodes: int, channels: int = 1, categories: tuple[float, ...] = ()) -> "TargetValues":
        """Return the values for targets that are not scaled: $v = y$."""
        return cls(torch.zeros(num_nodes, channels), torch.ones(num_nodes, channels), categories)

    def chosen(self, nodes: list[int]) -> "TargetValues":
        """Return the values for some nodes."""
        return TargetValues(self.offset[nodes], self.unit[nodes], self.categories, self.largest)


class Derivatives(NamedTuple):
    r"""$\log p(y \mid f)$ of each target, and its derivatives by the output $f$ and the model's parameters $\phi$.

    ``score``       $\partial / \partial f$
    ``curvature``   $\partial^2 / \partial f^2$
    ``noise``       $\partial / \partial \phi_i$ for each parameter of a node, in the order of ``parameters()``
    ``cross``       $\partial^2 / \partial f\, \partial \phi_i$
    ``of_noise``    $\partial^2 / \partial \phi_i\, \partial \phi_j$ for $i \le j$: (1, 1), (1, 2), ...
    """

    log_prob: Samples
    score: Samples
    curvature: Samples
    noise: list[Samples]
    cross: list[Samples]
    of_noise: list[Samples]


class ObservationModel(nn.Module, ABC):
    """Interface of observation models; capabilities are attributes.

    ``num_parameters``  number of parameters of the distribution of one target
    ``num_given``       numbers per target that the predictor returns
    ``random``          False if a target equals its mean, so that sampling is not needed
    ``follows_input``   the size of the noise depends on the input
    ``closed_forms``    :meth:`expected_distance`, :meth:`pair_distance` and :meth:`cdf` are available
    ``words``           description of the targets for the report; the registered name if it is empty
    ``support``         the set of possible values of a target
    ``by_moments``      a target is the output plus noise with light tails, described by its mean and variance
    ``reparameterized`` samples are differentiable; otherwise the gradient uses :meth:`log_prob` of the samples
    ``num_uniforms``    uniforms that :meth:`sample` requires per target
    ``supports``        the supports of all nodes if they differ, else empty
    ``working_numbers`` temporary numbers per target and graph, for memory estimates
    ``wider``           the kind to try if targets vary more or have heavier tails; empty if there is none
    ``joint``           the noise of nodes within a step is correlated: it is fitted by regressions, not by node scores
    ``channels``        target channels per node; None if any number is accepted
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
        """Build the model, as named in a config, from those of the sizes that its constructor names."""
        sizes: dict[str, Any] = {
            "num_nodes": num_nodes,
            "in_channels": in_channels,
            "channels": channels,
            "values": values,
        }
        named = inspect.signature(cls).parameters
        return cls(**{name: size for name, size in sizes.items() if name in named})

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the parameters of each target from the predictor's outputs, by default the outputs themselves."""
        del inputs
        if self.channels is not None:
            self._require_outputs(outputs)
        return outputs

    @abstractmethod
    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return the samples of given uniforms, ``num_uniforms`` per target; see ``reparameterized`` for gradients."""

    @abstractmethod
    def mean(self, parameters: TargetParams) -> Samples:
        """Return the mean of each target."""

    @abstractmethod
    def variance(self, parameters: TargetParams) -> Samples:
        """Return the variance of each target."""

    def draw(self, parameters: TargetParams, *, generator: Generator, draws: int = 1) -> Draws:
        """Return ``draws`` samples of each graph, concatenated along the graph axis.

        For a given graph only the noise differs between draws, so several draws make quantiles smoother at little cost.
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
        """Return the initial parameters of a fit; by default the current values."""
        return {name: value.detach().to(generator.device) for name, value in self.named_parameters()}

    def with_deviations(self, sigmas: Float[Tensor, "node channel"]) -> dict[str, Tensor]:
        """Return parameters for given standard deviations; empty if the model has no such parameters."""
        del sigmas
        return {}

    def scales(self, spread: Float[Tensor, "node channel"]) -> Float[Tensor, "node number"]:
        """Return a scale for changes of each parameter, from the standard deviation of the targets.

        Parameters in the units of the targets, such as means and standard deviations, use that of the targets.
        """
        return spread.repeat(1, self.num_parameters)

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $\log p(y \mid f(x, A_s), x)$ of each target under each graph $s$, a mass or a density.

        A density is that of the scaled targets.
        """
        del parameters, targets
        raise InputError(f"{type(self).__name__} has no log_prob; use an observation model that has one")

    def derivatives(self, outputs: Outputs, targets: Targets) -> Derivatives:
        r"""Return first and second derivatives of the log probability, for one channel per node.

        This implementation differentiates twice; each element has a copy of its node's parameters. Models override it
        with closed forms, which are several times faster.
        """
        count = outputs.numel()
        nodes = torch.arange(outputs.shape[2]).expand(outputs.shape[:3]).flatten().tolist()
        copies = self.chosen(nodes).to(outputs.dtype)
        with torch.enable_grad():
            flat = outputs.detach().reshape(1, 1, count, 1).clone().requires_grad_()
            described = copies.describe(flat, flat.new_zeros(1, count, 1))
            values = targets[:, None].expand_as(outputs).reshape(1, count, 1)
            log_prob = copies.log_prob(described, values)
            numbers = [flat, *copies.parameters()]
            first = torch.autograd.grad(log_prob.sum(), numbers, create_graph=True)
            slopes = [first[0].flatten()]  # by the output, and by each parameter of an element
            for one in first[1:]:
                slopes.extend(one.reshape(count, -1).unbind(1))
            second = []
            for slope in slopes:
                found = torch.autograd.grad(slope.sum(), numbers, retain_graph=True, materialize_grads=True)
                rows = [one.reshape(count, -1).unbind(1) for one in found]
                second.append([one.detach() for row in rows for one in row])

        def shaped(values: Tensor) -> Tensor:
            return values.detach().view(outputs.shape)

        places = range(1, len(slopes))
        return Derivatives(
            shaped(log_prob),
            shaped(slopes[0]),
            shaped(second[0][0]),
            [shaped(slopes[place]) for place in places],
            [shaped(second[0][place]) for place in places],
            [shaped(second[i][j]) for i, j in itertools.combinations_with_replacement(places, 2)],
        )

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return the expected Fisher information of the predictor's output, $E[(\partial \log p / \partial f)^2]$."""
        del parameters
        raise InputError(f"{type(self).__name__} has no information; use an observation model that has it")

    def chosen(self, nodes: list[int]) -> "ObservationModel":
        """Return the model of some nodes, with their current parameters."""
        del nodes
        raise InputError(f"{type(self).__name__} cannot be split by nodes; use another observation model")

    def joined(self, parts: list["ObservationModel"]) -> dict[str, Tensor]:
        """Combine the parameters of models of one node each, by name; the inverse of :meth:`chosen`."""
        tables = [dict(part.named_parameters()) for part in parts]
        return {name: torch.cat([table[name].detach() for table in tables]) for name in tables[0]}

    def stacked(self, parts: list["ObservationModel"]) -> "ObservationModel":
        """Return one model of the nodes of ``parts``, models of one node each of the same kind as this one."""
        model = self.chosen([0] * len(parts))
        for name, value in self.joined(parts).items():
            model.get_parameter(name).data = value
        return model

    @property
    def has_likelihood(self) -> bool:
        """True if the model has :meth:`log_prob` and :meth:`chosen`, so that each node has its own likelihood."""
        base, own = ObservationModel, type(self)
        return own.log_prob is not base.log_prob and own.chosen is not base.chosen

    def sample_log_prob(self, parameters: TargetParams, samples: Samples) -> Samples:
        """Return the log probability of each sample under its graph; 0 for samples that are differentiable.

        Its gradient, times the cost of a sample, estimates the gradient for the parameters.
        """
        if self.reparameterized:
            return torch.zeros_like(samples)
        found = self.log_prob(parameters.flatten(0, 1)[:, None], samples.detach().flatten(0, 1))
        return found[:, 0].view_as(samples)

    def distances(self, parameters: TargetParams, targets: Targets, group_size: int = 1) -> tuple[Samples, Samples]:
        r"""Return $E|Y_s - y|$, and the mean of $E|Y_s - Y_t|$ over all graphs $t$ that are not in the group of $s$.

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
        """Return the probabilities of a value below the target, and of a value at most the target."""
        del parameters, targets
        raise self._without_closed_forms()

    def _without_closed_forms(self) -> InputError:
        return InputError(f"{type(self).__name__} has no closed forms (closed_forms=False); draw samples instead")

    def _require_outputs(self, outputs: Outputs) -> None:
        given = self.num_given * (self.channels or 0)
        require(
            outputs.shape[-1] == given,
            f"outputs must have num_given * channels = {given} numbers per node for {type(self).__name__}, "
            f"got {outputs.shape[-1]}; correct channels, or the predictor",
        )


class InUnits(ObservationModel):
    r"""Base class of models for values in the units of the data, $v = \text{offset} + \text{unit} \cdot y$."""

    offset: Tensor
    unit: Tensor

    def __init__(self, num_nodes: int, channels: int = 1, values: TargetValues | None = None) -> None:
        super().__init__(channels)
        require_int("num_nodes", num_nodes)
        self.values = TargetValues.plain(num_nodes, channels) if values is None else values
        self.register_buffer("offset", self.values.offset.clone(), persistent=False)
        self.register_buffer("unit", self.values.unit.clone(), persistent=False)

    def to_values(self, targets: Tensor) -> Tensor:
        """Return scaled targets in the units of the data."""
        return self.offset + self.unit * targets

    def to_targets(self, values: Tensor) -> Tensor:
        """Return values in the units of the data as scaled targets."""
        return (values - self.offset) / self.unit

    def chosen(self, nodes: list[int]) -> "ObservationModel":
        """Return the model of some nodes, with their current parameters."""
        part = type(self)(len(nodes), self.channels or 1, self.values.chosen(nodes)).to(self.offset)
        for name, value in self.named_parameters(recurse=False):
            getattr(part, name).data = value.detach()[nodes].clone()
        return part

    def stacked(self, parts: list[ObservationModel]) -> ObservationModel:
        """Return one model of the nodes of ``parts``, each with its own units."""
        known = [part.values for part in parts if isinstance(part, InUnits)]
        offset, unit = torch.cat([one.offset for one in known]), torch.cat([one.unit for one in known])
        values = TargetValues(offset, unit, self.values.categories, self.values.largest)
        model = type(self)(len(parts), self.channels or 1, values).to(self.offset)
        for name, value in self.joined(parts).items():
            model.get_parameter(name).data = value
        return model


class PositiveMean(InUnits):
    """Base class of models with a positive mean; the distribution parameter is the mean in the units of the data."""

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the mean of every target under each graph, in the units of the data."""
        del inputs
        return self.means_of(outputs)

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the means as scaled targets."""
        return self.to_targets(parameters)

    def means_of(self, outputs: Outputs) -> Tensor:
        """Return the means in the units of the data from the predictor's outputs."""
        self._require_outputs(outputs)
        width = self._link_width
        return width * (softplus((self.offset + self.unit * outputs) / width) + LEAST_MEAN)

    def scales(self, spread: Float[Tensor, "node channel"]) -> Float[Tensor, "node number"]:
        """Return the standard deviation of the targets in the units of the data."""
        return spread * self.unit

    def slopes_of(self, means: Tensor) -> Tensor:
        r"""Return $\partial m / \partial f = u\,(1 - e^{-m / s})$ for means in the units of the data."""
        return -self.unit * torch.expm1(LEAST_MEAN - means / self._link_width)

    def derivatives(self, outputs: Outputs, targets: Targets) -> Derivatives:
        r"""Return the derivatives by the output and the parameters of the noise, from those by $\log m$."""
        width = self._link_width
        raw = (self.offset + self.unit * outputs) / width
        share = torch.sigmoid(raw)
        means = width * (softplus(raw) + LEAST_MEAN)
        first = self.unit * share / means  # of log m by f
        second = first * ((self.unit / width) * (1 - share) - first)
        found = self.by_log_mean(means, targets)
        return found._replace(
            score=found.score * first,
            curvature=found.curvature * first.square() + found.score * second,
            cross=[one * first for one in found.cross],
        )

    @abstractmethod
    def by_log_mean(self, means: TargetParams, targets: Targets) -> Derivatives:
        r"""Return the derivatives of the log probability by $\log m$ and the parameters of the noise."""

    @property
    def _link_width(self) -> Tensor:
        """The width $s$ of the curved part of the link."""
        return torch.ones_like(self.unit) if self.support == "counts" else self.unit


class NoNoise(ObservationModel):
    """An observation model without noise: a target equals its prediction.

    >>> NoNoise().mean(torch.ones(1, 2, 3, 1)).shape
    torch.Size([1, 2, 3, 1])
    """

    words: ClassVar[str] = "numbers without noise"
    random: ClassVar[bool] = False
    closed_forms: bool = True

    @classmethod
    def for_sizes(
        cls, *, num_nodes: int, in_channels: int, channels: int, values: TargetValues | None = None
    ) -> "ObservationModel":
        """Return the model, which does not depend on the sizes."""
        del num_nodes, in_channels, channels, values
        return cls()

    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return the means."""
        del uniforms
        return parameters

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the means."""
        return parameters

    def variance(self, parameters: TargetParams) -> Samples:
        """Return 0."""
        return torch.zeros_like(parameters)

    def chosen(self, nodes: list[int]) -> "NoNoise":
        """Return the model, which does not depend on the nodes."""
        del nodes
        return NoNoise()

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $|y_s - y|$."""
        return (parameters - targets[:, None]).abs()

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        r"""Return $|y_s - y_t|$."""
        return (parameters[:, :, None] - parameters[:, None]).abs()

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        """Return 1 where the prediction is below the target, and where it is at most the target."""
        below, up_to = parameters < targets[:, None], parameters <= targets[:, None]
        return below.to(parameters), up_to.to(parameters)


register("observation", "none", NoNoise)

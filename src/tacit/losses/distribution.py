r"""Losses between distributions: MMD and energy score, over the whole output or per node.

Both are kernel scores. With $S$ graphs, samples $y_s = f(x, A_s)$ and the target $y$,

$$L = c \Big( \tfrac{1}{S(S-1)} \sum_{s \neq t} k(y_s, y_t) - \tfrac{2}{S} \sum_s k(y, y_s) \Big)$$

MMD has $c = 1$ and a positive definite $k$ (its third term does not depend on the model and is dropped); the energy
score has $c = 1/2$ and $k = -d$. In the notation of :mod:`tacit.losses.sampled`, $h = c\, k$ and
$g_s = -2 c\, k(y, y_s)$.

Missing targets are excluded from every distance. At joint scope the loss compares the distributions of the observed
targets and is a proper score for them.

The energy score of a model with noise, with the noise integrated in closed form.

$y_s \sim p(y \mid f(x, A_s), x)$, with new noise for each graph. For one number per node

$$L = \mathrm{mean}_s\, E|Y_s - y| - \tfrac12\, \mathrm{mean}_{s \neq t}\, E|Y_s - Y_t|$$

with expectations over the noise from the observation model
(:meth:`~tacit.observation.ObservationModel.pair_distance`). It is the expected energy score over the noise of all
samples, and equals the energy score if there is no noise. Two independent draws of the model are two graphs with
independent noise, so pairs of different graphs estimate the spread without bias, and a graph is not compared with
itself. In the notation of :mod:`tacit.losses.sampled`, $h = -\tfrac12 E|Y_s - Y_t|$ and $g_s = E|Y_s - y|$: baselines,
credit and estimators are those of any other loss.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from tacit.errors import InputError, require, require_positive
from tacit.losses.kernels import Kernel, NegativeDistance, RationalQuadratic
from tacit.losses.sampled import LossOptions, Part, SampledLoss
from tacit.losses.terms import unit_counts, unit_mean, unit_weights
from tacit.observation import ObservationModel
from tacit.registry import register
from tacit.shapes import Observed, PairCosts, Samples, TargetParams, Targets, UnitLoss


@dataclass(frozen=True)
class NoisyEnergyScore(SampledLoss):
    """The energy score at node scope, from the parameters of an observation model with one channel.

    ``EnergyScore().integrating(observation)`` builds it; a model does this automatically.

    >>> import torch
    >>> from tacit.observation import HeadGaussianNoise
    >>> parameters = torch.tensor([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]).view(1, 3, 1, 2)  # N(0, 1) under each graph
    >>> loss = NoisyEnergyScore(HeadGaussianNoise())
    >>> round(loss(parameters, torch.zeros(1, 1, 1)).value.item(), 4)  # the CRPS of N(0, 1) at 0
    0.2337
    """

    pairwise: ClassVar[bool] = True
    proper: ClassVar[bool] = True
    compares: ClassVar[bool] = True
    learns_noise: ClassVar[bool] = True
    integrates: ClassVar[bool] = True
    observation: ObservationModel = field(compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.scope == "node",
            f"NoisyEnergyScore requires scope='node', got '{self.scope}'; over several nodes the noise has no closed "
            "form: use EnergyScore, for which it is sampled",
        )
        require(
            self.observation.channels == 1,
            f"NoisyEnergyScore requires one channel per node, got {self.observation.channels} of "
            f"{type(self.observation).__name__}; use EnergyScore, for which noise is sampled",
        )
        require(
            self.observation.closed_forms,
            f"NoisyEnergyScore requires an observation model with closed forms, got {type(self.observation).__name__}; "
            "use EnergyScore, for which the noise is sampled",
        )

    @property
    def numbers_per_target(self) -> int:
        """Number of distribution parameters per target."""
        return self.observation.num_parameters

    def integrating(self, observation: ObservationModel) -> "NoisyEnergyScore":
        """Return the same loss for another observation model."""
        return replace(self, observation=observation)

    def parts(self, samples: TargetParams, targets: Targets, observed: Observed | None, group_size: int) -> list[Part]:
        r"""Return $E|Y_s - Y_t|$ of the other graphs, times $-\tfrac12$, and $E|Y_s - y|$."""
        if targets.shape[-1] != 1:
            raise InputError(
                f"NoisyEnergyScore requires one channel per node, got {targets.shape[-1]}; over several the noise has "
                "no closed form: use EnergyScore, for which it is sampled"
            )
        data, others = self.observation.distances(samples, targets, group_size)  # (batch, graph, node, 1) both
        return [
            Part(2, -0.5 * unit_mean(others, "node", observed)),
            Part(1, unit_mean(data, "node", observed)),
        ]

    def pair_costs(self, samples: TargetParams, observed: Observed | None = None) -> PairCosts:
        r"""Return $h = -\tfrac12 E|Y_s - Y_t|$."""
        return -0.5 * unit_mean(self.observation.pair_distance(samples), "node", observed)


@dataclass(frozen=True)
class KernelScore(SampledLoss):
    """The common form of MMD and energy score; the equations are in the module docstring."""

    pairwise: ClassVar[bool] = True
    proper: ClassVar[bool] = True
    compares: ClassVar[bool] = True
    learns_noise: ClassVar[bool] = True
    kernel: Kernel
    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            isinstance(self.kernel, Kernel) and not isinstance(self.kernel, type | str | SampledLoss),
            f"kernel must be an object like RationalQuadratic(0.04), got {self.kernel!r}; build one",
        )
        require_positive("weight", self.weight, 1.0)

    def parts(self, samples: Samples, targets: Targets, observed: Observed | None, group_size: int) -> list[Part]:
        r"""Return $r$ from the other samples and $g$ from the target, both computed with the kernel."""
        pairwise = self.kernel(self._pairwise_squared_distance(samples, observed))  # (batch, graph, graph, unit)
        sums = pairwise.sum(2)
        if group_size == 1:
            others = sums - self.kernel(targets.new_zeros(()))
        else:
            batch, graphs, _, units = pairwise.shape
            shape = (batch, graphs // group_size, group_size, graphs // group_size, group_size, units)
            own = pairwise.reshape(shape).diagonal(dim1=1, dim2=3).sum(2)  # (batch, member, unit, group)
            others = sums - own.movedim(-1, 1).flatten(1, 2)
        row = others / (samples.shape[1] - group_size)
        data = self.kernel(unit_mean((samples - targets[:, None]).square(), self.scope, observed))
        return [Part(2, self.weight * row), Part(1, -2 * self.weight * data)]

    def pair_costs(self, samples: Samples, observed: Observed | None = None) -> PairCosts:
        r"""Return $h(y_s, y_t) = c\, k(y_s, y_t)$."""
        return self.weight * self.kernel(self._pairwise_squared_distance(samples, observed))

    def weights_of(self, observed: Observed) -> UnitLoss:
        """Return 1 for each unit with an observed target, else 0."""
        return unit_weights(observed, self.scope, by_count=False)

    def _pairwise_squared_distance(self, samples: Samples, observed: Observed | None) -> PairCosts:
        """Return the squared distance between every two samples of a pair: (batch, graph, graph, unit).

        At joint scope it is one matrix product of the centred samples, so that rounding errors are small relative to
        the spread. The diagonal comes from the same product, so that equal samples have distance zero.
        """
        if self.scope == "node":
            return unit_mean((samples[:, :, None] - samples[:, None]).square(), "node", observed)
        centred = samples - samples.mean(1, keepdim=True)
        if observed is not None:
            centred = centred * observed[:, None]
        flat = centred.flatten(2)  # (batch, graph, node * channel)
        products = flat @ flat.mT
        norms = products.diagonal(dim1=-2, dim2=-1)
        squares = (norms[:, :, None] + norms[:, None] - 2 * products).clamp_min(0)[..., None]
        if observed is None:
            return squares / flat.shape[-1]
        return squares / unit_counts(observed, "joint")[:, None, None].clamp_min(1)


@dataclass(frozen=True)
class MMD(KernelScore):
    r"""Squared maximum mean discrepancy, up to a constant.

    $\mathrm{mean}_{s \neq t}\, k(y_s, y_t) - 2\, \mathrm{mean}_s\, k(y, y_s)$
    """

    uses: ClassVar[tuple[str, ...]] = ("scope", "baseline", "kernel", "kernel_scale")
    kernel: Kernel = field(default_factory=RationalQuadratic)

    @classmethod
    def from_options(cls, options: LossOptions) -> "MMD":
        """Build the loss with the kernel of a config."""
        return cls(options.kernel(), **options.common())


@dataclass(frozen=True)
class EnergyScore(KernelScore):
    r"""Energy score, $\mathrm{mean}_s\, d(y, y_s) - \tfrac12 \mathrm{mean}_{s \neq t}\, d(y_s, y_t)$.

    For a single number it is the CRPS. It has no scale parameter.
    """

    kernel: Kernel = field(default_factory=NegativeDistance)
    weight: float = 0.5

    def integrating(self, observation: ObservationModel) -> NoisyEnergyScore | None:
        """Return the closed form; it exists at node scope, for one channel, if the noise has closed forms.

        >>> from tacit.observation import GaussianNoise
        >>> type(EnergyScore(scope="node").integrating(GaussianNoise(num_nodes=3))).__name__
        'NoisyEnergyScore'
        >>> EnergyScore(scope="joint").integrating(GaussianNoise(num_nodes=3)) is None
        True
        """
        plain = type(self) is EnergyScore and self == EnergyScore(scope="node", baseline=self.baseline)
        if not plain or observation.channels != 1 or not observation.closed_forms:
            return None
        return NoisyEnergyScore(observation, baseline=self.baseline)


register("loss", "mmd", MMD)
register("loss", "energy", EnergyScore)

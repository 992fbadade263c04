r"""The energy score of a model with noise, with the noise integrated in closed form.

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

from tacit.errors import InputError, require
from tacit.losses.sampled import Part, SampledLoss
from tacit.losses.terms import unit_mean
from tacit.observation import ObservationModel
from tacit.shapes import Observed, PairCosts, TargetParams, Targets


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

r"""The energy score of a model with Gaussian noise, the noise integrated in closed form.

$y_s = \mu_s + \sigma_s e$ with $\mu_s, \sigma_s$ from the predictor under graph $A_s$. For one number per node

$$L = \mathrm{mean}_s\, a(y - \mu_s, \sigma_s)
    - \tfrac12\, \mathrm{mean}_{s \neq t}\, a\big(\mu_s - \mu_t, \sqrt{\sigma_s^2 + \sigma_t^2}\big)$$

$$a(d, \sigma) = E|d + \sigma e|
  = \sigma \sqrt{2 / \pi}\; e^{-d^2 / 2 \sigma^2} + d\, \mathrm{erf}(d / \sigma \sqrt 2)$$

It is the mean of the energy score over the noise of all samples, and as $\sigma \to 0$ the energy score itself. Two
independent draws of the model are two graphs with a noise of their own each, so that pairs of different graphs
estimate the spread without bias, and a graph is not compared with itself. In the words of :mod:`tacit.losses.sampled`,
$h = -a/2$ and $g_s = a(y - \mu_s, \sigma_s)$: baselines, credit and estimators are those of any other loss.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import InputError, require
from tacit.losses.distribution import EnergyScore
from tacit.losses.sampled import NoiseUse, Part, SampledLoss
from tacit.losses.terms import Loss
from tacit.losses.units import unit_mean
from tacit.shapes import Observed, Outputs, PairCosts, Targets


def expected_distance(difference: Tensor, sigma: Tensor) -> Tensor:
    r"""Return $E|d + \sigma e|$ for a standard normal $e$; ``sigma`` needs to be positive.

    >>> expected_distance(torch.tensor([0.0, 9.0]), torch.tensor([1.0, 1.0]))
    tensor([0.7979, 9.0000])
    """
    standard = difference / (sigma * math.sqrt(2))
    return sigma * math.sqrt(2 / math.pi) * torch.exp(-standard.square()) + difference * torch.erf(standard)


@dataclass(frozen=True)
class NoisyEnergyScore(SampledLoss):
    """The energy score at node scope of means and sigmas, one channel; see the module's text.

    >>> outputs = torch.tensor([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]).view(1, 3, 1, 2)  # N(0, 1) under each graph
    >>> round(NoisyEnergyScore()(outputs, torch.zeros(1, 1, 1)).value.item(), 4)  # the CRPS of N(0, 1) at 0
    0.2337
    """

    pairwise: ClassVar[bool] = True
    proper: ClassVar[bool] = True
    noise: ClassVar[NoiseUse] = "integrates"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.scope == "node",
            f"NoisyEnergyScore needs scope='node', got '{self.scope}'; over several nodes the noise has no closed "
            "form: use EnergyScore, for which it is sampled",
        )

    def _parts(self, samples: Outputs, targets: Targets, observed: Observed | None, group_size: int) -> list[Part]:
        if targets.shape[-1] != 1:
            raise InputError(
                f"NoisyEnergyScore needs one channel per node, got {targets.shape[-1]}; over several the noise has no "
                "closed form: use EnergyScore, for which it is sampled"
            )
        means, sigmas = samples.chunk(2, -1)  # (batch, graph, node, 1) each
        data = expected_distance(targets[:, None] - means, sigmas)
        spread = _pairwise_distance(samples)  # (batch, graph, graph, node, 1)
        group = torch.arange(samples.shape[1], device=samples.device) // group_size
        apart = (group[:, None] != group).to(spread.dtype)  # (graph, graph): those that are compared
        others = torch.einsum("bstnc,st->bsnc", spread, apart) / (samples.shape[1] - group_size)
        return [
            Part(2, -0.5 * unit_mean(others, "node", observed)),
            Part(1, unit_mean(data, "node", observed)),
        ]

    def pair_costs(self, samples: Outputs, observed: Observed | None = None) -> PairCosts:
        r"""Return $h = -\tfrac12 a(\mu_s - \mu_t, \sqrt{\sigma_s^2 + \sigma_t^2})$."""
        return -0.5 * unit_mean(_pairwise_distance(samples), "node", observed)


def _pairwise_distance(samples: Outputs) -> Float[Tensor, "batch graph graph node one"]:
    """Return the expected distance of the draws of every two graphs."""
    means, sigmas = samples.chunk(2, -1)
    both = (sigmas[:, :, None].square() + sigmas[:, None].square()).sqrt()
    return expected_distance(means[:, :, None] - means[:, None], both)


def integrating_noise(loss: Loss, out_channels: int) -> Loss:
    """Return the form of a loss that integrates Gaussian noise in closed form, or the loss itself if it has none.

    Only the energy score at node scope has one, for one channel; for others the model samples the noise.

    >>> type(integrating_noise(EnergyScore(scope="node"), 1)).__name__
    'NoisyEnergyScore'
    >>> type(integrating_noise(EnergyScore(scope="joint"), 1)).__name__
    'EnergyScore'
    """
    if (
        isinstance(loss, EnergyScore)
        and loss == EnergyScore(scope="node", baseline=loss.baseline)
        and out_channels == 1
    ):
        return NoisyEnergyScore(baseline=loss.baseline)
    return loss

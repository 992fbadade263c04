r"""Positive means: the link between the output of a predictor and the mean of counts and of positive numbers.

$$m = s \log(1 + e^{(o + u f) / s})$$

$f$ is the output, $o$ and $u$ are offset and unit of the targets (:class:`~tacit.observation.TargetValues`). For large
means $m \approx o + u f$, as in a Gaussian model, so effects are additive. Near 0 the link is curved, so that no mean
is negative. $s$ is the width of the curved part: one count for counts, so that scaled and unscaled counts have the same
model; $s = u$ for other positive numbers.
"""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from tacit.observation.model import Derivatives
from tacit.observation.values import InUnits
from tacit.shapes import Inputs, Outputs, Samples, TargetParams, Targets

LEAST_MEAN = 1e-6  # in units of s: with a mean of 0 any event would be impossible


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

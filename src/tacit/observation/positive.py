r"""Positive means: the link between the output of a predictor and the mean of counts and of positive numbers.

$$m = s \log(1 + e^{(o + u f) / s})$$

$f$ is the output, $o$ and $u$ are offset and unit of the targets (:class:`~tacit.observation.TargetValues`). Where the
mean is large $m \approx o + u f$, the mean of a Gaussian model: effects add up. Near 0 the link bends, so that no mean
is negative. It bends over about $s$: one count, so that scaled and unscaled counts have the same model; for other
positive numbers, which have no such size, $s = u$.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from tacit.observation.values import InUnits
from tacit.shapes import Inputs, Outputs, Samples, TargetParams

LEAST_MEAN = 1e-6  # of a unit: a mean of 0 would make any event impossible


class PositiveMean(InUnits):
    """The common part: a target is described by its mean in the units of the data."""

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the mean of every target under each graph, in the units of the data."""
        del inputs
        return self.means_of(outputs)

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the means as scaled targets."""
        return self.to_targets(parameters)

    def means_of(self, outputs: Outputs) -> Tensor:
        """Return the means in the units of the data, of the predictor's outputs."""
        self._require_outputs(outputs)
        bend = self._bend
        return bend * (softplus((self.offset + self.unit * outputs) / bend) + LEAST_MEAN)

    def scales(self, spread: Float[Tensor, "node channel"]) -> Float[Tensor, "node number"]:
        """Return the spread of the targets in the units of the data, as the means are."""
        return spread * self.unit

    def slopes_of(self, means: Tensor) -> Tensor:
        r"""Return $\partial m / \partial f$ of means in the units of the data: $u\,(1 - e^{-m / s})$."""
        return -self.unit * torch.expm1(LEAST_MEAN - means / self._bend)

    @property
    def _bend(self) -> Tensor:
        """$s$."""
        return torch.ones_like(self.unit) if self.support == "counts" else self.unit

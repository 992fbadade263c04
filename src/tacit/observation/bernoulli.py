r"""Binary targets: the values 1 (yes) and 0 (no).

$$P(v = 1) = \frac{1}{1 + e^{-f}}$$

The energy score of a mixture over graphs is $(v - P(v = 1))^2 / u$: twice that is the Brier score, summed over both
values, of targets with unit $u = 1$.
"""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.observation.model import Derivatives, Support
from tacit.observation.steps import Steps, Table
from tacit.registry import register
from tacit.shapes import Inputs, Outputs, Samples, TargetParams, Targets


class BernoulliTargets(Steps):
    """Binary targets; the distribution parameter is the logit of 1 (yes).

    >>> answers = BernoulliTargets(num_nodes=2)
    >>> parameters = answers.describe(torch.zeros(1, 1, 2, 1), torch.zeros(1, 2, 3))
    >>> answers.mean(parameters)[0, 0, 0, 0].item()
    0.5
    """

    words: ClassVar[str] = "yes or no"
    support: Support = "two values"

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the logits."""
        del inputs
        self._require_outputs(outputs)
        return outputs

    def table(self, parameters: TargetParams) -> Table:
        """Return the probability of 0 (no)."""
        return torch.sigmoid(-parameters)[..., None]

    def places(self, targets: Targets) -> Targets:
        """Return 1 for targets of 1 (yes), else 0."""
        return (self.to_values(targets) > 0.5).to(targets)

    def mean(self, parameters: TargetParams) -> Samples:
        """Return the probability of 1 (yes), as a scaled target."""
        return self.to_targets(torch.sigmoid(parameters))

    def variance(self, parameters: TargetParams) -> Samples:
        r"""Return $p\,(1 - p)$, in squared units of scaled targets."""
        return self.information(parameters) / self.unit.square()

    def scales(self, spread: Float[Tensor, "node channel"]) -> Float[Tensor, "node number"]:
        r"""Return $1 / \sqrt{p\,(1 - p)}$: this change of a logit shifts the mean by about one standard deviation."""
        return torch.where(spread.isinf(), spread, 1 / (spread * self.unit))

    def log_prob(self, parameters: TargetParams, targets: Targets) -> Samples:
        """Return the log probability of each target."""
        signs: Tensor = 2 * self.places(targets)[:, None] - 1
        return logsigmoid(signs * parameters)

    def derivatives(self, outputs: Outputs, targets: Targets) -> Derivatives:
        r"""Return the derivatives by the logit: $v - p$ and $-p\,(1 - p)$."""
        places, probs = self.places(targets)[:, None], torch.sigmoid(outputs)
        log_prob = logsigmoid((2 * places - 1) * outputs)
        return Derivatives(log_prob, places - probs, -probs * (1 - probs), [], [], [])

    def information(self, parameters: TargetParams) -> Samples:
        r"""Return $p\,(1 - p)$."""
        return torch.sigmoid(parameters) * torch.sigmoid(-parameters)


register("observation", "bernoulli", BernoulliTargets)

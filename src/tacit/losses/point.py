r"""The squared error of the mean prediction, $(E_A[f(x, A)] - y)^2$, estimated from samples without bias.

$$L = \mathrm{mean}_{s \neq t}\, (y_s - y)(y_t - y)$$

The naive $(\mathrm{mean}_s\, y_s - y)^2$ has a bias of $1/S$ times the variance, and both of its gradients are biased;
the product of two different graphs is unbiased. The loss is minimal for any graph distribution with the right mean,
calibrated or not.
"""

from dataclasses import dataclass
from typing import ClassVar

from tacit.losses.sampled import Part, SampledLoss, without_own_group
from tacit.losses.terms import unit_mean
from tacit.registry import register
from tacit.shapes import Observed, Samples, Targets


@dataclass(frozen=True)
class PointMSE(SampledLoss):
    r"""Unbiased squared error of the mean, $\mathrm{mean}_{s \neq t}\, (y_s - y)(y_t - y)$, over nodes and channels.

    >>> import torch
    >>> samples, targets = torch.tensor([0.0, 1.0, 2.0]).view(1, 3, 1, 1), torch.zeros(1, 1, 1)
    >>> PointMSE()(samples, targets).value.item()  # (0 * 1 + 0 * 2 + 1 * 2) / 3
    0.6666666865348816
    """

    pairwise: ClassVar[bool] = True
    proper: ClassVar[bool] = True

    def parts(self, samples: Samples, targets: Targets, observed: Observed | None, group_size: int) -> list[Part]:
        """Return the error of each graph times the mean error of the others."""
        error = samples - targets[:, None]
        others = without_own_group(error.sum(1, keepdim=True), error, group_size) / (samples.shape[1] - group_size)
        return [Part(2, unit_mean(error * others, self.scope, observed))]


register("loss", "point_mse", PointMSE)

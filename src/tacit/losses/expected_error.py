r"""Losses that the paper compares with: the expected error of earlier work, and the error of the mean prediction.

Losses of earlier work on graph structure learning, with the expectation over graphs outside of the error.

$$L_1 = E_A[\ell(f(x, A), y)] \approx \mathrm{mean}_s\, \ell(y_s, y)$$

Such a loss is minimal if every sampled graph is the best single graph, so the probabilities converge to 0 and 1: it
selects a graph and is not calibrated. The paper compares with three forms.

``ExpectedError``          "literature 1" in the paper: the error above, credited to all edges that can affect it
                           (Franceschi et al. 2019, Cini et al. 2023)
``NodewiseExpectedError``  "literature 2": the same value, but the error of a node is credited only to that node's own
                           row, with a moving average per node as baseline (Kazi et al. 2022). Exact for one hop; with
                           more, the gradient is not that of any loss, because more distant edges get no credit
``ELBO``                   a Gaussian likelihood around each prediction, and the KL divergence from a prior (Elinas et
                           al. 2020)

The squared error of the mean prediction, $(E_A[f(x, A)] - y)^2$, estimated from samples without bias.

$$L = \mathrm{mean}_{s \neq t}\, (y_s - y)(y_t - y)$$

The naive $(\mathrm{mean}_s\, y_s - y)^2$ has a bias of $1/S$ times the variance, and both of its gradients are biased;
the product of two different graphs is unbiased. The loss is minimal for any graph distribution with the right mean,
calibrated or not.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from tacit.errors import InputError, require, require_positive
from tacit.graph import EdgePrior
from tacit.losses.sampled import BaselineName, LossOptions, LossPreset, Part, SampledLoss, without_own_group
from tacit.losses.terms import require_one_of, unit_counts, unit_mean
from tacit.registry import register
from tacit.shapes import Cost, Observed, Samples, Targets, UnitLoss

ErrorName = Literal["mae", "mse"]


@dataclass(frozen=True)
class ExpectedError(SampledLoss):
    r"""Expected error, $\mathrm{mean}_s\, \ell(y_s, y)$, with $\ell$ the absolute ("mae") or squared ("mse") error.

    >>> samples, targets = torch.tensor([0.0, 1.0, 3.0]).view(1, 3, 1, 1), torch.ones(1, 1, 1)
    >>> ExpectedError("mae")(samples, targets).value.item()
    1.0
    >>> ExpectedError("mse")(samples, targets).cost.flatten().tolist()
    [1.0, 0.0, 4.0]
    """

    error: ErrorName = "mae"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("error", self.error, get_args(ErrorName))

    def parts(self, samples: Samples, targets: Targets, observed: Observed | None, group_size: int) -> list[Part]:
        """Return the error of each graph."""
        del group_size  # graphs are not compared
        difference = samples - targets[:, None]
        errors = difference.abs() if self.error == "mae" else difference.square()
        return [Part(1, unit_mean(errors, self.scope, observed))]


@dataclass(frozen=True)
class NodewiseExpectedError(ExpectedError):
    """The value of :class:`ExpectedError`, with each node's error credited to its own row of the graph."""

    credit: ClassVar[str | None] = "own_row"
    baseline: BaselineName = field(default="moving_average", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.scope == "node",
            f"NodewiseExpectedError requires scope='node', got '{self.scope}'; use ExpectedError for other scopes",
        )


@dataclass(frozen=True)
class ELBO(SampledLoss):
    r"""$-\mathrm{mean}_s \log N(y; y_s, \sigma^2) + \mathrm{KL}(P_\theta, \text{prior})$, densities summed over nodes.

    This class computes the first term; the model adds the second, :class:`~tacit.graph.EdgePrior`, in closed form.
    """

    averages: ClassVar[bool] = False
    has_prior: ClassVar[bool] = True
    uses: ClassVar[tuple[str, ...]] = ("scope", "baseline", "likelihood_sd")
    sd: float = 0.1
    prior: EdgePrior = field(default_factory=lambda: EdgePrior(0.5))

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("sd", self.sd, 0.1)
        require(
            isinstance(self.prior, EdgePrior),
            f"prior must be an object like EdgePrior(0.5), got {self.prior!r}; build one",
        )

    @classmethod
    def from_options(cls, options: LossOptions) -> "ELBO":
        """Build the loss with the likelihood and the prior of a config."""
        if options.prior is None:
            raise InputError("loss 'elbo' in [model] requires a prior, got none; set prior, for example to 0.5")
        return cls(options.likelihood_sd, options.prior, **options.common())

    def parts(self, samples: Samples, targets: Targets, observed: Observed | None, group_size: int) -> list[Part]:
        """Return minus the log-likelihood of each graph."""
        del group_size  # graphs are not compared
        standardised = (samples - targets[:, None]) / self.sd
        surprise = 0.5 * standardised.square() + math.log(self.sd * math.sqrt(2 * math.pi))
        return [Part(1, self._total(unit_mean(surprise, self.scope, observed), targets, observed))]

    def _total(self, means: Tensor, targets: Targets, observed: Observed | None) -> Cost:
        """Return each unit's sum times the number of units, so that the mean over units is the sum over all values."""
        counts = unit_counts(torch.ones_like(targets) if observed is None else observed, self.scope)
        return means * counts[:, None] * counts.shape[-1]

    def weights_of(self, observed: Observed) -> UnitLoss:
        """Return 1 for each unit with an observed target, else 0."""
        counts = unit_counts(observed, self.scope)
        return (counts > 0).to(counts.dtype)


for _error in get_args(ErrorName):
    register("loss", f"literature_1_{_error}", LossPreset(ExpectedError, {"error": _error}))
    register("loss", f"literature_2_{_error}", LossPreset(NodewiseExpectedError, {"error": _error}))
register("loss", "elbo", ELBO)


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

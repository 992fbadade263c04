r"""The log score: minus the log probability of the target, with graphs summed inside the logarithm.

$$L = - \log\, \mathrm{mean}_s\, p(y \mid f(x, A_s), x)$$

$p$ comes from the observation model. For several values in a unit it is their product, and $L$ is divided by their
number. The expected value is an upper bound of $-\log p(y)$ and converges to it as $S$ grows (Burda et al. 2016). So it
is not proper at a finite $S$: the gap is smaller for graph distributions under which $p$ varies less. Example: a binary
target and one edge, with $p = 0.9$ if it is present and 0.1 if not, and a true theta of 0.1. The minimum is at 0.001
with 4 graphs, at 0.067 with 8, at 0.090 with 16 and at 0.098 with 64 (``tests/losses/test_log_score.py``).

All graphs share one value, so the cost of each is $w_s = S L$. The leave-one-out baseline (VIMCO; Mnih and Rezende
2016) is the value with $p$ of graph $s$ replaced by the geometric mean of the others.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from tacit.errors import InputError, require
from tacit.losses.sampled import Part, SampledLoss
from tacit.losses.terms import LossTerms, unit_counts
from tacit.observation import ObservationModel
from tacit.registry import register
from tacit.shapes import Cost, Observed, Outputs, Samples, Targets, UnitAverage

BASELINES = ("none", "leave_one_out")


@dataclass(frozen=True)
class LogScore(SampledLoss):
    """Log score: minus the log probability of the target, from the parameters of an observation model.

    A model passes its observation model automatically.

    >>> from tacit.observation import BernoulliTargets
    >>> loss = LogScore(BernoulliTargets(num_nodes=1))
    >>> logits = torch.tensor([0.9, 0.1]).logit().view(1, 2, 1, 1)  # under two graphs
    >>> round(loss(logits, torch.ones(1, 1, 1)).value.item(), 4)  # - log 0.5
    0.6931
    """

    learns_noise: ClassVar[bool] = True
    integrates: ClassVar[bool] = True
    in_groups: ClassVar[bool] = False
    observation: ObservationModel | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.baseline in BASELINES,
            f"baseline must be one of {', '.join(BASELINES)} for LogScore, got '{self.baseline}'; use 'leave_one_out'",
        )
        require(
            self.observation is None or type(self.observation).log_prob is not ObservationModel.log_prob,
            f"LogScore requires an observation model with log_prob, got {type(self.observation).__name__}; use "
            "EnergyScore",
        )

    @property
    def numbers_per_target(self) -> int:
        """Number of distribution parameters per target."""
        return self._model.num_parameters

    def integrating(self, observation: ObservationModel) -> "LogScore":
        """Return the loss for an observation model."""
        return replace(self, observation=observation)

    def __call__(
        self,
        samples: Outputs,
        targets: Targets,
        observed: Observed | None = None,
        *,
        average: UnitAverage | None = None,
        group_size: int = 1,
    ) -> LossTerms:
        """Return the terms for a batch; see :class:`~tacit.losses.Loss`."""
        del average
        require(
            group_size == 1, f"LogScore requires independent graphs, got groups of {group_size}; use ScoreFunction()"
        )
        self._require_fitting(samples, targets, observed, group_size)
        seen = torch.ones_like(targets) if observed is None else observed
        targets = torch.where(seen > 0, targets, 0.0)  # replaces missing values, even NaN
        found = torch.where(seen[:, None] > 0, self._model.log_prob(samples, targets), 0.0).sum(-1)
        found = found if self.scope == "node" else found.sum(-1, keepdim=True)  # (batch, graph, unit)
        counts, graphs = unit_counts(seen, self.scope).clamp_min(1), samples.shape[1]
        value = (math.log(graphs) - torch.logsumexp(found, 1)) / counts
        cost = (graphs * value)[:, None].expand_as(found)
        baseline = torch.zeros_like(cost[:, :1])
        if self.baseline == "leave_one_out":
            baseline = -graphs * _without_own(found.detach()) / counts[:, None]
        if observed is None:
            return LossTerms(value, cost, baseline)
        weights = self.weights_of(observed)
        return LossTerms(value * weights, cost * weights[:, None], baseline * weights[:, None], weights)

    def parts(self, samples: Samples, targets: Targets, observed: Observed | None, group_size: int) -> list[Part]:
        """Raise an error: the loss is not a sum over graphs."""
        del samples, targets, observed, group_size
        raise InputError("LogScore is not a sum over graphs and has no parts; call the loss instead")

    @property
    def _model(self) -> ObservationModel:
        if self.observation is None:
            raise InputError("observation must be an observation model for LogScore, got None; pass one to the model")
        return self.observation


def _without_own(log_probs: Cost) -> Cost:
    """Return, for each graph, the log mean over all graphs with its own value replaced by the mean of the others.

    >>> _without_own(torch.tensor([0.0, 2.0, 4.0]).view(1, 3, 1)).flatten()[0]  # log mean of e^3, e^2, e^4
    tensor(3.3090)
    """
    graphs = log_probs.shape[1]
    others = (log_probs.sum(1, keepdim=True) - log_probs) / (graphs - 1)
    own = torch.eye(graphs, dtype=torch.bool, device=log_probs.device)[None, :, :, None]
    replaced = torch.where(own, others[:, :, None], log_probs[:, None])  # (batch, left out, graph, unit)
    return torch.logsumexp(replaced, 2) - math.log(graphs)


register("loss", "log_score", LogScore)

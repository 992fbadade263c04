r"""Link functions: they map an unconstrained number to the probability of an edge.

===============  ===========================  ==================  ==============================================
link             stored                       $\theta$            Fisher information of one edge
===============  ===========================  ==================  ==============================================
``Sigmoid``      ``edge_logits`` $z$          $1 / (1 + e^{-z})$  $\theta (1 - \theta)$: 0 at 0 and 1
``SineSquared``  ``edge_angles`` $\varphi$    $\sin^2 \varphi$    4, everywhere
===============  ===========================  ==================  ==============================================

The information is that of the stored number. With ``SineSquared``, a step of a given size changes the distribution by
the same amount everywhere, and a step beyond 0 or 1 is reflected instead of getting stuck on a flat tail.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


@runtime_checkable
class Link(Protocol):
    """Interface of link functions, used by :class:`~tacit.graph.BernoulliGraph` and in training; all elementwise."""

    parameter: ClassVar[str]

    def probs(self, raw: Tensor) -> Tensor:
        r"""Return $\theta$."""
        ...

    def raw(self, probs: Tensor) -> Tensor:
        r"""Return the number that is stored for $\theta$."""
        ...

    def log_probs(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        r"""Return $\log \theta$ and $\log(1 - \theta)$; no derivative is NaN, not even at 0 and 1."""
        ...

    def clamp_probs(self, raw: Tensor, floor: Tensor) -> Tensor:
        r"""Return the stored number with $\theta$ clamped to [floor, 1 - floor], if it could get stuck outside."""
        ...


@dataclass(frozen=True)
class Sigmoid:
    r"""$\theta = 1 / (1 + e^{-z})$, $z$ the logit.

    >>> Sigmoid().probs(torch.tensor([-torch.inf, 0.0, torch.inf])).tolist()
    [0.0, 0.5, 1.0]
    """

    parameter: ClassVar[str] = "edge_logits"

    def probs(self, raw: Tensor) -> Tensor:
        r"""Return $\theta$."""
        return torch.sigmoid(raw)

    def raw(self, probs: Tensor) -> Tensor:
        """Return the logit."""
        return torch.logit(probs)

    def log_probs(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        r"""Return $\log \theta$ and $\log(1 - \theta)$."""
        return logsigmoid(raw), logsigmoid(-raw)

    def clamp_probs(self, raw: Tensor, floor: Tensor) -> Tensor:
        """Return the clamped logit; probabilities of exactly 0 or 1 do not change."""
        lowest = torch.logit(floor)
        return torch.where(raw.isinf(), raw, raw.clamp(lowest, -lowest))


@dataclass(frozen=True)
class SineSquared:
    r"""$\theta = \sin^2 \varphi$, so that $\partial \log P / \partial \varphi$ has variance 4 at any $\theta$.

    >>> SineSquared().probs(torch.tensor([0.0, math.pi / 6, math.pi / 2])).round(decimals=4).tolist()
    [0.0, 0.25, 1.0]
    """

    parameter: ClassVar[str] = "edge_angles"

    def probs(self, raw: Tensor) -> Tensor:
        r"""Return $\theta$."""
        return torch.sin(raw).square()

    def raw(self, probs: Tensor) -> Tensor:
        r"""Return the angle in $[0, \pi / 2]$."""
        return torch.asin(probs.sqrt())

    def log_probs(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        r"""Return $2 \log |\sin \varphi|$ and $2 \log |\cos \varphi|$."""
        probs = self.probs(raw.detach())
        return _log_square(torch.sin(raw), probs == 0), _log_square(torch.cos(raw), probs == 1)

    def clamp_probs(self, raw: Tensor, floor: Tensor) -> Tensor:  # noqa: ARG002 - the other link needs it
        """Return the angle unchanged: a step beyond 0 or 1 is reflected."""
        return raw


@dataclass(frozen=True)
class Unlinked:
    """The identity link, for a distribution without a stored number per edge; it has no parameter."""

    parameter: ClassVar[str] = ""

    def probs(self, raw: Tensor) -> Tensor:
        """Return what is stored."""
        return raw

    def raw(self, probs: Tensor) -> Tensor:
        """Return what is stored."""
        return probs

    def log_probs(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        r"""Return $\log \theta$ and $\log(1 - \theta)$ of probabilities."""
        return raw.log(), (-raw).log1p()

    def clamp_probs(self, raw: Tensor, floor: Tensor) -> Tensor:  # noqa: ARG002 - the other links need it
        """Return what is stored."""
        return raw


def _log_square(values: Tensor, impossible: Tensor) -> Tensor:
    """Return 2 log |values|; minus infinity, with derivative 0, where the value is 0."""
    logs = 2 * torch.where(impossible, 1.0, values).abs().log()
    return torch.where(impossible, -math.inf, logs)

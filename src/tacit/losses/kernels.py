r"""Kernels: similarity of two outputs as a function of their squared distance.

The distance is the root of the *mean* squared difference over nodes and channels, so that a scale has the same meaning
for outputs of any size.
"""

from dataclasses import dataclass
from typing import Protocol, get_args, runtime_checkable

import torch
from torch import Tensor

from tacit.errors import require, require_positive
from tacit.losses.terms import Scope, require_one_of, unit_counts, unit_mean
from tacit.shapes import Observed, Targets


@runtime_checkable
class Kernel(Protocol):
    """Interface of kernels: an elementwise function of squared distances."""

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        ...


def safe_sqrt(values: Tensor) -> Tensor:
    """Return the square root, with derivative 0 instead of infinity at 0 (the distance of two equal samples).

    NaN stays NaN, so that an invalid prediction does not look like a perfect one.

    >>> zero = torch.zeros(1, requires_grad=True)
    >>> safe_sqrt(zero).backward(); zero.grad.item()
    0.0
    """
    zero = values == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, values).sqrt())


@dataclass(frozen=True)
class RationalQuadratic:
    r"""Rational quadratic kernel, $k = (1 + d^2 / (2 \alpha s^2))^{-\alpha}$; the defaults are the paper's."""

    scale: float = 0.04
    alpha: float = 0.5

    def __post_init__(self) -> None:
        require_positive("scale", self.scale, 0.1)
        require_positive("alpha", self.alpha, 0.5)

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        base = 1.0 + squared_distance * (1.0 / (2.0 * self.alpha * self.scale**2))
        return base.rsqrt() if self.alpha == 0.5 else base**-self.alpha


@dataclass(frozen=True)
class Gaussian:
    r"""Gaussian kernel, $k = \exp(-d^2 / (2 s^2))$."""

    scale: float

    def __post_init__(self) -> None:
        require_positive("scale", self.scale, 0.1)

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        return torch.exp(squared_distance * (-1.0 / (2.0 * self.scale**2)))


@dataclass(frozen=True)
class Laplacian:
    r"""Laplacian kernel, $k = \exp(-d / s)$."""

    scale: float

    def __post_init__(self) -> None:
        require_positive("scale", self.scale, 0.1)

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        return torch.exp(safe_sqrt(squared_distance) * (-1.0 / self.scale))


@dataclass(frozen=True)
class NegativeDistance:
    r"""The negative distance, $k = -d$, which is conditionally positive definite, as the energy score requires."""

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        return -safe_sqrt(squared_distance)


@dataclass(frozen=True)
class KernelMean:
    r"""The mean of several kernels, for structure at several scales.

    >>> KernelMean((Gaussian(0.1), Gaussian(1.0)))(torch.zeros(1)).item()
    1.0
    """

    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        require(
            isinstance(self.kernels, tuple)
            and len(self.kernels) > 0
            and all(isinstance(kernel, Kernel) and not isinstance(kernel, type) for kernel in self.kernels),
            f"kernels must be a tuple of kernels, got {self.kernels!r}; pass for example (Gaussian(0.1), "
            "Gaussian(1.0))",
        )

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        total = self.kernels[0](squared_distance)
        for kernel in self.kernels[1:]:
            total = total + kernel(squared_distance)
        return total / len(self.kernels)


def median_distance(
    targets: Targets, scope: Scope = "joint", observed: Observed | None = None, *, max_pairs: int = 500
) -> float:
    """Return the median distance between two targets, a common default for the scale of a kernel.

    It uses the first ``max_pairs`` targets; at node scope, each node is compared with itself and all nodes are pooled.
    A distance uses the values that are observed in both targets.

    >>> median_distance(torch.tensor([0.0, 1.0, 3.0]).view(3, 1, 1))
    2.0
    """
    require_one_of("scope", scope, get_args(Scope))
    few = targets[:max_pairs]
    require(
        len(few) >= 2, f"median_distance must have at least two targets, got {len(few)}; pass more, or choose a scale"
    )
    seen = torch.ones_like(few) if observed is None else observed[:max_pairs]
    few = torch.where(seen > 0, few, 0.0)
    require(
        bool(torch.isfinite(few).all()), "median_distance requires finite targets, got NaN; pass observed, or fill them"
    )
    first, second = torch.triu_indices(len(few), len(few), 1, device=few.device)
    both = seen[first] * seen[second]
    distances = unit_mean((few[first] - few[second]).square(), scope, both).sqrt()
    ordered = distances[unit_counts(both, scope) > 0].sort().values
    require(
        len(ordered) > 0, "median_distance must have two targets with a common observed value, got none; choose a scale"
    )
    median = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]).item() / 2
    require(median > 0, "median_distance requires targets that differ, got a median of 0; choose a scale")
    return median

r"""Kernels: similarity of two outputs as a function of their squared distance.

The distance is the root of the *mean* squared difference over nodes and channels, so that a scale means the same for
outputs of any size.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from tacit.errors import require
from tacit.losses.units import Scope, unit_mean
from tacit.shapes import Targets


@runtime_checkable
class Kernel(Protocol):
    """A function of squared distances, entry by entry."""

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        ...


def safe_sqrt(values: Tensor) -> Tensor:
    """Return the square root, with derivative 0 instead of infinity at 0 (two equal samples have no direction).

    NaN stays NaN: a broken prediction must not look like a perfect one.

    >>> zero = torch.zeros(1, requires_grad=True)
    >>> safe_sqrt(zero).backward(); zero.grad.item()
    0.0
    """
    zero = values == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, values).sqrt())


def _require_positive(name: str, value: float) -> None:
    require(0 < value < float("inf"), f"{name} needs to be positive, got {value}; pass a positive {name}")


@dataclass(frozen=True)
class RationalQuadratic:
    r"""$k = (1 + d^2 / (2 \alpha s^2))^{-\alpha}$; the defaults are the paper's."""

    scale: float = 0.04
    alpha: float = 0.5

    def __post_init__(self) -> None:
        _require_positive("scale", self.scale)
        _require_positive("alpha", self.alpha)

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        base = 1.0 + squared_distance * (1.0 / (2.0 * self.alpha * self.scale**2))
        return base.rsqrt() if self.alpha == 0.5 else base**-self.alpha


@dataclass(frozen=True)
class Gaussian:
    r"""$k = \exp(-d^2 / (2 s^2))$."""

    scale: float

    def __post_init__(self) -> None:
        _require_positive("scale", self.scale)

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        return torch.exp(squared_distance * (-1.0 / (2.0 * self.scale**2)))


@dataclass(frozen=True)
class Laplacian:
    r"""$k = \exp(-d / s)$."""

    scale: float

    def __post_init__(self) -> None:
        _require_positive("scale", self.scale)

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        return torch.exp(safe_sqrt(squared_distance) * (-1.0 / self.scale))


@dataclass(frozen=True)
class NegativeDistance:
    r"""$k = -d$: not positive definite, but conditionally so, which is what the energy score needs."""

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
            f"kernels needs a tuple of kernels, got {self.kernels!r}; pass for example (Gaussian(0.1), Gaussian(1.0))",
        )

    def __call__(self, squared_distance: Tensor) -> Tensor:
        """Return the similarity at each squared distance."""
        total = self.kernels[0](squared_distance)
        for kernel in self.kernels[1:]:
            total = total + kernel(squared_distance)
        return total / len(self.kernels)


def median_distance(targets: Targets, scope: Scope = "joint", *, max_pairs: int = 500) -> float:
    """Return the median distance between two targets, the usual scale where nothing better is known.

    Of the first ``max_pairs`` targets; at node scope over all nodes, each compared with itself.

    >>> median_distance(torch.tensor([0.0, 1.0, 3.0]).view(3, 1, 1))
    2.0
    """
    few = targets[:max_pairs]
    require(len(few) >= 2, f"median_distance needs at least two targets, got {len(few)}; pass more, or choose a scale")
    distances = unit_mean((few[:, None] - few[None]).square(), scope, None).sqrt()
    above = torch.ones(len(few), len(few), dtype=torch.bool, device=few.device).triu(1)
    ordered = distances[above].flatten().sort().values
    median = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]).item() / 2
    require(median > 0, "median_distance needs targets that differ, got a median of 0; choose a scale")
    return median

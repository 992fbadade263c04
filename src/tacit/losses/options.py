"""Options from which a loss is built by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tacit.graph import EdgePrior
from tacit.losses.kernels import Kernel, RationalQuadratic
from tacit.losses.terms import Scope

if TYPE_CHECKING:
    from tacit.losses.sampled import SampledLoss


@dataclass(frozen=True)
class LossOptions:
    """Options for ``from_options`` of a loss; ``uses`` of the loss names the ones that it supports.

    ``baseline``  None for the default of the loss
    ``kernel``    builds the kernel; called only if needed, since its scale may depend on the training targets
    """

    scope: Scope = "node"
    baseline: str | None = None
    kernel: Callable[[], Kernel] = RationalQuadratic
    likelihood_sd: float = 0.1
    prior: EdgePrior | None = None

    def common(self) -> dict[str, Any]:
        """Return scope and baseline as keywords; the baseline only if it was set."""
        return {"scope": self.scope} | ({} if self.baseline is None else {"baseline": self.baseline})


@dataclass(frozen=True)
class LossPreset:
    """A loss with some preset arguments, to be registered under its own name.

    >>> from tacit.losses import ExpectedError
    >>> LossPreset(ExpectedError, {"error": "mse"}).from_options(LossOptions()).error
    'mse'
    """

    loss: "type[SampledLoss]"
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def from_options(self, options: LossOptions) -> "SampledLoss":
        """Build the loss with the preset arguments."""
        return replace(self.loss.from_options(options), **self.arguments)

    def __getattr__(self, name: str) -> Any:
        """Return the capabilities of the loss."""
        if name.startswith("_") or name == "loss":
            raise AttributeError(name)
        return getattr(self.loss, name)

"""Options from which a loss is built by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tacit.graph import EdgePrior
from tacit.losses.kernels import Kernel, RationalQuadratic
from tacit.losses.units import Scope

if TYPE_CHECKING:
    from tacit.losses.sampled import SampledLoss


@dataclass(frozen=True)
class LossOptions:
    """What ``from_options`` of a loss may use; the loss names in ``uses`` what it does use.

    ``baseline``  None where the loss has its own default
    ``kernel``    makes the kernel; it may take its scale from the training targets, and so is called when needed
    """

    scope: Scope = "node"
    baseline: str | None = None
    kernel: Callable[[], Kernel] = RationalQuadratic
    likelihood_sd: float = 0.1
    prior: EdgePrior | None = None

    def common(self) -> dict[str, Any]:
        """Return scope and baseline as keywords, the baseline only where it was chosen."""
        return {"scope": self.scope} | ({} if self.baseline is None else {"baseline": self.baseline})


@dataclass(frozen=True)
class LossPreset:
    """A loss with some of its arguments given, to register it under a name of its own.

    >>> from tacit.losses import ExpectedError
    >>> LossPreset(ExpectedError, {"error": "mse"}).from_options(LossOptions()).error
    'mse'
    """

    loss: "type[SampledLoss]"
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def from_options(self, options: LossOptions) -> "SampledLoss":
        """Return the loss with these arguments."""
        return replace(self.loss.from_options(options), **self.arguments)

    def __getattr__(self, name: str) -> Any:
        """The capabilities are those of the loss."""
        if name.startswith("_") or name == "loss":
            raise AttributeError(name)
        return getattr(self.loss, name)

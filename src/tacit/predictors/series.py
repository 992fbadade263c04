"""Layout of the window of a series in the channels of a node's input.

The column is ``lag * num_features + feature``, the oldest lag first. The features of a lag are the target variables
(``out_channels`` of them), then further variables and flags. After the window come ``known`` columns, which are not
sent along edges: covariates at the time of the target and columns of the background. The last ``levels`` of them are
levels of the node's first variable, of which a node uses at most one; deviations are measured from it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.errors import require, require_int
from tacit.shapes import Inputs, Targets


@dataclass(frozen=True)
class SeriesLayout:
    """The sizes of a window and the positions of its parts. Inputs that are not a series have a window of one lag.

    >>> import torch
    >>> layout = SeriesLayout(window=3, num_features=2, out_channels=1)
    >>> inputs = torch.arange(6.0).view(1, 1, 6)
    >>> layout.newest(inputs).item(), layout.lags(inputs)[0, 0, :, 1].tolist()
    (4.0, [1.0, 3.0, 5.0])
    >>> SeriesLayout(window=2, num_features=2, known=2).trailing(inputs).flatten().tolist()
    [4.0, 5.0]
    """

    window: int
    num_features: int
    out_channels: int = 1
    known: int = 0
    levels: int = 0

    def __post_init__(self) -> None:
        for name in ("window", "num_features", "out_channels"):
            require_int(name, getattr(self, name))
        require_int("known", self.known, 0)

    @property
    def in_channels(self) -> int:
        """Number of inputs per node."""
        return self.window * self.num_features + self.known

    def require_residual(self, residual: bool) -> None:
        """Raise :class:`InputError` if ``residual`` requires target variables that are not among the features."""
        require(
            not residual or self.out_channels <= self.num_features,
            f"residual=True requires the {self.out_channels} target variables among the features, got "
            f"num_features={self.num_features}; use residual=False",
        )

    def lags(self, inputs: Inputs) -> Float[Tensor, "batch node lag feature"]:
        """Return the window with one axis for lags and one for features; raise an error for a wrong width."""
        formula, sizes = "window * num_features", f"{self.window} * {self.num_features}"
        if self.known:
            formula, sizes = f"{formula} + known", f"{sizes} + {self.known}"
        require(
            inputs.shape[-1] == self.in_channels,
            f"inputs must have {formula} = {sizes} = {self.in_channels} "
            f"numbers per node, got {inputs.shape[-1]}; build the predictor with the sizes of the data",
        )
        window = inputs[..., : self.window * self.num_features]
        return window.reshape(*inputs.shape[:2], self.window, self.num_features)

    def trailing(self, inputs: Inputs) -> Float[Tensor, "batch node known"]:
        """Return the columns after the window."""
        return inputs[..., self.window * self.num_features :]

    def relative(self, inputs: Inputs) -> Inputs:
        """Return the inputs with the lags of the first feature as deviations from the level, if there is one.

        >>> import torch
        >>> layout = SeriesLayout(window=2, num_features=1, known=1, levels=1)
        >>> layout.relative(torch.tensor([[[3.0, 4.0, 2.5]]])).tolist()
        [[[0.5, 1.5, 2.5]]]
        """
        if not self.levels:
            return inputs
        lags, level = self.lags(inputs), inputs[..., -self.levels :].sum(-1)[..., None, None]
        lags = torch.cat([lags[..., :1] - level, lags[..., 1:]], -1)
        return torch.cat([lags.flatten(2), self.trailing(inputs)], -1)

    def newest(self, inputs: Inputs) -> Targets:
        """Return the newest value of the target variables."""
        start = (self.window - 1) * self.num_features
        return inputs[..., start : start + self.out_channels]

"""Early stopping: each replica remembers its best epoch, and training ends when none gets better any more."""

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.training.lift import Stack


class BestEpochs:
    """The parameters of each replica at the epoch with its lowest validation loss.

    >>> seen = BestEpochs(patience=1)
    >>> for loss in (3.0, 2.0, 2.5):
    ...     seen.look(torch.tensor([loss]), {"w": torch.tensor([[loss]])})
    >>> seen.exhausted, seen.better_than(torch.tensor([2.2]), {"w": torch.tensor([[0.0]])})
    (True, ({'w': tensor([[2.]])}, tensor([2.])))
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self._losses: Tensor | None = None
        self._parameters: Stack = {}
        self._waited = 0

    @property
    def exhausted(self) -> bool:
        """Did no replica get better in the last ``patience`` epochs?"""
        return self._waited >= self.patience

    def look(self, losses: Float[Tensor, " replica"], parameters: Stack) -> None:
        """Take in an epoch; a replica that was dropped keeps the loss it had and so never gets better."""
        if self._losses is None:
            self._losses, better = losses.clone(), True
            self._parameters = {name: value.clone() for name, value in parameters.items()}
        else:
            better = bool((losses < self._losses).any())
            self._parameters, self._losses = self._lower(losses, parameters)
        self._waited = 0 if better else self._waited + 1

    def better_than(self, losses: Float[Tensor, " replica"], parameters: Stack) -> tuple[Stack, Tensor]:
        """Return for each replica whichever has the lower loss: these parameters, or those of its best epoch."""
        return (parameters, losses) if self._losses is None else self._lower(losses, parameters)

    def taken_in(self) -> tuple[int, Tensor | None, Stack]:
        """Return what was taken in so far: epochs waited for a gain, lowest losses, and their parameters."""
        return self._waited, self._losses, self._parameters

    def take_over(self, waited: int, losses: Float[Tensor, " replica"] | None, parameters: Stack) -> None:
        """Go on with what another one had taken in."""
        self._waited, self._losses, self._parameters = waited, losses, parameters

    def _lower(self, losses: Tensor, parameters: Stack) -> tuple[Stack, Tensor]:
        if self._losses is None:
            return parameters, losses
        lower = losses < self._losses
        kept = {
            name: torch.where(lower.to(value.device).view(-1, *[1] * (value.ndim - 1)), value, self._parameters[name])
            for name, value in parameters.items()
        }
        return kept, torch.where(lower, losses, self._losses)

"""Forecasts of discrete targets: probabilities of the values, and quantiles that are possible values."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.config import FitConfig
from tacit.observation import ObservationModel, Support
from tacit.pipeline.observation_kinds import supports_of, target_values
from tacit.pipeline.preparation import Preparation
from tacit.shapes import TargetParams

YES_NO = (0.0, 1.0)
CLASSES: tuple[Support, ...] = ("two values", "categories")
WHOLE: tuple[Support, ...] = ("counts", "two values")


def classes_of(config: FitConfig, support: Support) -> tuple[float, ...]:
    """Return the values of yes-or-no targets or of ordered categories; empty for other targets."""
    return {"two values": YES_NO, "categories": config.observation.categories or ()}.get(support, ())


@dataclass(frozen=True, eq=False)
class ClassForecasts:
    """Values whose probabilities are part of a forecast.

    ``classes``  the values in increasing order, those of all nodes together
    ``targets``  the values as scaled targets
    ``has``      which values a node can have
    """

    classes: tuple[float, ...]
    targets: Float[Tensor, "class node channel"]
    has: Bool[Tensor, "class node"]

    @classmethod
    def of(cls, config: FitConfig, preparation: Preparation) -> "ClassForecasts | None":
        """Return the class forecasts of a fit; None if no node has classes."""
        each = [classes_of(config, support) for support in supports_of(config, preparation.nodes)]
        classes = tuple(sorted({value for values in each for value in values}))
        if not classes:
            return None
        known = target_values(config, preparation)
        targets = (torch.tensor(classes)[:, None, None] - known.offset) / known.unit
        return cls(classes, targets, torch.tensor([[value in values for values in each] for value in classes]))

    @torch.no_grad()
    def probs(
        self, observation: ObservationModel, described: TargetParams
    ) -> Float[Tensor, "batch node channel class"]:
        """Return the mean probability over graphs of each value; NaN for a value that its node cannot have."""
        found = []
        for targets, has in zip(self.targets.to(described), self.has.to(described.device), strict=True):
            masses = observation.log_prob(described, targets.expand(len(described), -1, -1)).exp().mean(1)
            found.append(torch.where(has[:, None], masses, torch.nan))
        return torch.stack(found, -1).cpu()

    def columns(
        self,
        probs: Float[Tensor, "key node channel class"],
        means: Float[Tensor, "key node channel"],
        supports: tuple[Support, ...],
    ) -> dict[str, Float[np.ndarray, "key node channel"]]:
        """Return the columns of a table: ``probability`` of yes, which is the mean, and ``P(value)`` of categories."""
        yes_no, ordered = (torch.tensor([one == support for one in supports]) for support in CLASSES)
        table = {"probability": torch.where(yes_no[:, None], means, torch.nan)} if yes_no.any() else {}
        for place, value in enumerate(self.classes):
            if bool((self.has[place] & ordered).any()):
                table[f"P({value:g})"] = torch.where(ordered[:, None], probs[..., place], torch.nan)
        return {name: values.double().numpy() for name, values in table.items()}


def as_values(
    values: Float[Tensor, "*any node channel"], config: FitConfig, nodes: tuple[str, ...]
) -> Float[Tensor, "*any node channel"]:
    """Return samples or quantiles in the units of the data, rounded to the possible values: integers, categories.

    >>> from tacit.config import ObservationOptions
    >>> config = FitConfig(observation=ObservationOptions(kind="poisson"))
    >>> as_values(torch.tensor([[[2.9999998]]]), config, ("a",)).item()
    3.0
    """
    supports = supports_of(config, nodes)
    whole, ordered = (
        torch.tensor([support in among for support in supports])[:, None] for among in (WHOLE, ("categories",))
    )
    found = torch.where(whole, values.round() + 0.0, values)  # no -0
    if ordered.any():
        known = torch.tensor(config.observation.categories, dtype=values.dtype)
        nearest = known[torch.bucketize(values.contiguous(), (known[1:] + known[:-1]) / 2)]
        found = torch.where(ordered & ~values.isnan(), nearest, found)
    return found


def are_whole(config: FitConfig, nodes: tuple[str, ...]) -> bool:
    """Return whether the values of all nodes are integers."""
    whole = all(float(value).is_integer() for value in config.observation.categories or ())
    return all(support in WHOLE or (support == "categories" and whole) for support in supports_of(config, nodes))

"""Scores of simple forecasts for comparison: the last value, and a ridge regression on all nodes."""

from dataclasses import dataclass

import torch

from tacit.assessment.evaluation import (
    LEVELS,
    gaussian_coverage,
    gaussian_crps,
    gaussian_scores,
    persistence,
    residual_sigmas,
)
from tacit.data import Pairs, Split, distinct_inputs, ridge_regression
from tacit.pipeline.preparation import Preparation
from tacit.shapes import PointPrediction

MOST_RIDGE_FEATURES, MOST_RIDGE_SIDE = 20_000, 3000  # time grows with the cube of the fewer of columns and pairs
NO_RIDGE = (
    "Not computed, ridge regression on all nodes: it takes long with {columns:,} inputs and {pairs:,} training pairs; "
    "use a shorter window, for example --window 24."
)


@dataclass(frozen=True, eq=False)
class Reference:
    """Scores of a forecast in the units of the data, and the CRPS of every number in the units of training."""

    numbers: dict[str, float]
    pair_crps: PointPrediction


def references(preparation: Preparation, split: Split, *, ridge: bool = True) -> dict[str, Reference]:
    """Return scores on the test part; the regression has a weight for every two nodes."""
    sizes, spread = preparation.sizes, preparation.spread(split.test).cpu()
    found: dict[str, Reference] = {}
    parts = {name: getattr(split, name).to("cpu") for name in ("train", "validation", "test")}
    start = {name: torch.zeros_like(part.targets) for name, part in parts.items()}
    if preparation.is_series:
        start = {
            name: persistence(
                part.inputs, num_features=sizes.num_features, out_channels=sizes.out_channels, known=sizes.known
            )
            for name, part in parts.items()
        }
        sigmas = residual_sigmas(start["train"], parts["train"])
        found["the last value"] = _in_units(start["test"], sigmas, parts["test"], spread)
    if ridge and not why_no_ridge(preparation, len(split.train)):
        once = distinct_inputs(parts["train"], sizes.known)
        changes = {  # for a series, the regression predicts the change from the last value
            name: Pairs(part.inputs * once, part.targets - start[name], part.observed) for name, part in parts.items()
        }
        fitted = ridge_regression(changes["train"], changes["validation"])
        means = fitted.predict(changes["test"].inputs) + start["test"]
        found["ridge regression"] = _in_units(means, fitted.sigmas, parts["test"], spread)
    return found


def why_no_ridge(preparation: Preparation, pairs: int) -> str:
    """Return why the regression is left out; empty if it is not."""
    sizes = preparation.sizes
    columns = sizes.num_nodes * (sizes.in_channels - sizes.known) + sizes.known
    if columns <= MOST_RIDGE_FEATURES and min(columns, pairs) <= MOST_RIDGE_SIDE:
        return ""
    return NO_RIDGE.format(columns=columns, pairs=pairs)


def _in_units(means: torch.Tensor, sigmas: torch.Tensor, pairs: Pairs, spread: torch.Tensor) -> Reference:
    scaled = Pairs(pairs.inputs, pairs.targets * spread, pairs.observed)
    coverage = {f"coverage_{level:g}": gaussian_coverage(means, sigmas, pairs, level) for level in LEVELS}
    numbers = {**gaussian_scores(means * spread, sigmas * spread, scaled), **coverage}
    return Reference(numbers, gaussian_crps(means, sigmas, pairs.targets))

"""Fits of many regressions at once, each by its own damped Newton steps."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from tacit.local.batch import GatedBatch
from tacit.local.gated_fit import GatedFit
from tacit.local.gated_regression import GatedRegression
from tacit.local.newton import maximise

MOST_NUMBERS = 2**23  # rows times columns of the regressions that are fitted together
MANY_ROWS, ROWS_PER_COLUMN = 2**12, 40  # rows of a first fit, from which the fit of all rows starts


@torch.no_grad()
def fit_gated(
    data: Sequence[GatedRegression], starts: Sequence[GatedFit], fixed: Sequence[int | None] | None = None
) -> list[GatedFit]:
    """Return the local maximum of each regression from its initial values.

    ``fixed`` fixes the probability of one edge of each regression. A regression may occur several times.
    """
    fixed = [None] * len(data) if fixed is None else fixed
    starts = from_few_rows(data, starts)
    groups = defaultdict[tuple[object, ...], list[int]](list)
    for place, (one, start) in enumerate(zip(data, starts, strict=True)):
        features = 0 if one.features is None or start.slopes is None else one.features.shape[2]
        noise = sum(value.numel() for value in one.observation.parameters())
        spread = 0 if one.spread is None else one.spread.shape[1]
        groups[type(one.observation), int(start.gated.sum()), one.sent.shape[2], features, noise, spread].append(place)
    found = list(starts)
    for places in groups.values():
        places.sort(key=lambda place: len(data[place].targets))
        largest = max(len(data[place].targets) * (data[place].design.shape[1] + 8) for place in places)
        at_once = max(1, MOST_NUMBERS // max(1, largest))
        for first in range(0, len(places), at_once):
            some = places[first : first + at_once]
            batch = GatedBatch(
                [data[place] for place in some], [starts[place] for place in some], [fixed[place] for place in some]
            )
            initial = batch.with_effects(batch.numbers())
            numbers = maximise(batch.evaluate_effects, initial, batch.free, batch.bound, batch.reach)
            numbers = batch.with_weights(numbers)
            for place, fit in zip(some, batch.unpacked(numbers), strict=True):
                found[place] = fit
    return found


def from_few_rows(data: Sequence[GatedRegression], starts: Sequence[GatedFit]) -> list[GatedFit]:
    """Return initial values of regressions with many rows: fits of every ``k``-th row, where they start at 0.

    Without gates there is one maximum. Most steps are then made with a fraction of the rows.
    """
    found, steps = list(starts), dict[int, int]()
    for place, (one, start) in enumerate(zip(data, starts, strict=True)):
        few = max(MANY_ROWS, ROWS_PER_COLUMN * one.design.shape[1])
        if len(one.targets) >= 2 * few and not start.gated.any() and not start.weights.any():
            steps[place] = len(one.targets) // few
    thinned = [data[place].every(step) for place, step in steps.items()]
    for place, fit in zip(steps, fit_gated(thinned, [starts[place] for place in steps]) if steps else [], strict=True):
        found[place] = fit
    return found


def fit_gates(
    data: Sequence[GatedRegression],
    gated: Sequence[Bool[Tensor, " _"]],
    starts: Sequence[GatedFit],
    prob: float = 0.8,
) -> list[GatedFit]:
    """Return the fits with exactly these gated edges; new gates start at ``prob``."""
    changed = []
    for start, mask in zip(starts, gated, strict=True):
        one = start
        for source in (mask & ~start.gated).nonzero()[:, 0].tolist():
            one = one.with_gate(source, prob)
        for source in (start.gated & ~mask).nonzero()[:, 0].tolist():
            one = one.without_gate(source)
        changed.append(one)
    return fit_gated(data, changed)

"""The series of new data by their numbers in training, for graphs that depend on the series."""

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from tacit.data import SeriesUnits
from tacit.errors import InputError, did_you_mean
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.preparation import SeriesPreparation


def needs_series(fitted: Fitted) -> bool:
    """Return whether the graph depends on the series."""
    return "series" in fitted.graph.context_fields


def training_names(fitted: Fitted) -> list[str]:
    """Return the names of the training series, in the order of their numbers."""
    assert isinstance(fitted.preparation, SeriesPreparation)
    return list(fitted.preparation.scaling.series_names)


def training_series(
    fitted: Fitted,
    names: Shaped[np.ndarray, " row"],
    numbers: Int[Tensor, " row"] | None,
    units: SeriesUnits | None,
    source: str,
) -> tuple[Int[Tensor, " row"], SeriesUnits | None]:
    """Return the training number of the series of each row, and the units in this order.

    ``names`` and ``numbers``  name and number of the series of each row of the new data; ``units`` has these numbers
    """
    known = training_names(fitted)
    place = {name: number for number, name in enumerate(known)}
    for name in dict.fromkeys(names.tolist()):
        if name not in place:
            raise InputError(
                f"{source}: edges depend on the series, and '{name}' was not in the training data"
                f"{did_you_mean(str(name), known)}; leave it out, or fit again with it"
            )
    series = torch.tensor([place[name] for name in names.tolist()], dtype=torch.int64)
    if units is None or numbers is None:
        return series, units
    tables = [np.full((len(known), *table.shape[1:]), np.nan) for table in (units.mean, units.deviation)]
    for new, old in {(int(new), int(old)) for new, old in zip(numbers, series, strict=True)}:
        tables[0][old], tables[1][old] = units.mean[new], units.deviation[new]
    return series, SeriesUnits(*tables)

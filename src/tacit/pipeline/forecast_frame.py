"""The table of forecasts: a row per time, node and variable, with mean, quantiles, the actual value and samples."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from tacit.graph import require_memory
from tacit.pipeline.class_forecasts import are_whole, as_values
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.preparation import OfSeries

if TYPE_CHECKING:
    import pandas as pd

LEVELS = (0.025, 0.1, 0.5, 0.9, 0.975)
BYTES_OF_A_CELL = 30  # while the table is made and written as text


def require_memory_for_table(rows: int, num_samples: int) -> None:
    """Raise :class:`InputError` if a table of this size would not fit in memory."""
    what = f"a table of {rows:,} rows" + (f" with {num_samples:,} samples each" if num_samples else "")
    remedy = "lower --steps or --samples, or pass fewer rows"
    require_memory(BYTES_OF_A_CELL * rows * (num_samples + len(LEVELS) + 2), "cpu", what, remedy)


def forecast_frame(
    fitted: Fitted,
    keys: dict[str, np.ndarray],
    numbers: Float[Tensor, "key node channel column"],
    actual: Float[np.ndarray, "key node channel"],
    notes: Sequence[str],
    further: Mapping[str, Float[np.ndarray, "key node channel"]] | None = None,
) -> "pd.DataFrame":
    """Return the table; ``numbers`` are mean, quantiles and samples in the units of the data.

    ``keys`` name the first axis: the time of each forecast and its series. ``further`` columns follow the quantiles.
    Quantiles and samples are integers if those of all nodes are.
    """
    import pandas as pd

    preparation = fitted.preparation
    count, nodes, channels, columns = numbers.shape
    table: dict[str, Any] = {name: np.repeat(values, nodes * channels) for name, values in keys.items()}
    table["node"] = np.tile(np.repeat(preparation.nodes, channels), count)
    table["variable"] = np.tile(preparation.target_names, count * nodes)
    flat, known = numbers.reshape(-1, columns).numpy(), 1 + len(LEVELS)
    table["mean"] = flat[:, 0]
    if are_whole(fitted.config, fitted.nodes):
        flat = flat.astype(np.int64)
    for place, level in enumerate(LEVELS):
        table["median" if level == 0.5 else f"q{100 * level:g}"] = flat[:, 1 + place]
    table |= {name: values.reshape(-1) for name, values in (further or {}).items()}
    table["actual"] = actual.reshape(-1)
    table |= {f"sample_{place}": flat[:, known + place] for place in range(columns - known)}
    frame = pd.DataFrame(table)
    frame.attrs["notes"] = list(notes)
    return frame


def in_units(fitted: Fitted, values: Tensor, pairs: OfSeries) -> Float[Tensor, "..."]:
    """Return predictions in the units of the data, in double precision because an offset may be large."""
    return fitted.preparation.to_units(values.double().cpu(), pairs)


def values_in_units(fitted: Fitted, values: Tensor, pairs: OfSeries) -> Float[Tensor, "..."]:
    """Return samples or quantiles in the units of the data: integers for counts, values for categories."""
    return as_values(in_units(fitted, values, pairs), fitted.config, fitted.nodes)

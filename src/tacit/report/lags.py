"""The effect of each edge at each lag, as the page embeds it."""

from typing import Any

import numpy as np

from tacit.records import Run
from tacit.report.edge_columns import EdgeColumns
from tacit.report.embedding import FLOATS, WHOLE, packed


def packed_lags(run: Run, columns: EdgeColumns) -> dict[str, Any] | None:
    """Return the profiles of the edges in the page, with the place of each edge; None where there are none."""
    lags = run.lags
    if lags is None or not lags.source:
        return None
    place, shown = columns.find(np.array(lags.source), np.array(lags.target))
    return {
        "first": lags.first,
        "count": lags.effects.shape[1],
        "edge": packed(place[shown], WHOLE),
        "effects": packed(lags.effects.numpy()[shown], FLOATS),
        "shares": packed(lags.shares.numpy()[shown], FLOATS),
    }

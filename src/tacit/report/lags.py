"""The effect of each edge at each lag, as the page embeds it."""

from typing import Any

import numpy as np

from tacit.edges import EdgeTable
from tacit.records import Run
from tacit.report.embedding import FLOATS, WHOLE, packed


def packed_lags(run: Run, columns: EdgeTable) -> dict[str, Any] | None:
    """Return the profiles of the edges in the page, with the place of each edge; None where there are none."""
    lags = run.edges.lags
    if lags is None or not lags.source:
        return None
    place = columns.index.find(np.array(lags.source), np.array(lags.target))
    shown = place >= 0
    return {
        "first": lags.first,
        "count": lags.effects.shape[1],
        "edge": packed(place[shown], WHOLE),
        "effects": packed(lags.effects.numpy()[shown], FLOATS),
        "shares": packed(lags.shares.numpy()[shown], FLOATS),
    }

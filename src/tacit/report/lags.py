"""The effect of each edge at each lag, as the page embeds it."""

from typing import Any

import numpy as np

from tacit.records import Run
from tacit.report.edge_columns import EdgeColumns
from tacit.report.embedding import FLOATS, WHOLE, packed


def packed_lags(run: Run, columns: EdgeColumns) -> dict[str, Any] | None:
    """Return the profiles of the edges in the page, with the place of each edge; None where there are none."""
    lags, nodes = run.lags, len(run.record.node_names)
    if lags is None or not lags.source:
        return None
    keys, ends = columns.target.astype(np.int64) * nodes + columns.source, np.array([lags.target, lags.source])
    wanted, order = ends[0] * nodes + ends[1], np.argsort(keys)
    place = order[np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)]
    shown = keys[place] == wanted
    return {
        "first": lags.first,
        "count": lags.effects.shape[1],
        "edge": packed(place[shown], WHOLE),
        "effects": packed(lags.effects.numpy()[shown], FLOATS),
        "shares": packed(lags.shares.numpy()[shown], FLOATS),
    }

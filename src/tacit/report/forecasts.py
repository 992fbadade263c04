"""The forecasts of the test part, as the page embeds them."""

from typing import Any

import numpy as np

from tacit.records import FORECAST_NUMBERS, Run
from tacit.report.embedding import FLOATS, packed


def packed_forecasts(run: Run) -> dict[str, Any] | None:
    """Return quantiles and observed values by node, variable, row and column; None where none were kept."""
    table = run.forecasts
    if table is None or not table.rows or not table.nodes:
        return None
    return {
        "rowName": table.row_name,
        "rows": table.rows,
        "series": table.series,
        "nodes": table.nodes,
        "variables": table.variables,
        "columns": list(FORECAST_NUMBERS),
        "numbers": packed(np.moveaxis(table.numbers, 0, 2), FLOATS),
    }


def forecast_options(run: Run) -> dict[str, Any] | None:
    """Return what can be chosen: nodes by name, variables and series."""
    table = run.forecasts
    if packed_forecasts(run) is None or table is None:
        return None
    return {
        "nodes": [run.record.node_names[node] for node in table.nodes],
        "variables": table.variables,
        "series": list(dict.fromkeys(table.series)),
        "num_rows": len(table.rows),
        "timed": table.row_name == "time",
    }

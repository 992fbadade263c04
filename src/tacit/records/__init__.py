"""Run directories: a JSON record, edges, history and model; files are written atomically, the record last."""

from tacit.records.background_csv import BACKGROUND, BackgroundTable, read_background
from tacit.records.directories import CALL, drawing, make_directory, new_directory, require_new, resuming
from tacit.records.edges_by_csv import BY_COLUMNS, EDGES_BY, REGIME, EdgesBy
from tacit.records.edges_csv import (
    CHANGED,
    EDGE_COLUMNS,
    GROUP,
    VARIES,
    WORDS,
    EdgeFindings,
    candidates_text,
    edges_text,
    group_numbers,
)
from tacit.records.forecasts_csv import FORECAST_NUMBERS, FORECASTS, QUANTILES, ForecastTable, read_forecasts
from tacit.records.lags_csv import LAGS, LagTable
from tacit.records.model_file import CANDIDATE_PARTS, CANDIDATES, INFINITE, MODEL, model_tensors, read_model
from tacit.records.reading import read_record, read_run
from tacit.records.record import FORMAT, RECORD, CandidateCount, Record, describe_device, versions
from tacit.records.restoring import stored_findings
from tacit.records.run import Run
from tacit.records.writing import history_line, run_of, write_run

__all__ = [
    "BACKGROUND",
    "BY_COLUMNS",
    "CALL",
    "CANDIDATES",
    "CANDIDATE_PARTS",
    "CHANGED",
    "EDGES_BY",
    "EDGE_COLUMNS",
    "FORECASTS",
    "FORECAST_NUMBERS",
    "FORMAT",
    "GROUP",
    "INFINITE",
    "LAGS",
    "MODEL",
    "QUANTILES",
    "RECORD",
    "REGIME",
    "VARIES",
    "WORDS",
    "BackgroundTable",
    "CandidateCount",
    "EdgeFindings",
    "EdgesBy",
    "ForecastTable",
    "LagTable",
    "Record",
    "Run",
    "candidates_text",
    "describe_device",
    "drawing",
    "edges_text",
    "group_numbers",
    "history_line",
    "make_directory",
    "model_tensors",
    "new_directory",
    "read_background",
    "read_forecasts",
    "read_model",
    "read_record",
    "read_run",
    "require_new",
    "resuming",
    "run_of",
    "stored_findings",
    "versions",
    "write_run",
]

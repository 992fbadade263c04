"""Run directories: a JSON record, edges, history and model; files are written atomically, the record last."""

from tacit.records.directories import CALL, drawing, make_directory, new_directory, require_new, resuming
from tacit.records.reading import Run, listed_in, read_record, read_run
from tacit.records.record import (
    CANDIDATES,
    FORMAT,
    INFINITE,
    MODEL,
    RECORD,
    CandidateCount,
    Record,
    describe_device,
    model_tensors,
    read_model,
    versions,
)
from tacit.records.tables_csv import (
    BACKGROUND,
    FORECAST_NUMBERS,
    FORECASTS,
    QUANTILES,
    BackgroundTable,
    ForecastTable,
    read_background,
    read_forecasts,
)
from tacit.records.writing import history_line, run_of, write_run

__all__ = [
    "BACKGROUND",
    "CALL",
    "CANDIDATES",
    "FORECASTS",
    "FORECAST_NUMBERS",
    "FORMAT",
    "INFINITE",
    "MODEL",
    "QUANTILES",
    "RECORD",
    "BackgroundTable",
    "CandidateCount",
    "ForecastTable",
    "Record",
    "Run",
    "describe_device",
    "drawing",
    "history_line",
    "listed_in",
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
    "versions",
    "write_run",
]

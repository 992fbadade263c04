"""Run directories: a JSON record, edges, history and model; files are written atomically, the record last."""

from tacit.records.background_csv import BACKGROUND, BackgroundTable, read_background
from tacit.records.directories import CALL, drawing, make_directory, new_directory, require_new, resuming
from tacit.records.forecasts_csv import FORECAST_NUMBERS, FORECASTS, QUANTILES, ForecastTable, read_forecasts
from tacit.records.model_file import CANDIDATE_PARTS, CANDIDATES, INFINITE, MODEL, model_tensors, read_model
from tacit.records.reading import read_record, read_run
from tacit.records.record import FORMAT, RECORD, CandidateCount, Record, describe_device, versions
from tacit.records.run import Run, listed_in
from tacit.records.writing import history_line, run_of, write_run

__all__ = [
    "BACKGROUND",
    "CALL",
    "CANDIDATES",
    "CANDIDATE_PARTS",
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

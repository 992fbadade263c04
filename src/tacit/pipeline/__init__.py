"""The pipeline from data to results: source -> dataset -> choices -> model -> fit -> assessment -> run."""

from tacit.pipeline.assessment import MOST_TESTED
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.effects import effect_table
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.fitting import compared, conclude, learn
from tacit.pipeline.forecasts import ClassForecasts, pair_forecasts
from tacit.pipeline.inference import (
    Fan,
    class_probabilities,
    evaluate,
    fan_of,
    forecast_table,
    kept_fan,
    new_pairs,
    point_predictions,
    prediction_index,
    read_new,
    samples,
)
from tacit.pipeline.job import FitJob, resume_fit, run_fit
from tacit.pipeline.later_assessment import (
    add_identifiability,
    add_std_errors,
    goodness_on,
    require_constant,
    same_dataset,
)
from tacit.pipeline.look import check_table
from tacit.pipeline.new_file import csv_text, require_new_table, write_asked_for, write_table, write_template
from tacit.pipeline.parts import MOST_EXPANDED, OwnParts
from tacit.pipeline.paths import path_class_probabilities, path_predictions, path_samples, path_table
from tacit.pipeline.plan import resolve
from tacit.pipeline.preparation import PairsPreparation
from tacit.pipeline.situations import about_depends_on, settle_situations
from tacit.pipeline.sources import Source, read_source, read_sources, read_table
from tacit.pipeline.state import Fit, has_own_estimate

__all__ = [
    "MOST_EXPANDED",
    "MOST_TESTED",
    "ClassForecasts",
    "Dataset",
    "Fan",
    "Fit",
    "FitJob",
    "Fitted",
    "OwnParts",
    "PairsPreparation",
    "Source",
    "about_depends_on",
    "add_identifiability",
    "add_std_errors",
    "check_table",
    "class_probabilities",
    "compared",
    "conclude",
    "csv_text",
    "effect_table",
    "evaluate",
    "fan_of",
    "forecast_table",
    "goodness_on",
    "has_own_estimate",
    "kept_fan",
    "learn",
    "new_pairs",
    "pair_forecasts",
    "path_class_probabilities",
    "path_predictions",
    "path_samples",
    "path_table",
    "point_predictions",
    "prediction_index",
    "read_new",
    "read_source",
    "read_sources",
    "read_table",
    "require_constant",
    "require_new_table",
    "resolve",
    "resume_fit",
    "run_fit",
    "same_dataset",
    "samples",
    "settle_situations",
    "write_asked_for",
    "write_table",
    "write_template",
]

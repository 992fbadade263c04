"""The pipeline from data to results: source -> dataset -> choices -> model -> fit -> assessment -> run."""

from tacit.pipeline.assessment import MOST_TESTED
from tacit.pipeline.class_forecasts import ClassForecasts
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.fan import Fan, fan_of, kept_fan
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.fitting import Learned, learn
from tacit.pipeline.inference import (
    class_probabilities,
    evaluate,
    forecast_table,
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
from tacit.pipeline.layout import MOST_EXPANDED
from tacit.pipeline.look import check_table
from tacit.pipeline.new_file import csv_text, require_new_table, write_asked_for, write_table
from tacit.pipeline.parts import OwnParts
from tacit.pipeline.path_forecasts import path_class_probabilities, path_predictions, path_samples, path_table
from tacit.pipeline.plan import Plan
from tacit.pipeline.preparation import PairsPreparation
from tacit.pipeline.shown_forecasts import pair_forecasts
from tacit.pipeline.situation_options import about_depends_on, settle_situations
from tacit.pipeline.sources import Source, read_source, read_sources, read_table
from tacit.pipeline.template import write_template

__all__ = [
    "MOST_EXPANDED",
    "MOST_TESTED",
    "ClassForecasts",
    "Dataset",
    "Fan",
    "FitJob",
    "Fitted",
    "Learned",
    "OwnParts",
    "PairsPreparation",
    "Plan",
    "Source",
    "about_depends_on",
    "add_identifiability",
    "add_std_errors",
    "check_table",
    "class_probabilities",
    "csv_text",
    "evaluate",
    "fan_of",
    "forecast_table",
    "goodness_on",
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
    "resume_fit",
    "run_fit",
    "same_dataset",
    "samples",
    "settle_situations",
    "write_asked_for",
    "write_table",
    "write_template",
]

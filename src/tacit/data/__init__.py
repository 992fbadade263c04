"""Read tables, series and arrays, and cut them into pairs of inputs and targets."""

from tacit.data.air import load_beijing_air, read_aqi36
from tacit.data.arrays import NamedPairs, load_arrays, pairs_from_arrays, read_named_pairs
from tacit.data.background import DAY, NO_BACKGROUND, WEEK, YEAR, Background, Category, Level, Term, Wave
from tacit.data.calendar_features import PHASES, calendar_columns, calendar_features, with_calendar
from tacit.data.cells import Table, open_table
from tacit.data.coming_times import extended_times
from tacit.data.conditions import Condition
from tacit.data.coordinates import read_coordinates
from tacit.data.dates import NUMERIC_DATE
from tacit.data.formats import TABLE_ENDINGS, frame_of_arrow, is_arrow, is_parquet_folder
from tacit.data.frames import read_frame
from tacit.data.known import (
    columns_at_targets,
    covariates_ahead,
    level_places,
    level_terms,
    level_values,
    num_known,
    unknown_ahead,
)
from tacit.data.labelled_arrays import frame_of_labelled, is_labelled
from tacit.data.left_out import leave_out
from tacit.data.look import Finding, FindingKind, look_at
from tacit.data.pair_covariates import covariate_table, with_covariates
from tacit.data.pair_tables import holds_pairs, read_pairs_table
from tacit.data.pairs import Pairs, Split, covering_batches, epoch_batches
from tacit.data.regression import Deviations, RegressionFit, Rows, distinct_inputs, regress
from tacit.data.resampling import (
    FEWEST_BLOCKS,
    FEWEST_SERIES,
    SeriesOfPair,
    bootstrap_rows,
    require_resamplable,
    resamplable,
    resampling_words,
    usual_block,
)
from tacit.data.ridge import RIDGE_PENALTIES, apply_to_all, ridge_path, ridge_regression, solve_ridge
from tacit.data.scaling import Scaling
from tacit.data.seasons import chosen_rows, in_season
from tacit.data.series import Series
from tacit.data.series_units import ScaleBy, SeriesUnits, deviations_differ, levels_apart
from tacit.data.tables import read_series
from tacit.data.units import ChannelUnits
from tacit.data.windows import NewPairs, SeriesPairs, Windows, time_numbers

__all__ = [
    "DAY",
    "FEWEST_BLOCKS",
    "FEWEST_SERIES",
    "NO_BACKGROUND",
    "NUMERIC_DATE",
    "PHASES",
    "RIDGE_PENALTIES",
    "TABLE_ENDINGS",
    "WEEK",
    "YEAR",
    "Background",
    "Category",
    "ChannelUnits",
    "Condition",
    "Deviations",
    "Finding",
    "FindingKind",
    "Level",
    "NamedPairs",
    "NewPairs",
    "Pairs",
    "RegressionFit",
    "Rows",
    "ScaleBy",
    "Scaling",
    "Series",
    "SeriesOfPair",
    "SeriesPairs",
    "SeriesUnits",
    "Split",
    "Table",
    "Term",
    "Wave",
    "Windows",
    "apply_to_all",
    "bootstrap_rows",
    "calendar_columns",
    "calendar_features",
    "chosen_rows",
    "columns_at_targets",
    "covariate_table",
    "covariates_ahead",
    "covering_batches",
    "deviations_differ",
    "distinct_inputs",
    "epoch_batches",
    "extended_times",
    "frame_of_arrow",
    "frame_of_labelled",
    "holds_pairs",
    "in_season",
    "is_arrow",
    "is_labelled",
    "is_parquet_folder",
    "leave_out",
    "level_places",
    "level_terms",
    "level_values",
    "levels_apart",
    "load_arrays",
    "load_beijing_air",
    "look_at",
    "num_known",
    "open_table",
    "pairs_from_arrays",
    "read_aqi36",
    "read_coordinates",
    "read_frame",
    "read_named_pairs",
    "read_pairs_table",
    "read_series",
    "regress",
    "require_resamplable",
    "resamplable",
    "resampling_words",
    "ridge_path",
    "ridge_regression",
    "solve_ridge",
    "time_numbers",
    "unknown_ahead",
    "usual_block",
    "with_calendar",
    "with_covariates",
]

"""Options of a run as frozen, validated classes, and the conversion of names to objects."""

from tacit.config.closed import Closed, load_config, override, registered_names
from tacit.config.demo import METHODS, DemoConfig, SystemConfig
from tacit.config.fit import (
    OWN,
    PAIRS_KEYS,
    SELECTION_KEYS,
    SERIES_KEYS,
    TABLE_KEYS,
    AssessmentOptions,
    DataOptions,
    FitConfig,
    GraphOptions,
    ObservationOptions,
    PredictorOptions,
    TrainingOptions,
)
from tacit.config.model import ModelConfig, TrainingConfig

__all__ = [
    "METHODS",
    "OWN",
    "PAIRS_KEYS",
    "SELECTION_KEYS",
    "SERIES_KEYS",
    "TABLE_KEYS",
    "AssessmentOptions",
    "Closed",
    "DataOptions",
    "DemoConfig",
    "FitConfig",
    "GraphOptions",
    "ModelConfig",
    "ObservationOptions",
    "PredictorOptions",
    "SystemConfig",
    "TrainingConfig",
    "TrainingOptions",
    "load_config",
    "override",
    "registered_names",
]

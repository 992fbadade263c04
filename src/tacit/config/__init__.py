"""Every choice of a run as data: closed, frozen, checked; strings become objects here and nowhere below."""

from tacit.config.closed import Closed, load_config, override
from tacit.config.demo import METHODS, DemoConfig, SystemConfig
from tacit.config.fit import (
    AssessmentOptions,
    DataOptions,
    FitConfig,
    GraphOptions,
    ObservationOptions,
    PredictorOptions,
    TrainingOptions,
)
from tacit.config.model import ModelConfig
from tacit.config.training import TrainingConfig

__all__ = [
    "METHODS",
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
]

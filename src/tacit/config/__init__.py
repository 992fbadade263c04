"""Every choice of a run as data: closed, frozen, checked; strings become objects here and nowhere below."""

from tacit.config.closed import Closed, load_config, override
from tacit.config.demo import METHODS, DemoConfig, SystemConfig
from tacit.config.model import ModelConfig
from tacit.config.own_data import DataConfig, FitConfig, GraphConfig, OwnTrainingConfig, PredictorConfig, TrustConfig
from tacit.config.training import TrainingConfig

__all__ = [
    "METHODS",
    "Closed",
    "DataConfig",
    "DemoConfig",
    "FitConfig",
    "GraphConfig",
    "ModelConfig",
    "OwnTrainingConfig",
    "PredictorConfig",
    "SystemConfig",
    "TrainingConfig",
    "TrustConfig",
    "load_config",
    "override",
]

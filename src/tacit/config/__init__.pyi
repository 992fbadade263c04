from .closed import Closed as Closed
from .closed import load_config as load_config
from .closed import override as override
from .closed import registered_names as registered_names
from .demo import METHODS as METHODS
from .demo import DemoConfig as DemoConfig
from .demo import SystemConfig as SystemConfig
from .fit import OWN as OWN
from .fit import FitConfig as FitConfig
from .fit import ObservationOptions as ObservationOptions
from .fit import PredictorOptions as PredictorOptions
from .fit import TrainingOptions as TrainingOptions
from .model import ModelConfig as ModelConfig
from .model import TrainingConfig as TrainingConfig
from .sections import EVENT_KEYS as EVENT_KEYS
from .sections import PAIRS_KEYS as PAIRS_KEYS
from .sections import SELECTION_KEYS as SELECTION_KEYS
from .sections import SERIES_KEYS as SERIES_KEYS
from .sections import TABLE_KEYS as TABLE_KEYS
from .sections import AssessmentOptions as AssessmentOptions
from .sections import DataOptions as DataOptions
from .sections import GraphOptions as GraphOptions

__all__ = [
    "EVENT_KEYS",
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

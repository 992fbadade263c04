"""tacit learns the graph that data does not show, and says how sure it is.

The public names; each is imported when first used, so that ``tacit --help`` does not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.data import Pairs as Pairs
    from tacit.errors import InputError as InputError
    from tacit.errors import ProcessesError as ProcessesError
    from tacit.errors import TrainingError as TrainingError
    from tacit.estimators import Concrete as Concrete
    from tacit.estimators import DisARM as DisARM
    from tacit.estimators import ScoreFunction as ScoreFunction
    from tacit.estimators import StraightThrough as StraightThrough
    from tacit.evaluation import edge_prob_errors as edge_prob_errors
    from tacit.evaluation import point_prediction as point_prediction
    from tacit.evaluation import predictive_metrics as predictive_metrics
    from tacit.goodness import goodness_of_fit as goodness_of_fit
    from tacit.graph import BernoulliGraph as BernoulliGraph
    from tacit.graph import EdgePrior as EdgePrior
    from tacit.graph import Sigmoid as Sigmoid
    from tacit.graph import SineSquared as SineSquared
    from tacit.identification import identify as identify
    from tacit.losses import ELBO as ELBO
    from tacit.losses import MMD as MMD
    from tacit.losses import EnergyScore as EnergyScore
    from tacit.losses import Gaussian as Gaussian
    from tacit.losses import KernelMean as KernelMean
    from tacit.losses import Laplacian as Laplacian
    from tacit.losses import Literature1 as Literature1
    from tacit.losses import Literature2 as Literature2
    from tacit.losses import PointMSE as PointMSE
    from tacit.losses import RationalQuadratic as RationalQuadratic
    from tacit.losses import median_distance as median_distance
    from tacit.predictors import HopPredictor as HopPredictor
    from tacit.registry import register as register
    from tacit.sklearn import LatentGraphForecaster as LatentGraphForecaster
    from tacit.sklearn import LatentGraphRegressor as LatentGraphRegressor
    from tacit.systems import CommunitySystem as CommunitySystem
    from tacit.training import Checkpoints as Checkpoints
    from tacit.training import CosineDecay as CosineDecay
    from tacit.training import FitSettings as FitSettings
    from tacit.training import LatentGraphModel as LatentGraphModel
    from tacit.training import StepDecay as StepDecay
    from tacit.training import fit as fit
    from tacit.uncertainty import bootstrap as bootstrap
    from tacit.uncertainty import sandwich as sandwich

__version__ = "0.1.0"

_ROOM_OF = {
    "Pairs": "data",
    "InputError": "errors",
    "ProcessesError": "errors",
    "TrainingError": "errors",
    "Concrete": "estimators",
    "DisARM": "estimators",
    "ScoreFunction": "estimators",
    "StraightThrough": "estimators",
    "edge_prob_errors": "evaluation",
    "point_prediction": "evaluation",
    "predictive_metrics": "evaluation",
    "goodness_of_fit": "goodness",
    "BernoulliGraph": "graph",
    "EdgePrior": "graph",
    "Sigmoid": "graph",
    "SineSquared": "graph",
    "identify": "identification",
    "ELBO": "losses",
    "MMD": "losses",
    "EnergyScore": "losses",
    "Gaussian": "losses",
    "KernelMean": "losses",
    "Laplacian": "losses",
    "Literature1": "losses",
    "Literature2": "losses",
    "PointMSE": "losses",
    "RationalQuadratic": "losses",
    "median_distance": "losses",
    "HopPredictor": "predictors",
    "register": "registry",
    "LatentGraphForecaster": "sklearn",
    "LatentGraphRegressor": "sklearn",
    "CommunitySystem": "systems",
    "Checkpoints": "training",
    "CosineDecay": "training",
    "FitSettings": "training",
    "LatentGraphModel": "training",
    "StepDecay": "training",
    "fit": "training",
    "bootstrap": "uncertainty",
    "sandwich": "uncertainty",
}
__all__ = ["__version__", *_ROOM_OF]


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        return getattr(importlib.import_module(f"tacit.{_ROOM_OF[name]}"), name)
    raise AttributeError(f"module 'tacit' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)

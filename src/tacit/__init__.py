"""tacit learns the graph that data does not show, and says how sure it is.

The public names; each is imported when first used, so that ``tacit --help`` does not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.data import Pairs as Pairs
    from tacit.errors import InputError as InputError
    from tacit.errors import TrainingError as TrainingError
    from tacit.evaluation import edge_prob_errors as edge_prob_errors
    from tacit.evaluation import point_prediction as point_prediction
    from tacit.evaluation import predictive_metrics as predictive_metrics
    from tacit.graph import BernoulliGraph as BernoulliGraph
    from tacit.losses import MMD as MMD
    from tacit.losses import EnergyScore as EnergyScore
    from tacit.losses import Gaussian as Gaussian
    from tacit.losses import Laplacian as Laplacian
    from tacit.losses import RationalQuadratic as RationalQuadratic
    from tacit.predictors import HopPredictor as HopPredictor
    from tacit.systems import CommunitySystem as CommunitySystem
    from tacit.training import CosineDecay as CosineDecay
    from tacit.training import FitSettings as FitSettings
    from tacit.training import LatentGraphModel as LatentGraphModel
    from tacit.training import StepDecay as StepDecay
    from tacit.training import fit as fit

__version__ = "0.1.0"

_ROOM_OF = {
    "Pairs": "data",
    "InputError": "errors",
    "TrainingError": "errors",
    "edge_prob_errors": "evaluation",
    "point_prediction": "evaluation",
    "predictive_metrics": "evaluation",
    "BernoulliGraph": "graph",
    "MMD": "losses",
    "EnergyScore": "losses",
    "Gaussian": "losses",
    "Laplacian": "losses",
    "RationalQuadratic": "losses",
    "HopPredictor": "predictors",
    "CommunitySystem": "systems",
    "CosineDecay": "training",
    "FitSettings": "training",
    "LatentGraphModel": "training",
    "StepDecay": "training",
    "fit": "training",
}
__all__ = ["__version__", *_ROOM_OF]


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        return getattr(importlib.import_module(f"tacit.{_ROOM_OF[name]}"), name)
    raise AttributeError(f"module 'tacit' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)

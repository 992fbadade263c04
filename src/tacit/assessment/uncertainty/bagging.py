"""Adoption of other parameters than the trained ones, unless they predict worse."""

import torch
from torch import Tensor

from tacit.assessment.uncertainty.bootstrap import EdgeUncertainty
from tacit.assessment.uncertainty.comparison import loss_difference, mean_loss
from tacit.data import Pairs
from tacit.local import CLEAR
from tacit.training import LatentGraphModel


def adopt_bagged(model: LatentGraphModel, found: EdgeUncertainty, validation: Pairs) -> bool:
    """Set the model to the means over replicas, for edges and predictor; return whether this was done.

    Replicas that start at the fit stay near the same minimum, so their mean is a valid model with a smaller error than
    a single short training. If the validation loss rises, the model is not changed.
    """
    return adopt(model, found.parameters, validation)


@torch.no_grad()
def adopt(
    model: LatentGraphModel,
    parameters: dict[str, Tensor],
    validation: Pairs,
    *,
    worse: float = CLEAR,
    tolerance: float = 0.0,
) -> bool:
    """Set the model to these parameters unless its validation loss rises; return whether this was done.

    A rise must exceed both ``worse`` standard errors and a share ``tolerance`` of the loss.
    """
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(parameters, strict=False)
    after = {name: value.clone() for name, value in model.state_dict().items()}
    rise, error = loss_difference(model, validation, after, before)
    adopted = rise <= worse * error or (tolerance > 0 and rise <= tolerance * abs(mean_loss(model, validation, before)))
    model.load_state_dict(after if adopted else before)
    return adopted

"""An answer that did not come from the training, taken unless it predicts worse."""

import torch
from torch import Tensor

from tacit.assessment.uncertainty.bootstrap import EdgeUncertainty
from tacit.assessment.uncertainty.comparison import loss_difference, mean_loss
from tacit.data import Pairs
from tacit.training import LatentGraphModel

WORSE = 2.0  # standard errors by which the validation loss may rise by chance


def adopt_bagged(model: LatentGraphModel, found: EdgeUncertainty, validation: Pairs) -> bool:
    """Give the model the means over replicas, edges and predictor alike, and say whether that was done.

    Replicas that start where the fit ended stay in its basin, so that their mean is a model of the same kind; it errs
    less than one short training does. Where the validation loss says otherwise, the model stays as it is.
    """
    return adopt(model, found.parameters, validation)


@torch.no_grad()
def adopt(
    model: LatentGraphModel,
    parameters: dict[str, Tensor],
    validation: Pairs,
    *,
    worse: float = WORSE,
    tolerance: float = 0.0,
) -> bool:
    """Give the model these parameters unless its validation loss rises, and say whether that was done.

    It rises if it does by more than ``worse`` standard errors and by more than a share ``tolerance`` of itself.
    """
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(parameters, strict=False)
    after = {name: value.clone() for name, value in model.state_dict().items()}
    rise, error = loss_difference(model, validation, after, before)
    adopted = rise <= worse * error or (tolerance > 0 and rise <= tolerance * abs(mean_loss(model, validation, before)))
    model.load_state_dict(after if adopted else before)
    return adopted

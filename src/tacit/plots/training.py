"""Losses during training: has it converged, and do the replicas agree?"""

from matplotlib.axes import Axes

from tacit.errors import InputError, require
from tacit.plots.display import RunDisplay
from tacit.records import Run
from tacit.report import draw_curve, training_curves

CLOSED_FORM = (
    "this fit has no training history: it was computed in closed form, without epochs; to train by gradients set an "
    "option of [training], such as TrainingOptions(epochs=20) or --set training.epochs=20"
)


class TrainingDisplay(RunDisplay):
    """A number after each epoch: a line for each replica, the kept one in colour, dropped ones up to their end.

    ``metric``  "validation_loss", "train_loss", or of a demo "edge_prob_mae", the error of the edge probabilities;
                dashed: the value of the true model, where it is known
    """

    def __init__(self, run: Run, *, metric: str = "validation_loss") -> None:
        super().__init__(run)
        found = {curve.key: curve for curve in training_curves(run)}
        if not found:
            raise InputError(CLOSED_FORM)
        require(metric in found, f"metric must be one of {', '.join(found)}, got {metric!r}; pass one of these")
        self.metric, self.curve = metric, found[metric]

    def _draw(self, ax: Axes) -> None:
        draw_curve(ax, self.curve, self.run.record.best_replica)

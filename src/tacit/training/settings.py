"""How to train: the choices that are not part of the model."""

from dataclasses import dataclass, field

from tacit.errors import require, require_whole
from tacit.training.schedule import CosineDecay, Schedule


@dataclass(frozen=True)
class FitSettings:
    """Epochs, batches, step sizes, averaging and the dropping of bad replicas.

    ``predictor_rate``    learning rate of the predictor, as a factor of the schedule's rate
    ``average_fraction``  the answer is the mean over this last part of the steps; 0 takes the last step
    ``sightings``         graphs of a step that have a given edge, on average and at least, at the start: a floor under
                          edge probabilities, so that no edge dies (:mod:`tacit.training.floor`); 0 for none
    ``halve_after``       epochs after which the worse half of the replicas is dropped (by validation loss)
    ``patience``          stop when no replica got better for so many epochs, and take each one's best epoch; None
                          trains to the end and takes the end
    """

    epochs: int = 10
    batch_size: int = 128
    schedule: Schedule = field(default_factory=CosineDecay)
    predictor_rate: float = 1.0
    average_fraction: float = 0.25
    sightings: float = 1.0
    halve_after: tuple[int, ...] = ()
    patience: int | None = None
    adam_betas: tuple[float, float] = (0.9, 0.99)  # the paper's appendix

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            require_whole(name, getattr(self, name))
        if self.patience is not None:
            require_whole("patience", self.patience)
        require(
            callable(self.schedule) and not isinstance(self.schedule, type),
            f"schedule needs an object like CosineDecay(0.1), got {self.schedule!r}; pass CosineDecay or StepDecay",
        )
        require(
            0 <= self.average_fraction <= 1,
            f"average_fraction needs to be in [0, 1], got {self.average_fraction}; pass for example 0.25",
        )
        require(
            0 <= self.sightings < float("inf"),
            f"sightings needs to be at least 0, got {self.sightings}; pass for example 1, or 0 for no floor",
        )
        require(
            0 < self.predictor_rate < float("inf"),
            f"predictor_rate needs to be positive, got {self.predictor_rate}; freeze the predictor to keep it as it is",
        )
        require(
            isinstance(self.halve_after, tuple) and all(epoch >= 1 for epoch in self.halve_after),
            f"halve_after needs epochs counted from 1, got {self.halve_after}; pass for example (1, 2, 3)",
        )
        require(
            len(self.adam_betas) == 2 and all(0 <= beta < 1 for beta in self.adam_betas),
            f"adam_betas needs two numbers in [0, 1), got {self.adam_betas}; pass for example (0.9, 0.99)",
        )

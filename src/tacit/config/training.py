"""Options of the training."""

from typing import Literal

from pydantic import Field

from tacit.config.closed import Closed
from tacit.errors import InputError
from tacit.training import CosineDecay, FitSettings, StepDecay


class TrainingConfig(Closed):
    """Length of the training, learning rates and random starts."""

    epochs: int = Field(10, ge=1, le=1_000_000)
    batch_size: int = Field(128, ge=1)
    schedule: Literal["cosine", "step"] = "cosine"
    learning_rate: float = Field(0.1, gt=0, le=100)
    final_learning_rate: float = Field(0.0, ge=0)
    change_epoch: int = Field(5, ge=1)
    predictor_learning_rate: float | None = Field(None, gt=0, le=100)
    average_fraction: float = Field(0.25, ge=0, le=1)
    min_draws_per_edge: float = Field(1.0, ge=0)
    replicas: int = Field(8, ge=1)
    halve_after: tuple[int, ...] = (1, 2, 3)
    compile: bool = True

    def build(self) -> FitSettings:
        """Return the settings of a fit with several replicas."""
        first, final = self.learning_rate, self.final_learning_rate
        lowest = "above 0" if self.schedule == "step" else "at least 0"
        if final > first or (self.schedule == "step" and final == 0):
            raise InputError(
                f"final_learning_rate in [training] must be {lowest} and at most learning_rate={first} "
                f"with schedule '{self.schedule}', got {final}; pass for example {first / 5:g}"
            )
        return FitSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            schedule=CosineDecay(self.learning_rate, self.final_learning_rate)
            if self.schedule == "cosine"
            else StepDecay(self.learning_rate, self.final_learning_rate, self.change_epoch),
            predictor_learning_rate=self.predictor_learning_rate,
            average_fraction=self.average_fraction,
            min_draws_per_edge=self.min_draws_per_edge,
            halve_after=tuple(epoch for epoch in self.halve_after if epoch < self.epochs),
        )

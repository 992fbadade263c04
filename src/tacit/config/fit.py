"""All options of a fit. A value that is left out (None, or "auto") is chosen from the data.

The same classes are the sections of the config file of ``tacit fit`` and the option objects of the estimators.
"""

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from tacit.config.closed import Closed, RegisteredName, RegisteredNames
from tacit.config.model import ModelConfig
from tacit.config.sections import AssessmentOptions, DataOptions, GraphOptions
from tacit.errors import InputError, require
from tacit.predictors import PredictorKind
from tacit.registry import OBSERVATIONS, PREDICTORS

LARGEST_COUNT = 100_000  # numbers in an exact sum, for each target and graph
OWN = "own"  # the kind of a predictor or loss that was passed as an object


def _in_order(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    """Refuse categories that are not two or more increasing numbers."""
    if values is not None:
        shown = ", ".join(f"{value:g}" for value in values) or "none"
        require(
            len(values) > 1 and all(low < high for low, high in pairwise(values)),
            f"categories must be two or more increasing numbers, got {shown}; write for example [1, 2, 3]",
        )
    return values


Width = Annotated[int, Field(ge=1)]


class PredictorOptions(Closed):
    """The model that predicts from inputs and a graph."""

    kind: Annotated[str, AfterValidator(RegisteredName(PREDICTORS, also=("auto", OWN)))] = Field(
        "auto", description="a registered name; chosen from the data by default"
    )
    hidden: Width | tuple[Width, ...] = Field(32, description="width of hidden layers")
    layers: int = Field(1, ge=1, le=100, description="hidden graph layers; each extends the reach by one edge")
    num_hops: int = Field(2, ge=1, le=100, description="for 'hops': maximum number of edges on a path of influence")
    activation: Literal["linear", "tanh"] = Field("linear", description="activation of the filter")
    residual: bool | None = Field(None, description="predict the change from the last value; yes for series")
    warm_start: bool | None = Field(None, description="start from a ridge regression; yes for the linear filter")
    options: dict[str, Any] = Field({}, description="options of a registered kind")

    def require_used(self, kind: PredictorKind) -> None:
        """Refuse options that the kind of predictor would ignore."""
        for key in type(self).model_fields:
            value = getattr(self, key)
            if key != "kind" and key not in kind.uses and value not in (False, type(self).model_fields[key].default):
                used = f"which uses {', '.join(kind.uses)}" if kind.uses else "which uses none of these"
                raise InputError(f"{key} in [predictor] is not for '{self.kind}', {used}; leave it out")
        require(
            not self.warm_start or self.activation == "linear",
            "warm_start in [predictor] requires activation 'linear', got 'tanh'; leave it out",
        )


class ObservationOptions(Closed):
    """The noise of the targets."""

    kind: Annotated[str | dict[str, str], AfterValidator(RegisteredNames(OBSERVATIONS, also=("auto",)))] = Field(
        "auto", description='a registered name, or a table by node such as {a = "poisson", "*" = "gaussian"}'
    )
    categories: Annotated[tuple[float, ...] | None, AfterValidator(_in_order)] = Field(
        None, description="'ordered': all values in increasing order; those of the training part when left out"
    )
    largest_count: int | None = Field(
        None, ge=1, le=LARGEST_COUNT, description="counts: largest count in exact sums; from the data if left out"
    )


class TrainingOptions(Closed):
    """Length of the training, learning rates and random starts."""

    epochs: int | None = Field(None, ge=1, le=1_000_000, description="passes over the training pairs")
    batch_size: int | None = Field(None, ge=1, description="pairs per step")
    learning_rate: float = Field(
        0.05, gt=0, le=100, description="learning rate of the edges; decays to 0 along a cosine"
    )
    predictor_learning_rate: float | None = Field(None, gt=0, le=100, description="learning rate of the predictor")
    replicas: int | None = Field(
        None, ge=1, description="random starts; the one with the lowest validation loss is kept"
    )
    patience: int | None = Field(None, ge=1, description="epochs without improvement before training stops")
    compile: bool | None = Field(None, description="compile the training step; faster for long training")


class FitConfig(Closed):
    """All options of a fit."""

    data: DataOptions = DataOptions()
    graph: GraphOptions = GraphOptions()
    predictor: PredictorOptions = PredictorOptions()
    observation: ObservationOptions = ObservationOptions()
    model: ModelConfig = ModelConfig()
    training: TrainingOptions = TrainingOptions()
    assessment: AssessmentOptions = AssessmentOptions()

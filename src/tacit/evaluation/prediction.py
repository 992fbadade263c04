"""What a model says about new inputs: mean, median, quantiles and samples of what it would show."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.errors import InputError, require, require_whole
from tacit.evaluation.chunks import pairs_at_once
from tacit.evaluation.point import mean_prediction, point_prediction
from tacit.shapes import Inputs, PointPrediction, Samples
from tacit.training import LatentGraphModel

# Graphs per pair, and draws of the noise under each: quantiles of 2,500 numbers.
NUM_GRAPHS = 500
NOISE_DRAWS = 5
LEVELS = (0.05, 0.25, 0.75, 0.95)


@dataclass(frozen=True)
class Prediction:
    """Predictions for a number of inputs, in the units of the targets that the model was trained on.

    ``quantiles``  one prediction for each of ``levels``, in their order
    ``samples``    as many as were asked for, each a whole output: graphs and noise are drawn anew for every one
    """

    mean: PointPrediction
    median: PointPrediction
    levels: tuple[float, ...]
    quantiles: Float[Tensor, "level batch node channel"]
    samples: Samples | None = None


@torch.no_grad()
def predict(
    model: LatentGraphModel,
    inputs: Inputs,
    *,
    generator: Generator,
    levels: Sequence[float] = LEVELS,
    num_graphs: int = NUM_GRAPHS,
    num_samples: int = 0,
) -> Prediction:
    """Return mean, median and quantiles over ``num_graphs`` graphs, and ``num_samples`` samples of each output.

    >>> from tacit.graph import BernoulliGraph
    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, predictor = BernoulliGraph(torch.full((2, 2), 0.5)), HopPredictor(torch.ones(1, 1, 1))
    >>> model = LatentGraphModel(graph, predictor, EnergyScore())
    >>> answer = predict(model, torch.ones(3, 2, 1), generator=Generator().manual_seed(0), levels=(0.1, 0.9))
    >>> answer.mean.shape, answer.quantiles.shape
    (torch.Size([3, 2, 1]), torch.Size([2, 3, 2, 1]))
    """
    require(len(inputs) > 0, "inputs needs at least one row, got none; pass some")
    require_whole("num_graphs", num_graphs)
    require_whole("num_samples", num_samples, 0)
    for level in levels:
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0 <= level <= 1:
            raise InputError(f"levels needs numbers in [0, 1], got {level!r}; pass for example {LEVELS}")
    size = pairs_at_once(model, num_graphs)
    chunks = [
        _predict_chunk(model, inputs[start : start + size], tuple(levels), num_graphs, num_samples, generator)
        for start in range(0, len(inputs), size)
    ]
    samples = torch.cat([chunk.samples for chunk in chunks if chunk.samples is not None]) if num_samples else None
    return Prediction(
        torch.cat([chunk.mean for chunk in chunks]),
        torch.cat([chunk.median for chunk in chunks]),
        tuple(levels),
        torch.cat([chunk.quantiles for chunk in chunks], 1),
        samples,
    )


def _predict_chunk(
    model: LatentGraphModel,
    inputs: Inputs,
    levels: tuple[float, ...],
    num_graphs: int,
    num_samples: int,
    generator: Generator,
) -> Prediction:
    """Predict for inputs that share their graphs."""
    outputs = model.outputs(inputs, num_graphs, generator=generator)
    drawn = model.observation.draw(outputs, generator=generator, draws=NOISE_DRAWS)
    median = point_prediction(drawn, "median")
    quantiles = [point_prediction(drawn, level) for level in levels]
    return Prediction(
        mean_prediction(model, outputs),
        median,
        levels,
        torch.stack(quantiles) if quantiles else median.new_empty(0, *median.shape),
        model.sample(inputs, num_samples, generator=generator) if num_samples else None,
    )

"""Estimators that fit in no time, data for them, and a module of a person's own that other processes can import."""

import numpy as np
import torch
from torch import nn

from tacit import LatentGraphForecaster, LatentGraphRegressor
from tacit.config import AssessmentOptions, DataOptions, GraphOptions, ModelConfig, PredictorOptions, TrainingOptions

SECTIONS = {
    "data": DataOptions,
    "graph": GraphOptions,
    "model": ModelConfig,
    "training": TrainingOptions,
    "assessment": AssessmentOptions,
}
QUICK = {
    "graph": {"evidence": "none"},  # every edge is learned; tests of the evidence ask for it
    "model": {"num_graphs": 4},
    "training": {"epochs": 1, "replicas": 1, "batch_size": 16, "compile": False},
    "assessment": {"enabled": False},
}
TRUTH = np.array([[0.0, 0.8, 0.0], [0.0, 0.0, 0.3], [1.0, 0.0, 0.0]])
LINEAR = PredictorOptions(kind="convolution", hidden=())


def quick_options(**changes):
    """Parameters of an estimator that fits in no time; sections are named with their keys, as in a config."""
    merged = {
        name: kind(**{**QUICK.get(name, {}), **changes.pop(name, {})})
        for name, kind in SECTIONS.items()
        if name in QUICK or name in changes
    }
    return {"observation": "none", "point_graphs": 8, "device": "cpu", **merged, **changes}


def regressor(**changes):
    return LatentGraphRegressor(**quick_options(**{"predictor": "convolution", **changes}))


def forecaster(**changes):
    return LatentGraphForecaster(**quick_options(**{"window": 2, "observation": "auto", **changes}))


def random_pairs(num_pairs, seed=0, noise=0.0):
    """Three nodes; each shows half of itself and what it reads at the moment, times 3, plus 10."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_pairs, 3))
    graphs = rng.random((num_pairs, 3, 3)) < TRUTH
    shown = 0.5 * x + np.einsum("pij,pj->pi", graphs, x) + noise * rng.normal(size=x.shape)
    return x, 10 + 3 * shown


def parts_of(num_pairs, seed=0):
    """Rows of the training, the validation and the test part of so many pairs, in their order."""
    from tacit.data import Pairs
    from tacit.randomness import generator_for

    rows = torch.arange(num_pairs, dtype=torch.float32)[:, None, None]
    split = Pairs(rows, rows).split((0.7, 0.1), generator=generator_for(seed, "split"))
    return [part.inputs.flatten().long().numpy() for part in (split.train, split.validation, split.test)]


class OneLayer(nn.Module):
    """A module of a person's own."""

    def __init__(self, in_channels, start=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.full((in_channels, 1), start))

    def forward(self, inputs, graphs):
        return inputs[:, None] @ self.weight + graphs @ (inputs[:, None] @ self.weight)


def one_layer(num_nodes, in_channels, channels):
    """A function that makes the module."""
    del num_nodes, channels
    return OneLayer(in_channels)

"""From the plain parameters of the estimator to the objects of a fit."""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tacit.config import DemoConfig, override
from tacit.errors import InputError, did_you_mean, require, require_whole
from tacit.graph import Slots
from tacit.observation import ObservationModel
from tacit.predictors import ConvolutionStack, GraphFilter, HopPredictor
from tacit.randomness import generator_for
from tacit.registry import OBSERVATIONS

# Steps that a fit takes when the number of epochs is left open: those of ten epochs on the paper's 28,000 pairs.
STEPS = 2000
FEWEST_EPOCHS = 10
# Compiling takes some seconds and makes a step about five times as fast (two cores, six nodes).
COMPILE_FROM = 1000
# The worse half of the replicas is dropped after these parts of the training (the epochs 1, 2 and 3 of ten).
HALVE_AT = (0.1, 0.2, 0.3)
PREDICTORS = ("convolution", "filter", "hops")
NOISES = {"none": "none", "node": "gaussian", "input": "gaussian_input"}


@dataclass(frozen=True)
class Sizes:
    """What a predictor is built for."""

    num_nodes: int
    in_channels: int
    channels: int


@dataclass(frozen=True)
class PredictorSpec:
    """A predictor in words and numbers; ``predictor`` is None where it is the user's own."""

    predictor: str | None
    hidden: tuple[int, ...]
    num_hops: int
    noise: str

    @classmethod
    def of(cls, predictor: Any, hidden: Any, num_hops: Any, noise: Any) -> "PredictorSpec":
        """Return the checked choices of a user."""
        own = isinstance(predictor, nn.Module) or callable(predictor)
        if not own:
            _require_word("predictor", predictor, PREDICTORS, ", a torch.nn.Module or a function that makes one")
        _require_word("noise", noise, tuple(NOISES), " or auto")
        require_whole("num_hops", plain(num_hops))
        widths = hidden if isinstance(hidden, list | tuple) else [hidden]
        for width in widths:
            require_whole("each of hidden", plain(width))
        return cls(None if own else predictor, tuple(plain(width) for width in widths), plain(num_hops), noise)

    def build(self, sizes: Sizes, own: Any, seed: int, slots: Slots | None = None) -> nn.Module:
        """Return a predictor for one fit: by its name, a copy of the user's module, or what the user's function makes.

        The function is called with the keywords ``num_nodes``, ``in_channels`` and ``channels``. Over a table of
        candidates a filter takes the ``slots``.
        """
        generator = generator_for(seed, "predictor")
        if self.predictor == "convolution":
            widths = [sizes.in_channels, *self.hidden, sizes.channels]
            return ConvolutionStack.random(widths, output="linear", generator=generator)
        if self.predictor == "filter":
            nodes, features, channels = sizes.num_nodes, sizes.in_channels, sizes.channels
            return GraphFilter(nodes, 1, features, channels, residual=False, sent_features=features, slots=slots)
        if self.predictor == "hops":
            return HopPredictor.random(self.num_hops, sizes.in_channels, sizes.channels, generator=generator)
        if isinstance(own, nn.Module):
            return copy.deepcopy(own)
        require(callable(own), f"predictor needs to be the module that was fitted, got {own!r}; pass it")
        made = own(num_nodes=sizes.num_nodes, in_channels=sizes.in_channels, channels=sizes.channels)
        if not isinstance(made, nn.Module):
            raise InputError(
                f"predictor needs a function that returns a torch.nn.Module, got {type(made).__name__}; return a module"
            )
        return made

    def observation(self, sizes: Sizes) -> ObservationModel:
        """Return the noise of the targets."""
        made: ObservationModel = OBSERVATIONS[NOISES[self.noise]].for_sizes(
            num_nodes=sizes.num_nodes, in_channels=sizes.in_channels, channels=sizes.channels
        )
        return made


def build_config(model: Mapping[str, Any], training: Mapping[str, Any], num_train: int) -> DemoConfig:
    """Return the checked choices; ``epochs`` None becomes as many as make about ``STEPS`` steps."""
    training = {name: plain(value) for name, value in training.items()}
    require_whole("batch_size", training["batch_size"])
    steps = max(1, num_train // training["batch_size"])
    if training["epochs"] is None:
        training["epochs"] = max(FEWEST_EPOCHS, math.ceil(STEPS / steps))
    require_whole("epochs", training["epochs"])
    if training["compile"] == "auto":
        training["compile"] = steps * training["epochs"] >= COMPILE_FROM
    halvings = {round(part * training["epochs"]) for part in HALVE_AT} - {0}
    training["halve_after"] = tuple(sorted(halvings))
    return override(DemoConfig(), {"model": {k: plain(v) for k, v in model.items()}, "training": training})


def split_rows(num_pairs: int, fraction: Any, shuffle: bool, seed: int) -> tuple[Tensor, Tensor]:
    """Return the rows to train on and those to validate on, at least one of each, in order.

    >>> split_rows(10, 0.2, shuffle=False, seed=0)[1].tolist()
    [8, 9]
    """
    require(
        isinstance(fraction, int | float) and 0 < fraction < 1,
        f"validation_fraction needs to be between 0 and 1, got {fraction!r}; pass for example 0.1",
    )
    count = min(max(1, round(fraction * num_pairs)), num_pairs - 1)
    rows = torch.arange(num_pairs)
    if shuffle:
        rows = torch.randperm(num_pairs, generator=generator_for(seed, "validation rows"))
    return rows[:-count].sort().values, rows[-count:].sort().values


def torch_device(name: Any) -> torch.device:
    """Return the device by its name; ``"auto"`` is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InputError(f"device needs one of auto, cpu, cuda, cuda:N, got {name!r}; use 'auto'") from None
    require(
        device.type != "cuda" or (device.index or 0) < torch.cuda.device_count(),
        f"device needs to be there, got {name!r}, which is not; use 'auto'",
    )
    return device


def plain(value: Any) -> Any:
    """Return a number or array of numpy as Python's own: grids of parameters hold such numbers.

    >>> plain(np.int64(3)), plain(0.5), plain(np.eye(2)[0])
    (3, 0.5, [1.0, 0.0])
    """
    return value.tolist() if isinstance(value, np.generic | np.ndarray | Tensor) else value


def _require_word(name: str, value: Any, known: tuple[str, ...], others: str = "") -> None:
    if isinstance(value, str) and value in known:
        return
    near = did_you_mean(value, known) if isinstance(value, str) else f"; use '{known[0]}'"
    raise InputError(f"{name} needs one of {', '.join(known)}{others}, got {value!r}{near}")

"""A checkpoint that somebody made up, with a checksum that fits: what cannot have been is refused, and kept."""

import pytest
import torch

from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import Checkpoints, FitSettings, LatentGraphModel, fit
from tacit.training.checkpoint import KIND

EPOCH = {"epoch": 1, "learning_rate": 0.1, "train_loss": [1.0, 1.0], "validation_loss": [1.0, 1.0], "seconds": 1.0}


class Stop(BaseException):
    """The end of a process."""


def learn(path, stop_at=None):
    rng = torch.Generator().manual_seed(0)
    model = LatentGraphModel(
        BernoulliGraph.uniform(3, generator=rng), HopPredictor.random(2, 1, generator=rng), EnergyScore(), num_graphs=4
    )
    inputs = torch.randn(40, 3, 1, generator=rng)

    def watch(progress):
        if progress.step == stop_at:
            raise Stop

    settings = FitSettings(epochs=3, batch_size=16, patience=2)
    pairs = Pairs(inputs, inputs.roll(1, 1))
    keep = Checkpoints(path, every=0)
    return fit(model, pairs, pairs, settings, seeds=(0, 1), compile=False, on_progress=watch, checkpoint=keep)


@pytest.fixture
def stopped(tmp_path):
    """A checkpoint of a training that was stopped in its second epoch."""
    with pytest.raises(Stop):
        learn(tmp_path / "c.safetensors", stop_at=3)
    return tmp_path / "c.safetensors"


def test_it_goes_on_as_it_is(stopped):
    assert learn(stopped).steps == 6


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dropped", [[1, 1]]),
        ("dropped", {"0": 1, "1": 1}),
        ("dropped", {"5": 1}),
        ("dropped", {"1": 2}),
        ("dropped", {"1": 0}),
        ("history", 3.5),
        ("history", []),
        ("history", [EPOCH | {"train_loss": [1.0]}]),
        ("history", [EPOCH | {"validation_loss": [1.0, None]}]),
        ("history", [EPOCH | {"learning_rate": float("nan")}]),
        ("steps_done", 10**9),
        ("steps_done", -1),
        ("train_seconds", float("nan")),
        ("epochs_without_gain", "x"),
        ("trace", [3]),
        ("fingerprint", None),
    ],
)
def test_text_that_cannot_be(stopped, name, value, refused):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    stopped.write_bytes(data := KIND.pack(text | {name: value}, tensors))
    refused(learn, stopped)
    assert stopped.read_bytes() == data


@pytest.mark.parametrize(
    "change",
    [
        lambda value: torch.full_like(value, torch.nan),
        lambda value: value.double(),
        lambda value: value[:1],
        None,
    ],
)
@pytest.mark.parametrize("part", ["parameters", "averages", "first_moments", "second_moments", "best"])
def test_tensors_that_cannot_be(stopped, part, change, refused):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    name = next(name for name in sorted(tensors) if name.startswith(part))
    changed = {other: value for other, value in tensors.items() if other != name}
    stopped.write_bytes(KIND.pack(text, changed if change is None else changed | {name: change(tensors[name])}))
    refused(learn, stopped)


@pytest.mark.parametrize("steps", [-1, 10**9])
def test_places_of_streams_that_cannot_be(stopped, steps, refused):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    stopped.write_bytes(KIND.pack(text, tensors | {"streams/steps": torch.full((2,), steps)}))
    refused(learn, stopped)


def test_a_tensor_of_another_training(stopped, refused):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    stopped.write_bytes(KIND.pack(text, tensors | {"parameters/predictor.bias": torch.zeros(2)}))
    refused(learn, stopped)


def test_numbers_of_a_dropped_replica_need_not_be_finite(stopped):
    """Where one program computes all replicas, one that was dropped is still computed, and may diverge."""
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    for name in [name for name in tensors if name.startswith(("parameters", "first_moments"))]:
        tensors[name][1] = torch.nan
    stopped.write_bytes(KIND.pack(text | {"dropped": {"1": 1}}, tensors))
    assert learn(stopped).best == 0

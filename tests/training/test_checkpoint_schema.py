"""A checkpoint that somebody made up, with a checksum that fits: what cannot have been is refused, and kept."""

import pytest
import torch

from tacit.data import Pairs
from tacit.errors import InputError
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
    ("name", "value", "reason"),
    [
        ("dropped", [[1, 1]], "dropped: Input should be a valid dictionary"),
        ("dropped", {"0": 1, "1": 1}, "dropped cannot be"),
        ("dropped", {"5": 1}, "dropped cannot be"),
        ("dropped", {"1": 2}, "dropped cannot be"),
        ("dropped", {"1": 0}, "dropped cannot be"),
        ("history", 3.5, "history: Input should be a valid list"),
        ("history", [], "steps_done is out of range"),
        ("history", [EPOCH | {"train_loss": [1.0]}], "history cannot be"),
        ("history", [EPOCH | {"validation_loss": [1.0, None]}], "history cannot be"),
        ("history", [EPOCH | {"learning_rate": float("nan")}], "history.0.learning_rate: Input should be a finite"),
        ("steps_done", 10**9, "steps_done is out of range"),
        ("steps_done", -1, "steps_done: Input should be greater"),
        ("train_seconds", float("nan"), "train_seconds: Input should be a finite number"),
        ("epochs_without_gain", "x", "epochs_without_gain: Input should be a valid integer"),
        ("trace", [3], "trace.0: Input should be a valid dictionary"),
        ("fingerprint", None, "fingerprint"),
    ],
)
def test_text_that_cannot_be(stopped, name, value, reason):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    stopped.write_bytes(data := KIND.pack(text | {name: value}, tensors))
    with pytest.raises(InputError, match=rf"c.safetensors is a damaged checkpoint \({reason}.*; delete it to start"):
        learn(stopped)
    assert stopped.read_bytes() == data


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda value: torch.full_like(value, torch.nan), "is not finite"),
        (lambda value: value.double(), "has another shape or type"),
        (lambda value: value[:1], "has another shape or type"),
        (None, "is missing"),
    ],
)
@pytest.mark.parametrize("part", ["parameters", "averages", "first_moments", "second_moments", "best"])
def test_tensors_that_cannot_be(stopped, part, change, reason):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    name = next(name for name in sorted(tensors) if name.startswith(part))
    changed = {other: value for other, value in tensors.items() if other != name}
    stopped.write_bytes(KIND.pack(text, changed if change is None else changed | {name: change(tensors[name])}))
    with pytest.raises(InputError, match=f"is a damaged checkpoint .*{name} {reason}"):
        learn(stopped)


@pytest.mark.parametrize("steps", [-1, 10**9])
def test_places_of_streams_that_cannot_be(stopped, steps):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    stopped.write_bytes(KIND.pack(text, tensors | {"streams/steps": torch.full((2,), steps)}))
    with pytest.raises(InputError, match=r"is a damaged checkpoint \(streams/steps is out of range\)"):
        learn(stopped)


def test_a_tensor_of_another_training(stopped):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    stopped.write_bytes(KIND.pack(text, tensors | {"parameters/predictor.bias": torch.zeros(2)}))
    with pytest.raises(InputError, match=r"\(parameters/predictor.bias does not belong to this training\)"):
        learn(stopped)


def test_numbers_of_a_dropped_replica_need_not_be_finite(stopped):
    """Where one program computes all replicas, one that was dropped is still computed, and may diverge."""
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    for name in [name for name in tensors if name.startswith(("parameters", "first_moments"))]:
        tensors[name][1] = torch.nan
    stopped.write_bytes(KIND.pack(text | {"dropped": {"1": 1}}, tensors))
    assert learn(stopped).best == 0

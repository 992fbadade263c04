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
        ("active", [], "active: List should have at least 1 item"),
        ("active", [0, 5], "active cannot be"),
        ("dropped", [[1, 1]], "dropped cannot be"),
        ("history", 3.5, "history: Input should be a valid list"),
        ("history", [], "steps_done cannot be"),
        ("steps_done", 10**9, "steps_done cannot be"),
        ("steps_done", -1, "steps_done: Input should be greater"),
        ("seconds", float("nan"), "seconds: Input should be a finite number"),
        ("lifted", None, "lifted: Input should be a valid boolean"),
        ("steps_of_streams", ["x"], "steps_of_streams.0: Input should be a valid integer"),
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
@pytest.mark.parametrize("part", ["parameters", "averages", "adam", "best"])
def test_tensors_that_cannot_be(stopped, part, change, reason):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    name = next(name for name in sorted(tensors) if name.startswith(part))
    changed = {other: value for other, value in tensors.items() if other != name}
    stopped.write_bytes(KIND.pack(text, changed if change is None else changed | {name: change(tensors[name])}))
    with pytest.raises(InputError, match=f"is a damaged checkpoint .*{name} {reason}"):
        learn(stopped)

"""A fit that is stopped again and again ends with the bits of one that is not; no other file is gone on with."""

import dataclasses
import json
import os
import resource
import shutil
import time

import pytest
import torch

import tacit.atomic_files
import tacit.training.checkpoint
from tacit.data import Pairs, bootstrap_rows
from tacit.errors import InputError
from tacit.estimators import Concrete
from tacit.graph import BernoulliGraph, EdgePrior, SineSquared
from tacit.losses import MMD, EnergyScore, NodewiseExpectedError
from tacit.observation import GaussianNoise, HeadGaussianNoise
from tacit.predictors import HopPredictor
from tacit.randomness import UniformStream, generator_for
from tacit.tensor_files import Kind, header_of
from tacit.training import Checkpoints, CosineDecay, FitSettings, LatentGraphModel, StepDecay, Trace, fit
from tacit.training.checkpoint import KIND

# Whole trainings: shapes are checked where single steps and shorter ones are tested.
pytestmark = pytest.mark.usefixtures("unchecked")
SETTINGS = FitSettings(epochs=3, batch_size=16, average_fraction=0.5)  # 3 epochs of 2 steps
WHOLE = {"train_seconds": 0.0, "compile_seconds": 0.0}


class Stop(BaseException):
    """The end of a process."""


def pairs(count=40, seed=0, missing=False):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 3, 2, generator=generator)
    made = Pairs(inputs, inputs.roll(1, 1)[..., :1] + 0.1 * torch.randn(count, 3, 1, generator=generator))
    observed = (torch.rand(made.targets.shape, generator=generator) > 0.2).float()
    return dataclasses.replace(made, observed=observed) if missing else made


def model(loss=None, link=None, predictor=None, **choices):
    rng = torch.Generator().manual_seed(0)
    graph = BernoulliGraph.uniform(3, generator=rng, link=link)
    predictor = predictor or HopPredictor.random(2, 2, generator=rng)
    return LatentGraphModel(graph, predictor, loss or EnergyScore(), num_graphs=4, **choices)


def see(edge_probs, parameters):
    return {"most": edge_probs.flatten(1).amax(1).tolist()}


def learn(
    checkpoint=None, stop_after=None, *, settings=SETTINGS, choices=None, seeds=(3, 7), missing=False, **keywords
):
    """Train; ``stop_after`` ends it, as at the end of a process, after so many steps of this call."""
    calls = []

    def watch(progress):
        calls.append(progress.step)
        if stop_after is not None and len(calls) > stop_after:
            raise Stop

    keywords = {"compile": False, "seeds": seeds, "on_progress": watch, "checkpoint": checkpoint} | keywords
    return fit(model(**(choices or {})), pairs(missing=missing), pairs(20, 1, missing), settings, **keywords)


def in_pieces(path, **keywords):
    """Train one step per call, each going on from the file that the last one left, until it is done."""
    for stops in range(200):
        try:
            return learn(Checkpoints(path, every=0), stop_after=1, **keywords), stops
        except Stop:
            continue
    raise RuntimeError("it never ends")


def content(result):
    """All that a fit returns, to the bit, apart from times and the model object."""
    found = {name: value for name, value in vars(result).items() if name not in ("model", *WHOLE)}
    found["history"] = [dataclasses.replace(epoch, seconds=0.0) for epoch in result.history]
    found["parameters"] = {name: (value.dtype, value.numpy().tobytes()) for name, value in result.parameters.items()}
    found["model"] = {name: value.numpy().tobytes() for name, value in result.model.state_dict().items()}
    return found


CASES = {
    "one replica": {"seeds": (5,)},
    "several replicas": {},
    "lifted": {"lift": "vmap"},
    "halving": {"settings": dataclasses.replace(SETTINGS, halve_after=(1, 2)), "seeds": (1, 2, 3, 4)},
    "halving, lifted": {
        "settings": dataclasses.replace(SETTINGS, halve_after=(1, 2)),
        "seeds": (1, 2, 3, 4),
        "lift": "vmap",
    },
    "patience": {"settings": dataclasses.replace(SETTINGS, epochs=9, patience=2, schedule=StepDecay(4.0, 4.0))},
    "no average": {"settings": dataclasses.replace(SETTINGS, average_fraction=0.0)},
    "average of all": {"settings": dataclasses.replace(SETTINGS, average_fraction=1.0, predictor_learning_rate=0.03)},
    "moving average": {"choices": {"loss": NodewiseExpectedError("mae")}},
    "moving average, lifted": {"choices": {"loss": NodewiseExpectedError("mae")}, "lift": "vmap"},
    "schedule of the estimator": {"choices": {"estimator": Concrete(1.0, 0.2)}},
    "schedule of the estimator, lifted": {"choices": {"estimator": Concrete(1.0, 0.2)}, "lift": "vmap"},
    "resamples": {
        "resamples": torch.stack([bootstrap_rows(40, generator=torch.Generator().manual_seed(s)) for s in (1, 2)])
    },
    "missing targets, prior, angles": {
        "missing": True,
        "choices": {"prior": EdgePrior(0.2), "link": SineSquared(), "loss": MMD(scope="joint")},
    },
    "monitor and trace": {"monitor": see, "trace": Trace(2, see)},
    "starts": {"starts": {"predictor.hop_weights": torch.linspace(-1, 1, 8).view(2, 2, 2, 1)}},
}


@pytest.mark.parametrize("case", CASES)
def test_stopped_after_every_step_it_ends_with_the_same_bits(case, tmp_path):
    whole = learn(**CASES[case])
    pieces, stops = in_pieces(tmp_path / "fit.safetensors", **CASES[case])
    assert stops == whole.steps - 1
    assert content(pieces) == content(whole)
    assert os.listdir(tmp_path) == ["fit.safetensors"]
    require_not_empty(case, whole)


def require_not_empty(case, result):
    """Each case differs from the plain one in what it is about: it could not pass by leaving that out."""
    if "halving" in case:
        assert sorted(replica.dropped_after or 0 for replica in result.replicas) == [0, 1, 1, 2]
    elif case == "patience":
        assert 2 <= len(result.history) < 9
    elif case == "monitor and trace":
        assert len(result.trace) == 3
        assert set(result.history[0].monitored) == {"most"}
    elif case not in ("one replica", "several replicas", "lifted"):
        assert content(result)["parameters"] != content(learn())["parameters"]


@pytest.mark.slow
def test_a_compiled_fit_too(tmp_path):
    checkpoint = Checkpoints(tmp_path / "fit.safetensors", every=0)
    whole = learn(compile=True)
    with pytest.raises(Stop):
        learn(checkpoint, stop_after=3, compile=True)
    resumed = learn(checkpoint, compile=True)
    assert whole.warnings == []
    assert content(resumed) == content(whole)


class NotLiftable(HopPredictor):
    def forward(self, inputs, graphs):
        return super().forward(inputs, graphs) * (1.0 if inputs.amax().item() > -1e9 else 0.0)


def test_what_could_not_be_lifted_goes_on_in_turn(tmp_path):
    case = CASES["halving, lifted"] | {"choices": {"predictor": NotLiftable(torch.full((2, 2, 1), 0.3))}}
    whole = learn(**case)
    pieces, _ = in_pieces(tmp_path / "fit.safetensors", **case)
    assert whole.warnings[0].startswith("the predictor does not support vmap")
    assert content(pieces) == content(whole)


def test_a_finished_fit_is_not_repeated(tmp_path):
    checkpoint = Checkpoints(tmp_path / "fit.safetensors", every=3600)
    first = learn(checkpoint)
    written = checkpoint.path.stat().st_mtime_ns
    again = learn(checkpoint, stop_after=0)  # any step would stop it
    assert content(again) == content(first)
    assert again.train_seconds == first.train_seconds
    assert checkpoint.path.stat().st_mtime_ns == written


def test_ctrl_c_leaves_the_checkpoint_and_the_fit_can_go_on(tmp_path):
    checkpoint = Checkpoints(tmp_path / "fit.safetensors", every=0)

    def interrupt(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    assert learn(checkpoint, on_progress=interrupt).interrupted
    resumed = learn(checkpoint)
    assert not resumed.interrupted
    assert content(resumed) == content(learn())


def test_seconds_add_up(tmp_path):
    checkpoint = Checkpoints(tmp_path / "fit.safetensors", every=0)

    def slow(progress):
        time.sleep(0.05)
        if progress.step == 3:
            raise Stop

    with pytest.raises(Stop):
        learn(checkpoint, on_progress=slow)
    resumed = learn(checkpoint)
    assert resumed.train_seconds > 0.15
    assert resumed.history[0].seconds > 0.1
    assert 0.05 < resumed.history[1].seconds < resumed.train_seconds - 0.1


def test_how_often(tmp_path, monkeypatch):
    """Every so many seconds, and never more than a hundredth of the time; the end is always written."""
    times, writes = [0.0], []

    def write(path, data):
        writes.append(times[0])
        times[0] += 0.2  # so that the next one waits for 20

    def second(progress):
        times[0] += 1.0

    monkeypatch.setattr(tacit.training.checkpoint.time, "monotonic", lambda: times[0])
    monkeypatch.setattr(tacit.training.checkpoint, "write_atomic", write)
    settings = dataclasses.replace(SETTINGS, epochs=15)  # 30 steps of a second
    learn(Checkpoints(tmp_path / "a", every=5), settings=settings, on_progress=second)
    assert writes == pytest.approx([5.0, 26.2, 30.4])
    times[0] = 0.0
    writes.clear()
    monkeypatch.setattr(tacit.training.checkpoint, "write_atomic", lambda *_: writes.append(times[0]))
    learn(Checkpoints(tmp_path / "a", every=7), settings=settings, on_progress=second)
    assert writes == pytest.approx([7.0, 14.0, 21.0, 28.0, 30.0])


@pytest.fixture(scope="module")
def after_two_steps(tmp_path_factory):
    """The checkpoint of a training that was stopped after two steps."""
    path = tmp_path_factory.mktemp("two") / "fit.safetensors"
    with pytest.raises(Stop):
        learn(Checkpoints(path, every=0), stop_after=2)
    return path.read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": dataclasses.replace(SETTINGS, epochs=5)},
        {"settings": dataclasses.replace(SETTINGS, halve_after=(1,))},
        {"settings": dataclasses.replace(SETTINGS, schedule=CosineDecay(0.2))},
        {"settings": dataclasses.replace(SETTINGS, min_draws_per_edge=0.5)},
        {"seeds": (3, 8)},
        {"compile": True},
        {"lift": "vmap"},
        {"choices": {"loss": EnergyScore(scope="joint")}},
        {"choices": {"loss": EnergyScore(baseline="none")}},
        {"choices": {"estimator": Concrete(1.0, 0.2)}},
        {"choices": {"prior": EdgePrior(0.2)}},
        {"choices": {"observation": GaussianNoise(3)}},
        {"choices": {"link": SineSquared()}},
        {"choices": {"share_graphs": True}},
        {"choices": {"predictor": NotLiftable(torch.ones(2, 2, 1))}},
        {"choices": {"predictor": HopPredictor(torch.ones(3, 2, 1))}},
        {"start_at_model": True},
        {"missing": True},
        {"resamples": torch.zeros(2, 40, dtype=torch.int64)},
        {"trace": Trace(2, see)},
    ],
)
def test_another_training_is_refused(changes, after_two_steps, tmp_path, refused):
    path = tmp_path / "fit.safetensors"
    path.write_bytes(after_two_steps)
    refused(learn, Checkpoints(path), **changes)
    assert path.read_bytes() == after_two_steps


def test_other_data_is_refused(tmp_path, refused):
    checkpoint, others = Checkpoints(tmp_path / "fit.safetensors", every=0), pairs()
    with pytest.raises(Stop):
        learn(checkpoint, stop_after=2)
    others.targets[17, 2, 0] += 1e-3
    refused(fit, model(), others, pairs(20, 1), SETTINGS, seeds=(3, 7), compile=False, checkpoint=checkpoint)
    others = pairs(20, 1)
    others.inputs[0, 0, 0] += 1e-3
    refused(fit, model(), pairs(), others, SETTINGS, seeds=(3, 7), compile=False, checkpoint=checkpoint)


def test_another_context_of_the_pairs_is_refused(tmp_path):
    """A graph distribution may depend on series, times and covariates of the pairs."""

    def with_context(one, **changes):
        count = torch.arange(len(one))
        context = {"series": count % 3, "times": count.double(), "covariates": torch.sin(count.float())[:, None]}
        return dataclasses.replace(one, **context | changes)

    def learn_from(train, validation, stop=None):
        return fit(
            model(), train, validation, SETTINGS, seeds=(3, 7), compile=False, checkpoint=checkpoint, on_progress=stop
        )

    def stop(progress):
        if progress.step == 3:
            raise Stop

    checkpoint = Checkpoints(tmp_path / "fit.safetensors", every=0)
    train, validation = with_context(pairs()), with_context(pairs(20, 1))
    with pytest.raises(Stop):
        learn_from(train, validation, stop)
    for name in ("series", "times", "covariates"):
        for change in (None, getattr(train, name) + 1):
            with pytest.raises(InputError, match=f"to another training run: another training {name};"):
                learn_from(with_context(pairs(), **{name: change}), validation)
        other = with_context(pairs(20, 1), **{name: getattr(validation, name) * 2})
        with pytest.raises(InputError, match=f"to another training run: another validation {name};"):
            learn_from(train, other)
    assert content(learn_from(train, validation)) == content(learn())


class TwoNumbers(HopPredictor):
    numbers_per_target = 2


def test_another_observation_model_without_parameters_is_refused(tmp_path, refused):
    """The predictor gives sigma, and the observation model reads it from where ``initial_sigma`` says."""

    def choices(sigma):
        return {
            "predictor": TwoNumbers(torch.ones(2, 2, 2)),
            "loss": MMD(),
            "observation": HeadGaussianNoise(initial_sigma=sigma),
        }

    checkpoint = Checkpoints(tmp_path / "fit.safetensors", every=0)
    with pytest.raises(Stop):
        learn(checkpoint, stop_after=2, choices=choices(0.5))
    refused(learn, checkpoint, choices=choices(0.6))
    assert content(learn(checkpoint, choices=choices(0.5))) == content(learn(choices=choices(0.5)))


def test_no_damaged_file_is_read(after_two_steps, tmp_path):
    """Cut off at any place, or with any one byte changed, it is refused, in one line, by an InputError.

    The one exception is the version that wrote it: no checksum covers it, and nothing that is read depends on it.
    """
    path, data = tmp_path / "fit.safetensors", after_two_steps
    KIND.unpack(data, "it")
    generator = torch.Generator().manual_seed(0)
    places = torch.randint(len(data), (300,), generator=generator).tolist()
    damaged = [data[:place] for place in places]
    version = range(data.index(b'"tacit":'), data.index(b'"text":'))
    places = [place for place in places if place not in version]
    damaged += [data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] for place in places]
    for other in (*damaged, b"", b"foreign" * 100, data + b"x"):
        with pytest.raises(
            InputError, match=r"^it .*(use the version that wrote it, or )?delete it to start again$"
        ) as caught:
            KIND.unpack(other, "it")
        assert "\n" not in str(caught.value)
    path.write_bytes(data[:-10])
    with pytest.raises(InputError, match=r"fit\.safetensors is a damaged checkpoint"):
        learn(Checkpoints(path))


def test_a_newer_format_and_another_kind(tmp_path, refused):
    path = tmp_path / "fit.safetensors"
    path.write_bytes(Kind("checkpoint", 2, "").pack({}, {}))
    refused(learn, Checkpoints(path))
    path.write_bytes(Kind("letter", 1, "").pack({}, {}))
    refused(learn, Checkpoints(path))
    path.unlink()
    path.mkdir()
    refused(learn, Checkpoints(path))


def test_what_is_written_is_text_and_tensors(tmp_path):
    path = tmp_path / "fit.safetensors"
    learn(Checkpoints(path))
    metadata = header_of(path.read_bytes())
    assert metadata["format"] == "1"
    text = json.loads(metadata["text"])
    assert text["steps_done"] == 6
    assert text["fingerprint"]["epochs"] == 3


def test_a_full_disk_is_an_error_and_the_last_checkpoint_stays_whole(tmp_path):
    """A limit on the size of files, as large as the file is: the next, longer one does not fit."""
    path = tmp_path / "fit.safetensors"
    with pytest.raises(Stop):
        learn(Checkpoints(path, every=0), stop_after=2)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) - 1, hard))
    try:
        with pytest.raises(OSError, match=r"File too large: .*fit\.safetensors"):
            learn(Checkpoints(path, every=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.safetensors"]
    assert content(learn(Checkpoints(path))) == content(learn())


@pytest.mark.parametrize("call", ["_write_to_disk", "fsync", "replace"])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), OSError(30, "Read-only file system"), Stop()]
)
def test_a_write_that_fails_anywhere_leaves_the_last_checkpoint(call, error, after_two_steps, tmp_path, monkeypatch):
    path, before = tmp_path / "fit.safetensors", after_two_steps
    path.write_bytes(before)

    def fail(*args, **kwargs):
        raise error

    owner = {"_write_to_disk": tacit.atomic_files, "replace": type(path), "fsync": os}[call]
    with monkeypatch.context() as patched:
        patched.setattr(owner, call, fail)
        with pytest.raises(type(error)) as caught:
            learn(Checkpoints(path, every=0))
    if isinstance(error, OSError):
        assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.safetensors"]


def test_a_directory_that_vanishes_is_an_error(tmp_path):
    path = tmp_path / "run" / "fit.safetensors"
    path.parent.mkdir()

    def remove(progress):
        if progress.step == 3:
            shutil.rmtree(path.parent)

    with pytest.raises(OSError, match=r"No such file or directory: .*fit\.safetensors"):
        learn(Checkpoints(path, every=0), on_progress=remove)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ahead", [1, 5])
def test_a_stream_goes_on_within_what_was_drawn_ahead(ahead):
    """On a GPU the bits of many steps are drawn at once; it can be stopped between any two of them."""
    stream, other = (UniformStream((2, 3, 3), generator_for(4, "graphs")) for _ in range(2))
    stream._ahead = other._ahead = ahead
    for _ in range(12):
        other.go_to(*stream.place())
        for _ in range(3):
            place = other.place()
        drawn = stream.draw()
        assert torch.equal(other.draw(), drawn)
        other.go_to(*place)
        assert torch.equal(other.draw(), drawn)


def test_wrong_calls(unchecked, tmp_path, refused):
    for every in (-1, float("inf"), "often"):
        with pytest.raises(InputError, match=f"every must be a non-negative number of seconds, got {every!r}"):
            Checkpoints(tmp_path / "a", every=every)
    refused(Checkpoints, "a")


# ---------------------------------------------------------------- a checkpoint that somebody made up, with a checksum t


EPOCH = {"epoch": 1, "learning_rate": 0.1, "train_loss": [1.0, 1.0], "validation_loss": [1.0, 1.0], "seconds": 1.0}


def learn_checkpoint_schema(path, stop_at=None):
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


@pytest.fixture(scope="module")
def of_a_stopped_training(tmp_path_factory):
    """The checkpoint of a training that was stopped in its second epoch."""
    path = tmp_path_factory.mktemp("stopped") / "c.safetensors"
    with pytest.raises(Stop):
        learn_checkpoint_schema(path, stop_at=3)
    return path.read_bytes()


@pytest.fixture
def stopped(of_a_stopped_training, tmp_path):
    """A copy of it to change."""
    (tmp_path / "c.safetensors").write_bytes(of_a_stopped_training)
    return tmp_path / "c.safetensors"


def test_it_goes_on_as_it_is(stopped):
    assert learn_checkpoint_schema(stopped).steps == 6


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
    refused(learn_checkpoint_schema, stopped)
    assert stopped.read_bytes() == data


@pytest.mark.parametrize(
    "change",
    [lambda value: torch.full_like(value, torch.nan), lambda value: value.double(), lambda value: value[:1], None],
)
@pytest.mark.parametrize("part", ["parameters", "averages", "first_moments", "second_moments", "best"])
def test_tensors_that_cannot_be(stopped, part, change, refused):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    name = next(name for name in sorted(tensors) if name.startswith(part))
    changed = {other: value for other, value in tensors.items() if other != name}
    stopped.write_bytes(KIND.pack(text, changed if change is None else changed | {name: change(tensors[name])}))
    refused(learn_checkpoint_schema, stopped)


@pytest.mark.parametrize("steps", [-1, 10**9])
def test_places_of_streams_that_cannot_be(stopped, steps, refused):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    stopped.write_bytes(KIND.pack(text, tensors | {"streams/steps": torch.full((2,), steps)}))
    refused(learn_checkpoint_schema, stopped)


def test_a_tensor_of_another_training(stopped, refused):
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    stopped.write_bytes(KIND.pack(text, tensors | {"parameters/predictor.bias": torch.zeros(2)}))
    refused(learn_checkpoint_schema, stopped)


def test_numbers_of_a_dropped_replica_need_not_be_finite(stopped):
    """Where one program computes all replicas, one that was dropped is still computed, and may diverge."""
    text, tensors = KIND.unpack(stopped.read_bytes(), "it")
    for name in [name for name in tensors if name.startswith(("parameters", "first_moments"))]:
        tensors[name][1] = torch.nan
    stopped.write_bytes(KIND.pack(text | {"dropped": {"1": 1}}, tensors))
    assert learn_checkpoint_schema(stopped).best == 0

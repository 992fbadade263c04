"""The step that a GPU records, which reads from buffers, is the step that runs elsewhere: the same body, on a CPU."""

import pytest
import torch

from tacit.estimators import Concrete
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore, NodewiseExpectedError
from tacit.predictors import HopPredictor
from tacit.randomness import JoinedStreams, UniformStream, generator_for
from tacit.systems import CommunitySystem
from tacit.training import FitSettings, LatentGraphModel, Processes
from tacit.training.gradient import WARM_UP_CALLS, DeviceBuffers, LiftedGradient, Recorded, read_buffers
from tacit.training.settings import StepPlan
from tacit.training.state import TrainingState
from tacit.training.step import TrainingStep

SEEDS, SETTINGS = (3, 7), FitSettings(epochs=2, batch_size=16, average_fraction=0.5, predictor_learning_rate=0.05)
CASES = {
    "floor": {"loss": EnergyScore(), "share_graphs": True},
    "carried": {"loss": NodewiseExpectedError("mae")},
    "schedule of the estimator": {"loss": EnergyScore(), "estimator": Concrete(1.0, 0.2)},
}


def trained(choices, *, lift, from_buffers):
    """Take two epochs of three steps; return the state."""
    pairs = CommunitySystem().generate(48, 0).to("cpu", torch.float64)
    rng = torch.Generator().manual_seed(0)
    graph, predictor = BernoulliGraph.uniform(12, generator=rng), HopPredictor.random(2, 4, generator=rng)
    model = LatentGraphModel(graph, predictor, num_graphs=4, **choices).double()
    plan = StepPlan.of(SETTINGS, model, len(pairs))
    state = TrainingState.create(model, SEEDS, plan)
    gradient = LiftedGradient(model, lift=lift, compile=False)
    step = TrainingStep(model, pairs, SETTINGS, state, gradient, Processes())
    if from_buffers:  # as on a GPU, where recording runs nothing else
        step._plan = torch.tensor(plan.numbers, dtype=torch.float64)
        step._buffers = DeviceBuffers(step._plan, step._joined)
    for _ in range(2):
        step.begin_epoch(torch.randint(48, (3, len(SEEDS), 16), generator=rng))
        for _ in range(3):
            step.take(range(len(SEEDS)))
        state.log.history.append(None)  # an epoch is over
    return state


@pytest.mark.parametrize("case", CASES)
def test_from_buffers_and_in_turn_it_is_the_same_step(case):
    plain = trained(CASES[case], lift="loop", from_buffers=False)
    for other in (
        trained(CASES[case], lift="vmap", from_buffers=False),
        trained(CASES[case], lift="vmap", from_buffers=True),
    ):
        assert other.log.steps_done == plain.log.steps_done == 6
        ours, theirs = plain._named(), other._named()
        assert ours.keys() == theirs.keys()
        for name, value in ours.items():
            torch.testing.assert_close(theirs[name], value, rtol=1e-9, atol=1e-11)
    assert plain.averages["graph.edge_logits"].any()
    for name in plain.changing:
        assert plain.constants[name].all()


# ---------------------------------------------------------------- device buffers


def streams(ahead):
    found = [UniformStream((2, 3), generator_for(seed, "buffers")) for seed in range(3)]
    for stream in found:
        stream._ahead = ahead
    return found


def test_every_step_finds_its_own(rng):
    """Over two epochs of five steps, with bits for three steps at a time, and an epoch that begins in the middle."""
    plan = torch.rand(10, 6, generator=rng)
    joined, alone = JoinedStreams(streams(3)), streams(3)
    buffers, step, places = DeviceBuffers(plan, joined), 0, set()
    for done in (0, 2, 3):
        order = torch.randint(100, (5, 3, 7), generator=rng)
        buffers.begin_epoch(step, order, done)
        for within in range(done, 5):
            inputs = buffers.prepare()
            places.add(tuple(part.data_ptr() for part in inputs))
            numbers, rows, (bytes_, fraction) = read_buffers(*inputs)
            wanted = [stream.bits() for stream in alone]
            assert torch.equal(torch.stack(numbers), plan[step])
            assert torch.equal(rows, order[within])
            assert torch.equal(bytes_, torch.stack([part for part, _ in wanted]))
            assert torch.equal(fraction, torch.stack([part for _, part in wanted]))
            step += 1
    assert len(places) == 1  # nothing moves in memory: a recorded step reads where it was recorded


# ---------------------------------------------------------------- replaying a recorded function, where there is no GPU


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="requires a CUDA device")


def test_without_a_gpu_every_call_is_a_plain_one():
    calls = []

    def double(values):
        calls.append(values)
        return (2 * values,)

    recorded = Recorded(double)
    for number in range(WARM_UP_CALLS + 3):
        assert recorded(torch.full((2,), float(number)))[0].tolist() == [2.0 * number] * 2
    assert len(calls) == WARM_UP_CALLS + 3
    assert recorded.fallback is None


@pytest.mark.gpu
@needs_gpu
def test_a_recorded_function_is_not_called_again_and_sees_new_inputs():
    calls, total = [], torch.zeros(2, device="cuda")

    def add(values):
        calls.append(1)
        total.add_(values)
        return (total * 10,)

    recorded = Recorded(add)
    for number in range(10):
        out = recorded(torch.full((2,), float(number), device="cuda"))[0]
        assert out.tolist() == [10.0 * sum(range(number + 1))] * 2
    assert len(calls) == WARM_UP_CALLS + 1  # the last of them was recorded
    assert recorded.fallback is None


@pytest.mark.gpu
@needs_gpu
def test_what_cannot_be_recorded_runs_as_before_and_says_why():
    total = torch.zeros(1, device="cuda")

    def looks(values):
        total.add_(values)
        return (values * float(values.sum().item()),)  # a look at a value stops the recording

    recorded = Recorded(looks)
    for number in range(8):
        assert recorded(torch.full((1,), float(number), device="cuda"))[0].item() == number**2
    assert total.item() == sum(range(8))
    assert recorded.fallback

"""The step that a GPU records, which reads from buffers, is the step that runs elsewhere: the same body, on a CPU."""

import pytest
import torch

from tacit.estimators import Concrete
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore, NodewiseExpectedError
from tacit.predictors import HopPredictor
from tacit.systems import CommunitySystem
from tacit.training import FitSettings, LatentGraphModel, Processes
from tacit.training.gradient import DeviceBuffers, LiftedGradient
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

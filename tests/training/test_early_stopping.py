"""Early stopping: the answer is the best epoch of each replica, and training ends when nothing gets better."""

import math

import pytest
import torch

from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.systems import CommunitySystem
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit, late_fall
from tacit.training.loop import better_than_best, keep_best
from tacit.training.settings import StepPlan
from tacit.training.state import TrainingState


def test_each_replica_keeps_its_own_best_epoch():
    model = LatentGraphModel(BernoulliGraph(torch.full((3, 3), 0.5)), HopPredictor(torch.ones(1, 1, 1)), EnergyScore())
    plan = StepPlan.of(FitSettings(), model, 10)
    state, name = TrainingState.create(model, (0, 1), plan, early_stopping=True), "graph.edge_logits"
    waited = []
    for epoch, losses in enumerate([[3.0, 1.0], [2.0, 5.0], [4.0, 6.0], [4.0, 7.0]]):
        state.validation_loss.copy_(torch.tensor(losses))
        state.parameters[name].fill_(epoch)
        keep_best(state)
        waited.append(state.log.epochs_without_gain)
    assert waited == [0, 0, 1, 2]
    assert state.best[name][:, 0, 0].tolist() == [1.0, 0.0]
    last = {name: torch.full((2, 3, 3), 9.0)}
    kept, losses = better_than_best(state, torch.tensor([9.0, 0.5]), last)
    assert kept[name][:, 0, 0].tolist() == [1.0, 9.0]
    assert losses.tolist() == [2.0, 0.5]


def test_a_fit_that_gets_worse_stops_and_returns_what_was_best():
    """The rate grows from nothing to absurd: the first epochs are the best, and the last are never taken."""
    pairs = CommunitySystem().generate(600, 0).split()
    rng = torch.Generator().manual_seed(0)
    graph, predictor = BernoulliGraph.uniform(12, generator=rng), HopPredictor.random(2, 4, generator=rng)
    model = LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4)

    def rising(epoch, epochs):
        return 0.05 if epoch < 2 else 20.0

    settings = FitSettings(epochs=30, schedule=rising, patience=2)
    result = fit(model, pairs.train, pairs.validation, settings, seeds=(0, 1), compile=False)
    assert len(result.history) < 30
    for number, replica in enumerate(result.replicas):
        assert replica.validation_loss <= min(line.validation_loss[number] for line in result.history)
    plain = fit(model, pairs.train, pairs.validation, FitSettings(epochs=3, schedule=CosineDecay(0.05)), compile=False)
    assert len(plain.history) == 3


def test_bad_patience(refused):
    refused(FitSettings, patience=0)


# ---------------------------------------------------------------- the rule that says whether training stopped too early


EPOCHS = 50
RATES = [CosineDecay(0.1)(epoch, EPOCHS) for epoch in range(EPOCHS)]


def falling(pace, floor=0.2):
    """A loss that falls with the sum of the learning rates, as fast as ``pace`` says."""
    total, losses = 0.0, []
    for rate in RATES:
        total += rate / sum(RATES)
        losses.append(floor + math.exp(-pace * total))
    return losses


@pytest.mark.parametrize(("pace", "converged"), [(1, False), (3, False), (8, True), (50, True)])
def test_a_loss_that_still_falls_is_noticed_though_the_learning_rate_is_gone(pace, converged):
    losses = falling(pace)
    assert losses[-6] - losses[-1] < 0.02  # flat at the end, whatever the pace
    assert (late_fall(RATES, losses) == 0) == converged


def test_what_is_no_sign_of_an_early_stop():
    assert late_fall([], []) == 0  # a closed form
    assert late_fall([0.1], [1.0]) == 0
    assert late_fall(RATES, [1.0, *[None] * (EPOCHS - 1)]) == 0  # a replica that was dropped
    assert late_fall(RATES, [1.0] * EPOCHS) == 0
    assert late_fall(RATES, [0.0] * EPOCHS) == 0
    assert late_fall(RATES, [1 + epoch / EPOCHS for epoch in range(EPOCHS)]) == 0  # it rises
    assert late_fall(RATES, [1e3, *falling(3)[1:]]) == 0  # next to nothing of the whole fall


def test_two_epochs_are_too_few_where_the_second_still_helps():
    assert late_fall([0.1, 0.1], [1.0, 0.5]) == pytest.approx(1.0)
    assert late_fall([0.1, 0.1], [1.0, 0.99]) == 0

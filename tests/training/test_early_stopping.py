"""Early stopping: the answer is the best epoch of each replica, and training ends when nothing gets better."""

import torch

from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.systems import CommunitySystem
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit
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

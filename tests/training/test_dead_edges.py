"""No edge dies: what a few noisy steps drive towards 0 is still drawn while steps are large, and returns."""

import pytest
import torch

from tacit.config import DemoConfig
from tacit.graph import BernoulliGraph, Sigmoid, SineSquared
from tacit.losses import MMD
from tacit.systems import CommunitySystem, community_edge_probs
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, StepDecay, fit
from tacit.training.gradient import StepResult
from tacit.training.settings import HIGHEST_FLOOR, StepNumbers, StepPlan, edge_floor
from tacit.training.state import TrainingState, initial_stacks
from tacit.training.step import Update

SEEDS = (0, 1)
SYSTEM = CommunitySystem(community_edge_probs(1))  # 6 nodes, 24 of 36 probabilities are 0.75


def model_of(graph, **choices):
    return LatentGraphModel(graph, SYSTEM.true_predictor(), MMD(), **{"num_graphs": 8, "share_graphs": True} | choices)


def lowest_true_probs(**choices):
    """Return the lowest probability among the true edges of each run: two seeds, 200 noisy steps."""
    pairs = SYSTEM.generate(2000, 0).split()
    model = model_of(BernoulliGraph.uniform(6, generator=torch.Generator().manual_seed(0)))
    settings = FitSettings(epochs=4, batch_size=32, schedule=CosineDecay(0.2), **choices)
    result = fit(model, pairs.train, pairs.validation, settings, seeds=SEEDS, compile=False)
    probs = model.graph.probs_from(result.parameters["graph.edge_logits"])
    return probs[:, SYSTEM.true_edge_probs > 0].amin(1)


def test_true_edges_die_without_the_floor_and_none_with_it(unchecked):
    assert (lowest_true_probs(min_draws_per_edge=0.0) < 0.075).all()
    assert (lowest_true_probs() > 0.375).all()


@pytest.mark.parametrize("schedule", [CosineDecay(), StepDecay()])
@pytest.mark.parametrize(("choices", "first"), [({}, HIGHEST_FLOOR), ({"share_graphs": False}, 1 / (8 * 50))])
def test_the_floor_of_a_training(schedule, choices, first):
    """It falls along a line to 0 after 0.4 of the steps, whatever the schedule and the averaging."""
    model, pairs = model_of(BernoulliGraph(torch.full((6, 6), 0.5)), **choices), 500
    settings = FitSettings(epochs=2, batch_size=50, schedule=schedule, average_fraction=0.0)
    floors = [numbers.floor for numbers in StepPlan.of(settings, model, pairs).numbers]
    assert floors == pytest.approx([first * max(0, 1 - step / 8) for step in range(20)], abs=1e-15)
    assert floors[8:] == [0.0] * 12


def pushed(graph, floor, *, min_draws_per_edge=1.0, steps=100):
    """Return the probabilities after large steps, up in the first replica and down in the second."""
    model, settings = model_of(graph), FitSettings(min_draws_per_edge=min_draws_per_edge)
    stacks = initial_stacks(model, SEEDS, fresh=False)
    state = TrainingState.create(model, SEEDS, StepPlan.of(settings, model, 10), stacks)
    update, name = Update(state, settings), f"graph.{graph.link.parameter}"
    away = torch.tensor([-1.0, 1.0])[:, None, None].expand(2, 6, 6)
    numbers = StepNumbers(0.1, 0.0, 0.0, floor, 1.0, 1.0)
    for _ in range(steps):
        update(StepResult({name: away}, torch.ones(2, 1), torch.ones(2, 1), {}), numbers)
    return graph.probs_from(state.parameters[name]), state.parameters[name]


def test_probabilities_stop_at_the_floor_on_both_sides():
    probs, _ = pushed(BernoulliGraph(torch.full((6, 6), 0.5)), 0.02)
    assert torch.allclose(probs[0], torch.tensor(0.98), atol=1e-6)
    assert torch.allclose(probs[1:], torch.tensor(0.02), atol=1e-6)


@pytest.mark.parametrize("choices", [{"floor": 0.0}, {"floor": 0.02, "min_draws_per_edge": 0.0}])
def test_a_floor_of_nothing_changes_nothing(choices):
    """100 steps of 0.1 in the logit: 10 in all."""
    probs, _ = pushed(BernoulliGraph(torch.full((6, 6), 0.5)), **choices)
    assert probs[1:].max() < 1e-4
    assert probs[0].min() > 1 - 1e-4


def test_entries_that_are_held_stay():
    probs, fixed = torch.full((6, 6), 0.5), torch.eye(6, dtype=torch.bool)
    probs[0, 0], probs[1, 1], probs[2, 2] = 0.0, 1.0, 0.001
    ended, raw = pushed(BernoulliGraph(probs, fixed=fixed), 0.02, steps=5)
    assert torch.equal(ended[:, fixed], probs[fixed].expand(2, 6))
    assert (raw[:, 2, 2] < -6).all()  # what is stored is not lifted either


def test_both_entries_of_a_symmetric_pair():
    probs, _ = pushed(BernoulliGraph(torch.full((6, 6), 0.5), symmetric=True), 0.02)
    assert torch.equal(probs, probs.mT)
    assert torch.allclose(probs[1:], torch.tensor(0.02), atol=1e-6)


def test_what_is_at_0_or_1_stays():
    probs = torch.full((6, 6), 0.5)
    probs[0, 0], probs[1, 1] = 0.0, 1.0
    ended, _ = pushed(BernoulliGraph(probs), 0.02, steps=5)
    assert (ended[:, 0, 0] == 0).all()
    assert (ended[:, 1, 1] == 1).all()


def test_a_start_at_a_trained_model_is_not_lifted():
    graph, pairs = BernoulliGraph(torch.full((6, 6), 1e-3)), SYSTEM.generate(64, 0)
    settings = FitSettings(epochs=1, batch_size=32, schedule=CosineDecay(1e-6))
    fit(model_of(graph), pairs, pairs, settings, compile=False, start_at_model=True)
    assert torch.allclose(graph.edge_probs, torch.tensor(1e-3), atol=1e-6)


def test_links_at_the_floor():
    raw, floor = torch.tensor([-9.0, 0.3, 9.0]), torch.tensor(0.02)
    assert torch.allclose(
        Sigmoid().probs(Sigmoid().clamp_probs(raw, floor)), torch.tensor([0.02, 0.5744, 0.98]), atol=1e-4
    )
    assert torch.equal(SineSquared().clamp_probs(raw, floor), raw)  # angles pass through 0


def test_few_graphs_need_a_floor_and_many_do_not():
    assert edge_floor(1.0, 16, 0.0) == HIGHEST_FLOOR
    assert edge_floor(2.0, 2048, 0.0) == 2 / 2048
    assert edge_floor(0.0, 16, 0.0) == 0


def test_the_setting(unchecked, refused):
    refused(FitSettings, min_draws_per_edge=-1.0)
    config = DemoConfig.model_validate({"training": {"min_draws_per_edge": 0.25}})
    assert config.training.build().min_draws_per_edge == 0.25
    assert DemoConfig().training.build().min_draws_per_edge == FitSettings().min_draws_per_edge

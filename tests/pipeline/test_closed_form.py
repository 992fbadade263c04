"""Linear filters with Gaussian noise are fitted without training, unless the training was asked for or fits better."""

import numpy as np
import pandas as pd
import pytest
import torch

from parent_sets import var_series
from tacit.assessment.fit_tests import graph_controls
from tacit.config import FitConfig
from tacit.pipeline import closed_form, fitting
from tacit.pipeline.closed_form import CHOICE, OTHERWISE, fit_closed_form
from tacit.pipeline.fitting import learn
from tacit.pipeline.plan import Plan
from tacit.pipeline.sources import read_table

WEIGHTS = np.array([[0.5, 0.4, 0.0], [0.0, 0.3, 0.0], [0.0, -0.4, 0.4]])


def plan_of(values=None, **sections):
    values = var_series(0, WEIGHTS, 600) if values is None else values
    frame = pd.DataFrame(values, columns=list("abc"), index=pd.RangeIndex(len(values), name="time"))
    config = FitConfig.model_validate({"data": {"window": 1}, "assessment": {"enabled": False}, **sections})
    return Plan.make(read_table(frame, config.data), config, seed=0, device=torch.device("cpu"), command="tacit fit")


def least_squares(train, node, sources):
    """Weights of a node's own value and of its sources, and an intercept."""
    inputs, targets = train.inputs[:, :, 0].double().numpy(), train.targets[:, node, 0].double().numpy()
    design = np.column_stack([inputs[:, [node, *sources]], np.ones(len(inputs))])
    return np.linalg.lstsq(design, targets, rcond=None)[0], design, targets


def test_a_fixed_graph_is_fitted_by_least_squares_without_a_step():
    plan = plan_of()
    learned = learn(plan)
    assert learned.result.steps == 0
    assert learned.result.history == []
    choices = learned.conclude().record.choices
    assert CHOICE + OTHERWISE in choices
    assert not any(line.startswith(("epochs", "batch_size", "replicas")) for line in choices)
    model, train = learned.result.model, plan.dataset.split.train
    probs = model.graph.edge_probs.detach()
    assert probs[[0, 2], [1, 1]].tolist() == [1.0, 1.0]
    found, design, targets = least_squares(train, 0, [1])
    predicted = model.predictor(train.inputs, (probs > 0.5).float().expand(len(train), 1, 3, 3))[:, 0, 0, 0]
    np.testing.assert_allclose(predicted.detach().numpy(), design @ found, atol=0.04)  # it weighs rows by variance
    left = float(np.std(targets - design @ found))
    assert float(model.observation.log_sigma[0, 0].detach().exp()) == pytest.approx(left, rel=0.05)


def test_gates_that_open_at_times_are_found_in_closed_form():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3000, 3))
    for now in range(1, len(values)):
        gate = rng.random() < 0.6
        values[now, 0] = 0.3 * values[now - 1, 0] + 2 * gate * values[now - 1, 1] + 0.5 * values[now, 0]
    learned = learn(plan_of(values))
    assert learned.result.steps == 0
    assert float(learned.result.model.graph.edge_probs[0, 1].detach()) == pytest.approx(0.6, abs=0.05)


@pytest.mark.parametrize(
    "training", [{"epochs": 1}, {"replicas": 2, "epochs": 1}, {"learning_rate": 0.02, "epochs": 1}]
)
def test_any_option_of_the_training_trains(training):
    plan = plan_of(training=training)
    assert not plan.closed_form
    assert plan_of(training={"compile": False}).closed_form  # how a step is computed is no option of the answer


def test_an_answer_that_forecasts_worse_gives_way_to_training(monkeypatch):
    monkeypatch.setattr(closed_form, "adopt", lambda *_args, **_options: False)
    plan = plan_of()
    split = plan.dataset.split
    before = {name: value.clone() for name, value in plan.model.state_dict().items()}
    assert fit_closed_form(plan.model, split, 0) is None
    assert all(torch.equal(before[name], value) for name, value in plan.model.state_dict().items())
    learned = learn(plan)
    assert learned.result.steps > 0
    choices = learned.conclude().record.choices
    assert CHOICE not in choices
    assert any(line.startswith("epochs = ") for line in choices)


def test_noise_that_follows_the_input_is_trained():
    assert not plan_of(observation={"kind": "gaussian_input"}).closed_form


def test_ctrl_c_while_training_again_keeps_the_first_fit(monkeypatch):
    def stopped(*_given):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "with_needed_edges", stopped)
    learned = learn(plan_of())
    assert not learned.complete
    assert learned.conclude().record.metrics["crps"] > 0


def test_controls_in_closed_form_are_regressions_without_edges_and_with_all():
    plan = plan_of()
    split, dropped = plan.dataset.split, plan.model.graph.placed(plan.evidence.dropped)
    controls = graph_controls(
        plan.model, split.train, split.validation, dropped=dropped, at_regression=True, closed_form=True
    )
    for control, sources, present in ((controls.absent, [], 0.0), (controls.present, [1, 2], 1.0)):
        found, design, _ = least_squares(split.train, 0, sources)
        graphs = torch.full((len(split.train), 1, 3, 3), present)
        predicted = control.predictor(split.train.inputs, graphs)[:, 0, 0, 0].detach().numpy()
        np.testing.assert_allclose(predicted, design @ found, atol=0.03)

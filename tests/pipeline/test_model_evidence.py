"""Where influences pass several edges the fitted model says which edges exist, and goes on with those alone."""

from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np
import pytest
import torch

from tacit.assessment.evidence import KEEP
from tacit.assessment.evidence.model_evidence import Course
from tacit.config import FitConfig
from tacit.data import pairs_from_arrays
from tacit.graph import BernoulliGraph
from tacit.pipeline import Source, resolve
from tacit.pipeline.model_evidence import judge_edges, judges_edges, prior_probs
from tacit.predictors import HopPredictor
from tacit.training import FitSettings, fit

WEIGHTS = torch.tensor([[0.8], [-0.6]])[..., None]  # (hop, in_channel, channel)
TRUTH = torch.zeros(3, 3)
TRUTH[[1, 2], [0, 1]] = 0.75

removal = import_module("tacit.assessment.evidence.model_evidence")  # the name in the package is the function


def make_plan(num_pairs=600, **graph):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(num_pairs, 3, 1, generator=generator)
    graphs = BernoulliGraph(TRUTH).sample(1, num_pairs=num_pairs, generator=generator)
    targets = HopPredictor(WEIGHTS)(inputs, graphs)[:, 0].detach()
    config = FitConfig.model_validate(
        {"predictor": {"kind": "hops"}, "graph": graph, "training": {"compile": False}, "data": {"shuffle": False}}
    )
    source = Source("pairs", pairs_from_arrays(inputs.numpy(), targets.numpy()))
    return resolve(source, config, seed=0, device=torch.device("cpu"), command="tacit fit")


@pytest.fixture
def quick(monkeypatch):
    """Short trainings, all replicas in one program."""
    monkeypatch.setattr(removal, "fit", partial(removal.fit, lift="vmap"))
    monkeypatch.setattr(removal, "SEARCH", Course(32, 0.5))
    monkeypatch.setattr(removal, "SETTLE", Course(32, 0.5))


def test_edges_that_do_not_exist_are_held_at_0(quick):
    plan = make_plan()
    split = plan.dataset.split
    model = plan.model
    model.graph.start_around(torch.where(TRUTH > 0, 0.7, 0.08).double())
    model.predictor.load_state_dict({"hop_weights": WEIGHTS.double()})
    result = fit(model, split.train, split.validation, FitSettings(epochs=1), compile=False, start_at_model=True)
    found = judge_edges(replace(plan, fitted=replace(result, history=result.history * 4)))
    off_diagonal = ~torch.eye(3, dtype=torch.bool)
    assert np.array_equal(found.edges.matrix("exists") >= KEEP, (TRUTH > 0).numpy())
    assert torch.equal(found.dropped, (TRUTH == 0) & off_diagonal)
    assert torch.equal(found.result.model.graph.learned, TRUTH > 0)
    assert torch.equal(found.untrained.graph.learned, TRUTH > 0)
    assert found.tested["prior"]["density"] == pytest.approx(0.1)


def test_the_edges_that_are_kept_are_learned_without_the_prior(quick):
    plan = make_plan(density=0.2)
    split, model = plan.dataset.split, plan.model
    assert model.prior is not None
    model.graph.start_around(torch.where(TRUTH > 0, 0.7, 0.08).double())
    model.predictor.load_state_dict({"hop_weights": WEIGHTS.double()})
    result = fit(model, split.train, split.validation, FitSettings(epochs=1), compile=False, start_at_model=True)
    found = judge_edges(replace(plan, fitted=replace(result, history=result.history * 4)))
    assert found.result.model.prior is None
    assert found.untrained.prior is None


@pytest.mark.parametrize(("options", "asked"), [({}, True), ({"evidence": "none"}, False)])
def test_the_model_is_asked_where_influences_pass_several_edges(options, asked):
    plan = make_plan(100, **options)
    assert judges_edges(plan) is asked


def test_beliefs_of_single_edges_replace_the_density():
    plan = make_plan(100, priors=[["0", "2", 0.9]])
    assert prior_probs(plan.rules, 0.2)[2].tolist() == pytest.approx([0.9, 0.2, 0.2])

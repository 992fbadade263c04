"""Fits of conditional graphs and of mixtures: what they find; replicas, compiled steps and checkpoints as elsewhere."""

import dataclasses

import pytest
import torch

from tacit.data import Pairs
from tacit.graph import (
    BernoulliGraph,
    Category,
    ConditionalBernoulliGraph,
    Context,
    MixtureGraph,
    SeriesNumber,
    shrinkage_of,
)
from tacit.losses import EnergyScore
from tacit.predictors import HopPredictor
from tacit.training import Checkpoints, FitSettings, LatentGraphModel, fit

# Whole trainings: shapes are checked where gradients are compared with sums over all graphs.
pytestmark = pytest.mark.usefixtures("unchecked")


def conditional(**choices):
    """200 pairs whose edge 0 <- 1 acts in series 1 alone, and a model for them."""
    rng = torch.Generator().manual_seed(0)
    inputs, series = torch.rand(200, 2, 1, generator=rng) + 0.5, torch.arange(200) % 2
    targets = torch.zeros(200, 2, 1)
    targets[:, 0] = inputs[:, 1] * (series == 1)[:, None]
    pairs = Pairs(inputs, torch.tanh(targets), series=series)
    start = BernoulliGraph(torch.tensor([[0.0, 0.5], [0.0, 0.0]]), torch.tensor([[True, False], [True, True]]))
    variable = Category("series", SeriesNumber(), labels=("a", "b"))
    graph = ConditionalBernoulliGraph(start, [variable], Context.of(pairs), **choices)
    predictor = HopPredictor(torch.ones(1, 1, 1)).requires_grad_(False)
    return LatentGraphModel(graph, predictor, EnergyScore(), num_graphs=4), pairs


def mixture(blocks="rows"):
    """400 pairs in which node 0 reads both nodes or none, and a model for them."""
    rng = torch.Generator().manual_seed(0)
    inputs = torch.rand(400, 2, 1, generator=rng) + 0.5
    both = (torch.arange(400) % 2).float()[:, None]
    targets = torch.zeros(400, 2, 1)
    targets[:, 0] = inputs.sum(1) * both
    start = BernoulliGraph(torch.tensor([[0.5, 0.5], [0.0, 0.0]]), torch.tensor([[False, False], [True, True]]))
    predictor = HopPredictor(torch.ones(1, 1, 1)).requires_grad_(False)
    model = LatentGraphModel(MixtureGraph(start, 2, blocks), predictor, EnergyScore(), num_graphs=6)
    return model, Pairs(inputs, torch.tanh(targets))


MAKE = {
    "conditional": conditional,
    "conditional, shrunk": lambda: conditional(shrinkage=0.01),
    "conditional, network": lambda: conditional(rank=2),
    "mixture of rows": mixture,
    "mixture of graphs": lambda: mixture("all"),
}
SETTINGS = FitSettings(epochs=2, batch_size=20)


def learn(name, **options):
    model, pairs = MAKE[name]()
    return fit(model, pairs, pairs, SETTINGS, **{"compile": False} | options)


def test_a_fit_finds_the_situation_in_which_an_edge_acts():
    model, pairs = conditional()
    fit(model, pairs, pairs, FitSettings(epochs=8, batch_size=20), compile=False)
    probs = torch.sigmoid(model.graph.condition(Context.of(pairs[:2])).logits)[:, 0, 1]
    assert probs[0] < 0.1
    assert probs[1] > 0.9
    assert float(model.graph.edge_probs[0, 1].detach()) == pytest.approx(0.5, abs=0.1)


def test_more_shrinkage_leaves_less_dependence():
    sizes = []
    for shrinkage in (0.0, 10 * shrinkage_of(200, 2, 0.5, deviation=0.1)):
        model, pairs = conditional(shrinkage=shrinkage)
        fit(model, pairs, pairs, FitSettings(epochs=8, batch_size=20), compile=False)
        sizes.append(float(model.graph.weights().detach().norm()))
    assert sizes[1] < 0.5 * sizes[0]


def test_a_fit_finds_edges_that_come_together():
    model, pairs = mixture()
    fit(model, pairs, pairs, FitSettings(epochs=10, batch_size=40), seeds=(0, 1), compile=False)
    probs, weights = model.graph.regime_probs.detach()[:, 0], model.graph.regime_weights.detach()[0]
    assert torch.allclose(probs.sort(0).values, torch.tensor([[0.0, 0.0], [1.0, 1.0]]), atol=0.2)
    assert torch.allclose(weights, torch.tensor([0.5, 0.5]), atol=0.1)


@pytest.mark.parametrize("name", [name for name in MAKE if "shrunk" not in name])
def test_replicas_equal_fits_alone(name):
    alone = [learn(name, seeds=(seed,), lift="loop").parameters for seed in (3, 7)]
    for lift in ("loop", "vmap"):
        both = learn(name, seeds=(3, 7), lift=lift)
        assert not both.warnings
        for place, parameters in enumerate(alone):
            for key, value in parameters.items():
                assert torch.allclose(both.parameters[key][place], value[0], atol=1e-5), (lift, key)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conditional", "mixture of rows"])
def test_compiled_equals_eager(name):
    eager, compiled = (learn(name, compile=compile) for compile in (False, True))
    assert not compiled.warnings
    for key, value in eager.parameters.items():
        assert torch.allclose(compiled.parameters[key], value, atol=1e-4), key


@pytest.mark.parametrize("name", ["conditional, shrunk", "mixture of rows"])
def test_a_stopped_fit_ends_with_the_same_bits(name, tmp_path):
    class Stop(BaseException):
        pass

    whole, file = learn(name, seeds=(1, 2)), Checkpoints(tmp_path / "fit.pt", every=0)
    for until in (4, 13):

        def watch(progress, until=until):
            if progress.step > until:
                raise Stop

        with pytest.raises(Stop):
            learn(name, seeds=(1, 2), checkpoint=file, on_progress=watch)
    again = learn(name, seeds=(1, 2), checkpoint=file)
    for key, value in whole.parameters.items():
        assert torch.equal(again.parameters[key], value), key
    assert [dataclasses.replace(epoch, seconds=0.0) for epoch in again.history] == [
        dataclasses.replace(epoch, seconds=0.0) for epoch in whole.history
    ]

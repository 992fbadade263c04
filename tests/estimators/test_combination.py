"""What goes together and what does not; refusals name what would do instead."""

import itertools

import pytest
import torch

from tacit.estimators import (
    Concrete,
    DisARM,
    GlobalCredit,
    OwnRowCredit,
    ReceptiveFieldCredit,
    ScoreFunction,
    StraightThrough,
)
from tacit.graph import BernoulliGraph, EdgePrior
from tacit.losses import ELBO, MMD, EnergyScore, ExpectedError, NodewiseExpectedError, PointMSE
from tacit.predictors import HopPredictor
from tacit.training import LatentGraphModel

ALL_LOSSES = [
    MMD(),
    MMD(scope="joint"),
    EnergyScore(),
    EnergyScore(scope="joint"),
    PointMSE(),
    ExpectedError("mae"),
    ExpectedError("mse", scope="joint"),
    NodewiseExpectedError("mae"),
    NodewiseExpectedError("mse"),
    ELBO(),
]
ALL_ESTIMATORS = [ScoreFunction(), DisARM(), StraightThrough(), Concrete()]


def build(loss, estimator=None, num_graphs=4, **choices):
    rng = torch.Generator().manual_seed(0)
    graph, predictor = BernoulliGraph.uniform(3, generator=rng), HopPredictor.random(2, 1, generator=rng)
    return LatentGraphModel(graph, predictor, loss, estimator=estimator, num_graphs=num_graphs, **choices)


@pytest.mark.parametrize(("loss", "estimator"), list(itertools.product(ALL_LOSSES, ALL_ESTIMATORS)))
def test_every_loss_goes_with_every_estimator_that_can_serve_it(rng, loss, estimator, refused):
    """Literature 2 is made by whom it credits, which gradients through the graph cannot do; all else goes."""
    if isinstance(loss, NodewiseExpectedError) and not estimator.takes_credit:
        refused(build, loss, estimator)
        return
    model = build(loss, estimator)
    inputs, targets = torch.randn(5, 3, 1, generator=rng), torch.randn(5, 3, 1, generator=rng)
    model.check(inputs, targets)
    uniforms = torch.rand(model.uniforms_shape(5), generator=rng)
    objective, (losses, *_) = model(inputs, targets, uniforms)
    gradients = torch.autograd.grad(objective, [model.graph.edge_logits, model.predictor.hop_weights])
    assert losses.shape == (5,)
    assert all(torch.isfinite(g).all() and (g != 0).any() for g in gradients)


@pytest.mark.parametrize("estimator", [StraightThrough(), Concrete()])
def test_estimators_without_a_baseline_need_no_graph_for_it(estimator):
    model = build(MMD(), estimator, num_graphs=2)
    assert model.loss == MMD(baseline="none")


def test_credit_is_as_local_as_it_can_be():
    assert build(EnergyScore()).estimator.credit == ReceptiveFieldCredit(2)
    assert build(EnergyScore(scope="joint")).estimator.credit == GlobalCredit()
    assert build(NodewiseExpectedError()).estimator.credit == OwnRowCredit()
    assert build(PointMSE(), DisARM(), credit="global").estimator.credit == GlobalCredit()


def test_refusals_name_what_would_do(unchecked, refused):
    refused(build, EnergyScore(), StraightThrough(), credit="receptive_field")
    refused(build, EnergyScore(scope="joint"), credit="receptive_field")
    refused(build, NodewiseExpectedError(), credit="global")
    refused(build, EnergyScore(), credit="own_row")
    refused(build, MMD(), num_graphs=2)
    refused(build, PointMSE(baseline="none"), num_graphs=1)
    refused(build, ExpectedError("mse"), num_graphs=1)
    refused(build, EnergyScore(), DisARM(), num_graphs=2)
    refused(build, EnergyScore(), DisARM(), num_graphs=5)
    refused(build, EnergyScore(), "disarm")
    refused(build, EnergyScore(), DisARM)
    refused(build, EnergyScore(), prior=0.5)
    refused(build, ELBO(), prior=EdgePrior(0.5))
    refused(build, EnergyScore(), prior=EdgePrior(torch.full((2, 2), 0.5)))
    refused(Concrete, 0.1, 1.0)
    refused(Concrete, 1.0, 0.0)
    refused(Concrete, "hot")

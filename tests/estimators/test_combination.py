"""What goes together and what does not; refusals name what would do instead."""

import itertools

import pytest
import torch

from tacit.errors import InputError
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
def test_every_loss_goes_with_every_estimator_that_can_serve_it(rng, loss, estimator):
    """Literature 2 is made by whom it credits, which gradients through the graph cannot do; all else goes."""
    if isinstance(loss, NodewiseExpectedError) and not estimator.takes_credit:
        names = f"NodewiseExpectedError with {type(estimator).__name__} cannot be combined"
        with pytest.raises(
            InputError, match=names + r".*use ScoreFunction\(\) or DisARM\(\), or the loss ExpectedError"
        ):
            build(loss, estimator)
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


REFUSALS = {
    "credit through graphs": (
        lambda: build(EnergyScore(), StraightThrough(), credit="receptive_field"),
        r"credit='receptive_field' requires an estimator that weighs graphs by their cost, got StraightThrough; "
        r"use ScoreFunction\(\) or DisARM\(\), or credit='auto'",
    ),
    "own row at joint scope": (
        lambda: build(EnergyScore(scope="joint"), credit="receptive_field"),
        "credit='receptive_field' requires a loss of node scope, got joint scope",
    ),
    "literature 2 with another credit": (
        lambda: build(NodewiseExpectedError(), credit="global"),
        "NodewiseExpectedError requires credit='own_row', got 'global'; use credit='auto', or the loss ExpectedError",
    ),
    "own row with two hops": (
        lambda: build(EnergyScore(), credit="own_row"),
        "credit='own_row' is exact only for one hop, and HopPredictor does not declare num_hops=1; use credit='auto'",
    ),
    "two graphs, leave-one-out": (
        lambda: build(MMD(), num_graphs=2),
        r"MMD with baseline 'leave_one_out' requires num_graphs >= 3, got 2; raise num_graphs, or use baseline='none'",
    ),
    "one graph, pairwise": (
        lambda: build(PointMSE(baseline="none"), num_graphs=1),
        "PointMSE with baseline 'none' requires num_graphs >= 2, got 1; raise num_graphs, or use loss ExpectedError",
    ),
    "one graph, leave-one-out": (
        lambda: build(ExpectedError("mse"), num_graphs=1),
        "ExpectedError with baseline 'leave_one_out' requires num_graphs >= 2, got 1; raise num_graphs, "
        "or use baseline",
    ),
    "one antithetic pair, pairwise": (
        lambda: build(EnergyScore(), DisARM(), num_graphs=2),
        "EnergyScore with DisARM, which draws 2 at a time, requires num_graphs >= 4, got 2",
    ),
    "odd antithetic": (
        lambda: build(EnergyScore(), DisARM(), num_graphs=5),
        r"DisARM draws 2 graphs at a time, so num_graphs must be a multiple of 2, got 5; use 6 or ScoreFunction",
    ),
    "estimator by name": (
        lambda: build(EnergyScore(), "disarm"),
        r"estimator must be an object like ScoreFunction\(\), got 'disarm'; build one",
    ),
    "estimator by class": (lambda: build(EnergyScore(), DisARM), "estimator must be an object like ScoreFunction"),
    "prior as number": (
        lambda: build(EnergyScore(), prior=0.5),
        r"prior must be an object like EdgePrior\(0.1, weight=0.01\), got float; build one",
    ),
    "two priors": (
        lambda: build(ELBO(), prior=EdgePrior(0.5)),
        "ELBO has its own prior and does not accept a second one; pass the prior to the loss",
    ),
    "prior of another size": (
        lambda: build(EnergyScore(), prior=EdgePrior(torch.full((2, 2), 0.5))),
        r"prior must have shape \(3, 3\) like the graph, got \(2, 2\); pass one probability per ordered pair",
    ),
    "hot end": (
        lambda: Concrete(0.1, 1.0),
        "temperatures must satisfy 0 < last <= first, got first=0.1 and last=1.0; pass for example first=1.0, last=0.1",
    ),
    "no temperature": (lambda: Concrete(1.0, 0.0), "last must be positive, got 0.0; pass for example 0.1"),
    "words as temperature": (lambda: Concrete("hot"), "first must be positive, got 'hot'"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_what_would_do(name, unchecked):
    call, message = REFUSALS[name]
    with pytest.raises(InputError, match=message):
        call()

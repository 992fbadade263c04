"""The two regressions of a node: where they end, their weights, and sources that are left out."""

from dataclasses import replace

import pytest
import torch

from gates import node_data
from tacit.local import fit_moments
from tacit.local.moments import KNOTS, regress


def every(replicas, sources):
    return torch.ones(replicas, sources, dtype=torch.bool)


def test_regressions_end_where_the_pseudo_likelihood_has_no_slope():
    """One lag: the derivative of the normal log-density, of the mean given the variance and the other way around."""
    node = node_data(400)
    found = fit_moments(node, torch.ones(1, 400).double(), every(1, 2), rounds=200)
    assert (found.ratios > 0).all()
    own, edges, noise = (value[0].clone().requires_grad_() for value in (found.own, found.edges, found.noise))
    slopes = (found.slopes[0] * found.edges[0, :, 0].square()).requires_grad_()  # of the squared inputs
    sent = node.sent[..., 0].mT
    variances = node.spread @ noise + sent.square() @ slopes
    straight = node.targets - node.own @ own - sent @ edges[:, 0]
    squares = (straight.detach() - found.bends[0]).square() / (1 - found.leverages[0])
    assert torch.allclose(squares, found.squares[0])
    mean = (straight.square() / variances.detach()).mean()
    spread = (squares / variances + variances.log()).mean()
    for slope in (*torch.autograd.grad(mean, (own, edges)), *torch.autograd.grad(spread, (noise, slopes))):
        assert float(slope.abs().max()) < 1e-8  # a tiny ridge keeps equal columns apart


def test_bends_are_what_curves_explain():
    node = node_data(100)
    found = fit_moments(node, torch.ones(1, 100).double(), every(1, 2), rounds=1)  # before variances are known
    parts, total = found.contributions[0], found.contributions[0].sum(1, keepdim=True)
    hinges = (total - total.mean() - total.std(correction=0) * torch.tensor(KNOTS).double()).clamp_min(0)
    design = torch.cat([node.design, parts.square(), parts**3, hinges], 1)
    expected = design @ torch.linalg.lstsq(design, found.residuals[0]).solution
    assert torch.allclose(found.bends[0], expected, atol=1e-6)
    hat = (design @ torch.linalg.pinv(design)).diagonal()
    assert torch.allclose(found.leverages[0], hat, atol=1e-5)


def test_ratios_are_raised_by_the_error_that_counts_as_contribution():
    """Three lags, two without effect: the mean of $x^T V x$ with V the covariance of the weights, over that of c^2."""
    node = node_data(150, sources=1, lags=3)
    found = fit_moments(node, torch.ones(1, 150).double(), every(1, 1), rounds=30)
    design, sent = node.design, node.sent[0]
    covariance = torch.linalg.inv(design.mT @ (design / found.variances[0][:, None]))[2:, 2:]
    error = ((sent @ covariance) * sent).sum(1).mean() / found.contributions[0].square().mean()
    assert 0.005 < float(error) < 0.2
    assert float(found.corrections) == pytest.approx(1 / (1 - float(error)), rel=1e-5)
    assert torch.equal(found.ratios, found.slopes * found.corrections)


def test_a_target_that_is_always_zero_has_finite_moments():
    node = node_data(40)
    node = replace(node, targets=torch.zeros_like(node.targets))
    found = fit_moments(node, torch.ones(1, 40).double(), every(1, 2))
    assert (found.variances.square() > 0).all()
    for name in ("own", "edges", "noise", "slopes", "variances"):
        assert getattr(found, name).isfinite().all(), name


def test_a_start_saves_rounds():
    node, weights = node_data(200), torch.ones(1, 200).double()
    found = fit_moments(node, weights, every(1, 2), rounds=50)
    again = fit_moments(node, weights, every(1, 2), rounds=1, start=found)
    assert torch.allclose(again.ratios, found.ratios, rtol=1e-6)
    assert not torch.allclose(fit_moments(node, weights, every(1, 2), rounds=1).ratios, found.ratios, rtol=1e-6)


@pytest.mark.parametrize("lags", [1, 3])
def test_a_weight_of_two_is_a_pair_seen_twice(lags):
    node = node_data(60, lags=lags)
    counts = torch.tensor([2.0, 0.0, 1.0] * 20).double()
    rows = torch.repeat_interleave(torch.arange(60), counts.long())
    by_row = ("targets", "own", "spread", "offset", "weights")
    resampled = replace(node, sent=node.sent[:, rows], **{name: getattr(node, name)[rows] for name in by_row})
    both = fit_moments(node, torch.stack([torch.ones(60).double(), counts]), every(2, 2))
    alone = fit_moments(resampled, torch.ones(1, 60).double(), every(1, 2))
    for name in ("own", "edges", "noise", "ratios"):
        assert torch.allclose(getattr(both, name)[1], getattr(alone, name)[0], rtol=1e-8, atol=1e-10)
        assert not torch.allclose(getattr(both, name)[0], getattr(both, name)[1])


def test_a_source_that_is_not_kept_is_not_there():
    node = node_data(80)
    kept = torch.tensor([[True, True], [False, True]])
    both = fit_moments(node, torch.ones(2, 80).double(), kept)
    assert both.edges[1, 0].eq(0).all()
    assert both.ratios[1, 0] == 0
    without = fit_moments(replace(node, sent=node.sent[1:]), torch.ones(1, 80).double(), every(1, 1))
    assert torch.allclose(both.ratios[1, 1:], without.ratios[0], rtol=1e-8)
    assert torch.allclose(both.edges[1, 1:], without.edges[0], rtol=1e-8)


def test_equal_and_empty_columns_do_no_harm():
    design = torch.tensor([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.5, 0.5, 0.0]]).double()
    target = torch.tensor([[2.0, 4.0, 1.0]]).double()
    found = regress(design, target, torch.ones(1, 3).double(), torch.ones(1, 3, dtype=torch.bool))
    assert torch.allclose(found, torch.tensor([[1.0, 1.0, 0.0]]).double(), atol=1e-6)
    assert regress(design[:, :0], target, torch.ones(1, 3).double(), every(1, 0)).shape == (1, 0)

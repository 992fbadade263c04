import pytest
import torch

from tacit.assessment.evaluation import predictive_metrics
from tacit.losses import MMD
from tacit.randomness import generator_for
from tacit.systems import CommunitySystem, community_edge_probs
from tacit.training import LatentGraphModel


def test_the_paper_s_graph():
    probs = community_edge_probs()
    assert probs.shape == (12, 12)
    assert torch.equal(probs, probs.T)
    assert probs.unique().tolist() == [0.0, 0.75]
    assert (probs.diagonal() == 0.75).all()
    assert probs[5, 6] == 0.75
    assert (probs[:5, 6:] == 0).all()
    touching = torch.zeros(12, 12, dtype=torch.bool)
    touching[[2, 3]] = touching[:, [2, 3]] = True
    assert int(((probs > 0) & touching).sum()) == 14  # the entries the paper's misconfigured experiment holds fixed


def test_the_paper_s_constants():
    """Table of the paper's appendix: theta* = 3/4, sigma_x = 1.5, N = 12, psi_1, psi_2."""
    system = CommunitySystem()
    assert system.input_scale == 1.5
    assert (
        system.hop_weights[..., 0].tolist() == torch.tensor([[0.3, -0.2, 0.1, -0.2], [-0.3, 0.1, 0.2, -0.1]]).tolist()
    )
    edges = {(0, 1), (1, 2), (3, 4), (1, 3), (2, 4), (4, 5), (0, 3), (1, 4), (3, 5)}
    edges |= {(i + 6, j + 6) for i, j in edges} | {(5, 6)} | {(i, i) for i in range(12)}
    expected = torch.zeros(12, 12)
    for i, j in edges:
        expected[i, j] = expected[j, i] = 0.75
    assert torch.equal(system.true_edge_probs, expected)


def test_pairs_depend_on_the_seed_alone():
    system = CommunitySystem()
    first, again, other = system.generate(50, 1), system.generate(50, 1), system.generate(50, 2)
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.inputs, other.inputs)


def test_own_theta_hops_and_scale():
    system = CommunitySystem(torch.eye(5), torch.randn(3, 2, 1, generator=torch.Generator().manual_seed(0)), 2.0)
    pairs = system.generate(4000, 0)
    assert pairs.inputs.std().item() == pytest.approx(2.0, rel=0.02)
    expected = torch.tanh(pairs.inputs @ system.hop_weights.sum(0))  # self-loops only: every hop stays at home
    assert torch.allclose(pairs.targets, expected, atol=1e-6)


def test_double_precision():
    system = CommunitySystem(community_edge_probs().double(), CommunitySystem().hop_weights.double())
    assert system.generate(10).targets.dtype == torch.float64


def test_optimal_values_of_the_paper_s_system():
    """By sampling the truth. Standard errors over 3,500 pairs: MSE 0.0016, MAE 0.0019; bounds are at three of them.

    The long-run values, over 105,000 pairs, are 0.1551 and 0.2634; the paper gives 0.158 and 0.267.
    """
    system = CommunitySystem()
    truth = LatentGraphModel(system.true_graph(), system.true_predictor(), MMD(scope="joint"))
    pairs = system.generate(3500, 5)
    scores = predictive_metrics(truth, pairs, truth.loss, generator=generator_for(0, "test"), point_graphs=300)
    assert scores["point_mse"] == pytest.approx(0.1551, abs=0.0048)
    assert scores["point_mae"] == pytest.approx(0.2634, abs=0.0057)
    assert scores["distribution_loss"] == pytest.approx(-0.088, abs=0.003)


def test_errors(unchecked, refused):
    refused(community_edge_probs, 0)
    refused(community_edge_probs, 2, 1.2)
    refused(CommunitySystem, input_scale=0.0)
    refused(CommunitySystem().generate, 0)

import numpy as np
import torch
from benchmarks.studies.gpvar_system import GPVARSystem
from benchmarks.studies.lasso import lasso_path, lasso_regression
from benchmarks.studies.ranking import edge_ranking
from sklearn.linear_model import Lasso

from tacit.data import Pairs, ridge_regression


def test_each_weight_of_the_lasso_path_meets_the_conditions_of_a_minimum(rng):
    """|x_j' r| / n is the penalty where a weight is not 0, with its sign, and at most the penalty where it is."""
    design = torch.randn(40, 6, generator=rng, dtype=torch.float64)
    design = design - design.mean(0)
    targets = design @ torch.randn(6, 2, generator=rng, dtype=torch.float64)
    targets = targets - targets.mean(0)
    penalties = [0.3, 0.05, 1.0]  # in no order
    paths = lasso_path(design, targets, penalties)
    assert paths.shape == (3, 6, 2)
    zeros = 0
    for penalty, weights in zip(penalties, paths, strict=True):
        pull = design.T @ (targets - design @ weights) / 40
        there = weights != 0
        zeros += int((~there).sum())
        assert torch.allclose(pull[there], penalty * weights[there].sign(), atol=5e-3)
        assert (pull[~there].abs() <= penalty + 5e-3).all()
    assert 0 < zeros < 36


def test_lasso_equals_scikit_learn_target_by_target_with_missing_ones(rng):
    inputs = torch.randn(100, 3, 2, generator=rng, dtype=torch.float64)
    targets = inputs[..., :1].roll(1, dims=1) + 0.3 * torch.randn(100, 3, 1, generator=rng).double()
    observed = (torch.rand(100, 3, 1, generator=rng) < 0.8).double()
    fit = lasso_regression(Pairs(inputs, targets, observed), Pairs(inputs, targets, observed), penalties=[0.1])
    scale = inputs.flatten(1).std(0, correction=0).numpy()
    for node in range(3):
        there = observed[:, node, 0].numpy() > 0
        target = targets[there, node, 0].numpy()
        theirs = Lasso(alpha=0.1, tol=1e-8).fit(inputs.flatten(1).numpy()[there] / scale, target / target.std())
        expected = theirs.coef_ / scale * target.std()
        assert np.allclose(fit.coefficients[node].flatten().numpy(), expected, atol=1e-3)
    assert (fit.coefficients == 0).any()


def test_regressions_rank_the_edges_of_gpvar_above_chance():
    system = GPVARSystem()
    pairs = system.pairs(2002, seed=0, window=2)
    for regression in (ridge_regression, lasso_regression):
        fit = regression(pairs[:1500], pairs[1500:])
        ranking = edge_ranking(fit.edge_scores, system.true_edge_probs, threshold=None)
        assert ranking["auroc"] > 0.9

import numpy as np
import pytest
import torch
from benchmarks.studies import STUDIES
from benchmarks.studies.gpvar_system import GPVARSystem
from benchmarks.studies.lasso import lasso_path, lasso_regression
from benchmarks.studies.ranking import edge_ranking
from benchmarks.studies.sample_size import PSI, SIZES
from benchmarks.targets import __main__ as page
from benchmarks.targets import at_least, at_most, between
from scipy.stats import binom
from sklearn.linear_model import Lasso

from tacit.assessment.evaluation import oracle_edge_prob_mae
from tacit.data import Pairs, ridge_regression
from tacit.systems import community_edge_probs


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


# ---------------------------------------------------------------- ranking


TRUTH = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])  # two edges; self-loops do not count
SCORES = torch.tensor([[0.0, 0.9, 0.6], [0.2, 1.0, 0.4], [0.1, 0.3, 0.0]])


def test_by_hand():
    """Down the ranking: .9 true, .6 false, .4 true, then three false ones."""
    ranking = edge_ranking(SCORES, TRUTH)
    assert ranking["auroc"] == pytest.approx(7 / 8)  # of 2 x 4 pairs, one is the wrong way round
    assert ranking["aupr"] == pytest.approx((1 + 2 / 3) / 2)
    assert ranking["f1_top"] == pytest.approx(1 / 2)
    assert (ranking["precision"], ranking["recall"], ranking["f1"]) == pytest.approx((1 / 2, 1 / 2, 1 / 2))
    lower = edge_ranking(SCORES, TRUTH, threshold=0.35)
    assert (lower["precision"], lower["recall"], lower["f1"]) == pytest.approx((2 / 3, 1.0, 0.8))
    assert set(edge_ranking(SCORES, TRUTH, threshold=None)) == {"auroc", "aupr", "f1_top"}


def test_a_perfect_answer_and_no_answer():
    perfect = edge_ranking(TRUTH, TRUTH)
    assert set(perfect.values()) == {1.0}
    nothing = edge_ranking(torch.zeros(3, 3), TRUTH)
    assert nothing["auroc"] == 0.5
    assert nothing["f1_top"] == pytest.approx(2 / 6)  # the share of edges among all pairs
    assert nothing["f1"] == nothing["precision"] == nothing["recall"] == 0.0


def test_errors(unchecked, refused):
    refused(edge_ranking, SCORES, torch.zeros(2, 2))
    refused(edge_ranking, SCORES[:, :2], TRUTH)
    refused(edge_ranking, SCORES, TRUTH / 2)
    refused(edge_ranking, SCORES, torch.eye(3))
    refused(edge_ranking, SCORES * torch.nan, TRUTH)


# ---------------------------------------------------------------- the floor of the sample-size study, and what its tabl


@pytest.mark.parametrize("num_pairs", [1, 7, 40])
@pytest.mark.parametrize("prob", [0.0, 0.25, 0.3, 0.75, 1.0])
def test_the_floor_is_the_sum_over_all_counts(num_pairs, prob):
    total = sum(binom.pmf(k, num_pairs, prob) * abs(k / num_pairs - prob) for k in range(num_pairs + 1))
    assert oracle_edge_prob_mae(torch.tensor([[prob]], dtype=torch.float64), num_pairs) == pytest.approx(
        total, abs=1e-12
    )


def made_up(exponent):
    """Records whose error is the floor's double at 500 pairs and goes as a power of the number of pairs."""
    records = {}
    for psi in PSI:
        for size in SIZES:
            error = 2 * oracle_edge_prob_mae(community_edge_probs(), 500) * (size / 500) ** exponent
            run = {"validation_loss": 1.0, "edge_prob_mae": error, "true_edge_mae": error}
            lost = {**run, "validation_loss": 2.0, "edge_prob_mae": 1.0}  # in a bad basin
            least = {"edge_prob_mae": oracle_edge_prob_mae(community_edge_probs(), size), "true_edge_mae": 0.1}
            records[f"{psi}-{size:06}"] = {
                "pairs": size,
                "floor": least,
                "steps": 9,
                "runs": [run, lost][:: 1 if psi == "learned" else 2],
            }
    return records


def test_tables_give_slope_ratio_and_runs():
    table = STUDIES["sample-size"].tables(made_up(-0.4))[0]
    assert table.notes[0] == "psi known: the error goes as the number of pairs to the power -0.40 (the floor: -0.50)"
    first = dict(zip(table.columns, table.rows[0], strict=True))
    assert first["pairs"] == "500"
    assert first["runs known, learned"] == "1, 1 of 2"
    assert first["psi known"] == first["psi learned"]
    assert table.rows[0][3] == "2.0"


# ---------------------------------------------------------------- targets


def test_bounds_are_met():
    assert at_most("a", "b", 2, 2).met
    assert not at_most("a", "b", 2.1, 2).met
    assert at_least("a", "b", 2, 2).met
    assert not at_least("a", "b", 1.9, 2).met
    assert [between("a", "b", value, 0.2, 0.4).met for value in (0.1, 0.2, 0.4, 0.5)] == [False, True, True, False]


def test_misses_and_reasons_belong_together(monkeypatch):
    found = [at_most("speed", "first", 3, 2), at_most("speed", "second", 1, 2)]
    monkeypatch.setattr(page, "all_targets", lambda: found)
    monkeypatch.setattr(page, "MISSES", {"speed: first": "why"})
    assert list(page.complaints()) == []
    assert "## Missed: 1 of 2" in page.page()
    assert "| speed: first | 3 | at most 2 | why |" in page.page()
    monkeypatch.setattr(page, "MISSES", {"speed: second": "why"})
    assert [line.split(";")[0] for line in page.complaints()] == ["speed: first: missed", "speed: second: met"]

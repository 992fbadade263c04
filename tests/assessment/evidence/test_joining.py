"""The log odds of a dropped edge beside a model, against least squares."""

import numpy as np
import torch

from parent_sets import g_prior_score, left_over, one_step, var_series
from tacit.assessment.evidence import Candidates, ColumnForm, joining_log_odds
from tacit.graph import EdgeRules

WEIGHTS = np.array([[0.5, 0.4, 0.0, 0.3], [0.0, 0.3, 0.0, 0.0], [0.2, 0.0, 0.4, 0.0], [0.0, 0.0, 0.0, 0.2]])
DENSITY = 0.2


def test_log_odds_are_those_of_a_regression_beside_the_prediction_and_the_edges_of_the_model():
    pairs, layout = one_step(var_series(0, WEIGHTS, 300))
    rng = np.random.default_rng(1)
    predicted = pairs.targets + torch.from_numpy(rng.normal(size=pairs.targets.shape))
    candidates = Candidates.from_rules(EdgeRules(tuple("abcd")))
    included = torch.zeros_like(candidates.used)
    included[0, 0] = True  # b -> a
    found = joining_log_odds(pairs, predicted, layout, candidates, included, ColumnForm(1), DENSITY)
    values, target = pairs.inputs[:, :, 0].numpy(), pairs.targets[:, 0, 0].numpy()
    always = np.column_stack([np.ones(len(values)), values[:, 0], predicted[:, 0, 0].numpy()])
    total = left_over(always, target)

    def score(parents):
        share = left_over(np.column_stack([always, values[:, parents]]), target) / total
        return g_prior_score(len(values), 3, len(parents), share)

    prior = np.log(DENSITY / (1 - DENSITY))
    expected = [score([1]) - score([]), score([1, 2]) - score([1]), score([1, 3]) - score([1])]
    np.testing.assert_allclose(found[0].numpy(), np.array(expected) + prior, atol=1e-6)


def test_an_edge_that_the_prediction_already_has_does_not_join():
    pairs, layout = one_step(var_series(0, WEIGHTS, 2000))
    candidates = Candidates.from_rules(EdgeRules(tuple("abcd")))
    nothing = torch.zeros_like(candidates.used)
    without = torch.zeros_like(pairs.targets)
    complete = (pairs.inputs[:, :, 0] @ torch.from_numpy(WEIGHTS).T)[..., None]
    for predicted, joins in ((without, [[True, False, True], [False] * 3, [True, False, False], [False] * 3]),
                             (complete, [[False] * 3] * 4)):  # fmt: skip
        odds = joining_log_odds(pairs, predicted, layout, candidates, nothing, ColumnForm(1), DENSITY)
        assert (odds > 0).tolist() == joins

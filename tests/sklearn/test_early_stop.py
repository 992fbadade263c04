"""A fit that stopped too early: it warns, the answer begins with it, and no errors or p-values come of it."""

import pytest
from sklearn.exceptions import ConvergenceWarning

from tacit.errors import InputError
from tiny_fits import random_pairs, regressor


@pytest.fixture(scope="module")
def early():
    options = {"graph": {"evidence": "model"}, "assessment": {"enabled": True, "bootstrap_replicas": 4}}
    model = regressor(training={"epochs": 5}, **options)
    with pytest.warns(ConvergenceWarning, match="Training stopped too early: in its last part the validation loss"):
        return model.fit(*random_pairs(60))


def test_the_answer_says_so_first(early):
    assert not early.record_.converged
    assert early.answer_[0].startswith("Training stopped too early")
    assert any("Whether edges exist was not computed: training stopped too early." in line for line in early.answer_)


def test_nothing_says_how_sure_the_edges_are(early):
    assert (
        "Not computed, standard errors: training stopped too early, so replicas would stop too early as well."
        in early.findings_
    )
    for ask in (early.significant_edges, early.edge_intervals, lambda: early.edge_std_errors_, lambda: early.exists_):
        with pytest.raises(AttributeError, match="was not computed"):
            ask()
    with pytest.raises(InputError, match="standard errors require a converged fit"):
        early.estimate_std_errors(*random_pairs(60))

"""The systems of the study of lags: what is drawn is what the page says, and a fit of one is counted right."""

import numpy as np
import pytest
from benchmarks.studies.edge_lags import LAGS, NODES, VARIANTS, draw_weights, simulate


@pytest.mark.parametrize("name", VARIANTS)
def test_every_edge_has_its_lags_and_one_is_the_largest(name):
    variant, rng = VARIANTS[name], np.random.default_rng(0)
    weights = np.abs(draw_weights(variant, rng))
    edges = weights.max(0) > 0
    assert edges.any()
    assert not edges.diagonal().any()
    assert set((weights > 0).sum(0)[edges]) == {variant.lags}
    np.testing.assert_allclose(weights.max(0)[edges], variant.size)
    if variant.lags == 2:
        where = [np.flatnonzero(weights[:, i, j]) for i, j in np.argwhere(edges)]
        assert all(second == first + 1 for first, second in where)


def test_a_series_follows_its_weights():
    """Least squares on all lags gives the weights back."""
    variant, rng = VARIANTS["one-lag"], np.random.default_rng(1)
    weights = draw_weights(variant, rng)
    values = simulate(variant, weights, 5000, rng)
    design = np.concatenate([values[LAGS - lag : -lag] for lag in range(1, LAGS + 1)], 1)
    found = np.linalg.lstsq(design, values[LAGS:], rcond=None)[0].reshape(LAGS, NODES, NODES).transpose(0, 2, 1)
    found[0] -= variant.own * np.eye(NODES)
    np.testing.assert_allclose(found, weights, atol=0.08)

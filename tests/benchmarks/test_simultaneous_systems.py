"""The generated systems follow their equation, and a perfect answer has perfect scores."""

import numpy as np
import pytest
from benchmarks.simultaneous.systems import KINDS, noises, structural_var

EXACT = ("svar laplace 500", "svar scales 500", "lagged gaussian 500", "chain interpolated 1000")


def noise_of(system):
    """Solve the structural equation for the noise, lag by lag."""
    y, lags = system.series, len(system.lagged)
    noise = y[lags:] - y[lags:] @ system.within.T
    for lag in range(1, lags + 1):
        noise = noise - y[lags - lag : len(y) - lag] @ system.lagged[lag - 1].T
    return noise


@pytest.mark.parametrize("kind", EXACT)
def test_the_weights_leave_independent_noise(kind):
    noise = noise_of(KINDS[kind](3))
    now = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    before = np.corrcoef(noise[1:].T, noise[:-1].T)[: noise.shape[1], noise.shape[1] :]
    largest = 5.5 / len(noise) ** 0.5  # one false alarm in 20,000 over the entries of both, and the seed is fixed
    assert np.abs(now).max() < largest
    assert np.abs(before).max() < largest


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_seed_gives_one_system_without_cycles_at_lag_0(kind):
    first, second = KINDS[kind](5), KINDS[kind](5)
    assert np.array_equal(first.series, second.series)
    assert np.isfinite(first.series).all()
    paths = np.linalg.matrix_power(first.within_graph.astype(float), len(first.within))
    assert not paths.any()
    assert bool(first.within.any()) == (not kind.startswith(("lagged", "hidden"))) or kind == "mixed"


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "uniform", "exponential"])
def test_noise_has_variance_1(noise):
    drawn = noises(np.random.default_rng(1), noise, 20_000, 2)
    assert np.abs(drawn.mean(0)).max() < 0.05
    assert np.abs(drawn.var(0) - 1).max() < 0.1


def test_the_truth_scores_perfectly_and_its_reverse_only_without_direction():
    pytest.importorskip("sklearn")
    from benchmarks.simultaneous.peers import Answer
    from benchmarks.simultaneous.scores import figures, pooled

    system = structural_var(0, 200)
    edges, now = system.truth.astype(float), system.within_graph.astype(float)
    both, now_both = np.maximum(edges, edges.T), np.maximum(now, now.T)
    right = Answer(edges, both, now, now_both, probabilities=True)
    found = figures(right, system)
    assert all(found[key] == 1.0 for key in found if key.endswith(("auroc", "aupr")))
    assert (found["listed"], found["false"]) == (10, 0)
    assert pooled([right], [system])["directed_calibration_error"] == 0
    wrong = figures(Answer(edges.T, both, now.T, now_both, probabilities=True), system)
    assert wrong["within_auroc"] < 0.5
    assert wrong["within_undirected_auroc"] == 1.0

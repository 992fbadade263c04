"""Candidates: the nearest by distance, and those that go together in the past."""

import math

import pytest
import torch

from tacit.errors import InputError
from tacit.graph import EdgeRules, correlated_candidates, nearest_candidates


def great_circle(a, b):
    """The angle between two unit vectors, from latitude and longitude."""

    def on_sphere(place):
        latitude, longitude = (math.radians(float(x)) for x in place)
        return (
            math.cos(latitude) * math.cos(longitude),
            math.cos(latitude) * math.sin(longitude),
            math.sin(latitude),
        )

    return math.acos(max(-1.0, min(1.0, sum(x * y for x, y in zip(on_sphere(a), on_sphere(b), strict=True)))))


@pytest.mark.parametrize(("metric", "distance"), [("great_circle", great_circle), ("euclidean", math.dist)])
@pytest.mark.parametrize("k", [1, 4])
def test_the_nearest_are_those_of_a_search(rng, k, metric, distance):
    places = torch.rand(20, 2, generator=rng) * torch.tensor([180.0, 360.0]) - torch.tensor([90.0, 180.0])
    mask = nearest_candidates(places, k, metric=metric)
    for i in range(20):
        others = sorted((j for j in range(20) if j != i), key=lambda j: distance(places[i], places[j]))
        assert set(mask[i].nonzero()[:, 0].tolist()) == set(others[:k])


def test_east_is_nearer_in_the_north():
    """At 60 degrees a degree of longitude is half as long as one of latitude: which of two is nearest depends on it."""
    places = torch.tensor([[60.0, 0.0], [60.0, 1.5], [61.0, 0.0]])
    assert nearest_candidates(places, 1, metric="great_circle")[0].tolist() == [False, True, False]
    assert nearest_candidates(places, 1, metric="euclidean")[0].tolist() == [False, False, True]


def test_any_dimension_and_the_first_of_equals():
    places = torch.tensor([[0.0], [1.0], [-1.0]])
    assert nearest_candidates(places, 1, metric="euclidean").tolist()[0] == [False, True, False]
    assert nearest_candidates(torch.zeros(3, 4), 2, metric="euclidean").sum() == 6


def test_as_candidates_of_rules(rng):
    mask = nearest_candidates(torch.rand(6, 2, generator=rng), 2, metric="euclidean")
    probs = EdgeRules(tuple("abcdef"), candidates=mask).build(generator=rng).edge_probs
    assert torch.equal(probs > 0, mask)


def correlation(series, target, source, lag):
    """One pair at a time, over the times at which both are there."""
    now, then = series[lag:, target], series[: len(series) - lag, source]
    both = ~(now.isnan() | then.isnan())
    return float(torch.corrcoef(torch.stack([now[both], then[both]]))[0, 1])


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_correlated_candidates_against_pairs_in_turn(rng, lag):
    series = torch.randn(40, 8, generator=rng).cumsum(0) + 1e3
    for node in range(8):  # they drift, and each is there in another part of the time
        series[: 2 * node, node] = torch.nan
    for k in (1, 2, 3):
        mask = correlated_candidates(series, k, lag=lag)
        for i in range(8):
            size = {j: abs(correlation(series.double(), i, j, lag)) for j in range(8) if j != i}
            assert set(mask[i].nonzero()[:, 0].tolist()) == set(sorted(size, key=lambda j: -size[j])[:k])


def test_a_constant_series_goes_with_nothing(rng):
    series = torch.randn(30, 4, generator=rng)
    series[:, 2] = 0.1
    mask = correlated_candidates(series, 2)
    assert not mask[[0, 1, 3], 2].any()
    assert not mask.diagonal().any()  # nor with itself


def test_errors(unchecked):
    places = torch.tensor([[0.0, 0.0], [10.0, 10.0]])
    with pytest.raises(InputError, match="k needs to be below the number of nodes, 2, got 2; lower k"):
        nearest_candidates(places, 2, metric="euclidean")
    with pytest.raises(InputError, match="k needs to be a whole number of at least 1, got 0"):
        nearest_candidates(places, 0, metric="euclidean")
    with pytest.raises(InputError, match="metric needs one of great_circle, euclidean, got 'haversine'"):
        nearest_candidates(places, 1, metric="haversine")
    with pytest.raises(InputError, match="needs latitude from -90 to 90, got 116 for node 1; pass degrees, latitude f"):
        nearest_candidates(torch.tensor([[40.0, 80.0], [116.0, 40.0]]), 1, metric="great_circle")
    with pytest.raises(InputError, match="needs longitude from -360 to 360, got 500 for node 0"):
        nearest_candidates(torch.tensor([[40.0, 500.0], [11.0, 40.0]]), 1, metric="great_circle")
    with pytest.raises(InputError, match="needs two columns, latitude and longitude, for metric='great_circle', got 3"):
        nearest_candidates(torch.zeros(3, 3), 1, metric="great_circle")
    with pytest.raises(InputError, match="coordinates needs finite numbers, got NaN or infinity for node 1"):
        nearest_candidates(torch.tensor([[0.0], [torch.nan]]), 1, metric="euclidean")
    with pytest.raises(InputError, match="coordinates needs a tensor of floats of shape"):
        nearest_candidates([[0.0, 1.0]], 1, metric="euclidean")
    with pytest.raises(InputError, match=r"series needs shape \(time, node\) with at least 4 times, got \(3, 2\)"):
        correlated_candidates(torch.zeros(3, 2), 1)

"""Candidate edges by distance and by correlation, against all pairs in matrices."""

import re
import tracemalloc

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.graph import EdgeRules, correlated_pairs, nearest, nearest_candidates
from tacit.graph import memory as footprint
from tacit.graph.layouts import EDGE_BYTES


def first_k(distance, k):
    """True at the k smallest entries of each row, of equals the first, the diagonal left out."""
    mask = torch.zeros(distance.shape, dtype=torch.bool)
    for i, row in enumerate(distance.tolist()):
        mask[i, sorted((j for j in range(len(row)) if j != i), key=lambda j: (row[j], j))[:k]] = True
    return mask


def squared_distance(places):
    return (places[:, None] - places).square().sum(-1)


def haversine(degrees):
    latitude, longitude = torch.deg2rad(degrees.double()).unbind(1)
    half = (latitude[:, None] - latitude) / 2, (longitude[:, None] - longitude) / 2
    return half[0].sin().square() + latitude.cos()[:, None] * latitude.cos() * half[1].sin().square()


@pytest.mark.parametrize("k", [1, 6, 59])
def test_nearest_against_all_pairs(rng, k):
    places = torch.randn(60, 3, generator=rng)
    candidates = nearest_candidates(places, k, metric="euclidean")
    assert torch.equal(candidates.to_mask(), first_k(squared_distance(places.double()), k))
    globe = torch.rand(60, 2, generator=rng) * torch.tensor([180.0, 360.0]) - torch.tensor([90.0, 180.0])
    assert torch.equal(nearest_candidates(globe, k, metric="great_circle").to_mask(), first_k(haversine(globe), k))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_ties_go_to_the_first_in_order(data):
    """Whole numbers have exact distances: ties, crowds at one place and rings around one are all settled by order."""
    side, num_nodes = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 30))
    number = st.integers(-side, side)
    places = torch.tensor(data.draw(st.lists(st.tuples(number, number), min_size=num_nodes, max_size=num_nodes)))
    k = data.draw(st.integers(1, num_nodes - 1))
    expected = first_k(squared_distance(places.double()), k)
    assert torch.equal(nearest_candidates(places.double(), k, metric="euclidean").to_mask(), expected)
    shifted = (places.double() + 5e7) * 0.1  # equally far but for the rounding of tenths
    assert torch.equal(nearest_candidates(shifted, k, metric="euclidean").to_mask(), expected)


def test_ties_on_a_grid_of_the_globe():
    """Each place has two others equally far to the east and the west, whatever the sines of its angles round to."""
    latitude, longitude = (
        torch.linspace(-81.3, 81.3, 7, dtype=torch.double),
        torch.arange(0, 360, 12.0).double() - 171.7,
    )
    places = torch.cartesian_prod(latitude, longitude)
    for k in (1, 3, 10):
        expected = first_k((haversine(places) * 1e9).round(), k)
        assert torch.equal(nearest_candidates(places, k, metric="great_circle").to_mask(), expected)


def test_one_place_around_which_all_lie():
    """The tree is asked again, until it has named all that are as far as the last."""
    angle = torch.arange(400).double() * (2 * torch.pi / 400)
    places = torch.cat([torch.stack([angle.cos(), angle.sin()], 1), torch.zeros(1, 2)])
    candidates = nearest_candidates(places, 3, metric="euclidean")
    assert candidates.sources[candidates.row_node == 400].tolist() == [[0, 1, 2]]


def test_far_from_the_origin_the_nearest_are_still_exact(rng):
    """Places a metre apart, in metres from an origin 5,000 km away: no digits may be lost."""
    places = torch.rand(40, 2, generator=rng).double()
    candidates = nearest_candidates(places + 5e6, 3, metric="euclidean")
    assert torch.equal(candidates.to_mask(), first_k(squared_distance(places), 3))


@pytest.mark.parametrize("block", [1, 2000])
def test_blocks_of_neighbours_do_not_matter(rng, monkeypatch, block):
    places = torch.rand(50, 2, generator=rng).round(decimals=1)
    whole = nearest_candidates(places, 4, metric="euclidean")
    monkeypatch.setattr(nearest, "BLOCK_BYTES", block)
    assert torch.equal(nearest_candidates(places, 4, metric="euclidean").sources, whole.sources)


def test_twenty_thousand_nodes_need_memory_for_their_edges(rng):
    """All pairs of 20,000 would be 400 million entries; what NumPy takes at once is below a fifth of a byte each."""
    places = torch.rand(20_000, 2, generator=rng)
    places[:3000] = places[0]  # a crowd that shares a place
    tracemalloc.start()
    candidates = nearest_candidates(places, 10, metric="euclidean")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert candidates.sources.shape == (20_000, 10)
    assert candidates.used.all()
    assert peak < nearest.BLOCK_BYTES + 20_000 * 10 * EDGE_BYTES
    assert peak < 20_000**2 / 5
    few = torch.arange(0, 20_000, 500)
    for node in few.tolist():
        distance = (places.double() - places[node].double()).square().sum(1)
        distance[node] = torch.inf
        order = distance.argsort(stable=True)[:10]
        assert candidates.sources[node].tolist() == sorted(order.tolist())


def correlated_candidates(series, k, lag=1, **options):
    return correlated_pairs(series[lag:, :, None], series[: len(series) - lag, :, None], k, **options)


def correlations(series, lag):
    """One pair at a time, over the times at which both are there; 0 if one is constant there."""
    nodes = series.shape[1]
    found = torch.zeros(nodes, nodes, dtype=torch.double)
    for i in range(nodes):
        for j in range(nodes):
            now, then = series[lag:, i].double(), series[: len(series) - lag, j].double()
            both = ~(now.isnan() | then.isnan())
            if both.any() and now[both].unique().numel() > 1 and then[both].unique().numel() > 1:
                found[i, j] = torch.corrcoef(torch.stack([now[both], then[both]]))[0, 1]
    return found


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(("lag", "k"), [(0, 2), (1, 5), (3, 13), (20, 4)])
def test_correlated_against_one_pair_at_a_time(rng, missing, lag, k):
    series = torch.randn(40, 14, generator=rng).cumsum(0) + 1e3
    series[torch.rand(series.shape, generator=rng) < missing] = torch.nan
    expected = first_k(-correlations(series, lag).abs(), k)
    assert torch.equal(correlated_candidates(series, k, lag=lag).to_mask(), expected)
    for block_bytes in (1, 5000):
        assert torch.equal(correlated_candidates(series, k, lag=lag, block_bytes=block_bytes).to_mask(), expected)


@pytest.mark.parametrize("missing", [False, True])
def test_equal_correlations_go_to_the_first(rng, missing):
    """Three nodes say the same in other units, two are constant and one is never there: order decides among them."""
    series = torch.randn(50, 8, generator=rng).double()
    series[:, 5], series[:, 6] = 3 * series[:, 1] - 7, 0.1 - series[:, 1] / 9
    series[:, 2], series[:, 4] = 0.1, 1e6
    if missing:
        series[:, 7] = torch.nan
        series[3, 0] = torch.nan
    strength = (correlations(series, 0).abs() * 1e6).round()
    assert strength[1, [5, 6]].tolist() == [1e6, 1e6]
    for k in range(1, 8):
        assert torch.equal(correlated_candidates(series, k, lag=0).to_mask(), first_k(-strength, k))


@pytest.mark.parametrize("missing", [False, True])
def test_what_rounding_leaves_of_constants_goes_with_nothing(rng, missing):
    """At lag 1 some nodes are constant as targets, others as sources: what is left is rounding."""
    series = torch.randn(44, 20, generator=rng)
    series[1:, 5:10] = torch.rand(5, generator=rng)
    series[:-1, 10:] = torch.rand(10, generator=rng)
    if missing:
        series[7, 0] = torch.nan
    mask = correlated_candidates(series, 4).to_mask()
    assert mask[5:10, :4].all()  # all correlations are 0, and the first four come first
    assert not mask[:5, 10:].any()


@pytest.mark.gpu
def test_correlated_on_a_gpu(rng):
    series = torch.randn(40, 30, generator=rng)
    series[torch.rand(series.shape, generator=rng) < 0.1] = torch.nan
    candidates = correlated_candidates(series.cuda(), 5)
    assert candidates.sources.is_cuda
    assert torch.equal(candidates.to("cpu").sources, correlated_candidates(series, 5).sources)


def test_tables_that_do_not_fit_are_refused_first(rng, monkeypatch):
    monkeypatch.setattr(footprint, "free_bytes", lambda _: 100)
    with pytest.raises(
        InputError, match="a table of 20 candidate edges requires about 1 MB of memory, but 1 MB is free; lower"
    ):
        nearest_candidates(torch.rand(10, 2, generator=rng), 2, metric="euclidean")
    with pytest.raises(
        InputError, match="a table of 20 candidate edges requires about 1 MB of memory, but 1 MB is free; lower"
    ):
        correlated_candidates(torch.rand(10, 10, generator=rng), 2)


def test_as_candidates_of_rules(rng):
    candidates = nearest_candidates(torch.rand(6, 2, generator=rng), 2, metric="euclidean")
    probs = EdgeRules(tuple("abcdef"), candidates=candidates).build(generator=rng).edge_probs
    assert torch.equal(probs > 0, candidates.to_mask())


def test_nodes_without_an_edge_are_named():
    rules = EdgeRules(tuple("abcdefghi"), candidates={("a", "b")})
    assert rules.isolated == "7 of 9 nodes ('c', 'd', 'e', 'f', 'g', ...)"
    assert EdgeRules(tuple("abc"), candidates={("a", "b"), ("a", "c")}).isolated == ""


WRONG = {
    "k too large": ([[0.0, 0.0], [10.0, 10.0]], 2, "euclidean", "k must be below the number of nodes, 2, got 2"),
    "no k": ([[0.0, 0.0], [10.0, 10.0]], 0, "euclidean", "k must be an integer of at least 1, got 0"),
    "metric": ([[0.0], [1.0]], 1, "haversine", "metric must be one of great_circle, euclidean, got 'haversine'"),
    "latitude": (
        [[40.0, 80.0], [116.0, 40.0]],
        1,
        "great_circle",
        "must have latitude from -90 to 90, got 116 for node 1; pass degrees, latitude f",
    ),
    "longitude": (
        [[40.0, 500.0], [11.0, 40.0]],
        1,
        "great_circle",
        "must have longitude from -360 to 360, got 500 for node 0",
    ),
    "columns": (
        [[0.0] * 3] * 3,
        1,
        "great_circle",
        "must have two columns, latitude and longitude, for metric='great_circ",
    ),
    "NaN": (
        [[0.0], [torch.nan]],
        1,
        "euclidean",
        "coordinates must have finite numbers, got NaN or infinity for node 1",
    ),
    "huge": (
        [[0.0], [1e200]],
        1,
        "euclidean",
        "coordinates must have numbers from -1e+150 to 1e+150, got 1e+200 for node 1",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_coordinates(name, unchecked):
    places, k, metric, message = WRONG[name]
    with pytest.raises(InputError, match=re.escape(message)):
        nearest_candidates(torch.tensor(places, dtype=torch.double), k, metric=metric)


def test_coordinates_that_are_no_tensor(unchecked):
    with pytest.raises(InputError, match="coordinates must be a tensor of floats of shape"):
        nearest_candidates([[0.0, 1.0]], 1, metric="euclidean")

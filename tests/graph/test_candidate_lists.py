"""Ways to get candidate edges, against all pairs in matrices, and what is said when a list is wrong."""

import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.graph import (
    Slots,
    all_slots,
    correlated_candidates,
    correlated_slots,
    footprint,
    listed_slots,
    nearest,
    nearest_candidates,
    nearest_slots,
    require_linked,
    with_reversed,
    with_self_loops,
)


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
    slots = nearest_slots(places, k, metric="euclidean")
    assert torch.equal(slots.to_mask(), first_k(squared_distance(places.double()), k))
    assert torch.equal(slots.to_mask(), nearest_candidates(places, k, metric="euclidean"))
    globe = torch.rand(60, 2, generator=rng) * torch.tensor([180.0, 360.0]) - torch.tensor([90.0, 180.0])
    assert torch.equal(nearest_slots(globe, k, metric="great_circle").to_mask(), first_k(haversine(globe), k))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_ties_go_to_the_first_in_order(data):
    """Whole numbers have exact distances: ties, crowds at one place and rings around one are all settled by order."""
    side, num_nodes = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 30))
    number = st.integers(-side, side)
    places = torch.tensor(data.draw(st.lists(st.tuples(number, number), min_size=num_nodes, max_size=num_nodes)))
    k = data.draw(st.integers(1, num_nodes - 1))
    expected = first_k(squared_distance(places.double()), k)
    assert torch.equal(nearest_slots(places.double(), k, metric="euclidean").to_mask(), expected)
    shifted = (places.double() + 5e7) * 0.1  # equally far but for the rounding of tenths
    assert torch.equal(nearest_slots(shifted, k, metric="euclidean").to_mask(), expected)


def test_ties_on_a_grid_of_the_globe():
    """Each place has two others equally far to the east and the west, whatever the sines of its angles round to."""
    latitude, longitude = (
        torch.linspace(-81.3, 81.3, 7, dtype=torch.double),
        torch.arange(0, 360, 12.0).double() - 171.7,
    )
    places = torch.cartesian_prod(latitude, longitude)
    for k in (1, 3, 10):
        expected = first_k((haversine(places) * 1e9).round(), k)
        assert torch.equal(nearest_slots(places, k, metric="great_circle").to_mask(), expected)


def test_one_place_around_which_all_lie():
    """The tree is asked again, until it has named all that are as far as the last."""
    angle = torch.arange(400).double() * (2 * torch.pi / 400)
    places = torch.cat([torch.stack([angle.cos(), angle.sin()], 1), torch.zeros(1, 2)])
    slots = nearest_slots(places, 3, metric="euclidean")
    assert slots.senders[slots.row_node == 400].tolist() == [[0, 1, 2]]


def test_far_from_the_origin_the_nearest_are_still_exact(rng):
    """Places a metre apart, in metres from an origin 5,000 km away: no digits may be lost."""
    places = torch.rand(40, 2, generator=rng).double()
    assert torch.equal(nearest_candidates(places + 5e6, 3, metric="euclidean"), first_k(squared_distance(places), 3))


@pytest.mark.parametrize("block", [1, 2000])
def test_blocks_of_neighbours_do_not_matter(rng, monkeypatch, block):
    places = torch.rand(50, 2, generator=rng).round(decimals=1)
    whole = nearest_slots(places, 4, metric="euclidean")
    monkeypatch.setattr(nearest, "BLOCK_BYTES", block)
    assert torch.equal(nearest_slots(places, 4, metric="euclidean").senders, whole.senders)


def test_twenty_thousand_nodes_need_memory_for_their_edges(rng):
    """All pairs of 20,000 would be 400 million entries; what NumPy takes at once is below a fifth of a byte each."""
    places = torch.rand(20_000, 2, generator=rng)
    places[:3000] = places[0]  # a crowd that shares a place
    tracemalloc.start()
    slots = nearest_slots(places, 10, metric="euclidean")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert slots.senders.shape == (20_000, 10)
    assert slots.used.all()
    assert peak < nearest.BLOCK_BYTES + 20_000 * 10 * footprint.EDGE_BYTES
    assert peak < 20_000**2 / 5
    few = torch.arange(0, 20_000, 500)
    for node in few.tolist():
        distance = (places.double() - places[node].double()).square().sum(1)
        distance[node] = torch.inf
        order = distance.argsort(stable=True)[:10]
        assert slots.senders[node].tolist() == sorted(order.tolist())


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
    assert torch.equal(correlated_slots(series, k, lag=lag).to_mask(), expected)
    assert torch.equal(correlated_candidates(series, k, lag=lag), expected)
    for block_bytes in (1, 5000):
        assert torch.equal(correlated_slots(series, k, lag=lag, block_bytes=block_bytes).to_mask(), expected)


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
        assert torch.equal(correlated_slots(series, k, lag=0).to_mask(), first_k(-strength, k))


@pytest.mark.parametrize("missing", [False, True])
def test_what_rounding_leaves_of_constants_goes_with_nothing(rng, missing):
    """At lag 1 some nodes are constant as targets, others as senders: what is left is rounding."""
    series = torch.randn(44, 20, generator=rng)
    series[1:, 5:10] = torch.rand(5, generator=rng)
    series[:-1, 10:] = torch.rand(10, generator=rng)
    if missing:
        series[7, 0] = torch.nan
    mask = correlated_slots(series, 4).to_mask()
    assert mask[5:10, :4].all()  # all correlations are 0, and the first four come first
    assert not mask[:5, 10:].any()


@pytest.mark.gpu
def test_correlated_on_a_gpu(rng):
    series = torch.randn(40, 30, generator=rng)
    series[torch.rand(series.shape, generator=rng) < 0.1] = torch.nan
    slots = correlated_slots(series.cuda(), 5)
    assert slots.senders.is_cuda
    assert torch.equal(slots.to("cpu").senders, correlated_slots(series, 5).senders)


def test_all_pairs():
    assert torch.equal(all_slots(5).to_mask(), ~torch.eye(5, dtype=torch.bool))
    assert all_slots(5, self_loops=True).to_mask().all()
    assert all_slots(1).num_edges == 0


def test_all_pairs_that_do_not_fit_are_refused_first(rng, monkeypatch):
    monkeypatch.setattr(footprint, "free_bytes", lambda _: 20 * 10**9)
    message = (
        "a table of 9,999,900,000 candidate edges, all pairs of 100,000 nodes, needs about 1,050 GB of memory, "
        "20 GB are free; use fewer (k nearest, k most correlated, or a file)"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        all_slots(100_000)
    monkeypatch.setattr(footprint, "free_bytes", lambda _: 100)
    with pytest.raises(
        InputError, match="a table of 20 candidate edges needs about 1 MB of memory, 1 MB are free; lower"
    ):
        nearest_slots(torch.rand(10, 2, generator=rng), 2, metric="euclidean")
    with pytest.raises(
        InputError, match="a table of 20 candidate edges needs about 1 MB of memory, 1 MB are free; lower"
    ):
        correlated_slots(torch.rand(10, 10, generator=rng), 2)


def test_self_loops_and_reversed(rng):
    mask = torch.rand(12, 12, generator=rng) < 0.2
    mask[3, 3], mask[4, 4] = True, False
    slots = Slots.from_mask(mask)
    assert torch.equal(with_self_loops(slots).to_mask(), mask | torch.eye(12, dtype=torch.bool))
    assert torch.equal(with_reversed(slots).to_mask(), mask | mask.mT)


def test_nodes_without_an_edge_are_named():
    slots = Slots.from_edges(torch.tensor([0, 3]), torch.tensor([1, 3]), 9)
    message = "candidates has no edge for 7 of 9 nodes (2, 3, 4, 5, 6, ...), so that nothing can be learned of them"
    with pytest.raises(InputError, match=re.escape(message)):
        require_linked(slots)  # node 3 reads itself alone
    with pytest.raises(InputError, match=re.escape("file.csv has no edge for 1 of 3 nodes ('c'), so")):
        require_linked(Slots.from_edges(torch.tensor([0]), torch.tensor([1]), 3), "abc", "file.csv")
    require_linked(Slots.from_edges(torch.tensor([0, 0]), torch.tensor([1, 2]), 3))


NODES = ("north", "south", "east")
EDGES = [("north", "south"), ("east", "north"), ("south", "north")]


def test_a_list_is_read_from_files_and_frames(tmp_path):
    frame = pd.DataFrame(EDGES, columns=["source", "target"]).assign(km=1.5)
    frame.to_csv(tmp_path / "edges.csv", index=False)
    frame.to_csv(tmp_path / "edges.csv.gz", index=False)
    frame.to_parquet(tmp_path / "edges.parquet")
    expected = torch.tensor([[False, True, True], [True, False, False], [False, False, False]])  # row reads column
    for edges in (frame, *(tmp_path / f"edges.{ending}" for ending in ("csv", "csv.gz", "parquet"))):
        assert torch.equal(listed_slots(edges, NODES).to_mask(), expected)
    assert torch.equal(listed_slots(str(tmp_path / "edges.csv"), list(NODES)).to_mask(), expected)


def test_names_that_are_numbers(tmp_path):
    frame = pd.DataFrame({"target": [10, 11], "source": [12, 10]}, index=[5, 9])
    frame.to_parquet(tmp_path / "edges.parquet")
    for edges in (frame, tmp_path / "edges.parquet"):
        source, target = listed_slots(edges, ("10", "11", "12")).edges()
        assert (source.tolist(), target.tolist()) == ([2, 0], [0, 1])


def test_a_node_without_an_edge_needs_a_word(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\nnorth,south\n")
    with pytest.raises(InputError, match=re.escape("edges.csv has no edge for 1 of 3 nodes ('east'), so that nothing")):
        listed_slots(path, NODES)
    assert listed_slots(path, NODES, allow_isolated=True).num_edges == 1


WRONG = {
    "unknown target": (
        "source,target\nnorth,south\nnorth,soth\n",
        "row 2: target names unknown node 'soth'; did you mean",
    ),
    "unknown source": (
        "source,target\nup,south\n",
        "row 1: source names unknown node 'up'; known are east, north, south",
    ),
    "twice": (
        "source,target\neast,north\nnorth,south\nsouth,east\nnorth,south\neast,north\n",
        "edge 'north -> south' comes twice, in rows 2 and 4; keep one of them",
    ),
    "self-loop": (
        "source,target\nnorth,south\neast,east\n",
        "edge 'east -> east' in row 2 is a self-loop; remove the row",
    ),
    "missing column": ("source,to\nnorth,south\n", "needs the columns source and target, got source, to; add target"),
    "rules": ("source,target,kind\nnorth,south,forbidden\n", "has a column kind, as rules for edges have; read it by"),
    "no name": (
        "source,target\nnorth,south\n,north\n",
        "column 'source' needs a name in every row, got an empty cell in r",
    ),
    "no rows": ("source,target\n", "there is a header but no rows; pass a table with rows"),
    "empty": ("", "the file is empty; pass a table with a header and rows"),
    "column twice": ("source,target,target\nnorth,south,east\n", "the header names column 'target' twice; rename one"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_lists_get_one_line(name, tmp_path):
    text, message = WRONG[name]
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        listed_slots(path, NODES)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_wrong_frames_and_arguments(tmp_path, unchecked):
    with pytest.raises(InputError, match="edges: edge 'north -> south' comes twice, in rows 1 and 2; keep one of them"):
        listed_slots(pd.DataFrame({"source": ["north"] * 2, "target": ["south"] * 2}), NODES)
    with pytest.raises(InputError, match="edges: there is a header but no rows"):
        listed_slots(pd.DataFrame({"source": [], "target": []}), NODES)
    with pytest.raises(InputError, match="edges: the header names column 'source' twice"):
        listed_slots(pd.DataFrame([["a", "b", "c"]], columns=["source", "source", "target"]), NODES)
    with pytest.raises(InputError, match="edges needs a file's name or a pandas frame, got list; pass for example"):
        listed_slots([("north", "south")], NODES)
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        listed_slots(tmp_path / "none.csv", NODES)
    with pytest.raises(InputError, match="series needs finite numbers or NaN, got infinity for node 1"):
        correlated_slots(torch.tensor([[0.0, 1.0], [1.0, torch.inf], [0.5, 0.0], [0.1, 2.0]]), 1)
    with pytest.raises(
        InputError, match=re.escape("coordinates needs numbers from -1e+150 to 1e+150, got 1e+200 for node 1")
    ):
        nearest_slots(torch.tensor([[0.0], [1e200]], dtype=torch.double), 1, metric="euclidean")


def test_many_unknown_names_make_no_long_line():
    nodes = [f"station {number}" for number in np.arange(5000)]
    with pytest.raises(
        InputError, match=r"row 1: source names unknown node 'x'; known are .* and 4,980 more$"
    ) as error:
        listed_slots(pd.DataFrame({"source": ["x"], "target": ["station 7"]}), nodes)
    assert len(str(error.value)) < 500

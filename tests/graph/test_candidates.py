"""Candidate edges by distance and by correlation, against all pairs in matrices."""

import tracemalloc

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.graph import (
    CandidateEdges,
    EdgeRules,
    correlated_pairs,
    free_bytes,
    nearest,
    nearest_candidates,
    require_memory,
    step_bytes,
)
from tacit.graph import memory as footprint
from tacit.graph.layouts import EDGE_BYTES
from tacit.graph.memory import size_in_words


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
    monkeypatch.setattr(nearest, "TREE_BYTES", block)
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
    assert peak < nearest.TREE_BYTES + 20_000 * 10 * EDGE_BYTES
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


def test_tables_that_do_not_fit_are_refused_first(rng, monkeypatch, refused):
    monkeypatch.setattr(footprint, "free_bytes", lambda _: 100)
    refused(nearest_candidates, torch.rand(10, 2, generator=rng), 2, metric="euclidean")
    refused(correlated_candidates, torch.rand(10, 10, generator=rng), 2)


def test_as_candidates_of_rules(rng):
    candidates = nearest_candidates(torch.rand(6, 2, generator=rng), 2, metric="euclidean")
    probs = EdgeRules(tuple("abcdef"), candidates=candidates).build(generator=rng).edge_probs
    assert torch.equal(probs > 0, candidates.to_mask())


def test_nodes_without_an_edge_are_named():
    rules = EdgeRules(tuple("abcdefghi"), candidates={("a", "b")})
    assert rules.isolated == "7 of 9 nodes ('c', 'd', 'e', 'f', 'g', ...)"
    assert EdgeRules(tuple("abc"), candidates={("a", "b"), ("a", "c")}).isolated == ""


WRONG = {
    "k too large": ([[0.0, 0.0], [10.0, 10.0]], 2, "euclidean"),
    "no k": ([[0.0, 0.0], [10.0, 10.0]], 0, "euclidean"),
    "metric": ([[0.0], [1.0]], 1, "haversine"),
    "latitude": ([[40.0, 80.0], [116.0, 40.0]], 1, "great_circle"),
    "longitude": ([[40.0, 500.0], [11.0, 40.0]], 1, "great_circle"),
    "columns": ([[0.0] * 3] * 3, 1, "great_circle"),
    "NaN": ([[0.0], [torch.nan]], 1, "euclidean"),
    "huge": ([[0.0], [1e200]], 1, "euclidean"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_coordinates(name, unchecked, refused):
    places, k, metric = WRONG[name]
    refused(nearest_candidates, torch.tensor(places, dtype=torch.double), k, metric=metric)


def test_coordinates_that_are_no_tensor(unchecked, refused):
    refused(nearest_candidates, [[0.0, 1.0]], 1, metric="euclidean")


# ---------------------------------------------------------------- the table of candidate edges against sets of edges an


@st.composite
def edge_lists(draw):
    """A number of nodes and some edges (source, target), each once, in any order; a few nodes have most of them."""
    num_nodes = draw(st.integers(1, 12))
    node, hub = st.integers(0, num_nodes - 1), st.integers(0, min(1, num_nodes - 1))
    edges = draw(st.lists(st.one_of(st.tuples(node, node), st.tuples(node, hub)), unique=True, max_size=60))
    return num_nodes, edges


def table(num_nodes, edges):
    source, target = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).unbind(1)
    return CandidateEdges.from_edges(source, target, num_nodes)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(edge_lists())
def test_a_table_holds_its_edges(case):
    num_nodes, edges = case
    candidates = table(num_nodes, edges)
    found = {node: [] for node in range(num_nodes)}
    for node, sources, used in zip(
        candidates.row_node.tolist(), candidates.sources.tolist(), candidates.used.tolist(), strict=True
    ):
        assert all(sender == node for sender, is_used in zip(sources, used, strict=True) if not is_used)
        found[node] += [sender for sender, is_used in zip(sources, used, strict=True) if is_used]
    assert found == {node: sorted(s for s, t in edges if t == node) for node in range(num_nodes)}
    assert candidates.row_node.tolist() == sorted(candidates.row_node.tolist())
    assert set(candidates.row_node.tolist()) == set(range(num_nodes))
    source, target = candidates.edges()
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == sorted(edges, key=lambda edge: edge[::-1])
    assert candidates.num_edges == len(edges)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(edge_lists())
def test_masks_and_positions(case):
    num_nodes, edges = case
    candidates = table(num_nodes, edges)
    mask = candidates.to_mask()
    assert {(source, target) for target, source in mask.nonzero().tolist()} == set(edges)
    again = CandidateEdges.from_mask(mask)
    assert torch.equal(again.sources, candidates.sources)
    assert torch.equal(again.used, candidates.used)
    assert torch.equal(again.row_node, candidates.row_node)
    pairs = torch.cartesian_prod(torch.arange(num_nodes), torch.arange(num_nodes)).reshape(-1, 2)
    for (source, target), place in zip(pairs.tolist(), candidates.positions(*pairs.unbind(1)).tolist(), strict=True):
        assert (place >= 0) == ((source, target) in edges)
        if place >= 0:
            row, slot = divmod(place, candidates.sources.shape[1])
            assert (candidates.row_node[row], candidates.sources[row, slot], candidates.used[row, slot]) == (
                target,
                source,
                True,
            )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(edge_lists())
def test_the_table_is_no_larger_than_promised(case):
    num_nodes, edges = case
    assert table(num_nodes, edges).used.numel() <= 3 * len(edges) + 10 * num_nodes


def test_a_hub_does_not_widen_all_rows():
    """20,000 nodes read three others each, and one reads all: the table is not 20,000 wide."""
    nodes = torch.arange(20_000)
    source = torch.cat([(nodes[1:] + step) % 20_000 for step in (1, 2, 3)] + [nodes])
    target = torch.cat([nodes[1:]] * 3 + [torch.zeros(20_000, dtype=torch.long)])
    candidates = CandidateEdges.from_edges(source, target, 20_000)
    assert candidates.num_edges == len(source)
    assert candidates.used.numel() < 1.1 * len(source)
    assert torch.equal(candidates.sources[candidates.row_node == 0][candidates.used[candidates.row_node == 0]], nodes)


def test_a_lone_hub_among_nodes_without_edges():
    nodes = torch.arange(1000)
    candidates = CandidateEdges.from_edges(nodes, torch.full((1000,), 7), 1000)
    assert candidates.used.numel() < 13 * 1000
    assert len(candidates.row_node) < 1300  # nor one edge in a row
    assert candidates.used[candidates.row_node != 7].sum() == 0


def test_equal_numbers_of_candidates_leave_no_slot_empty(rng):
    candidates = CandidateEdges.from_mask(torch.rand(30, 30, generator=rng).argsort(1) < 7)
    assert candidates.sources.shape == (30, 7)
    assert candidates.used.all()
    assert torch.equal(candidates.row_node, torch.arange(30))


def test_no_edges_at_all():
    candidates = table(3, [])
    assert candidates.sources.tolist() == [[0], [1], [2]]
    assert not candidates.used.any()
    assert candidates.positions(torch.tensor([0]), torch.tensor([1])).tolist() == [-1]


def test_small_whole_numbers_do_not_overflow():
    """300 nodes squared are more than int16 counts to."""
    source = torch.arange(300, dtype=torch.int16)
    candidates = CandidateEdges.from_edges(source, source.flip(0), 300)
    assert torch.equal(candidates.sources[:, 0], torch.arange(300).flip(0))


@pytest.mark.gpu
def test_to_a_gpu_and_back(rng):
    candidates = CandidateEdges.from_mask(torch.rand(30, 30, generator=rng) < 0.3)
    there = candidates.to("cuda")
    source, target = there.edges()
    assert source.is_cuda
    assert torch.equal(CandidateEdges.from_edges(source, target, 30).sources, there.sources)
    assert torch.equal(there.to("cpu").to_mask(), candidates.to_mask())


def test_errors(unchecked, refused):
    def edges(source, target, num_nodes=3):
        return CandidateEdges.from_edges(torch.tensor(source), torch.tensor(target), num_nodes)

    refused(edges, [0, 2, 1, 2], [0, 1, 1, 1])
    refused(edges, [0, 3], [0, 1])
    refused(edges, [0, 2], [-1, 1])
    refused(edges, [0, 2], [1])
    refused(edges, [0.0], [1])
    refused(CandidateEdges.from_edges, torch.tensor([0]), [1], 3)
    refused(edges, [], [], 0)
    refused(edges([0], [1]).positions, torch.tensor([4]), torch.tensor([0]))
    refused(CandidateEdges.from_mask, torch.ones(2, 3, dtype=torch.bool))


def test_a_table_made_by_hand_is_checked(unchecked, refused):
    yes = torch.ones(2, 2, dtype=torch.bool)
    nodes = torch.arange(2)
    CandidateEdges(2, nodes, torch.tensor([[0, 1], [0, 1]]), yes)
    refused(CandidateEdges, 2, nodes, torch.tensor([[1, 0], [0, 1]]), yes)
    refused(CandidateEdges, 2, nodes, torch.tensor([[0, 1], [0, 2]]), yes)
    refused(CandidateEdges, 2, nodes, torch.tensor([[0, 1], [0, 1]]), ~yes)
    for rows in ([0, 0], [0, 2], [1, 0], [1, 1]):
        refused(CandidateEdges, 2, torch.tensor(rows), torch.tensor([[0, 1], [0, 1]]), yes)
    refused(CandidateEdges, 2, nodes, torch.tensor([[0, 1], [0, 1]]), yes[:, :1])


def test_a_mask_that_does_not_fit_is_refused(monkeypatch, refused):
    monkeypatch.setattr(footprint, "free_bytes", lambda _: 8)
    refused(table(3, [(0, 1)]).to_mask)
    assert table(2, [(0, 1)]).to_mask().sum() == 1


# ---------------------------------------------------------------- what memory is needed, what is free, and what is said


STEP = {"rows": 7, "columns": 5, "num_graphs": 3, "draws": 2, "batch": 2, "nodes": 6, "channels": 4, "number_bytes": 8}


def test_a_step_is_the_sum_of_its_parts():
    """Each factor of the formula by itself: what one more of it adds."""
    parts = {
        "table and parameters": (17 + 64) * 7 * 5,
        "graphs": 33 * 2 * 3 * 7 * 5,
        "gathered": 2 * 8 * 2 * 7 * 5 * 4,
        "values": 8 * 8 * 2 * 3 * 6 * 4,
    }
    assert step_bytes(**STEP) == sum(parts.values())
    assert step_bytes(**STEP | {"nodes": 7}) - step_bytes(**STEP) == parts["values"] // 6
    assert step_bytes(**STEP | {"draws": 3}) - step_bytes(**STEP) == parts["graphs"] // 2
    assert step_bytes(**STEP | {"channels": 5}) - step_bytes(**STEP) == (parts["gathered"] + parts["values"]) // 4


@pytest.fixture
def system(tmp_path):
    """A system as its files describe it: 8 GB available, and whatever groups a test adds."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("proc/meminfo", "MemTotal:  16000000 kB\nMemFree:  100 kB\nMemAvailable:  8000000 kB\n")
    return tmp_path, write


def test_what_the_kernel_calls_available(system):
    root, _ = system
    assert free_bytes("cpu", root) == 8_000_000 * 1024


def test_a_group_that_leaves_less(system):
    root, write = system
    write("proc/self/cgroup", "0::/outer/inner\n")
    write("sys/fs/cgroup/outer/inner/memory.max", "max\n")
    write("sys/fs/cgroup/outer/memory.max", "1000\n")
    write("sys/fs/cgroup/outer/memory.current", "700\n")
    assert free_bytes("cpu", root) == 300
    write("sys/fs/cgroup/outer/memory.stat", "anon 500\ninactive_file 50\n")
    assert free_bytes("cpu", root) == 350
    write("sys/fs/cgroup/outer/memory.current", "1200\n")
    assert free_bytes("cpu", root) == 0


def test_a_group_of_the_first_version(system):
    root, write = system
    write("proc/self/cgroup", "5:devices:/other\n4:memory:/job\n0::/\n")
    write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n")
    write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "2000\n")
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n")
    assert free_bytes("cpu", root) == 3000


def test_a_system_that_does_not_say(tmp_path, monkeypatch):
    assert free_bytes("cpu", tmp_path) is None
    monkeypatch.setattr(footprint, "free_bytes", lambda _: None)
    require_memory(10**30, "cpu", "a dream", "wake up")  # nothing is known, so nothing is refused


def test_this_system_has_some():
    free = free_bytes()
    assert free is None or 10**6 < free < 10**15


def test_too_much_is_refused_in_one_line(monkeypatch, refused):
    monkeypatch.setattr(footprint, "free_bytes", lambda _: 20 * 10**9)
    need = step_bytes(rows=10**5, columns=10**5, num_graphs=1, draws=1, batch=1, nodes=10**5, channels=1)
    assert size_in_words(need) == "740 GB"
    with pytest.raises(InputError) as error:
        require_memory(need, "cpu", "a step over 10,000,000,000 candidate edges", "use fewer graphs")
    assert str(error.value) == (
        "a step over 10,000,000,000 candidate edges requires about 740 GB of memory, but 20 GB is free; "
        "use fewer graphs"
    )
    require_memory(20 * 10**9, "cpu", "a step", "use fewer graphs")
    refused(require_memory, 20 * 10**9 + 1, torch.device("cuda:0"), "a step", "use fewer graphs")


@pytest.mark.gpu
def test_a_gpu_says_what_is_free():
    before = free_bytes("cuda")
    held = torch.empty(2**28, dtype=torch.uint8, device="cuda")
    assert before - free_bytes("cuda") >= 2**28
    del held
    assert abs(before - free_bytes("cuda")) < 2**26  # torch keeps the room, and it can be had again

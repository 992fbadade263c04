"""The table of candidate edges against sets of edges and obvious loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.graph import CandidateEdges
from tacit.graph import memory as footprint


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


def test_errors(unchecked):
    def edges(source, target, num_nodes=3):
        return CandidateEdges.from_edges(torch.tensor(source), torch.tensor(target), num_nodes)

    with pytest.raises(InputError, match="edge 2 -> 1 occurs twice; keep one of them"):
        edges([0, 2, 1, 2], [0, 1, 1, 1])
    with pytest.raises(InputError, match="source must have nodes from 0 to 2, got 3 for edge 1; correct it"):
        edges([0, 3], [0, 1])
    with pytest.raises(InputError, match="target must have nodes from 0 to 2, got -1 for edge 0; correct it"):
        edges([0, 2], [-1, 1])
    with pytest.raises(InputError, match="source and target must have equal length, got 2 and 1"):
        edges([0, 2], [1])
    with pytest.raises(InputError, match="source must be a tensor of integers, one per edge"):
        edges([0.0], [1])
    with pytest.raises(InputError, match="target must be a tensor of integers, one per edge"):
        CandidateEdges.from_edges(torch.tensor([0]), [1], 3)
    with pytest.raises(InputError, match="num_nodes must be an integer of at least 1, got 0"):
        edges([], [], 0)
    with pytest.raises(InputError, match="source must have nodes from 0 to 2, got 4 for edge 0"):
        edges([0], [1]).positions(torch.tensor([4]), torch.tensor([0]))
    with pytest.raises(InputError, match="mask must be a square tensor of booleans"):
        CandidateEdges.from_mask(torch.ones(2, 3, dtype=torch.bool))


def test_a_table_made_by_hand_is_checked(unchecked):
    yes = torch.ones(2, 2, dtype=torch.bool)
    nodes = torch.arange(2)
    CandidateEdges(2, nodes, torch.tensor([[0, 1], [0, 1]]), yes)
    with pytest.raises(InputError, match="sources must ascend within a node, each once; use CandidateEdges"):
        CandidateEdges(2, nodes, torch.tensor([[1, 0], [0, 1]]), yes)
    with pytest.raises(InputError, match="sources must have nodes from 0 to 1, got 2 for edge 3"):
        CandidateEdges(2, nodes, torch.tensor([[0, 1], [0, 2]]), yes)
    with pytest.raises(InputError, match="sources must contain the row's own node in empty slots"):
        CandidateEdges(2, nodes, torch.tensor([[0, 1], [0, 1]]), ~yes)
    for rows in ([0, 0], [0, 2], [1, 0], [1, 1]):
        with pytest.raises(InputError, match="row_node must have each node from 0 to 1, in order"):
            CandidateEdges(2, torch.tensor(rows), torch.tensor([[0, 1], [0, 1]]), yes)
    with pytest.raises(InputError, match=r"got \(2,\), \(2, 2\) and \(2, 1\); use CandidateEdges.from_edges"):
        CandidateEdges(2, nodes, torch.tensor([[0, 1], [0, 1]]), yes[:, :1])


def test_a_mask_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(footprint, "free_bytes", lambda _: 8)
    with pytest.raises(
        InputError, match="a mask of 3 x 3 nodes requires about 1 MB of memory, but 1 MB is free; keep the table"
    ):
        table(3, [(0, 1)]).to_mask()
    assert table(2, [(0, 1)]).to_mask().sum() == 1

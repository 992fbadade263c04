"""The table of candidate edges against sets of edges and obvious loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.graph import Slots, footprint


@st.composite
def edge_lists(draw):
    """A number of nodes and some edges (source, target), each once, in any order; a few nodes have most of them."""
    num_nodes = draw(st.integers(1, 12))
    node, hub = st.integers(0, num_nodes - 1), st.integers(0, min(1, num_nodes - 1))
    edges = draw(st.lists(st.one_of(st.tuples(node, node), st.tuples(node, hub)), unique=True, max_size=60))
    return num_nodes, edges


def table(num_nodes, edges):
    source, target = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).unbind(1)
    return Slots.from_edges(source, target, num_nodes)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(edge_lists())
def test_a_table_holds_its_edges(case):
    num_nodes, edges = case
    slots = table(num_nodes, edges)
    found = {node: [] for node in range(num_nodes)}
    for node, senders, used in zip(slots.row_node.tolist(), slots.senders.tolist(), slots.used.tolist(), strict=True):
        assert all(sender == node for sender, is_used in zip(senders, used, strict=True) if not is_used)
        found[node] += [sender for sender, is_used in zip(senders, used, strict=True) if is_used]
    assert found == {node: sorted(s for s, t in edges if t == node) for node in range(num_nodes)}
    assert slots.row_node.tolist() == sorted(slots.row_node.tolist())
    assert set(slots.row_node.tolist()) == set(range(num_nodes))
    source, target = slots.edges()
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == sorted(edges, key=lambda edge: edge[::-1])
    assert slots.num_edges == len(edges)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(edge_lists())
def test_masks_and_positions(case):
    num_nodes, edges = case
    slots = table(num_nodes, edges)
    mask = slots.to_mask()
    assert {(source, target) for target, source in mask.nonzero().tolist()} == set(edges)
    again = Slots.from_mask(mask)
    assert torch.equal(again.senders, slots.senders)
    assert torch.equal(again.used, slots.used)
    assert torch.equal(again.row_node, slots.row_node)
    pairs = torch.cartesian_prod(torch.arange(num_nodes), torch.arange(num_nodes)).reshape(-1, 2)
    for (source, target), place in zip(pairs.tolist(), slots.positions(*pairs.unbind(1)).tolist(), strict=True):
        assert (place >= 0) == ((source, target) in edges)
        if place >= 0:
            row, slot = divmod(place, slots.senders.shape[1])
            assert (slots.row_node[row], slots.senders[row, slot], slots.used[row, slot]) == (target, source, True)


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
    slots = Slots.from_edges(source, target, 20_000)
    assert slots.num_edges == len(source)
    assert slots.used.numel() < 1.1 * len(source)
    assert torch.equal(slots.senders[slots.row_node == 0][slots.used[slots.row_node == 0]], nodes)


def test_a_lone_hub_among_nodes_without_edges():
    nodes = torch.arange(1000)
    slots = Slots.from_edges(nodes, torch.full((1000,), 7), 1000)
    assert slots.used.numel() < 13 * 1000
    assert len(slots.row_node) < 1300  # nor one edge in a row
    assert slots.used[slots.row_node != 7].sum() == 0


def test_equal_numbers_of_candidates_leave_no_slot_empty(rng):
    slots = Slots.from_mask(torch.rand(30, 30, generator=rng).argsort(1) < 7)
    assert slots.senders.shape == (30, 7)
    assert slots.used.all()
    assert torch.equal(slots.row_node, torch.arange(30))


def test_no_edges_at_all():
    slots = table(3, [])
    assert slots.senders.tolist() == [[0], [1], [2]]
    assert not slots.used.any()
    assert slots.positions(torch.tensor([0]), torch.tensor([1])).tolist() == [-1]


def test_small_whole_numbers_do_not_overflow():
    """300 nodes squared are more than int16 counts to."""
    source = torch.arange(300, dtype=torch.int16)
    slots = Slots.from_edges(source, source.flip(0), 300)
    assert torch.equal(slots.senders[:, 0], torch.arange(300).flip(0))


@pytest.mark.gpu
def test_to_a_gpu_and_back(rng):
    slots = Slots.from_mask(torch.rand(30, 30, generator=rng) < 0.3)
    there = slots.to("cuda")
    source, target = there.edges()
    assert source.is_cuda
    assert torch.equal(Slots.from_edges(source, target, 30).senders, there.senders)
    assert torch.equal(there.to("cpu").to_mask(), slots.to_mask())


def test_errors(unchecked):
    def edges(source, target, num_nodes=3):
        return Slots.from_edges(torch.tensor(source), torch.tensor(target), num_nodes)

    with pytest.raises(InputError, match="edge 2 -> 1 comes twice; keep one of them"):
        edges([0, 2, 1, 2], [0, 1, 1, 1])
    with pytest.raises(InputError, match="source needs nodes from 0 to 2, got 3 for edge 1; correct it"):
        edges([0, 3], [0, 1])
    with pytest.raises(InputError, match="target needs nodes from 0 to 2, got -1 for edge 0; correct it"):
        edges([0, 2], [-1, 1])
    with pytest.raises(InputError, match="source and target need one node per edge each, got 2 and 1"):
        edges([0, 2], [1])
    with pytest.raises(InputError, match="source needs a tensor of whole numbers, one per edge"):
        edges([0.0], [1])
    with pytest.raises(InputError, match="target needs a tensor of whole numbers, one per edge"):
        Slots.from_edges(torch.tensor([0]), [1], 3)
    with pytest.raises(InputError, match="num_nodes needs to be a whole number of at least 1, got 0"):
        edges([], [], 0)
    with pytest.raises(InputError, match="source needs nodes from 0 to 2, got 4 for edge 0"):
        edges([0], [1]).positions(torch.tensor([4]), torch.tensor([0]))
    with pytest.raises(InputError, match="mask needs a square tensor of booleans"):
        Slots.from_mask(torch.ones(2, 3, dtype=torch.bool))


def test_a_table_made_by_hand_is_checked(unchecked):
    yes = torch.ones(2, 2, dtype=torch.bool)
    nodes = torch.arange(2)
    Slots(2, nodes, torch.tensor([[0, 1], [0, 1]]), yes)
    with pytest.raises(InputError, match="senders needs to ascend within a node, each once; use Slots"):
        Slots(2, nodes, torch.tensor([[1, 0], [0, 1]]), yes)
    with pytest.raises(InputError, match="senders needs nodes from 0 to 1, got 2 for edge 3"):
        Slots(2, nodes, torch.tensor([[0, 1], [0, 2]]), yes)
    with pytest.raises(InputError, match="senders needs the row's own node where a slot is not used"):
        Slots(2, nodes, torch.tensor([[0, 1], [0, 1]]), ~yes)
    for rows in ([0, 0], [0, 2], [1, 0], [1, 1]):
        with pytest.raises(InputError, match="row_node needs each node from 0 to 1, in order"):
            Slots(2, torch.tensor(rows), torch.tensor([[0, 1], [0, 1]]), yes)
    with pytest.raises(InputError, match=r"got \(2,\), \(2, 2\) and \(2, 1\); use Slots.from_edges"):
        Slots(2, nodes, torch.tensor([[0, 1], [0, 1]]), yes[:, :1])


def test_a_mask_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(footprint, "free_bytes", lambda _: 8)
    with pytest.raises(
        InputError, match="a mask of 3 x 3 nodes needs about 1 MB of memory, 1 MB are free; keep the table"
    ):
        table(3, [(0, 1)]).to_mask()
    assert table(2, [(0, 1)]).to_mask().sum() == 1

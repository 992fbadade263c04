"""A learned graph for a paper: which edges, which way, how strong, and where the nodes are."""

import math
import time

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb

from made_runs import make_run, run_of_matrices
from tacit.edges import EdgeTable
from tacit.records import Record
from tacit.report import draw_network, run_places, shown_edges
from tacit.report.network import MOST_EDGES, draw_run_network
from tacit.report.places import MOST_PLACED, circle, spring_layout

NAMES = ["a", "$b_", "<i>c</i>"]
PLACES = np.array([[40.0, 116.0], [40.5, 117.0], [39.5, 116.5]])
PROBS = np.array([[0.9, 0.2, 0.05], [0.7, 0.9, 0.0], [0.1, 0.0, 0.9]])


def three_nodes(coordinates=None, metric="great_circle", flags=None):
    record = Record(
        title="run", command="tacit fit", config={"graph": {"metric": metric}}, seed=0, versions={}, device="cpu",
        timings={"train_seconds": 1.0, "steps": 2}, replicas=[], best_replica=0, node_names=NAMES,
        metrics={"point_mae": 0.1, "point_mse": 0.2, "distribution_loss": 0.3}, preparation={"kind": "series"},
        coordinates=coordinates,
    )  # fmt: skip
    known = {} if flags is None else {"identifiable": flags}
    return run_of_matrices(record, probability=PROBS, **known)


def chosen(run, threshold=0.1):
    edges = shown_edges(run.edges.each_once(), run_places(run), threshold)
    return list(
        zip(edges.index.target.tolist(), edges.index.source.tolist(), edges["probability"].tolist(), strict=True)
    )


def lines(figure):
    """From, to and width of every edge that was drawn."""
    (drawn,) = (item for item in figure.axes[0].collections if isinstance(item, LineCollection))
    return [
        (tuple(points[0].tolist()), tuple(points[-1].tolist()), width)
        for points, width in zip(drawn.get_segments(), drawn.get_linewidths(), strict=True)
    ]


def test_edges_from_the_threshold_on_weakest_first_without_loops():
    assert chosen(three_nodes()) == [(2, 0, 0.1), (0, 1, 0.2), (1, 0, 0.7)]
    assert chosen(three_nodes(), 0.5) == [(1, 0, 0.7)]
    flags = [["", "yes", "yes"], ["no", "", "yes"], ["yes", "yes", ""]]
    assert chosen(three_nodes(flags=flags)) == [(2, 0, 0.1), (0, 1, 0.2)]
    many = make_run(30, loops=0.0)
    found = chosen(many, 0.001)
    assert len(found) == MOST_EDGES
    assert found[-1][2] == many.edges["probability"].max()


def test_edges_go_from_source_to_target_and_are_as_thick_as_probable():
    drawn = lines(draw_network(PROBS, NAMES, PLACES))
    places = [(117.0, 40.5), (116.0, 40.0)]  # longitude to the right, latitude up
    assert [edge[:2] for edge in drawn] == [((116.0, 40.0), (116.5, 39.5)), tuple(places), tuple(places[::-1])]
    assert [edge[2] for edge in drawn] == pytest.approx([0.3 + 2.2 * p for p in (0.1, 0.2, 0.7)])


def test_arrows_are_at_the_node_that_reads_and_an_edge_is_not_its_reverse():
    figure = draw_network(PROBS, NAMES, PLACES, threshold=0.15)  # b -> a and a -> b
    (heads,) = (item for item in figure.axes[0].collections if isinstance(item, PolyCollection))
    tips = [path.vertices[0] for path in heads.get_paths()]
    for tip, reader, sender in zip(tips, PLACES[[0, 1], ::-1], PLACES[[1, 0], ::-1], strict=True):
        assert np.linalg.norm(tip - reader) < 0.05 * np.linalg.norm(tip - sender)
    (drawn,) = (item for item in figure.axes[0].collections if isinstance(item, LineCollection))
    there, back = (points[len(points) // 2] for points in drawn.get_segments())
    assert np.linalg.norm(there - back) > 0.1


def test_maps_and_planes():
    globe = draw_network(PROBS, NAMES, PLACES).axes[0]
    assert globe.get_xlabel() == "longitude"
    assert globe.get_aspect() == pytest.approx(1 / math.cos(math.radians(40.0)))
    plane = draw_network(PROBS, NAMES, PLACES, globe=False, threshold=0.5, title="t").axes[0]
    assert plane.get_xlabel() == ""
    assert plane.get_title() == "t"
    assert lines(plane.figure) == [((40.0, 116.0), (40.5, 117.0), pytest.approx(0.3 + 2.2 * 0.7))]
    assert draw_network(PROBS, NAMES).axes[0].get_title() == "edges with probability 0.1 or more, 3 drawn"
    run = run_places(three_nodes(PLACES.tolist(), metric="euclidean"))
    assert (run.kind, run.x.tolist()) == ("plane", PLACES[:, 0].tolist())


def test_nothing_to_draw():
    assert draw_network(np.zeros((3, 3)), NAMES).axes[0].get_title().endswith("0 drawn")
    assert np.linalg.norm(circle(5), axis=1) == pytest.approx(np.ones(5))


def test_a_layout_is_the_same_every_time_and_puts_linked_nodes_near_each_other():
    """Fifteen groups of thirty: nodes of a group are nearer to each other than to others, by far."""
    group = np.repeat(np.arange(15), 30)
    rng = np.random.default_rng(0)
    source = rng.integers(0, 450, 4000)
    target = 30 * group[source] + rng.integers(0, 30, 4000)
    places = spring_layout(450, source, target, np.ones(4000))
    assert np.array_equal(places, spring_layout(450, source, target, np.ones(4000)))
    assert np.abs(places).max() == pytest.approx(1.0)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    same = group[:, None] == group[None]
    assert apart[same].mean() < 0.35 * apart[~same].mean()


def test_a_layout_of_a_thousand_nodes_is_quick():
    """0.3 s of one core where it was measured; networkx takes 3."""
    run = make_run(1000, candidates=20)
    columns = run.edges.each_once()
    start = time.process_time()
    assert len(run_places(run, columns).node) == 1000
    assert time.process_time() - start < 5


def test_of_too_many_nodes_those_with_the_most_probable_edges_are_placed():
    run = make_run(MOST_PLACED + 500, candidates=3)
    places = run_places(run)
    assert len(places.node) == MOST_PLACED
    strongest = run.edges.each_once()
    first = strongest.index.at(strongest.strongest(300))
    assert set(first.source.tolist()) | set(first.target.tolist()) <= set(places.node.tolist())


def test_names_are_text_whatever_they_are_made_of(tmp_path):
    """No formula, no tag."""
    figure = draw_run_network(three_nodes())
    figure.savefig(tmp_path / "a.png")
    assert {text.get_text() for text in figure.axes[0].texts} >= set(NAMES)


def test_columns_keep_what_is_known_of_each_edge():
    edges = EdgeTable.of_matrices("ab", probability=[[0.0, 0.2], [0.4, 0.0]], truth=[[0.0, 0.0], [1.0, 0.0]])
    assert edges.at(edges.strongest(1))["truth"].tolist() == [1.0]
    assert edges.at([0])["low"] is None


def test_with_evidence_the_listed_edges_are_drawn_in_the_colour_of_their_sign():
    run = make_run(8, evidence=True)
    exists, effect = run.edges.matrix("exists"), run.edges.matrix("effect")
    listed = exists >= 0.9
    figure = draw_run_network(run)
    (drawn,) = (item for item in figure.axes[0].collections if isinstance(item, LineCollection))
    colours = [tuple(colour[:3]) for colour in drawn.get_colors()]
    assert len(colours) == listed.sum()
    assert colours.count(to_rgb("#d55e00")) == (listed & (effect < 0)).sum()
    assert colours.count(to_rgb("#0072b2")) == (listed & (effect > 0)).sum()
    assert figure.axes[0].get_title() == f"{listed.sum()} listed edges"

"""A learned graph over places: which edges, which way, how strong."""

import math

import numpy as np
import pytest

from tacit.records import EdgeFindings, Record, Run
from tacit.report import draw_network
from tacit.report.network import MOST_EDGES, circle, draw_run_network, interactive_network, shown_edges

NAMES = ["a", "$b_", "<i>c</i>"]
PLACES = np.array([[40.0, 116.0], [40.5, 117.0], [39.5, 116.5]])
PROBS = np.array([[0.9, 0.2, 0.05], [0.7, 0.9, 0.0], [0.1, 0.0, 0.9]])


def make_run(coordinates=None, metric="great_circle"):
    record = Record(
        title="run", command="tacit fit", config={"graph": {"metric": metric}}, seed=0, versions={}, device="cpu",
        timings={"train_seconds": 1.0, "steps": 2}, replicas=[], best_replica=0, node_names=NAMES,
        metrics={"point_mae": 0.1, "point_mse": 0.2, "distribution_loss": 0.3}, preparation={"kind": "series"},
        coordinates=coordinates,
    )  # fmt: skip
    return Run(record=record, edge_probs=PROBS.tolist(), edges=EdgeFindings(), history=[])


def arrows(figure):
    """From, to and width of every arrow that was drawn."""
    found = [text for text in figure.axes[0].texts if getattr(text, "arrow_patch", None) is not None]
    return [(tuple(text.xyann), tuple(text.xy), text.arrow_patch.get_linewidth()) for text in found]


def test_edges_from_the_threshold_on_weakest_first_without_loops():
    assert shown_edges(PROBS) == [(2, 0, 0.1), (0, 1, 0.2), (1, 0, 0.7)]
    assert shown_edges(PROBS, 0.5) == [(1, 0, 0.7)]
    many = np.linspace(0.2, 0.9, 400).reshape(20, 20)
    assert len(shown_edges(many)) == MOST_EDGES
    assert shown_edges(many)[-1][:2] == (19, 18)


def test_arrows_go_from_source_to_target_and_are_as_thick_as_probable():
    drawn = arrows(draw_network(PROBS, NAMES, PLACES))
    places = [(117.0, 40.5), (116.0, 40.0)]  # longitude to the right, latitude up
    assert [arrow[:2] for arrow in drawn] == [((116.0, 40.0), (116.5, 39.5)), tuple(places), tuple(places[::-1])]
    assert [arrow[2] for arrow in drawn] == pytest.approx([0.3 + 2.2 * p for p in (0.1, 0.2, 0.7)])


def test_maps_and_planes():
    globe = draw_network(PROBS, NAMES, PLACES).axes[0]
    assert globe.get_xlabel() == "longitude"
    assert globe.get_aspect() == pytest.approx(1 / math.cos(math.radians(40.0)))
    plane = draw_network(PROBS, NAMES, PLACES, globe=False, threshold=0.5, title="t").axes[0]
    assert plane.get_xlabel() == ""
    assert plane.get_title() == "t"
    assert arrows(plane.figure) == [((40.0, 116.0), (40.5, 117.0), pytest.approx(0.3 + 2.2 * 0.7))]
    assert draw_network(PROBS, NAMES).axes[0].get_title() == "edges with probability 0.1 or more, 3 drawn"


def test_nodes_without_places_are_on_a_circle():
    assert np.linalg.norm(circle(5), axis=1) == pytest.approx(np.ones(5))
    assert len({tuple(place.round(6)) for place in circle(5)}) == 5


def test_names_are_text_whatever_they_are_made_of(tmp_path):
    """No formula, no tag."""
    figure = draw_run_network(make_run())
    figure.savefig(tmp_path / "a.png")
    assert {text.get_text() for text in figure.axes[0].texts} >= set(NAMES)
    page = interactive_network(make_run(PLACES.tolist()))
    assert list(page.data[0].text) == ["a", "$b_", "&lt;i&gt;c&lt;/i&gt;"]


def test_the_page_has_the_same_arrows():
    figure = interactive_network(make_run(PLACES.tolist()))
    found = [((arrow.ax, arrow.ay), (arrow.x, arrow.y), arrow.arrowwidth) for arrow in figure.layout.annotations]
    assert found == [(a, b, pytest.approx(w)) for a, b, w in arrows(draw_run_network(make_run(PLACES.tolist())))]
    assert figure.layout.xaxis.title.text == "longitude"
    assert figure.data[0].customdata[1] == "reads a 0.70"
    plane = interactive_network(make_run(PLACES.tolist(), metric="euclidean"))
    assert (plane.layout.annotations[0].ax, plane.layout.xaxis.visible) == (40.0, False)

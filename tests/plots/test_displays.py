"""Displays: the convention of scikit-learn, what each draws from, and calls that cannot be drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from made_runs import make_run, with_edges, write_directory
from tacit import CalibrationDisplay, EdgeMatrixDisplay, GraphDisplay, LatentGraphForecaster, TrainingDisplay
from tacit.report.network import LETTER, SIZE

DISPLAYS = {
    "graph": GraphDisplay,
    "matrix": EdgeMatrixDisplay,
    "calibration": CalibrationDisplay,
    "training": TrainingDisplay,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run directory with a truth and a training."""
    return write_directory(make_run(6, truth=True, errors=True), tmp_path_factory.mktemp("made") / "run")


def axes():
    return Figure(figsize=(6, 4)).subplots()


def widths(ax):
    (lines,) = (one for one in ax.collections if isinstance(one, LineCollection))
    return lines.get_linewidths()


def texts(ax):
    return [one.get_text() for one in ax.texts]


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_draws_on_the_axes_that_are_passed_and_is_returned(name, made):
    ax = axes()
    display = DISPLAYS[name].from_run(made, ax=ax)
    assert isinstance(display, DISPLAYS[name])
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert plt.get_fignums() == []  # pyplot was not asked
    assert ax.has_data() or ax.collections
    again = display.plot()
    assert again is display
    assert again.ax_ is not ax
    assert plt.get_fignums() == [1]


@pytest.mark.parametrize("name", ["graph", "matrix", "calibration"])
def test_an_estimator_and_its_run_are_drawn_alike(name, fitted, run_directory):
    one, two = axes(), axes()
    DISPLAYS[name].from_estimator(fitted, ax=one)
    DISPLAYS[name].from_run(run_directory, ax=two)
    assert one.get_title() == two.get_title()
    assert texts(one) == texts(two)
    assert len(one.get_children()) == len(two.get_children())


def test_what_cannot_be_drawn_is_said(tmp_path, fitted, made, refused):
    refused(GraphDisplay.from_estimator, LinearRegression())
    with pytest.raises(NotFittedError):
        GraphDisplay.from_estimator(LatentGraphForecaster())
    refused(GraphDisplay.from_run, made, ax=[axes()])
    refused(TrainingDisplay.from_estimator, fitted)
    (tmp_path / "demo" / "known").mkdir(parents=True)
    refused(GraphDisplay.from_run, tmp_path / "demo")
    refused(GraphDisplay.from_run, tmp_path)
    refused(TrainingDisplay.from_run, made, metric="loss")
    refused(EdgeMatrixDisplay.from_run, made, values="exist")
    refused(GraphDisplay.from_run, made, colour_by="sign")
    refused(GraphDisplay.from_run, made, threshold=2)


def test_a_graph_shows_the_listed_edges_with_their_numbers(fitted):
    ax = axes()
    GraphDisplay.from_estimator(fitted, ax=ax)
    assert ax.get_title() == "1 edge listed"
    (number,) = fitted.listed_edges()["probability"]
    assert sorted(texts(ax)) == sorted([f"{number:.2f}", "a", "b", "<c>"])
    assert widths(ax) == pytest.approx([0.3 + 2.2 * number])


def test_numbers_have_intervals_where_they_are_known_and_stay_away_from_many_edges():
    few = make_run(3, errors=True)
    ax = GraphDisplay(few, threshold=0.3).plot(axes()).ax_
    said = [text for text in texts(ax) if "[" in text]
    chosen = few.edges.at((few.edges["probability"] >= 0.3) & few.edges.index.between)
    numbers = zip(*(chosen[name] for name in ("probability", "low", "high")), strict=True)
    expected = [f"{probability:.2f} [{low:.2f}, {high:.2f}]" for probability, low, high in numbers]
    assert sorted(said) == sorted(expected)
    assert not [text for text in texts(GraphDisplay(make_run(30, errors=True)).plot(axes()).ax_) if "[" in text]


def test_a_threshold_and_a_limit_choose_edges():
    run = make_run(20, evidence=True)
    ax = GraphDisplay(run, threshold=0.01, max_edges=7).plot(axes()).ax_
    assert len(widths(ax)) == 7
    assert ax.get_title().endswith("edges with exists of at least 0.01, the 7 most likely drawn")


def test_names_of_many_nodes_do_not_overlap():
    run = make_run(120, evidence=True)
    display = GraphDisplay(run)
    figure = Figure(figsize=display.figsize)
    ax = display.plot(figure.subplots()).ax_
    figure.draw_without_rendering()
    shown = [text for text in ax.texts if text.get_text().startswith("node ")]
    boxes = [text.get_window_extent() for text in shown]
    assert 10 <= len(shown) < 120
    crossed = [
        (one, two)
        for place, one in enumerate(boxes)
        for two in boxes[:place]
        if min(one.x1, two.x1) - max(one.x0, two.x0) > 1 and min(one.y1, two.y1) - max(one.y0, two.y0) > 2
    ]
    assert not crossed
    widest = max(box.width for box in boxes)
    assert widest <= 1.1 * max(len(text.get_text()) for text in shown) * LETTER * SIZE * figure.dpi / 72


def test_a_matrix_has_targets_down_and_sources_across():
    run = with_edges(make_run(3), probability=[[0, 0.2, 0.4], [0.1, 0, 0.7], [0, 0, 0]])
    display = EdgeMatrixDisplay(run).plot(axes())
    assert display.values == "probability"
    image = display.ax_.images[0].get_array()
    assert image[1, 2] == 0.7
    assert [display.ax_.get_xlabel(), display.ax_.get_ylabel()] == ["source", "target"]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == run.record.node_names


def test_a_matrix_of_effects_is_centred_and_edges_that_are_not_kept_are_empty():
    run = make_run(12, evidence=True)
    effects = EdgeMatrixDisplay(run, values="effect").plot(axes()).ax_.images[0]
    assert effects.norm.vmin == -effects.norm.vmax
    acts = EdgeMatrixDisplay(run, values="probability").matrix
    np.testing.assert_array_equal(np.isnan(acts), run.edges.matrix("exists") < run.record.keep)
    assert EdgeMatrixDisplay(run).values == "exists"


def test_of_many_nodes_the_matrix_shows_those_with_the_most_likely_edges():
    run = make_run(300, candidates=4, evidence=True)
    display = EdgeMatrixDisplay(run, max_nodes=50).plot(axes())
    assert display.matrix.shape == (50, 50)
    assert display.ax_.get_title() == "the 50 nodes with the most likely edges, of 300"
    assert len(display.ax_.get_xticks()) <= 40
    best, index = run.edges["exists"].argmax(), run.edges.index
    assert {index.source[best], index.target[best]} <= set(display.nodes.tolist())


def test_calibration_of_edges_where_the_truth_is_known(made, fitted, refused):
    assert CalibrationDisplay.from_run(made, ax=axes()).kind == "edges"
    truth = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    display = CalibrationDisplay.from_estimator(fitted, truth=truth, ax=axes())
    predicted, true, count = display.bins
    assert (true, sum(count)) == ([0.0, 1.0], 9)
    assert predicted == pytest.approx([0.0, fitted.edge_probs_[0, 1]])
    refused(CalibrationDisplay.from_estimator, fitted, truth=np.eye(2))


def test_calibration_of_intervals_is_that_of_the_test_part_or_of_new_data(
    fitted, run_directory, table, tmp_path, refused
):
    metrics = fitted.record_.metrics
    display = CalibrationDisplay.from_estimator(fitted, ax=axes())
    assert display.kind == "intervals"
    assert [point["covered"] for point in display.coverage] == [
        metrics[f"coverage_{level}"] for level in (0.5, 0.8, 0.95)
    ]
    new = CalibrationDisplay.from_estimator(fitted, table[200:], ax=axes())
    expected = fitted.evaluate(table[200:])["metrics"]["coverage_0.8"]
    assert new.coverage[1]["covered"] == expected
    table[200:].to_csv(tmp_path / "new.csv")
    stored = CalibrationDisplay.from_run(run_directory, tmp_path / "new.csv", ax=axes())
    assert stored.coverage[1]["covered"] == pytest.approx(expected, abs=0.02)
    refused(CalibrationDisplay.from_estimator, fitted, kind="ranks")
    refused(CalibrationDisplay.from_estimator, fitted, kind="edges")


def test_ranks_of_the_fit_test():
    run = make_run(4)
    ax = CalibrationDisplay(run, kind="ranks").plot(axes()).ax_
    assert len(ax.lines) == 1 + 4  # the expected share, and a line per node


def test_training_shows_every_replica_and_the_kept_one_in_colour(made):
    ax = TrainingDisplay.from_run(made, ax=axes()).ax_
    assert ax.get_title() == "validation loss"
    assert len(ax.lines) == 3
    assert [line.get_linewidth() for line in ax.lines] == [1.8, 0.8, 0.8]

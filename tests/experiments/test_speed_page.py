"""The page about speed is what the figures give; they meet their targets, but one that the page says is missed."""

import statistics

import pytest

from benchmark_pages import drawing_of


@pytest.fixture(scope="module")
def drawing():
    return drawing_of("speed_page")


def test_the_page_is_drawn_from_the_figures(drawing):
    text = drawing.page(drawing.RESULTS)
    assert drawing.PAGE.read_text(encoding="utf-8") == text
    assert "{" not in text
    assert (drawing.PAGE.parent / "RESULTS.md").is_file()


@pytest.mark.parametrize(("name", "most", "seconds"), [("best", 0.0015, 20.0), ("larger", 0.0006, None)])
def test_the_best_accuracy(drawing, name, most, seconds):
    found = drawing.read(drawing.RESULTS, "best_h200")[name]
    assert statistics.mean(found["errors"]) <= most
    assert seconds is None or max(found["seconds"]) <= seconds


def test_the_papers_accuracy_on_two_cores(drawing):
    found = drawing.read(drawing.RESULTS, "best_cpu")["quick"]
    assert max(found["errors"]) <= 0.010
    assert max(found["seconds"]) <= 3.0


def test_eight_replicas_and_ten_epochs(drawing):
    found = drawing.read(drawing.RESULTS, "limit_h200")
    assert found["known"]["fit_seconds"] <= 0.3
    assert found["known"]["over_floor"] > 1


def test_many_nodes(drawing):
    small, *_, large = drawing.read(drawing.RESULTS, "scale_cpu")["results"]
    assert small["nodes"] <= 1_010
    assert large["nodes"] >= 10_000
    assert large["candidates"] >= 500_000
    assert large["auroc"] >= 0.99
    assert large["gigabytes"] <= 8
    assert large["of_linear"] <= 1
    assert drawing.read(drawing.RESULTS, "scale_h200")["results"][-1]["candidates"] >= 5_000_000


def test_a_step_against_pyg(drawing):
    """The target of 10 against the careful version is not met, and the page says so."""
    rows = drawing.read(drawing.RESULTS, "step_vs_pyg")["results"]
    for psi in ("known", "trained"):
        ratio = {
            row["implementation"]: row["ratio"]
            for row in rows
            if (row["theta"], row["graphs"], row["psi"]) == ("true", "shared", psi)
        }
        assert ratio["PyG, usual"] >= 100
        assert ratio["PyG, careful"] >= 5
        assert (ratio["PyG, careful"] >= 10) == ("NOT met (>= 10)" not in _line(drawing, psi))


def _line(drawing, psi):
    return next(line for line in drawing.page(drawing.RESULTS).splitlines() if line.startswith(f"| shared | {psi} |"))

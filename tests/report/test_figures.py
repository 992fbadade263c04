"""Figures for papers: every format, the same bytes each time, quick."""

import re

import pytest

from made_runs import make_run
from tacit.errors import InputError
from tacit.report import draw_figures, draw_run


@pytest.mark.parametrize("kind", ["pairs", "candidates"])
def test_every_figure_in_every_format_and_the_same_bytes_again(kind, tmp_path):
    run = make_run(60, candidates=5) if kind == "candidates" else make_run(12, truth=True, coordinates=True)
    paths = draw_figures(run, tmp_path / "one")
    names = {"edge_probs", "network", "losses", "ranks"} | ({"reliability"} if kind == "pairs" else set())
    assert {path.name for path in paths} == {f"{name}.{suffix}" for name in names for suffix in ("png", "pdf", "svg")}
    for path in draw_figures(run, tmp_path / "two"):
        assert path.read_bytes() == (tmp_path / "one" / path.name).read_bytes(), path.name


def test_no_file_has_a_date(tmp_path):
    for path in draw_figures(make_run(4), tmp_path):
        assert not re.search(rb"CreationDate|<dc:date>", path.read_bytes()), path.name


@pytest.mark.parametrize("name", ["figures", "report.html"])
def test_a_run_with_a_link_is_not_drawn_into_its_target(name, tmp_path):
    """A run from somebody else must not write outside of its directory."""
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=f"{name} must not be a link"):
        draw_run(tmp_path / "run", make_run(4))
    assert list((tmp_path / "elsewhere").iterdir()) == []

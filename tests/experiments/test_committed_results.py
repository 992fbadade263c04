"""The committed page is what the committed records give."""

from pathlib import Path

import pytest

from tacit.experiments import runner
from tacit.experiments.registry import STUDIES

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_the_page_is_drawn_from_the_records():
    assert (RESULTS / runner.PAGE).read_text(encoding="utf-8") == runner.results_page(RESULTS)


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_study_is_whole_and_full_size(name):
    records = runner.read_records(RESULTS / name)
    options = [values["options"] for values in records.values()]
    assert not any(one["quick"] for one in options)
    assert {one["seeds"] for one in options} == {8}
    assert {task.name for task in STUDIES[name].tasks()} == set(records)
    for figure in STUDIES[name].figures(records):
        assert (RESULTS / name / f"{figure}.png").is_file()

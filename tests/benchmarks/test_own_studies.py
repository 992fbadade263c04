"""The studies that need no data of the user's, in small: tasks run, and tables and figures come from the records."""

import pytest
from benchmarks.studies import STUDIES
from benchmarks.studies.__main__ import PAGE, main

from tacit.experiments import replication, runner

TINY = {
    "benchmarks.studies.sample_size.SIZES": (500, 28_000),
    "benchmarks.studies.sample_size.QUICK_STEPS": 2,
    "benchmarks.studies.correlated_edges.QUICK_PAIRS": 300,
    "benchmarks.studies.correlated_edges.WORDS": {"independent": "one by one", "rows": "all or none"},
    "tacit.assessment.evaluation.metrics.POINT_GRAPHS": 50,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, study in STUDIES.items() if study.needs_data is None])
def test_a_study_runs_and_draws(name, tmp_path, monkeypatch, capsys, unchecked):
    for place, value in TINY.items():
        monkeypatch.setattr(place, value)
    plain = replication.fit
    monkeypatch.setattr(replication, "fit", lambda *parts, **options: plain(*parts, **{**options, "compile": False}))
    main([name, "--quick", "--seeds", "2", "--device", "cpu", "--out", str(tmp_path)])
    assert capsys.readouterr().out.startswith(f"## {name}")
    records = runner.read_records(tmp_path / name)
    assert set(records) == set(STUDIES[name].tasks())
    for table in STUDIES[name].tables(records):
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert f"## {name}" in (tmp_path / PAGE).read_text()

"""Every study in small: its tasks run, tables and figures come from the records alone, and nothing is done twice."""

import json
import re

import pytest
import torch
from joblib import cpu_count

from tacit.experiments import STUDIES, Listener, Options, replication, runner
from tacit.experiments.losses import elbo_grid, p_value, steps_to
from tacit.experiments.replication import column, good_runs, mean_and_deviation
from tacit.experiments.study import Table
from tacit.experiments.theory import injective, off_all_hyperplanes
from tacit.experiments.variations import masks
from tacit.systems import community_edge_probs

TINY = Options(seeds=2, quick=True)


def run_study(name, directory, options, **how):
    runner.run_studies([STUDIES[name]], directory, options, **how)
    return runner.section(STUDIES[name], directory)


@pytest.fixture
def tiny(monkeypatch):
    """A few hundred pairs, one epoch, no compiler: seconds for each study."""
    monkeypatch.setattr(replication, "QUICK_PAIRS", 300)
    monkeypatch.setattr(replication, "QUICK_EPOCHS", 1)
    plain = replication.fit
    monkeypatch.setattr(replication, "fit", lambda *parts, **options: plain(*parts, **{**options, "compile": False}))
    monkeypatch.setattr("tacit.experiments.theory.QUICK_PAIRS", 300)
    monkeypatch.setattr("tacit.assessment.evaluation.metrics.POINT_GRAPHS", 50)


SLOW = (
    "air-quality",
    "generic-gnn",
    "larger-graph",
    "learned-graph",
    "losses",
    "num-graphs",
    "perturbed",
    "validation",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in STUDIES]
)
def test_every_study_runs_draws_and_continues(tiny, tmp_path, name, unchecked):
    text = run_study(name, tmp_path, TINY)
    assert text.startswith(f"## {name}")
    records = runner.read_records(tmp_path / name)
    assert set(records) == set(STUDIES[name].tasks())
    assert all(values["seconds"] >= 0 and values["options"]["quick"] for values in records.values())
    for table in STUDIES[name].tables(records):
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    if any("runs" in values or "errors" in values for values in records.values()):
        assert "cut short (--quick)" in text
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / name / "records").iterdir()}
    one = next(iter(times))
    one.unlink()  # as after an interruption
    assert run_study(name, tmp_path, TINY).splitlines()[0] == text.splitlines()[0]
    again = {path: path.stat().st_mtime_ns for path in (tmp_path / name / "records").iterdir()}
    assert [path for path in times if again[path] != times[path]] == [one]
    page = runner.write_page(tmp_path, STUDIES.values()).read_text()
    assert f"## {name}" in page
    assert all((tmp_path / figure).is_file() for figure in re.findall(r"!\[.*?\]\((.*?)\)", page))


def test_tasks_side_by_side_give_the_same_records(tmp_path, monkeypatch):
    """Without training, so that the processes start no second compiler; each has its share of the cores."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run_study("injectivity", tmp_path / "one", TINY)
    run_study("injectivity", tmp_path / "two", TINY, jobs=2)
    one, two = (runner.read_records(tmp_path / part / "injectivity") for part in ("one", "two"))
    assert {name: values["normal"] for name, values in one.items()} == {n: v["normal"] for n, v in two.items()}
    assert {values["device"] for values in two.values()} == {f"cpu ({max(1, cpu_count() // 2)} threads)"}


def test_records_of_another_size_are_not_mixed(tmp_path, refused):
    run_study("injectivity", tmp_path, TINY)
    refused(run_study, "injectivity", tmp_path, Options(seeds=3))


def test_a_damaged_record_is_named(tmp_path, refused):
    run_study("counterexample", tmp_path, TINY)
    path = tmp_path / "counterexample" / "records" / "curves.json"
    path.write_text(path.read_text()[:50])
    refused(runner.draw_study, STUDIES["counterexample"], tmp_path)


def test_a_note_of_two_tables_is_written_once(tmp_path):
    run_study("injectivity", tmp_path, TINY)

    class Twice(type(STUDIES["injectivity"])):
        def tables(self, records):
            del records
            return [Table("One", ["a"], [["1"]], ["shared", "own"]), Table("Two", ["a"], [["2"]], ["shared"])]

    assert runner.section(Twice(), tmp_path).count("- shared") == 1


def test_counterexample_is_flat_where_the_paper_says(tmp_path):
    run_study("counterexample", tmp_path, TINY)
    curves = json.loads((tmp_path / "counterexample" / "records" / "curves.json").read_text())["curves"]
    above = curves["point MAE"][51:]
    assert max(above) - min(above) < 1e-12
    for name in ("MMD", "energy score"):
        assert min(range(101), key=curves[name].__getitem__) == 75


def test_injectivity_by_rows_equals_the_lemma():
    inputs = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [0.0, 1.0, 5.0]], dtype=torch.float64)
    assert injective(inputs).tolist() == off_all_hyperplanes(inputs).tolist() == [False, True, False]


def test_sets_of_entries_of_the_misconfigured_study():
    counts = {name: int(mask.sum()) for name, mask in masks().items()}
    assert counts["fixed at 0.25"] == 14
    assert counts["free, an end in the second community"] == 108  # 75% of 144
    assert int((community_edge_probs()[:6, :6] > 0).sum()) == 24


def test_elbo_grid_has_the_settings_of_the_paper():
    grid = elbo_grid(community_edge_probs())
    assert len(grid) == 18
    assert {config.likelihood_sd for config in grid.values()} == {0.001, 0.005, 0.01, 0.05, 0.1, 0.5}
    informed = torch.tensor(grid["prior 0.75 on true edges, 0.05 elsewhere, sd 0.1"].prior)
    assert torch.equal(informed, torch.where(community_edge_probs() > 0, 0.75, 0.05))


def test_basins_and_columns():
    runs = [{"validation_loss": loss, "edge_prob_mae": loss} for loss in (-1.0, -0.98, -0.9, -1.01)]
    values = {"runs": runs}
    assert good_runs(values) == [0, 1, 3]
    assert column(values, "edge_prob_mae") == [-1.0, -0.98, -1.01]
    assert len(column(values, "edge_prob_mae", good=False)) == 4
    assert mean_and_deviation([]) == "–"


def test_steps_to_an_error():
    values = {"steps_seen": [10, 20, 30], "errors": [[0.3, 0.2, 0.1], [0.3, 0.3, 0.3]]}
    assert steps_to(values, 0.25) == [20, None]


def test_table_as_markdown():
    table = Table("T", ["a", "b"], [["1", "2"]], ["note"])
    assert table.markdown() == "**T**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- note\n"


def test_ctrl_c_in_a_training_leaves_no_record(tiny, tmp_path, unchecked):
    """Half a training is not a finished one: the next start does it again."""

    def stop(progress):
        if progress.step >= 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study("misconfigured", tmp_path, Options(seeds=2), listener=Listener(step=stop))
    assert runner.read_records(tmp_path / "misconfigured") == {}
    run_study("misconfigured", tmp_path, TINY)
    assert runner.read_records(tmp_path / "misconfigured")


def test_what_cannot_start_is_refused_before_any_work(tmp_path, refused):
    (tmp_path / "file").write_text("")
    refused(run_study, "injectivity", tmp_path / "file", TINY)
    refused(run_study, "injectivity", tmp_path, Options(device="cuda"), jobs=2)
    records = tmp_path / "counterexample" / "records"
    records.mkdir(parents=True)
    (records / "curves.json").write_text("[]")
    refused(runner.require_startable, [STUDIES["injectivity"], STUDIES["counterexample"]], tmp_path, TINY)


def test_welch():
    """Equal means: no evidence. Far apart: much. Too few runs: none can be had."""
    assert p_value([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == pytest.approx(1.0)
    assert p_value([1.0, 1.1, 0.9], [9.0, 9.1, 8.9]) < 1e-4
    assert p_value([1.0], [9.0, 9.1]) is None
    assert p_value([1.0, 1.0], [2.0, 2.0]) == 0.0
    one_sided = p_value([0.010, 0.011, 0.012, 0.009], [0.012, 0.013, 0.012, 0.011])
    assert one_sided == pytest.approx(ttest_ind_from_formula(), abs=1e-9)


def ttest_ind_from_formula():
    """Welch's t by hand for the four runs above: t and degrees of freedom, then scipy's t distribution."""
    from scipy.stats import t

    a, b = torch.tensor([0.010, 0.011, 0.012, 0.009]).double(), torch.tensor([0.012, 0.013, 0.012, 0.011]).double()
    va, vb = a.var() / 4, b.var() / 4
    statistic = float((a.mean() - b.mean()) / (va + vb).sqrt())
    freedom = float((va + vb) ** 2 / (va**2 / 3 + vb**2 / 3))
    return 2 * t.sf(abs(statistic), freedom)


def test_claims_on_the_misconfigured_distribution_can_fail():
    """From made-up records: the truth itself holds the first claim and not the others."""
    truth = community_edge_probs()
    values = {"all_edge_probs": [truth.tolist()] * 2, "edge_probs": truth.tolist()}
    notes = "\n".join(STUDIES["misconfigured"].tables({"runs": values})[0].notes)
    assert notes.count("does not hold") == 2
    assert "MAE 0.0000: holds" in notes

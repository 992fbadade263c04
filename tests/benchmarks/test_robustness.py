"""Systems that break assumptions: graphs, shapes, backgrounds and seeds; scores of answers that are known."""

import json
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")

from benchmarks.existence.scores import calibration_error
from benchmarks.observation.methods import Answer
from benchmarks.robustness import __main__ as study
from benchmarks.robustness import page, records
from benchmarks.robustness.compass import COMPASS
from benchmarks.robustness.methods import filled
from benchmarks.robustness.systems import BACKGROUNDS, EDGES, KINDS, NONE, PLAIN, make, truths

OWN = [kind for kind in KINDS if kind not in COMPASS]


@pytest.mark.parametrize("kind", OWN)
def test_a_seed_gives_one_system_of_each_truth(kind):
    systems = {truth: make(kind, 3, truth) for truth in truths(kind)}
    assert not systems[NONE].truth.any()
    assert systems[EDGES].truth.any()
    assert not systems[EDGES].truth.diagonal().any()
    for truth, system in systems.items():
        values, again = system.series[0], make(kind, 3, truth).series[0]
        assert np.array_equal(values, again, equal_nan=True)
        assert 5 <= values.shape[1] <= 40
        assert 600 <= len(values) <= 3_000
        assert np.isfinite(values).all() or kind in ("missing_blocks", "gauges")
        assert (np.nanstd(values, 0) > 0).all()
        assert system.times is None or len(system.times) == len(values)


@pytest.mark.parametrize("seed", [4, 5])
@pytest.mark.parametrize("kind", BACKGROUNDS)
def test_a_background_is_all_that_differs_from_the_plain_system(kind, seed):
    whole, plain = make(kind, seed, EDGES), make(kind, seed, PLAIN)
    assert np.array_equal(whole.truth, plain.truth)
    difference = (whole.series[0] - plain.series[0]).std(0) / plain.series[0].std(0)
    assert difference.max() > 0.3
    if kind.startswith("one_of") and seed % 2 == 0:  # added: no other node has it
        assert (difference > 1e-9).sum() == 1


def test_missing_values_become_straight_lines():
    system = make("missing_blocks", 3, EDGES)
    values = filled(system).series[0]
    there = ~np.isnan(system.series[0])
    assert 0.1 <= 1 - there.mean() < 0.15
    assert np.array_equal(values[there], system.series[0][there])
    assert np.isfinite(values).all()


def test_the_truth_scores_perfectly_and_a_full_list_does_not():
    system = make("plain_var", 3, EDGES)
    edges = int(system.truth.sum())
    right = records.figures(Answer(system.truth.astype(float)), system)
    assert [right[key] for key in ("auroc", "aupr", "listed", "false", "expected_false")] == [1, 1, edges, 0, 0]
    everything = records.figures(Answer(np.full(system.truth.shape, 0.95)), system)
    pairs = system.num_nodes * (system.num_nodes - 1)
    assert (everything["listed"], everything["false"]) == (pairs, pairs - edges)
    assert everything["expected_false"] == pytest.approx(0.05 * pairs)
    found = records.summary([{"seed": 3, **everything}])
    assert found["calibration_error"] == pytest.approx(0.95 - edges / pairs, abs=0.05)


def test_a_study_keeps_errors_and_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    def answer(system):
        if system.series[0].shape[1] == 6:
            raise ValueError("six nodes")
        return Answer(system.truth.astype(float))

    monkeypatch.setitem(study.METHODS, "tacit", answer)
    arguments = ["robustness", "--kinds", "plain_var,weekend", "--truth", "edges", "--first", "3"]
    for sets in (1, 2):
        monkeypatch.setattr(sys, "argv", [*arguments, "--sets", str(sets), "--out", str(tmp_path)])
        study.main()
    rows = [json.loads(line) for line in (tmp_path / "tacit.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["kind"], row["seed"]) for row in rows] == [
        ("plain_var", 3),
        ("weekend", 3),
        ("plain_var", 4),
        ("weekend", 4),
    ]
    assert "FAILED 2: ValueError: six nodes" in capsys.readouterr().out
    found = records.summaries(rows)
    assert found["plain_var"][EDGES]["auroc"] == [1, 1]
    assert found["weekend"][EDGES]["seeds"] == []


@pytest.mark.parametrize("kind", ["cc_trendseason_var", "cc_gaps_lorenz", "cc_mixed_var"])
def test_data_sets_of_causalcompass_leave_the_global_generators_alone(kind):
    pytest.importorskip("einops")
    if not _installed("causalcompass"):
        pytest.skip("causalcompass is not installed")
    before = np.random.get_state()[1].copy()
    first, second = make(kind, 2, EDGES), make(kind, 2, EDGES)
    assert np.array_equal(before, np.random.get_state()[1])
    assert np.array_equal(first.series[0], second.series[0], equal_nan=True)
    assert first.series[0].shape == (1_000, 10)
    assert np.isnan(first.series[0]).any() == ("gaps" in kind)
    assert (first.truth.sum(1) == (3 if "lorenz" in kind else 1)).all()


def _installed(name):
    from importlib.util import find_spec

    return name in sys.modules or find_spec(name) is not None


def test_the_page_has_the_figures_of_the_records(tmp_path):
    edges = {"kind": "trend", "truth": EDGES, "edges": 9, "seconds": 1.0}
    probabilities = {"listed": 10, "expected_false": 0.5, "may_exist": [0.9], "may_exist_true": [0]}
    probabilities |= {"reached": 0, "driver": True, "causes": ["driver", "noise"]}
    none = {"kind": "trend", "truth": NONE, "edges": 0, "auroc": None, "aupr": None, "seconds": 3.0, **probabilities}
    lines = {
        "tacit": [
            *({**edges, **probabilities, "seed": seed, "auroc": 0.8, "aupr": 0.5, "false": seed} for seed in (1, 2)),
            {**none, "seed": 1, "listed": 0, "false": 0, "may_exist": [], "may_exist_true": []},
            {**none, "seed": 2, "listed": 3, "false": 3},
            {"kind": "trend", "truth": NONE, "seed": 3, "failed": "ValueError: no"},
        ],
        "ridge": [{**edges, "seed": seed, "auroc": 0.8 + 0.05 * seed, "aupr": 0.5} for seed in (1, 2)],
    }
    for name, rows in lines.items():
        raw = records.path_of(tmp_path, name, ".jsonl")
        raw.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        records.write(name, tmp_path, tmp_path)
    text = page.page(tmp_path)
    assert "| tacit | 1 | 0.800 | 0.500 | 15.0% | 50.0% | 2 / 2 | 2.0 |" in text
    assert "each node | 0.800 | - | 0.875 ridge | 15.0% | - | - | 50% |" in text
    assert "trend (AUROC 0.800, ridge 0.875, difference -0.075 ± 0.025)." in text
    assert "| all kinds | tacit | 1.0 | 3 | +2.0 ± 1.0 | 1.0 | 3 | +2.0 ± 3.0 |" in text
    assert "| there is none | 4 | 100% |" in text
    every = page.full(tmp_path)
    cells = "0.800 ± 0.000 | 0.500 ± 0.000 | 15.0% | 0.100 | 50% | 1.5 | 2 / 2 | 1 | 2.0"
    assert f"| trend | tacit | {cells} |" in every
    assert "| trend | tacit | 1.0 | 3 | +2.0 ± 1.0 | 1.0 | 3 | +2.0 ± 3.0 |" in every
    assert "| trend | - | 2 / 2 | 100% | 100% | noise 100% |" in every


def test_stated_false_edges_are_compared_as_a_ratio_where_there_are_many():
    stated, false = [10.0, 11.0], [20, 22]
    assert page._compared(records.stated_and_realised([{"expected_false": stated, "false": false}]))[2] == "2.00 times"
    assert records.stated_and_realised([{"listed": [3]}]) is None


def test_pooled_calibration_is_that_of_all_pairs():
    rng = np.random.default_rng(3)
    rows = []
    for size in (40, 300):
        exists = rng.integers(10, 100, size) / 100
        edges = rng.random(size) < exists**2
        rows.append({"seed": 1, "may_exist": exists.tolist(), "may_exist_true": np.flatnonzero(edges).tolist()})
    together = records.pooled_calibration([records.summary([row]) for row in rows])
    exists = np.concatenate([row["may_exist"] for row in rows])
    edges = np.concatenate([np.isin(np.arange(len(row["may_exist"])), row["may_exist_true"]) for row in rows])
    assert together == pytest.approx(calibration_error(exists, edges), abs=0.02)  # ties at the bounds of bins


def test_hidden_series_reach_three_to_five_nodes():
    assert {make("hidden_lagged", seed, NONE).reached for seed in range(30)} == {3, 4, 5}
    assert make("returns", 1, NONE).reached == 25
    assert make("plain_var", 1, NONE).reached == 0

"""The GPVAR study: parts of a series that do not leak, scores that are what they are called, a table that counts."""

import pytest
import torch
from benchmarks.studies import gpvar_methods
from benchmarks.studies.gpvar import FIRST_DATA_SEED, GPVAR, SETTINGS
from benchmarks.studies.gpvar_methods import Steps, regression, trained
from benchmarks.studies.gpvar_system import GPVARSystem
from benchmarks.studies.ranking import edge_ranking

from tacit.data import ridge_regression
from tacit.experiments import Listener, Options
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.training import CosineDecay, FitSettings, LatentGraphModel

QUICK = Options(seeds=2, quick=True)


def test_parts_of_a_series_are_its_steps_in_order():
    system = GPVARSystem()
    parts, series = Steps(20, 6, 4).cut(system, seed=3), system.generate(30, seed=3)
    assert torch.equal(parts.train.inputs[0], series[:2].T)
    for part, first, last in ((parts.train, 2, 20), (parts.validation, 20, 26), (parts.test, 26, 30)):
        assert torch.equal(part.targets[..., 0], series[first:last])
        assert torch.equal(part.inputs[-1], series[last - 3 : last - 1].T)


def test_graphs_begin_where_they_should(rng):
    parts = Steps(400, 50, 50).cut(GPVARSystem(), seed=0)
    off = ~torch.eye(30, dtype=torch.bool)
    none = gpvar_methods._graph("no graph", parts)
    assert not none.probs_from(none.initial_parameters(rng)["edge_logits"] + 5).any()  # whatever training does
    few = gpvar_methods._graph("few edges", parts)
    start = few.probs_from(few.initial_parameters(rng)["edge_logits"])
    assert not start.diagonal().any()
    assert ((start[off] > 0.05) & (start[off] < 0.15)).all()
    ridge = gpvar_methods._graph("ridge", parts)
    starts = [ridge.probs_from(ridge.initial_parameters(rng)["edge_logits"]) for _ in range(2)]
    assert not torch.equal(*starts)
    assert not starts[0].diagonal().any()
    assert edge_ranking(starts[0], GPVARSystem().true_edge_probs)["auroc"] > 0.9


def test_point_errors_are_those_of_median_and_mean_over_graphs(monkeypatch):
    """Three nodes, one edge in doubt, in two chunks: what a loop over the same graphs gives."""
    monkeypatch.setattr(gpvar_methods, "CHUNK", 6)
    system = GPVARSystem(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    pairs = system.pairs(12, seed=0, window=2)
    graph = BernoulliGraph(0.6 * system.true_edge_probs)
    noise = GaussianNoise(3, initial_sigma=0.3)
    model = LatentGraphModel(graph, system.true_predictor(), EnergyScore(), observation=noise)
    generator = gpvar_methods.generator_for(0, "score")
    errors: dict[str, list[float]] = {"point_mae": [], "mean_mae": []}
    for part in (pairs[:6], pairs[6:]):
        graphs = graph.sample(gpvar_methods.SCORE_GRAPHS, generator=generator)
        outputs = torch.stack([system.true_predictor()(part.inputs, one[None, None])[:, 0] for one in graphs[0]])
        errors["point_mae"] += (outputs.median(0).values - part.targets).abs().flatten().tolist()
        errors["mean_mae"] += (outputs.mean(0) - part.targets).abs().flatten().tolist()
    found = gpvar_methods._point_errors(model, pairs)
    for name, values in errors.items():
        assert found[name] == pytest.approx(sum(values) / len(values), rel=1e-5)
    assert found["point_mae"] != pytest.approx(found["mean_mae"], rel=1e-3)
    assert found["mean_sigma"] == pytest.approx(0.3)


def test_psi_known_finds_the_graph_in_small(unchecked):
    """Series and starts are those of the seeds, so that this either always passes or never does."""
    parts = Steps(6_000, 200, 500).cut(GPVARSystem(), seed=0)
    settings = FitSettings(epochs=2, batch_size=64, schedule=CosineDecay(0.2))
    found = trained("few edges", settings, known=True)(parts, 0, QUICK, Listener())
    assert found["f1"] > 0.95
    assert found["point_mae"] < 0.40  # without a graph 0.68
    assert found["coefficients"] == [[5.0, 2.0], [-4.0, 6.0], [-1.0, 0.0]]
    assert found["mean_sigma"] < 0.49  # it started at 0.5; the truth is 0.4
    assert found["start_f1"] == [found["f1"]]


def test_the_run_is_the_start_with_the_lowest_validation_loss(unchecked):
    parts = Steps(300, 100, 50).cut(GPVARSystem(), seed=0)
    settings = FitSettings(epochs=2, batch_size=32, schedule=CosineDecay(0.1), predictor_learning_rate=0.3)
    found = trained("ridge", settings)(parts, 1, QUICK, Listener())
    losses = found["start_validation_loss"]
    assert len(losses) == gpvar_methods.QUICK_REPLICAS
    assert found["f1"] == found["start_f1"][losses.index(min(losses))]


def test_regressions_are_scored_on_the_test_part():
    parts = Steps(300, 100, 50).cut(GPVARSystem(), seed=0)
    fit = ridge_regression(parts.train, parts.validation)
    found = regression(ridge_regression)(parts, 0, QUICK, Listener())
    assert found["point_mae"] == pytest.approx(
        float((fit.predict(parts.test.inputs) - parts.test.targets).abs().mean())
    )
    assert found["penalty"] == fit.penalty
    assert "f1" not in found


@pytest.mark.parametrize(("seeds", "long", "short"), [(1, 1, 1), (4, 3, 4), (8, 3, 5)])
def test_the_number_of_series_is_what_was_asked_for_up_to_a_limit(seeds, long, short):
    work = {task.name: task.run for task in GPVAR().tasks()}
    for name, number in (("ridge-long", long), ("ridge-short", short)):
        runs = work[name](Options(seeds=seeds, quick=True), Listener())["runs"]
        assert [run["data_seed"] for run in runs] == list(range(FIRST_DATA_SEED, FIRST_DATA_SEED + number))


def record(f1: list[float], mae: list[float], steps: int = 120, starts: tuple[float, ...] = (1.0, 0.94)) -> dict:
    """What a task would have written, had it found this."""
    runs = [
        {"f1": a, "f1_top": a, "auroc": 0.75, "point_mae": b, "mean_mae": b + 0.01, "start_f1": list(starts)}
        for a, b in zip(f1, mae, strict=True)
    ]
    edge_probs = GPVARSystem().true_edge_probs.tolist()
    return {"runs": runs, "series": {"train": steps}, "optimal_mae": 0.32, "edge_probs": edge_probs, "options": {}}


def test_the_table_says_what_the_records_say():
    records = {
        "known-long": record([1.0, 1.0, 0.99], [0.32, 0.324, 0.32], steps=21_000),
        "learned-ridge-start": record([0.95, 0.949], [0.33, 0.35]),
        "known-short": record([0.96], [0.4]),
        "ridge-short": {
            "runs": [{"f1_top": 0.7, "auroc": 0.9, "point_mae": 0.6}],
            "series": {"train": 120},
            "optimal_mae": 0.32,
        },
    }
    (table,) = GPVAR().tables(records)
    assert [row[0] for row in table.rows] == ["psi known", "psi learned, ridge start", "psi known", "ridge VAR"]
    assert table.rows[0][1] == "21,000"
    assert table.rows[1][2:] == [
        "0.950 ± 0.001",
        "0.950 ± 0.001",
        "0.750 ± 0.000",
        "0.3400 ± 0.0141",
        "0.3200",
        "2 of 4",
        "2",
    ]
    assert table.rows[3] == ["ridge VAR", "120", "–", "0.700", "0.900", "0.6000", "0.3200", "–", "1"]
    assert table.notes[:3] == [
        "psi known, long series: every edge right and MAE within 1% of the optimal, 1 of 3",  # then 1.25%, then an edge
        "psi known, short series: F1 >= 0.95, 1 of 1",
        "psi learned, ridge start: F1 >= 0.95, 1 of 2",
    ]
    assert any("psi learned, ridge start, 120: 0.3500 ± 0.0141" in note for note in table.notes)
    assert not any("--quick" in note for note in table.notes)
    assert set(GPVAR().figures(records)) == {"heatmaps"}


def test_nothing_is_drawn_from_nothing():
    assert GPVAR().tables({})[0].rows == []
    assert GPVAR().figures({}) == {}
    assert {task.name for task in GPVAR().tasks()} == set(SETTINGS)


def test_a_training_that_was_stopped_is_no_record(unchecked):
    def stop(progress):
        if progress.step >= 1:
            raise KeyboardInterrupt

    parts = Steps(300, 50, 20).cut(GPVARSystem(), seed=0)
    with pytest.raises(KeyboardInterrupt):
        trained("few edges", FitSettings(epochs=1), known=True)(parts, 0, QUICK, Listener(step=stop))

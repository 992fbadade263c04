"""The GPVAR study: parts of a series that do not leak, scores that are what they are called, a table that counts."""

import math

import pytest
import torch
from benchmarks.studies import gpvar_methods
from benchmarks.studies.gpvar import FIRST_DATA_SEED, GPVAR, SETTINGS
from benchmarks.studies.gpvar_methods import Steps, regression, trained
from benchmarks.studies.gpvar_system import GPVARSystem, gpvar_graph
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
    work = GPVAR().tasks()
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
    assert set(GPVAR().tasks()) == set(SETTINGS)


def test_a_training_that_was_stopped_is_no_record(unchecked):
    def stop(progress):
        if progress.step >= 1:
            raise KeyboardInterrupt

    parts = Steps(300, 50, 20).cut(GPVARSystem(), seed=0)
    with pytest.raises(KeyboardInterrupt):
        trained("few edges", FitSettings(epochs=1), known=True)(parts, 0, QUICK, Listener(step=stop))


# ---------------------------------------------------------------- gpvar system


def test_the_setting_of_the_literature():
    """Cini et al. (2023): 5 communities of 6 nodes in a line, undirected, coefficients and noise as published."""
    graph = gpvar_graph()
    assert graph.shape == (30, 30)
    assert torch.equal(graph, graph.T)
    assert graph.unique().tolist() == [0.0, 1.0]
    assert graph.diagonal().sum() == 0
    assert graph.sum() == 2 * (5 * 9 + 4)
    assert graph[5, 6] == graph[11, 12] == graph[23, 24] == 1
    system = GPVARSystem()
    assert system.coefficients.tolist() == [[5, 2], [-4, 6], [-1, 0]]
    assert system.noise_sigma == 0.4
    assert system.optimal_mae == pytest.approx(0.3192, abs=5e-5)
    assert not any(value.requires_grad for value in system.true_predictor().parameters())


def test_each_step_is_the_filter_of_the_two_before_it_plus_noise():
    """The noise is what the generator drew, so the recursion can be checked to rounding; written out node by node."""
    system = GPVARSystem(coefficients=torch.tensor([[5, 2], [-4, 6], [-1, 0]], dtype=torch.float64))
    quiet = GPVARSystem(system.true_edge_probs, system.coefficients, 1e-9)  # the same draws, too small to matter
    series = quiet.generate(40, seed=3)
    shift = system.true_edge_probs.double() + torch.eye(30)
    for t in range(2, 40):
        before, older = series[t - 1], series[t - 2]
        total = 5 * older - 4 * (shift @ older) - shift @ shift @ older + 2 * before + 6 * (shift @ before)
        assert torch.allclose(series[t], torch.tanh(total), atol=1e-7)


def test_what_the_truth_leaves_is_white_gaussian_noise():
    """False alarms: each bound is at 4.5 standard errors, below one in 100,000."""
    system = GPVARSystem()
    pairs = system.pairs(3002, seed=1, window=2)
    predicted = system.true_predictor()(pairs.inputs, system.true_edge_probs[None, None])[:, 0]
    noise = (pairs.targets - predicted)[..., 0].double() / system.noise_sigma
    count = noise.numel()
    assert noise.mean().abs() < 4.5 / math.sqrt(count)
    assert (noise.square().mean() - 1).abs() < 4.5 * math.sqrt(2 / count)
    assert (noise.pow(4).mean() - 3).abs() < 4.5 * math.sqrt(96 / count)
    assert (noise[1:] * noise[:-1]).mean().abs() < 4.5 / math.sqrt(count)
    mae = system.noise_sigma * noise.abs().mean()
    assert (mae - system.optimal_mae).abs() < 4.5 * system.noise_sigma * math.sqrt((1 - 2 / math.pi) / count)


def test_windows_are_lag_major_with_the_newest_lag_last():
    system = GPVARSystem()
    series = torch.arange(6.0)[:, None] + 10 * torch.arange(30.0)
    pairs = system.cut(series, window=3)
    assert pairs.inputs.shape == (3, 30, 3)
    assert pairs.inputs[1, 2].tolist() == [21.0, 22.0, 23.0]
    assert pairs.targets[1, 2].tolist() == [24.0]
    assert pairs.targets[-1, 0].tolist() == [5.0]


def test_a_series_depends_on_the_seed_alone_and_starts_in_its_stride():
    system = GPVARSystem()
    first, again, other = system.generate(20, 1), system.generate(20, 1), system.generate(20, 2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first[:2].abs().mean() > 2 * system.noise_sigma * math.sqrt(2 / math.pi)  # noise alone would be half that


def test_errors(unchecked, refused):
    refused(GPVARSystem, noise_sigma=0.0)
    refused(GPVARSystem, torch.eye(3))
    refused(GPVARSystem, torch.full((3, 3), 0.5).fill_diagonal_(0))
    refused(GPVARSystem().generate, 0)
    refused(GPVARSystem().pairs, 100, window=1)
    refused(GPVARSystem().pairs, 12)
